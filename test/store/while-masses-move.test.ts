import { describe, expect, test } from 'vitest';
import { type HeldDoubt, judgePrices } from '../../src/store/answer/doubts.ts';
import { countStill, type FaultyPrices } from '../../src/store/answer/fault-doubts.ts';
import { judgeAll } from '../../src/store/answer/judgements.ts';
import type { KnownMassMove } from '../../src/store/answer/mass-move.ts';
import type { SizePrices } from '../../src/store/answer/plausibility.ts';

const QUIET: KnownMassMove = {
  since: null,
  usual: null,
  kind: null,
  factor: null,
  accepted: null,
};

const prices = (...of: number[]): SizePrices => new Map(of.map((price, at) => [String(40 + at), price]));
const USUAL = prices(4000, 4100, 4300, 4200, 4600, 5000, 4400, 4500, 4700, 4800);

const answered = (
  before: SizePrices,
  now: SizePrices,
  held: HeldDoubt | null,
  known = QUIET,
  renamed = false,
) => judgePrices({ before, now, renamed }, held, known);

describe('a doubt during a mass move', () => {
  const going: KnownMassMove = { ...QUIET, since: new Date(0), usual: 0.05 };
  const moved = new Map([...USUAL, ['41', 4000]]);
  const massMoved = (minutes: number): HeldDoubt => ({
    doubt: 'mass-move',
    oddity: null,
    believed: USUAL,
    minutes,
  });

  test('begins with every move', () => {
    expect(answered(USUAL, moved, null, going)).toMatchObject({ kind: 'begins', doubt: 'mass-move' });
    expect(answered(USUAL, USUAL, null, going)).toEqual({ kind: 'none' });
    expect(answered(prices(), USUAL, null, going)).toEqual({ kind: 'none' });
  });

  test('ends with a second answer, even if that moved a little or is as before', () => {
    expect(answered(moved, moved, massMoved(1), going)).toEqual({ kind: 'stays' });
    expect(answered(moved, new Map([...moved, ['42', 4350]]), massMoved(6), going)).toEqual({
      kind: 'ends',
      back: false,
    });
    expect(answered(moved, USUAL, massMoved(1), going)).toEqual({ kind: 'ends', back: true });
  });

  test('ends, if all sizes have one price, only with an answer that has several', () => {
    const onePrice: KnownMassMove = { ...going, kind: 'one-price' };
    const one = (price: number) => new Map([...USUAL.keys()].map((size) => [size, price]));
    const held: HeldDoubt = { doubt: 'implausible', oddity: 'one-price', believed: USUAL, minutes: 90 };
    expect(answered(one(4000), one(4100), held, onePrice)).toEqual({ kind: 'stays', isFault: true });
    expect(answered(one(4000), USUAL, held, onePrice)).toEqual({ kind: 'ends', back: true });
    expect(answered(one(4000), one(4000), held, { ...going, kind: 'implausible' })).toEqual({
      kind: 'ends',
      back: false,
    });
    expect(answered(USUAL, one(4000), null, onePrice)).toMatchObject({ oddity: 'one-price-of-many' });
    const ofMany: HeldDoubt = { ...held, oddity: 'one-price-of-many' };
    expect(answered(one(4000), one(4600), ofMany)).toEqual({ kind: 'stays', isFault: true });
    expect(answered(one(4000), USUAL, ofMany)).toEqual({ kind: 'ends', back: true, isRepaired: true });
    const swapped: HeldDoubt = { ...held, oddity: 'shuffled', believed: one(4000) };
    expect(answered(USUAL, USUAL, swapped, onePrice)).toEqual({ kind: 'ends', back: true });
  });

  describe('with a common factor', () => {
    const factor = Math.log(100);
    const inSatang = (sizes: SizePrices) => new Map([...sizes].map(([size, price]) => [size, 100 * price]));
    const byFactor: KnownMassMove = { ...going, kind: 'factor', factor };
    const jumped: HeldDoubt = { doubt: 'implausible', oddity: 'jump', believed: USUAL, minutes: 90 };

    test('is ended by no number of answers, and later moves stay in that unit', () => {
      const now = inSatang(USUAL);
      expect(answered(now, now, jumped, byFactor)).toEqual({ kind: 'stays', isFault: true });
      const later = inSatang(moved);
      expect(answered(now, later, massMoved(600), byFactor)).toEqual({ kind: 'stays', isFault: true });
      expect(answered(now, later, jumped, going)).toEqual({ kind: 'ends', back: false });
    });

    test('lasts for one of many until its prices are as before, even once others no longer move by the factor', () => {
      const now = inSatang(USUAL);
      const first = answered(USUAL, now, null, byFactor);
      expect(first).toMatchObject({ kind: 'begins', oddity: 'unit-of-many' });
      const ofMany: HeldDoubt = { ...jumped, oddity: 'unit-of-many' };
      expect(answered(now, now, ofMany)).toEqual({ kind: 'stays', isFault: true });
      // Partly, or with other faults.
      const half = new Map([...USUAL, ['41', 410_000], ['99', 4000]]);
      expect(answered(now, half, ofMany)).toEqual({ kind: 'stays', isFault: true });
      expect(
        answered(prices(4000), new Map([['99', 400_000]]), { ...ofMany, believed: prices(4000) }),
      ).toEqual({
        kind: 'stays',
        isFault: true,
      });
      const accepted = { ...QUIET, accepted: factor };
      expect(answered(now, now, ofMany, accepted)).toEqual({ kind: 'ends', back: false, isRepaired: true });
      expect(answered(now, moved, ofMany)).toEqual({ kind: 'ends', back: true, isRepaired: true });
      const another = prices(5200, 3500, 5100, 3600, 5500, 4100, 5300, 3800, 5600, 4000);
      expect(answered(now, another, ofMany)).toMatchObject({ kind: 'begins', oddity: 'unit-of-many' });
      expect(answered(another, another, ofMany)).toMatchObject({ kind: 'ends', back: false });
      const [judged] = judgeAll([{ sku: 'A', before: now, now, renamed: false }], () => ofMany, QUIET);
      expect(judged).toMatchObject({ sample: null, confirmInMs: null });
    });

    test('recognises the unit by the overall level if no size is left', () => {
      const others = new Map([...inSatang(USUAL)].map(([size, price]) => [`US ${size}`, price]));
      expect(answered(USUAL, others, null, byFactor)).toMatchObject({ oddity: 'unit-of-many' });
    });

    test('ends with an answer as before, and for an ordinary move with a second answer', () => {
      expect(answered(inSatang(USUAL), USUAL, jumped, byFactor)).toEqual({ kind: 'ends', back: true });
      expect(answered(moved, moved, massMoved(6), byFactor)).toEqual({ kind: 'ends', back: false });
    });

    test('covers first prices until the mass move is over, because their unit is unknown', () => {
      expect(answered(prices(), USUAL, null, byFactor)).toMatchObject({
        kind: 'begins',
        doubt: 'mass-move',
      });
      const first: HeldDoubt = { ...massMoved(60), believed: prices() };
      expect(answered(USUAL, USUAL, first, byFactor)).toEqual({ kind: 'stays', isFault: true });
      expect(answered(USUAL, USUAL, first, QUIET)).toEqual({ kind: 'ends', back: false });
      const [judged] = judgeAll(
        [{ sku: 'A', before: USUAL, now: USUAL, renamed: false }],
        () => first,
        byFactor,
      );
      expect(judged?.sample?.odd).toBe(false);
    });

    test('does not begin with an accepted factor, but does with another move', () => {
      const accepted: KnownMassMove = { ...QUIET, accepted: factor };
      expect(answered(USUAL, inSatang(moved), null, accepted)).toEqual({ kind: 'none' });
      expect(answered(USUAL, inSatang(moved), null, { ...accepted, since: new Date(0) })).toEqual({
        kind: 'none',
      });
      expect(answered(inSatang(USUAL), USUAL, null, accepted)).toMatchObject({
        kind: 'begins',
        oddity: 'jump',
      });
      const [judged] = judgeAll(
        [{ sku: 'A', before: USUAL, now: inSatang(USUAL), renamed: false }],
        () => null,
        accepted,
      );
      expect(judged?.sample).toMatchObject({ odd: false, factor: null, move: null });
    });

    const times = (...of: number[]) =>
      new Map([...USUAL].map(([size, price], at) => [size, price * (of[at] ?? 1)]));

    test.each([
      ['one size of ten jumps by about as much: its cheap offer was sold', [5]],
      ['half of the sizes do', [5, 5, 5, 5, 5]],
    ])('is an ordinary jump if %s', (_, of) => {
      const known = { ...byFactor, factor: Math.log(4.3) };
      const jump = times(...of);
      const begins = answered(USUAL, jump, null, known);
      expect(begins).toMatchObject({ kind: 'begins', oddity: 'jump' });
      const held: HeldDoubt = { doubt: 'implausible', oddity: 'jump', believed: USUAL, minutes: 6 };
      expect(answered(jump, jump, held, known)).toEqual({ kind: 'ends', back: false });
    });

    test.each([
      ['some sizes are in the unit', [4.3, 4.5]],
      ['most sizes are, and have moved', [5, 5, 5, 5, 5, 5]],
      ['the market has fallen, so that one alone is as far', [...Array.from({ length: 9 }, () => 3.4), 9]],
    ])('has the oddity "unit-of-many" if %s', (_, of) => {
      const known = { ...byFactor, factor: Math.log(4.3) };
      expect(answered(USUAL, times(...of), null, known)).toMatchObject({ oddity: 'unit-of-many' });
    });

    test('begins in spite of an accepted factor if another size moved by something else', () => {
      const accepted: KnownMassMove = { ...QUIET, accepted: factor };
      expect(answered(USUAL, times(100, 100), null, accepted)).toEqual({ kind: 'none' });
      for (const other of [1 / 31, 4])
        expect(answered(USUAL, times(100, 100, other), null, accepted)).toMatchObject({ oddity: 'jump' });
    });

    test('counts each answer as evidence that the fault goes on, and is followed by the usual refresh', () => {
      const now = inSatang(USUAL);
      const [judged] = judgeAll([{ sku: 'A', before: now, now, renamed: false }], () => jumped, byFactor);
      expect(judged?.sample?.odd).toBe(true);
      expect(judged?.sample?.factor).toBeCloseTo(factor, 3);
      expect(judged?.confirmInMs).toBeNull();
    });
  });
});

test('a SKU whose numbers keep changing stays doubted, but is no more evidence of a mass move', () => {
  const usual = prices(4000, 4100, 4300);
  const [dear, dearer] = [prices(12_600, 4100, 4300), prices(14_700, 4100, 4300)];
  const judge = (before: SizePrices, now: SizePrices, held: HeldDoubt | null) =>
    judgeAll([{ sku: 'A', before, now, renamed: false }], () => held, QUIET)[0];
  expect(judge(usual, dear, null)?.sample).toMatchObject({ odd: true });
  const held: HeldDoubt = { doubt: 'implausible', oddity: 'jump', minutes: 6, believed: usual };
  for (const [before, now] of [
    [dear, dearer],
    [dearer, dear],
  ] as const) {
    expect(judge(before, now, held)).toMatchObject({ judgement: { kind: 'begins' }, sample: { odd: false } });
  }
  expect(judge(dear, dear, held)).toMatchObject({ judgement: { kind: 'ends' } });
});

describe('SKUs that had a fault still have it', () => {
  const faulty = (now: SizePrices, oddity: FaultyPrices['oddity'] = 'unit-of-many'): FaultyPrices => ({
    sku: 'A',
    oddity,
    believed: Object.fromEntries(USUAL),
    prices: Object.fromEntries(now),
  });
  const jump = (factor: number) => faulty(new Map([...USUAL, ['41', 4100 * factor]]));
  const whole = faulty(new Map([...USUAL].map(([size, price]) => [size, price * 4.3])));
  const onePrice = faulty(new Map([...USUAL.keys()].map((size) => [size, 14_500])), 'one-price-of-many');
  const jumps = [jump(4), jump(4.3), jump(4.6), jump(4.8)];

  test.each([
    ['where single sizes have jumped, by what they like, and none is repaired', jumps, 2, 4],
    ['not once others are repaired', jumps, 3, 0],
    ['where eight of them have one factor', [...jumps, ...Array.from({ length: 8 }, () => jump(10))], 3, 12],
    ['where all of their sizes have', [whole, jump(4)], 3, 1],
    ['where all sizes have one price', [onePrice, jump(4)], 3, 1],
  ] as const)('%s', (_, recent, repaired, still) => {
    expect(countStill([...recent, faulty(USUAL)], repaired)).toBe(still);
  });
});
