import type { Item, Market } from './market.ts';
import { CORRECTED, missingSize, MOVING } from './skus.ts';

const TRIES = 64;
const PAINTS: readonly [string, ...string[]] = ['Retro', 'SE', 'Premium', 'PRM'];
const SYSTEMS: readonly [string, ...string[]] = ['US', 'UK', 'EU', 'CM'];

/** What can happen to the market on its own, by relative weight. */
const MOVES: readonly { weight: number; apply: (market: Market) => void }[] = [
  { weight: 68, apply: walkPrice },
  { weight: 6, apply: openSize },
  { weight: 6, apply: closeSize },
  { weight: 5, apply: crossCohort },
  { weight: 3, apply: (market) => onListed(market, (item) => market.withdraw(item.sku)) },
  { weight: 3, apply: relistOldest },
  { weight: 1, apply: removeOne },
  { weight: 2, apply: (market) => void market.add(undefined, { live: market.rng.chance(0.05) }) },
  { weight: 1, apply: correctSizeType },
  { weight: 5, apply: renameProduct },
];

const TOTAL_WEIGHT = MOVES.reduce((sum, move) => sum + move.weight, 0);

/** Applies `count` random moves to the market, drawn from the market's own generator. */
export function stepMarket(market: Market, count: number): void {
  for (let done = 0; done < count; done += 1) {
    let draw = market.rng.next() * TOTAL_WEIGHT;
    for (const move of MOVES) {
      draw -= move.weight;
      if (draw >= 0) continue;
      move.apply(market);
      break;
    }
  }
}

/** Finds a random item that fits, never an example. Gives up silently if hardly any fits. */
function onRandom(market: Market, fits: (item: Item) => boolean, act: (item: Item) => void): void {
  for (let tryNumber = 0; tryNumber < TRIES; tryNumber += 1) {
    const item = market.items[market.rng.int(market.items.length)];
    if (item === undefined || market.examples.has(item) || !fits(item)) continue;
    act(item);
    return;
  }
}

function onListed(market: Market, act: (item: Item) => void): void {
  onRandom(market, (item) => item.rows && market.sizesOf(item).size > 0, act);
}

function onRandomSize(market: Market, act: (item: Item, size: string, price: number | null) => void): void {
  onRandom(
    market,
    (item) => market.sizesOf(item).size > 0,
    (item) => {
      const [first, ...rest] = market.sizesOf(item);
      if (first !== undefined) act(item, ...market.rng.pick([first, ...rest]));
    },
  );
}

function walkPrice(market: Market): void {
  onRandomSize(market, (item, size, price) => {
    const before = price ?? 1000;
    const drift = 0.01 + market.rng.next() * 0.09;
    const after = Math.max(50, Math.round(before * (market.rng.chance(0.5) ? 1 + drift : 1 - drift)));
    market.setPrice(item.sku, size, after === before ? before + 1 : after);
  });
}

function openSize(market: Market): void {
  onListed(market, (item) => {
    const sizes = market.sizesOf(item);
    const size = missingSize(market.detailsOf(item).sizeType, sizes, market.rng);
    const level = sizes.values().next().value ?? 1000;
    if (size !== null)
      market.setPrice(item.sku, size, Math.max(50, Math.round(level * (0.9 + market.rng.next() * 0.2))));
  });
}

function closeSize(market: Market): void {
  onRandomSize(market, (item, size) => market.dropSize(item.sku, size));
}

function crossCohort(market: Market): void {
  const toLive = market.rng.chance(0.5);
  onRandom(
    market,
    (item) => item.rows && !item.mislisted && item.live !== toLive,
    (item) => market.cross(item.sku, toLive ? 'live' : 'snapshot'),
  );
}

function relistOldest(market: Market): void {
  const oldest = market.gone.values().next().value;
  if (oldest !== undefined) market.relist(oldest.sku);
}

function removeOne(market: Market): void {
  onRandom(
    market,
    (item) => item.rows,
    (item) => market.remove(item.sku, market.rng.chance(0.2)),
  );
}

function correctSizeType(market: Market): void {
  onListed(market, (item) => {
    const { sizeType } = market.detailsOf(item);
    const next = market.rng.pick(SYSTEMS);
    if (next !== sizeType) market.correctSizeType(item.sku, next);
  });
}

function renameProduct(market: Market): void {
  onListed(market, (item) => {
    const { product } = market.detailsOf(item);
    market.setProduct(item.sku, {
      name: `${product.brand} ${product.model} ${market.rng.pick(PAINTS)} ${market.rng.int(1000)}`,
    });
  });
}

/* Products of the same brand and model are a line: news about one is news about all; their prices move together. */

export interface ProductLine {
  readonly brand: string;
  readonly model: string;
}

export interface Released extends ProductLine {
  /** SKUs whose prices moved. */
  readonly skus: readonly string[];
}

/** Share of a line's SKUs that move, share of the sizes of each, and how far, as a share of the price. */
const SKUS_PART = 0.7;
const SIZES_PART = 0.8;
const MIN_MOVE = 0.05;
const MAX_MOVE = 0.3;
const MIN_PRICE = 50;

/** Moves most sizes of most SKUs of a line in one direction. Null if no such line has anything on offer. */
export function releaseLine(market: Market, wanted: Partial<ProductLine>): Released | null {
  const line = largestLine(market, wanted);
  if (line === null) return null;
  const { rng, examples } = market;
  const direction = rng.chance(0.5) ? 1 : -1;
  const skus: string[] = [];
  for (const item of line.items) {
    if (examples.has(item) || !rng.chance(SKUS_PART)) continue;
    skus.push(item.sku);
    const sizes = [...market.sizesOf(item)];
    // However few sizes there are, at most `1 - SIZES_PART` of them stay.
    const unmoved = rng.int(Math.floor(sizes.length * (1 - SIZES_PART)) + 1);
    for (const [size, price] of sizes.slice(unmoved)) {
      if (price === null) continue;
      const move = 1 + direction * (MIN_MOVE + rng.next() * (MAX_MOVE - MIN_MOVE));
      const after = Math.max(MIN_PRICE, Math.round(price * move));
      market.setPrice(item.sku, size, after === price ? price + 1 : after);
    }
  }
  return { brand: line.brand, model: line.model, skus };
}

/** Returns the wanted line with the most live SKUs on offer. */
function largestLine(
  market: Market,
  { brand, model }: Partial<ProductLine>,
): (ProductLine & { readonly items: readonly Item[] }) | null {
  const lines = new Map<string, ProductLine & { readonly items: Item[]; live: number }>();
  for (const item of market.items) {
    if (!item.rows || market.sizesOf(item).size === 0) continue;
    const { product } = market.detailsOf(item);
    if ((brand ?? product.brand) !== product.brand || (model ?? product.model) !== product.model) continue;
    const key = JSON.stringify([product.brand, product.model]);
    const line = lines.get(key) ?? { brand: product.brand, model: product.model, items: [], live: 0 };
    line.items.push(item);
    line.live += Number(market.isLive(item));
    lines.set(key, line);
  }
  return [...lines.values()].toSorted((a, b) => b.live - a.live)[0] ?? null;
}

/** All of them more than 3 % below the initial price of size 9. */
const PRICES_OF_9 = [4800, 4690, 4770, 4620, 4730] as const;
const PRICES_OF_CORRECTED = [7500, 7400, 7450, 7350, 7550] as const;
const CORRECTIONS = ['EU', 'UK', 'CM', 'US'] as const;

/**
 * Steps of the first moves: one in each of the demo's first two snapshots, so that a mirror soon has a history of
 * them. Later moves are rare, because a mirror that has heard of a move but has not yet asked has no price that is
 * safe to use.
 */
const FIRST_TURNS: readonly number[] = [4, 11];
const TURN_EVERY = 30;

/** Moves the examples, which the random moves leave alone. */
export class ExampleMoves {
  readonly #market: Market;
  #steps = 0;
  #turns = 0;
  #corrections = 0;

  constructor(market: Market) {
    this.#market = market;
  }

  /** Runs one step of the market. An example that was withdrawn or removed by hand stays so. */
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
