import { describe, expect, test } from 'vitest';
import {
  isBacklog,
  listedSkus,
  isBacklogNear,
  overdueMinutes,
  idleAfter,
} from '../../src/sync/live/choose.ts';

describe('a backlog', () => {
  test.each([
    [29, false, true],
    [30, true, true],
    [9, false, false],
    [10, false, true],
  ])('of %i due SKUs at ten refreshes a minute: %s; perhaps soon: %s', (due, is, isNear) => {
    const backlog = { due, refreshesPerMinute: 10 };
    expect([isBacklog(backlog), isBacklogNear(backlog)]).toEqual([is, isNear]);
  });

  test('is listed for two minutes of refreshes, in whole SKUs', () => {
    expect(listedSkus({ due: 99, refreshesPerMinute: 10 })).toBe(20);
    expect(listedSkus({ due: 99, refreshesPerMinute: 0.4 })).toBe(1);
  });
});

describe('idle time', () => {
  const after = (idle: number, gaps: number[], elapsed: number, backlog = false) =>
    idleAfter(idle, { gaps, elapsed, backlog });

  test('is the sum of the gaps of over two minutes without a refresh', () => {
    expect(after(0, [2, 1, 0], 0)).toBe(0);
    expect(after(0, [120, 3, 2], 0)).toBe(123);
  });

  test('is worked off at a quarter of a minute per minute, and not while there is a backlog', () => {
    expect(after(100, [], 10)).toBe(97.5);
    expect(after(100, [], 10, true)).toBe(100);
    expect(after(1, [], 10)).toBe(0);
  });

  test('delays overdue SKUs: they come first only after twice as long', () =>
    expect(overdueMinutes(100, 120)).toBe(340));
});
