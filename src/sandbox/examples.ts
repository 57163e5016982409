import type { Details, Sizes } from './catalogue.ts';
import type { Item, Market } from './market.ts';

/** A SKU that every catalog of some size has, so that an example in a document finds it. */
interface Example {
  readonly sku: string;
  readonly details: Details;
  readonly sizes: Readonly<Record<string, number>>;
}

/** A smaller catalog has none: who asks for three SKUs wants to know which. */
export const MIN_SKUS_WITH_EXAMPLES = 10;

/** Its size 9 moves, and its size 11 is off the market now and then. */
const MOVING: Example = {
  sku: 'DD1391-100',
  details: detailsOf('Nike', 'Dunk Low', "Nike Dunk Low 'Panda' (2021)", 'men'),
  sizes: { '8': 5100, '9': 5000, '10': 5300, '11': 5450 },
};

/**
 * Its `size_type` is corrected, which moves no hash (partner rule 4.2.2); a price that moves with it has it read again.
 */
const CORRECTED: Example = {
  sku: 'FV5029-141',
  details: detailsOf('Jordan', 'Air Jordan 4', "Jordan Air Jordan 4 'Cream' (2025)", 'women'),
  sizes: { '7': 7900, '8': 7600, '9': 7450 },
};

export const EXAMPLES: readonly Example[] = [MOVING, CORRECTED];

/** All below what size 9 costs at first by more than 3 %. */
const PRICES_OF_9 = [4800, 4690, 4770, 4620, 4730] as const;
const PRICES_OF_CORRECTED = [7500, 7400, 7450, 7350, 7550] as const;
const CORRECTIONS = ['EU', 'UK', 'CM', 'US'] as const;

/** The sizes of an example at start, ready to be modified. */
export function exampleSizes({ sizes }: Example): Sizes {
  return new Map(Object.entries(sizes));
}

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

function detailsOf(brand: string, model: string, name: string, gender: string): Details {
  const product = { name, model, brand, gender_size: gender, size_type: 'US', category: 'sneakers' };
  return { sizeType: 'US', product };
}

function nth<T>(list: readonly [T, ...T[]], at: number): T {
  return list[at % list.length] ?? list[0];
}
