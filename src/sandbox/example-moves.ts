import { CORRECTED, MOVING } from './examples.ts';
import type { Item, Market } from './market.ts';

/** All below what size 9 costs at first by more than 3 %. */
const PRICES_OF_9 = [4800, 4690, 4770, 4620, 4730] as const;
const PRICES_OF_CORRECTED = [7500, 7400, 7450, 7350, 7550] as const;
const CORRECTIONS = ['EU', 'UK', 'CM', 'US'] as const;

/**
 * Steps of the first moves: in each of the demo's first two snapshots one, so that a mirror soon has a history of
 * them. Then seldom, as a mirror that has been told of a move, and not yet asked, has no price that is safe to use.
 */
const FIRST_TURNS: readonly number[] = [4, 11];
const TURN_EVERY = 30;

/** What happens to the examples, beside the random moves, which spare them. */
export class ExampleMoves {
  readonly #market: Market;
  #steps = 0;
  #turns = 0;
  #corrections = 0;

  constructor(market: Market) {
    this.#market = market;
  }

  /** One step of the market. An example that was withdrawn or removed by hand stays so. */
  step(): void {
    this.#steps += 1;
    if (!FIRST_TURNS.includes(this.#steps) && this.#steps % TURN_EVERY !== 0) return;
    if (this.#isOffered(MOVING.sku)) this.#moveSizes();
    if (this.#isOffered(CORRECTED.sku)) this.#correct();
    this.#turns += 1;
  }

  #moveSizes(): void {
    this.#market.setPrice(MOVING.sku, '9', nth(PRICES_OF_9, this.#turns));
    if (this.#turns % 2 === 1) this.#market.dropSize(MOVING.sku, '11');
    else this.#market.setPrice(MOVING.sku, '11', MOVING.sizes['11'] ?? null);
  }

  #correct(): void {
    this.#market.setPrice(CORRECTED.sku, '8', nth(PRICES_OF_CORRECTED, this.#turns));
    if (this.#turns % (this.#turns < 4 ? 2 : 8) !== 1) return;
    this.#market.correctSizeType(CORRECTED.sku, nth(CORRECTIONS, this.#corrections));
    this.#corrections += 1;
  }

  #isOffered(sku: string): boolean {
    const item: Item | undefined = this.#market.find(sku);
    return (
      item !== undefined &&
      this.#market.examples.has(item) &&
      item.rows &&
      item.priceable &&
      this.#market.sizesOf(item).size > 0
    );
  }
}

function nth<T>(list: readonly [T, ...T[]], at: number): T {
  return list[at % list.length] ?? list[0];
}
