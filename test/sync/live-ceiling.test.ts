import { describe, expect, test } from 'vitest';
import { learnLiveCeiling, liveAllowance, liveCeilingAt, NO_CEILING } from '../../src/sync/live/learn.ts';

const MINUTE = 60_000;
const met = { deferredAll: true, computed: 200, capacity: 590 };
const clean = { deferredAll: false, computed: 150, capacity: 590 };
const DAY = 24 * 60 * MINUTE;
/** What two calls in a row leave that met the ceiling. */
const twice = (now: number) => learnLiveCeiling({ perMinute: null, at: now - 500 }, met, now);

describe('the ceiling on live computations', () => {
  test('is unknown, and limits nothing, until a call within its budget had every live SKU deferred', () => {
    expect(liveAllowance(NO_CEILING, 0, 10_000, 118)).toBe(Infinity);
    const unknown = { perMinute: null, at: 5 };
    expect(learnLiveCeiling(unknown, clean, 9)).toBe(unknown);
    expect(twice(0)).toEqual({ perMinute: 198, at: 0 });
  });

  test('is not believed in for one such call: SKUs that turned live since the last delta may have used all of its budget', () => {
    const suspected = learnLiveCeiling(NO_CEILING, met, DAY);
    expect(liveCeilingAt(suspected, DAY)).toBe(Infinity);
    expect(learnLiveCeiling(suspected, clean, DAY + 1000)).toBe(suspected);
    expect(learnLiveCeiling(suspected, met, DAY + MINUTE).perMinute).toBe(198);
    const again = learnLiveCeiling(suspected, met, DAY + MINUTE + 1);
    expect(again).toEqual({ perMinute: null, at: DAY + MINUTE + 1 });
  });

  test('is tried a little higher each minute, and much higher only after quiet ones', () => {
    const ceiling = twice(0);
    expect(liveCeilingAt(ceiling, MINUTE)).toBeCloseTo(198.99);
    expect(liveCeilingAt(ceiling, 5 * MINUTE)).toBeCloseTo(202.95);
    expect(liveCeilingAt(ceiling, 30 * MINUTE)).toBeGreaterThan(400);
  });

  test('is forgotten when it has grown beyond what all calls could ask', () => {
    const ceiling = twice(0);
    expect(learnLiveCeiling(ceiling, clean, 10 * MINUTE)).toBe(ceiling);
    expect(learnLiveCeiling(ceiling, clean, 60 * MINUTE)).toBe(NO_CEILING);
  });

  test('spreads what a minute has left over its calls', () => {
    const ceiling = { perMinute: 200, at: 0 };
    expect(liveAllowance(ceiling, 0, 0, 118)).toBe(2);
    expect(liveAllowance(ceiling, 0, 199, 118)).toBe(1);
    expect(liveAllowance(ceiling, 0, 205, 118)).toBe(0);
  });

  test('never falls to nothing, or it could not be found out again', () => {
    expect(learnLiveCeiling({ perMinute: 6, at: 0 }, { ...met, computed: 0 }, 0).perMinute).toBe(5);
  });
});
