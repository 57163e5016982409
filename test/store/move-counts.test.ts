import { describe, expect, test } from 'vitest';
import type { SkuJudgement } from '../../src/store/answer/doubts.ts';
import { isMassMove, MoveCounts } from '../../src/store/answer/move-counts.ts';

const judgement = (odd: boolean, move: number | null): SkuJudgement => ({
  sku: 'A',
  judgement: { kind: 'none' },
  againInMs: null,
  sample: { odd, lost: false, move },
});
const judgements = (count: number, odd: boolean, move: number | null) =>
  Array.from({ length: count }, () => judgement(odd, move));
const HOUR = { answers: 1000, implausible: 0, lost: 0, moves: 500, move: 0.05 };

describe('it is a mass move', () => {
  test.each([
    ['not in an ordinary hour', HOUR, 0.05, null],
    ['with more than a hundredth implausible', { ...HOUR, implausible: 11 }, 0.05, 'implausible'],
    ['not with a hundredth', { ...HOUR, implausible: 10 }, 0.05, null],
    ['not with a few answers', { ...HOUR, answers: 199, implausible: 100 }, 0.05, null],
    ['where more than a quarter has lost all prices', { ...HOUR, lost: 251 }, 0.05, 'lost'],
    ['not where a quarter is sold out', { ...HOUR, lost: 250 }, 0.05, null],
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
    ['with half of what began it', { ...HOUR, implausible: 6 }, 'implausible'],
    ['with half of those without prices', { ...HOUR, lost: 126 }, 'lost'],
    ['with a few far moves', { ...HOUR, moves: 20, move: 0.25 }, 'far'],
    ['and is over with less', { ...HOUR, implausible: 5, moves: 19, move: 0.25 }, null],
  ] as const)('for longer, %s', (_, hour, kind) => {
    expect(isMassMove(hour, 0.05, true)).toBe(kind);
  });
});

describe('what a process counts', () => {
  const at = (start = 1e9) => {
    const clock = { now: start, monotonic: () => clock.now };
    return { clock, counts: new MoveCounts(clock) };
  };

  test('is of the last hour, and its median is known to a twentieth', () => {
    const { clock, counts } = at();
    counts.note([...judgements(10, true, 2), ...judgements(5, false, null)]);
    clock.now += 59 * 60_000;
    counts.note([...judgements(51, false, 0.05), ...judgements(40, false, 0.5)]);
    expect(counts.hour()).toMatchObject({ answers: 106, implausible: 10, moves: 101 });
    expect((counts.hour().move ?? 0) / 0.05).toBeCloseTo(1, 1);
    clock.now += 2 * 60_000;
    expect(counts.hour()).toMatchObject({ answers: 91, implausible: 0, moves: 91 });
    clock.now += 3_600_000;
    expect(counts.hour()).toEqual({ answers: 0, implausible: 0, lost: 0, moves: 0, move: null });
  });

  test('leaves out SKUs without prices before', () => {
    const { counts } = at();
    counts.note([{ ...judgement(true, 1), sample: null }]);
    expect(counts.hour().answers).toBe(0);
  });

  test('tells what is usual once an hour, where enough has moved', () => {
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
