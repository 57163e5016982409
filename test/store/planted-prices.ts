import type { SizePrices } from '../../src/store/answer/plausibility.ts';

/** Returns numbers in [0, 1). */
export type Random = () => number;

const between = (random: Random, low: number, high: number) => low + (high - low) * random();
const pick = <Item>(random: Random, items: readonly Item[]): Item =>
  items[Math.floor(random() * items.length)] as Item;

/** Returns a standard normal number. */
const normal = (random: Random): number =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

const SIZES = Array.from({ length: 26 }, (_, n) => String(35 + n / 2));
const STEPS = [1, 10, 50, 100];

/**
 * A SKU of a market whose truth is known: between two refreshes its prices move a little, seldom a lot, and very
 * seldom all at once.
 */
export class TrueSku {
  readonly #random: Random;
  readonly #step: number;
  #level: number;
  prices: Map<string, number>;

  constructor(random: Random) {
    this.#random = random;
    this.#step = pick(random, STEPS);
    this.#level = Math.exp(between(random, Math.log(900), Math.log(60_000)));
    const count = 1 + Math.floor(random() ** 0.5 * 20);
    const from = Math.floor(random() * (SIZES.length - count));
    this.prices = new Map(SIZES.slice(from, from + count).map((size) => [size, this.#newPrice()]));
  }

  #round(price: number): number {
    return Math.max(50, Math.round(price / this.#step) * this.#step);
  }

  #newPrice(): number {
    return this.#round(this.#level * Math.exp(0.15 * normal(this.#random)));
  }

  /** Makes what happens between two refreshes. Returns whether any price has moved. */
  move(): boolean {
    const random = this.#random;
    if (random() < 0.5) return false;
    const before = [...this.prices].join();
    if (random() < 0.004) this.#moveAll(Math.exp(0.3 * normal(random)));
    const part = random() ** 2;
    for (const [size, price] of this.prices)
      if (random() < part)
        this.prices.set(size, this.#round(price * Math.exp((random() < 0.03 ? 0.3 : 0.05) * normal(random))));
    if (this.prices.size > 1 && random() < 0.05) this.prices.delete(pick(random, [...this.prices.keys()]));
    if (random() < 0.05) this.prices.set(pick(random, SIZES), this.#newPrice());
    return [...this.prices].join() !== before;
  }

  #moveAll(factor: number): void {
    this.#level *= factor;
    for (const [size, price] of this.prices) this.prices.set(size, this.#round(price * factor));
  }
}

/** What a fault makes of the true prices; below the floor of asks there is none (partner rule 4.2.5). */
type Fault = (prices: SizePrices, random: Random, other: SizePrices) => SizePrices;

const FLOOR = 50;
const LARGEST = 2 ** 31 - 1;

const kept = (prices: Iterable<readonly [string, number]>): SizePrices =>
  new Map([...prices].filter(([, price]) => price >= FLOOR && price <= LARGEST));
const all =
  (change: (price: number, random: Random) => number): Fault =>
  (prices, random) =>
    kept([...prices].map(([size, price]) => [size, Math.round(change(price, random))] as const));
/** Changes one size only, or about that part of all sizes. */
const some =
  (part: number | 'one', change: (price: number) => number): Fault =>
  (prices, random) => {
    const one = pick(random, [...prices.keys()]);
    return kept(
      [...prices].map(
        ([size, price]) =>
          [
            size,
            (part === 'one' ? size === one : random() < part) ? Math.round(change(price)) : price,
          ] as const,
      ),
    );
  };
const constant =
  (of: (sorted: readonly number[]) => number): Fault =>
  (prices) => {
    const sorted = [...prices.values()].toSorted((a, b) => a - b);
    return kept([...prices.keys()].map((size) => [size, of(sorted)] as const));
  };
/** The same numbers in another order. */
const reordered =
  (order: (numbers: readonly number[], random: Random) => readonly number[]): Fault =>
  (prices, random) => {
    const numbers = order([...prices.values()], random);
    return kept([...prices.keys()].map((size, at) => [size, numbers[at] ?? 0] as const));
  };
const digits = (change: (text: string) => string) => all((price) => Number(change(String(price))));
const shuffle = (numbers: readonly number[], random: Random) =>
  numbers
    .map((number) => ({ number, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ number }) => number);
const swapTwo = (numbers: readonly number[], random: Random) => {
  const places = shuffle([...numbers.keys()], random);
  const [one = 0, two = one] = places;
  return numbers.with(one, numbers[two] ?? 0).with(two, numbers[one] ?? 0);
};

const KINDS: Readonly<Record<string, Fault>> = {
  'all × 10': all((price) => price * 10),
  'all × 100': all((price) => price * 100),
  'all × 1000': all((price) => price * 1000),
  'all ÷ 10': all((price) => price / 10),
  'all ÷ 100': all((price) => price / 100),
  'all ÷ 1000': all((price) => price / 1000),
  'all × 5': all((price) => price * 5),
  'all ÷ 5': all((price) => price / 5),
  'in dollars': all((price) => price / 34),
  'in euros': all((price) => price / 38),
  'in yen': all((price) => price * 4.4),
  'in yuan': all((price) => price / 4.7),
  'in dong': all((price) => price * 750),
  'in rupees': all((price) => price * 2.5),
  'converted twice': all((price) => price * 34),
  'one size × 10': some('one', (price) => price * 10),
  'one size × 100': some('one', (price) => price * 100),
  'one size ÷ 10': some('one', (price) => price / 10),
  'one size ÷ 100': some('one', (price) => price / 100),
  'one size × 5': some('one', (price) => price * 5),
  'one size ÷ 5': some('one', (price) => price / 5),
  'half of the sizes × 10': some(0.5, (price) => price * 10),
  'half of the sizes ÷ 10': some(0.5, (price) => price / 10),
  'half of the sizes × 100': some(0.5, (price) => price * 100),
  'half of the sizes in dollars': some(0.5, (price) => price / 34),
  'a digit too many': digits((text) => `${text}9`),
  'last digit lost': digits((text) => text.slice(0, -1)),
  'last two digits lost': digits((text) => text.slice(0, -2)),
  'a digit doubled': digits((text) => text[0] + text),
  'all after the thousands lost': digits((text) => text.slice(0, -3)),
  'all 1': constant(() => 1),
  'all 50': constant(() => 50),
  'all 99': constant(() => 99),
  'all 999999': constant(() => 999_999),
  'all 99999999': constant(() => 99_999_999),
  'the largest integer': constant(() => LARGEST),
  'a time of day': constant(() => 1_763_990_400),
  'all the lowest': constant((sorted) => sorted[0] ?? 0),
  'all the highest': constant((sorted) => sorted.at(-1) ?? 0),
  'all the median': constant((sorted) => sorted[Math.floor(sorted.length / 2)] ?? 0),
  'one size 1000000': some('one', () => 1_000_000),
  'one size 100': some('one', () => 100),
  'one size × 20': some('one', (price) => price * 20),
  shuffled: reordered(shuffle),
  reversed: reordered((numbers) => numbers.toReversed()),
  'one place further': reordered((numbers) => [...numbers.slice(-1), ...numbers.slice(0, -1)]),
  sorted: reordered((numbers) => numbers.toSorted((a, b) => a - b)),
  'two sizes swapped': reordered(swapTwo),
  'one place further, the first twice': reordered((numbers) => [
    ...numbers.slice(0, 1),
    ...numbers.slice(0, -1),
  ]),
  "another SKU's": (_prices, _random, other) => other,
  "another SKU's numbers on its sizes": (prices, _random, other) => {
    const numbers = [...other.values()];
    return kept([...prices.keys()].map((size, at) => [size, numbers[at % numbers.length] ?? 0] as const));
  },
  'sizes of another system': (prices) =>
    kept([...prices].map(([size, price]) => [`US ${Number(size) - 33}`, price] as const)),
};

/** Kinds that only show with many sizes, such as one price for all of them. */
const OF_MANY = ['all the lowest', 'all the highest', 'all the median', 'sizes of another system'];

export interface PlantedFault {
  readonly fault: Fault;
  /** The least number of sizes of the SKUs on which it is planted. */
  readonly leastSizes: number;
}

export const FAULTS: Readonly<Record<string, PlantedFault>> = Object.fromEntries(
  Object.entries(KINDS).map(([kind, fault]) => [kind, { fault, leastSizes: OF_MANY.includes(kind) ? 4 : 1 }]),
);

/**
 * Kinds whose numbers are real prices, of other sizes or another SKU: if they are near the true ones, nobody can
 * tell.
 */
export const REARRANGED: ReadonlySet<string> = new Set([
  'shuffled',
  'reversed',
  'one place further',
  'sorted',
  'two sizes swapped',
  'one place further, the first twice',
  "another SKU's",
  "another SKU's numbers on its sizes",
]);
