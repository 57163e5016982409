import { describe, expect, test } from 'vitest';
import { isMassMove, NO_MOVES, turnOf } from '../../src/store/answer/hour-of-moves.ts';
import type { SkuJudgement } from '../../src/store/answer/judgements.ts';
import { isAnotherFault } from '../../src/store/answer/mass-move.ts';
import { commonFactor, MoveCounts } from '../../src/store/answer/move-counts.ts';

const BEGINS = { kind: 'begins', doubt: 'implausible', oddity: 'jump', believed: new Map() } as const;
const judgement = (
  odd: boolean,
  move: number | null,
  more: Partial<NonNullable<SkuJudgement['sample']>> = {},
): SkuJudgement => ({
  sku: 'A',
  judgement: odd ? BEGINS : { kind: 'none' },
  confirmInMs: null,
  sample: { odd, onePrice: false, lost: false, untold: false, move, factor: null, ...more },
});
const judgements = (count: number, odd: boolean, move: number | null) =>
  Array.from({ length: count }, () => judgement(odd, move));
const HOUR = { ...NO_MOVES, answers: 1000, moves: 500, move: 0.05 };
/** The hour of a small catalog. */
const SMALL = { ...NO_MOVES, answers: 60, moves: 30, move: 0.05 };
const UNTOLD = { answers: 40, lost: 11 };

describe('it is a mass move', () => {
  test.each([
    ['not in an ordinary hour', HOUR, 0.05, null],
    ['with more than a hundredth implausible', { ...HOUR, implausible: 11 }, 0.05, 'implausible'],
    ['not with a hundredth', { ...HOUR, implausible: 10 }, 0.05, null],
    ['by a common factor', { ...HOUR, implausible: 11, factor: 4.6 }, 0.05, 'factor'],
    [
      'of some SKUs by a common factor, however few of all they are',
      { ...HOUR, answers: 100_000, implausible: 40, implausibleSkus: 40, factor: 4.6 },
      0.05,
      'factor-of-some',
    ],
    ['by a factor while SKUs vanish', { ...HOUR, lost: 251, factor: 4.6 }, 0.05, 'factor'],
    ['not with a few of few answers', { ...SMALL, implausible: 4 }, 0.05, null],
    ['by one price for all sizes', { ...HOUR, implausible: 16, onePrice: 8 }, 0.05, 'one-price'],
    ['not by those of a few', { ...HOUR, implausible: 14, onePrice: 7 }, 0.05, 'implausible'],
    ['nor where most are something else', { ...HOUR, implausible: 17, onePrice: 8 }, 0.05, 'implausible'],
    ['with five of few answers', { ...SMALL, implausible: 5 }, 0.05, 'implausible'],
    ['where more than a quarter has lost all prices', { ...HOUR, lost: 251 }, 0.05, 'lost'],
    ['not where a quarter is sold out', { ...HOUR, lost: 250 }, 0.05, null],
    ['where a quarter of few SKUs has lost all prices', { ...SMALL, lost: 16 }, 0.05, 'lost'],
    ['not where nine SKUs have', { ...SMALL, answers: 20, lost: 9 }, 0.05, null],
    ['where a quarter of those that nobody reports has', { ...HOUR, lost: 11, untold: UNTOLD }, 0.05, 'lost'],
    [
      'not where a quarter of those is sold out',
      { ...HOUR, lost: 10, untold: { answers: 40, lost: 10 } },
      0.05,
      null,
    ],
    ['where half moved nine times as far as usual', { ...HOUR, move: 0.45 }, 0.05, 'far'],
    ['not seven times as far', { ...HOUR, move: 0.35 }, 0.05, null],
    ['not where few moved', { ...HOUR, moves: 199, move: 0.45 }, 0.05, null],
    ['not where what is usual is next to nothing', { ...HOUR, move: 0.15 }, 0.001, null],
    ['not while what is usual is not known, unless prices double', { ...HOUR, move: 0.65 }, null, null],
    ['while what is usual is not known, where prices double', { ...HOUR, move: 0.75 }, null, 'far'],
  ] as const)('%s', (_, hour, usual, kind) => {
    expect(isMassMove(hour, usual, false)).toBe(kind);
  });

  test.each([
    ['with half of what began it', { ...HOUR, implausible: 6, implausibleSkus: 3 }, 'implausible'],
    ['not with two SKUs that are asked often', { ...HOUR, implausible: 60, implausibleSkus: 2 }, null],
    ['with half of those without prices', { ...HOUR, lost: 126 }, 'lost'],
    [
      'with half of what began it in a small catalog',
      { ...SMALL, implausible: 3, implausibleSkus: 3 },
      'implausible',
    ],
    ['with a few far moves', { ...HOUR, moves: 20, move: 0.25 }, 'far'],
    ['and is over with less', { ...HOUR, implausible: 5, moves: 19, move: 0.25 }, null],
  ] as const)('for longer, %s', (_, hour, kind) => {
    expect(isMassMove(hour, 0.05, true)).toBe(kind);
  });
});

describe('the counts of a process', () => {
  const at = (start = 1e9) => {
    const clock = { now: start, monotonic: () => clock.now };
    return { clock, counts: new MoveCounts(clock) };
  };

  test('cover the last hour, with a median within a twentieth', () => {
    const { clock, counts } = at();
    counts.note([...judgements(10, true, 2), ...judgements(5, false, null)]);
    clock.now += 59 * 60_000;
    counts.note([...judgements(51, false, 0.05), ...judgements(40, false, 0.5)]);
    expect(counts.hour()).toMatchObject({ answers: 106, implausible: 10, moves: 101, isRecent: true });
    expect((counts.hour().move ?? 0) / 0.05).toBeCloseTo(1, 1);
    clock.now += 2 * 60_000;
    expect(counts.hour()).toMatchObject({ answers: 91, implausible: 0, moves: 91 });
    clock.now += 3_600_000;
    expect(counts.hour()).toEqual(NO_MOVES);
  });

  test('include losses of unreported SKUs separately, and factors of implausible moves', () => {
    const { counts } = at();
    counts.note([
      judgement(false, null, { untold: true, lost: true }),
      judgement(false, null, { untold: true }),
      judgement(false, null, { lost: true }),
      ...Array.from({ length: 8 }, (_, n) => ({
        ...judgement(true, 4.6, { factor: 4.6 }),
        sku: `F${n}`,
      })),
      ...Array.from({ length: 30 }, () => judgement(false, 0.1, { factor: 0.1 })),
    ]);
    expect(counts.hour()).toMatchObject({
      answers: 41,
      lost: 2,
      implausibleSkus: 8,
      untold: { answers: 2, lost: 1 },
      factor: 4.6,
    });
  });

  test('suffice to end a mass move after 200 answers, or after twenty and an hour', () => {
    const { clock, counts } = at();
    counts.note(judgements(200, true, 2));
    counts.follow({ kind: 'implausible', factor: null });
    const areEnough = () => counts.areEnough(counts.hour());
    expect(areEnough()).toBe(false);
    counts.note(judgements(199, false, null));
    expect(areEnough()).toBe(false);
    counts.note(judgements(1, false, null));
    expect(areEnough()).toBe(true);
    counts.follow({ kind: 'factor', factor: 4.6 });
    counts.note(judgements(20, false, null));
    expect(areEnough()).toBe(false);
    clock.now += 3_600_000;
    expect(areEnough()).toBe(true);
  });

  test('include at least twenty answers during a mass move, however long a small catalog takes for them', () => {
    const { clock, counts } = at();
    const inAnHour = (odd: boolean) => {
      clock.now += 3_600_000;
      counts.note([...judgements(4, false, 0.05), { ...judgement(odd, 2), sku: `O${clock.now}` }]);
      return counts.hour();
    };
    expect([inAnHour(true), inAnHour(true)].map(({ answers }) => answers)).toEqual([5, 5]);
    counts.follow({ kind: 'implausible', factor: null });
    expect(inAnHour(true)).toMatchObject({ answers: 5, implausible: 1, isRecent: false });
    expect([inAnHour(true), inAnHour(true)].map(({ answers }) => answers)).toEqual([10, 15]);
    expect(counts.areEnough(counts.hour())).toBe(false);
    // Only those odd ones that are among the newest twenty.
    const hour = inAnHour(false);
    expect(hour).toMatchObject({ answers: 20, implausible: 3, implausibleSkus: 3, moves: 20, factor: null });
    expect(hour.isRecent).toBe(false);
    expect(counts.areEnough(hour)).toBe(true);
    expect(isMassMove(hour, 0.05, true)).toBe('implausible');
    expect(isMassMove(inAnHour(false), 0.05, true)).toBeNull();
    counts.follow({ kind: null, factor: null });
    expect(inAnHour(false)).toMatchObject({ answers: 5, implausible: 0 });
  });

  test('include one factor for each SKU, however often answered, and none of an answer that keeps it', () => {
    const { counts } = at();
    const of = (sku: string, kind: 'begins' | 'stays'): SkuJudgement => ({
      ...judgement(true, 4.6, { factor: 4.6 }),
      sku,
      judgement: kind === 'begins' ? BEGINS : { kind, isFault: true },
    });
    const seven = ['A', 'B', 'C', 'D', 'E', 'F', 'G'];
    counts.note([...seven, ...seven].map((sku) => of(sku, 'begins')));
    counts.note([of('H', 'stays')]);
    expect(counts.hour().factor).toBeNull();
    // The factors of the first few are kept if many answers are implausible by then.
    counts.follow({ kind: 'implausible', factor: null });
    counts.note([of('H', 'begins')]);
    expect(counts.hour()).toMatchObject({ answers: 1, factor: 4.6 });
    counts.follow({ kind: 'factor', factor: 4.6 });
    expect(counts.hour()).toEqual(NO_MOVES);
  });

  test('include factors that other processes saw begin, for the rest of their hour', () => {
    const { clock, counts } = at();
    clock.now = 10 * 3_600_000;
    const begun = (count: number, from: number, seconds: number) =>
      Array.from({ length: count }, (_, n) => ({ sku: `F${from + n}`, factor: 4.6, seconds }));
    counts.note([{ ...judgement(true, 4.6, { factor: 4.6 }), sku: 'F0' }]);
    counts.noteBegun([...begun(4, 0, 2), ...begun(3, 4, 1800)]);
    counts.noteBegun([...begun(4, 0, 2), ...begun(3, 4, 1800)]);
    expect(counts.hour()).toMatchObject({ answers: 1, implausibleSkus: 1, factor: null });
    counts.noteBegun(begun(1, 7, 0));
    expect(counts.hour().factor).toBe(4.6);
    clock.now += 1_860_000;
    expect(counts.hour().factor).toBeNull();
  });

  test("are followed by one answer at a time, even if that fails; a fault's end is checked once a minute", async () => {
    const { clock, counts } = at();
    const { promise, resolve } = Promise.withResolvers<string>();
    const first = counts.alone(() => promise);
    expect(await counts.alone(() => Promise.resolve('second'))).toBeNull();
    resolve('first');
    expect(await first).toBe('first');
    await expect(counts.alone(() => Promise.reject(new Error('refused')))).rejects.toThrow('refused');
    expect(await counts.alone(() => Promise.resolve('third'))).toBe('third');

    expect([counts.mayAsk(), counts.mayAsk()]).toEqual([true, false]);
    clock.now += 60_000;
    expect([counts.mayAsk(), counts.mayAsk()]).toEqual([true, false]);
    counts.follow({ kind: 'factor', factor: 4.6 });
    expect(counts.mayAsk()).toBe(true);
  });

  test('include repaired SKUs, even if they are no sample', () => {
    const { counts } = at();
    const repaired = { kind: 'ends', back: true, isRepaired: true } as const;
    const of = (sku: string): SkuJudgement => ({ sku, judgement: repaired, confirmInMs: null, sample: null });
    counts.note([of('A'), of('B')]);
    counts.note([of('A'), { ...of('C'), judgement: { kind: 'ends', back: true } }]);
    expect(counts.hour()).toEqual({ ...NO_MOVES, repairedSkus: 2 });
  });

  test('leave out SKUs without prices before', () => {
    const { counts } = at();
    counts.note([{ ...judgement(true, 1), sample: null }]);
    expect(counts.hour().answers).toBe(0);
  });

  test('yield the usual move once an hour, if enough has moved', () => {
    const { clock, counts } = at();
    counts.note(judgements(200, false, 0.05));
    expect(counts.usualMove()).toBeNull();
    clock.now += 3_600_000;
    counts.note(judgements(200, false, 0.05));
    expect(counts.usualMove()).toBeCloseTo(0.05, 2);
    expect(counts.usualMove()).toBeNull();
    clock.now += 2 * 3_600_000;
    counts.note(judgements(199, false, 0.05));
    expect(counts.usualMove()).toBeNull();
  });
});

describe('a common factor', () => {
  const all = (count: number, factor: number) => Array.from({ length: count }, () => factor);
  const ODDS = Array.from({ length: 200 }, (_, n) => 1.1 + n / 200);
  test.each([
    ['is that of nearly all', [...all(8, 4.6), 1.2, -0.9], 4.6],
    ['of roundings as well', [...all(4, -3.55), ...all(4, -3.54)], -3.545],
    ['is none of a few', all(7, 4.6), null],
    ['is that of several, whatever moves by others', [...all(8, 4.6), ...ODDS], 4.6],
    ['of two the one that most have', [...all(8, 4.6), ...all(9, -3.6)], -3.6],
    ['is none where a quarter moves nearly as far', [...all(9, 4.6), 4.4, 4.5, 4.7], null],
    ['is no fall of many to about a quarter', ODDS.map((odd) => -odd), null],
    ['is no crash of a market', all(100, Math.log(0.3)), null],
    ['is none of nothing', [], null],
  ])('%s', (_, factors, factor) => {
    expect(commonFactor(factors)).toBe(factor);
  });
});

test.each([
  ['factor-of-some', 4.6, null, null, 'factor-of-some', 4.6],
  ['lost', 4.6, null, null, 'lost', null],
  ['factor-of-some', 4.6, 'lost', null, 'factor', 4.6],
  ['factor-of-some', 4.6, 'factor', 4.5, null, null],
  ['factor-of-some', -3.6, 'factor', 4.6, 'factor', -3.6],
  ['factor-of-some', -3.6, 'factor-of-some', 4.6, 'factor-of-some', -3.6],
  ['factor-of-some', 4.5, 'factor-of-some', 4.6, null, null],
  ['factor', 4.6, 'factor-of-some', 4.6, 'factor', 4.6],
  ['lost', null, 'factor-of-some', 4.6, 'factor', 4.6],
  ['one-price', null, 'factor-of-some', 4.6, 'one-price', null],
  ['lost', null, 'factor', 4.6, null, null],
  [null, null, 'factor-of-some', 4.6, null, null],
] as const)(
  'an hour of kind %s (%s) beside the known %s (%s) changes it to %s (%s)',
  (found, by, kind, known, to, factor) => {
    expect(turnOf(found, { ...HOUR, factor: by }, { kind, factor: known })).toEqual(
      to === null ? null : { kind: to, factor },
    );
  },
);

test.each([
  ['factor', 4.6, null],
  ['factor', -3.6, { kind: 'factor-of-some', factor: -3.6 }],
  ['implausible', null, null],
] as const)(
  'a few answers of kind %s (%s) are no evidence about others beside a fault of some SKUs',
  (kind, factor, turn) => {
    const known = { kind: 'factor-of-some', factor: 4.6 } as const;
    expect(turnOf(kind, { answers: 199, factor }, known)).toEqual(turn);
  },
);

test.each([
  ['factor', 4.6, 'implausible', null, true],
  ['one-price', null, 'implausible', null, true],
  ['one-price', null, 'factor', 4.6, true],
  ['factor', -3.6, 'factor', 4.6, true],
  ['factor', 4.5, 'factor', 4.6, false],
  ['one-price', null, 'one-price', null, false],
  ['lost', null, 'factor', 4.6, false],
] as const)(
  'moves of kind %s (%s) beside the known %s (%s) are another fault: %s',
  (kind, factor, was, by, is) => {
    expect(isAnotherFault({ kind, factor }, { kind: was, factor: by })).toBe(is);
  },
);
