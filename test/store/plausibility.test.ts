import { describe, expect, test } from 'vitest';
import { type HeldDoubt, judgePrices } from '../../src/store/answer/doubts.ts';
import type { KnownMassMove } from '../../src/store/answer/mass-move.ts';
import { oddityOf, type SizePrices } from '../../src/store/answer/plausibility.ts';
import { randomFrom } from '../support/market.ts';
import { FAULTS, REARRANGED, TrueSku } from './planted-prices.ts';

/* The figures of docs/trust.md come from HISTORIES=5000 npx vitest run --project=unit test/store/plausibility. */
const HISTORIES = Number(process.env['HISTORIES'] ?? 500);
const SEED = Number(process.env['SEED'] ?? 31);

const QUIET: KnownMassMove = {
  since: null,
  usual: null,
  kind: null,
  factor: null,
  accepted: null,
};
const say = (line: string) => process.env['HISTORIES'] !== undefined && process.stdout.write(`${line}\n`);

interface Planted {
  poisoned: number;
  actionable: number;
}

/** Returns how many prices a fault makes wrong in all histories, and how many of those could be acted on. */
function plant(kind: string): Planted {
  const { fault, leastSizes } = FAULTS[kind] ?? { fault: (prices: SizePrices) => prices, leastSizes: 1 };
  const random = randomFrom(SEED);
  const found: Planted = { poisoned: 0, actionable: 0 };
  for (let history = 0; history < HISTORIES;) {
    const [sku, other] = [new TrueSku(random), new TrueSku(random)];
    for (let look = 0; look < 5 * random(); look += 1) sku.move();
    const before = new Map(sku.prices);
    sku.move();
    if (Math.min(before.size, sku.prices.size) < leastSizes) continue;
    history += 1;
    const now = fault(sku.prices, random, other.prices);
    const wrong = [...now].filter(([size, price]) => sku.prices.get(size) !== price).length;
    found.poisoned += wrong;
    if (judgePrices({ before, now, renamed: false }, null, QUIET).kind === 'none') found.actionable += wrong;
  }
  return found;
}

const sum = (planted: readonly Planted[]): Planted => ({
  poisoned: planted.reduce((total, { poisoned }) => total + poisoned, 0),
  actionable: planted.reduce((total, { actionable }) => total + actionable, 0),
});

describe('faults of the partner, planted in histories', () => {
  const kinds = Object.keys(FAULTS);
  const numbers = kinds.filter((kind) => !REARRANGED.has(kind));

  test(`that change numbers: at most one of 10,000 wrong prices is actionable (seed ${SEED})`, () => {
    expect(numbers.length).toBeGreaterThanOrEqual(40);
    const planted = numbers.map(plant);
    numbers.forEach((kind, at) => say(`${kind}: ${planted[at]?.actionable} of ${planted[at]?.poisoned}`));
    const { poisoned, actionable } = sum(planted);
    say(`${numbers.length} kinds: ${actionable} of ${poisoned} wrong prices actionable`);
    expect(actionable).toBeLessThanOrEqual(poisoned / 10_000);
  });

  test.each([...REARRANGED])(
    'that rearrange plausible numbers are detected if the numbers differ: %s',
    (kind) => {
      const { poisoned, actionable } = plant(kind);
      say(`${kind}: ${actionable} of ${poisoned}`);
      expect(actionable).toBeLessThanOrEqual(poisoned * (kind === 'two sizes swapped' ? 0.75 : 0.1));
    },
  );
});

test(`true moves: at most one in a thousand is doubted, and for one further answer at most (seed ${SEED})`, () => {
  const random = randomFrom(SEED);
  let [moves, held] = [0, 0];
  for (let history = 0; history < HISTORIES * 4; history += 1) {
    const sku = new TrueSku(random);
    for (let look = 0; look < 20; look += 1) {
      const before = new Map(sku.prices);
      if (!sku.move()) continue;
      moves += 1;
      const first = judgePrices({ before, now: sku.prices, renamed: false }, null, QUIET);
      if (first.kind !== 'begins') continue;
      held += 1;
      const doubt: HeldDoubt = { ...first, minutes: 5 };
      expect(judgePrices({ before: sku.prices, now: sku.prices, renamed: false }, doubt, QUIET)).toEqual({
        kind: 'ends',
        back: false,
      });
    }
  }
  say(`${held} of ${moves} true moves held back`);
  expect(held).toBeLessThanOrEqual(moves / 1000);
});

test(`moves that go on meanwhile need at most one further refresh in a thousand (seed ${SEED})`, () => {
  const random = randomFrom(SEED);
  let [moves, looks] = [0, 0];
  for (let history = 0; history < HISTORIES * 4; history += 1) {
    const sku = new TrueSku(random);
    for (let look = 0; look < 20; look += 1) {
      let before = new Map(sku.prices);
      if (!sku.move()) continue;
      moves += 1;
      let judged = judgePrices({ before, now: sku.prices, renamed: false }, null, QUIET);
      for (; judged.kind === 'begins'; looks += 1) {
        before = new Map(sku.prices);
        sku.move();
        const doubt: HeldDoubt = { ...judged, minutes: 5 };
        judged = judgePrices({ before, now: sku.prices, renamed: false }, doubt, QUIET);
      }
    }
  }
  say(`${looks} further looks for ${moves} true moves`);
  expect(looks).toBeLessThanOrEqual(moves / 1000);
});

const prices = (...of: number[]): SizePrices => new Map(of.map((price, at) => [String(40 + at), price]));
const USUAL = prices(4000, 4100, 4300, 4200, 4600, 5000, 4400, 4500, 4700, 4800);

describe('the oddity of an answer', () => {
  test.each([
    ['nothing', USUAL, prices(4100, 4100, 4300, 4250, 4600, 5000, 4400, 4500, 4700, 5900), null],
    ['nothing where all is gone', USUAL, prices(), null],
    [
      'nothing where a market halves, nearly',
      USUAL,
      prices(...[...USUAL.values()].map((price) => price * 0.48)),
      null,
    ],
    ['a digit more', USUAL, new Map([...USUAL, ['41', 41_000]]), 'jump'],
    ['a digit less', USUAL, new Map([...USUAL, ['41', 410]]), 'jump'],
    ['all at a third', prices(5000), prices(1667), 'another-level'],
    ['one number', USUAL, prices(...Array.from({ length: 10 }, () => 4000)), 'one-price'],
    ['nothing where one number was before', prices(4000, 4000, 4000), prices(4100, 4100, 4100), null],
    [
      'the next size up',
      USUAL,
      prices(4800, 4000, 4100, 4300, 4200, 4600, 5000, 4400, 4500, 4700),
      'shuffled',
    ],
    ['two swapped', prices(4000, 5000, 4400), prices(5000, 4000, 4400), 'shuffled'],
    ['nothing where two near ones are swapped', prices(4000, 4100, 4400), prices(4100, 4000, 4400), null],
    [
      'sizes of another system',
      prices(4000, 4100, 4300),
      new Map([
        ['US 7', 4000],
        ['US 8', 4100],
        ['US 9', 4300],
      ]),
      'other-sizes',
    ],
    [
      'each on its own way',
      USUAL,
      prices(5200, 3500, 5100, 3600, 5500, 4100, 5300, 3800, 5600, 4000),
      'another-profile',
    ],
    ['first prices, one of another magnitude', prices(), prices(4000, 4100, 42_000, 4300), 'unlike-siblings'],
    ['nothing in first prices', prices(), USUAL, null],
    [
      'a new size of another magnitude',
      prices(4000, 4100, 4300),
      prices(4000, 4100, 4300, 430),
      'unlike-siblings',
    ],
    [
      'a new size in the place of another',
      prices(4000, 4100, 4300),
      new Map([...prices(4000, 4100), ['50', 430_000]]),
      'unlike-siblings',
    ],
    ['a new size of two', prices(4000), prices(4000, 41_000), 'unlike-siblings'],
    ['another size alone', prices(100), new Map([['50', 400_000]]), 'unlike-siblings'],
    ['nothing in a new size alone', prices(4000), new Map([['50', 9000]]), null],
  ] as const)('%s', (_, before, now, odd) => {
    expect(oddityOf(before, now)).toBe(odd);
  });

  test('depends on how much the catalog usually differs', () => {
    const now = prices(5200, 3500, 5100, 3600, 5500, 4100, 5300, 3800, 5600, 4000);
    expect(oddityOf(USUAL, now, 0.03)).toBe('another-profile');
    expect(oddityOf(USUAL, now, 0.2)).toBeNull();
  });
});

describe('a doubt', () => {
  const poison = prices(...[...USUAL.values()].map((price) => price * 10));
  const begun = (minutes: number): HeldDoubt => ({
    doubt: 'implausible',
    oddity: 'jump',
    believed: USUAL,
    minutes,
  });
  const answered = (
    before: SizePrices,
    now: SizePrices,
    held: HeldDoubt | null,
    known = QUIET,
    renamed = false,
  ) => judgePrices({ before, now, renamed }, held, known);

  test('begins with what is odd, and keeps the prices before', () => {
    expect(answered(USUAL, poison, null)).toEqual({
      kind: 'begins',
      doubt: 'implausible',
      oddity: 'jump',
      believed: USUAL,
    });
  });

  test('stays while the same is answered within five minutes, and ends with an answer after that', () => {
    expect(answered(poison, poison, begun(4.9))).toEqual({ kind: 'stays' });
    expect(answered(poison, poison, begun(5))).toEqual({ kind: 'ends', back: false });
  });

  test('ends at once if the prices are as before again, but not with an answer without prices', () => {
    expect(answered(poison, USUAL, begun(0.1))).toEqual({ kind: 'ends', back: true });
    expect(answered(poison, prices(), begun(0.1))).toEqual({ kind: 'stays' });
    expect(answered(prices(), poison, begun(0.2))).toEqual({ kind: 'stays' });
  });

  test('begins anew with other odd prices, and still knows the prices before the first', () => {
    const worse = prices(...[...USUAL.values()].map((price) => price * 100));
    expect(answered(poison, worse, begun(60))).toMatchObject({ kind: 'begins', believed: USUAL });
  });

  test.each([
    ['another multiple of what was', [4000, 41_000, 4300], [4000, 100_000, 4300], 0],
    ['nearer to what was', [4000, 41_000, 4300], [4000, 14_000, 4300], 0],
    ['other sizes far off, too', [4000, 41_000, 4300], [1400, 41_000, 12_470], 0],
    ['one other number for all', [4000, 4000, 4000], [4600, 4600, 4600], 0],
    ['more than the market moves', [4000, 41_000, 4300], [4000, 52_000, 4300], 0.05],
  ])('begins anew if a second answer has other numbers: %s', (_, first, second, usual) => {
    const before = prices(4000, 4100, 4300);
    const known = { ...QUIET, usual };
    const begins = answered(before, prices(...first), null, known);
    if (begins.kind !== 'begins') throw new Error('nothing is odd');
    const held: HeldDoubt = { ...begins, minutes: 6 };
    expect(answered(prices(...first), prices(...second), held, known)).toMatchObject({
      kind: 'begins',
      believed: before,
    });
    expect(answered(prices(...second), prices(...second), held, known)).toMatchObject({ kind: 'ends' });
  });

  test.each([
    ['little else', [4000, 41_000, 4300], [4000, 43_000, 4300], 0],
    ['no more than the market moves', [4000, 41_000, 4300], [4000, 46_500, 4300], 0.05],
    ['what was there before of others', [8500, 41_000, 4300], [4100, 41_000, 4300], 0],
  ])('ends with a second answer that has %s', (_, first, second, usual) => {
    const held: HeldDoubt = { ...begun(6), believed: prices(4000, 4100, 4300) };
    expect(answered(prices(...first), prices(...second), held, { ...QUIET, usual })).toMatchObject({
      kind: 'ends',
    });
  });

  test('that a clock ahead has dated begins anew, and does not last for as long as that was ahead', () => {
    expect(answered(poison, poison, begun(-600))).toMatchObject({
      kind: 'begins',
      doubt: 'implausible',
      believed: USUAL,
    });
  });

  test('begins if another product is answered, even with plausible prices', () => {
    const now = new Map([...USUAL, ['41', 4000]]);
    expect(answered(USUAL, now, null, QUIET, true)).toMatchObject({
      kind: 'begins',
      oddity: 'another-product',
    });
    expect(answered(USUAL, USUAL, null, QUIET, true)).toEqual({ kind: 'none' });
    const doubted: HeldDoubt = { ...begun(1), oddity: 'another-product' };
    expect(answered(now, now, doubted)).toEqual({ kind: 'stays' });
    expect(answered(now, USUAL, doubted, QUIET, true)).toEqual({ kind: 'ends', back: true });
    expect(answered(now, now, { ...doubted, minutes: 5 })).toEqual({ kind: 'ends', back: false });
  });
});
