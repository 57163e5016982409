import { describe, expect, test } from 'vitest';
import { simulateFill } from '../../bench/freshness/packing.ts';
import { capacityOf } from '../../src/sync/live/capacity.ts';
import { DAY, INPUT } from './default-capacity.ts';

describe('the estimate, compared with a simulation of the same code,', () => {
  test.each([
    [30_000, 0.05],
    [30_000, 0.01],
    [30_000, 0.1],
  ])('predicts the calls of a fill of %i SKUs with %f live', (skus, liveShare) => {
    const { fillCalls } = capacityOf({ ...INPUT, skus, liveShare });
    const { calls } = simulateFill({ skus, liveShare, mislisted: 0, ceiling: null }, 7);
    expect(calls / fillCalls).toBeGreaterThanOrEqual(1);
    expect(calls / fillCalls).toBeLessThan(1.03);
  });
});

describe('slow answers', () => {
  test.each([
    [0.25, 1, 7680, false],
    [6, 12, 320, false],
    [10, 20, 192, false],
    [16, 32, 120, false],
    [17, 34, 113, true],
    [60, 118, 32, true],
  ])(
    'of %f s need %i calls under way, of which 32 make %i a minute',
    (answerSeconds, needed, most, limits) => {
      const { underWay } = capacityOf({ ...INPUT, answerSeconds });
      expect(underWay).toMatchObject({ needed, limits });
      expect(Math.round(underWay?.mostPerMinute ?? 0)).toBe(most);
    },
  );

  test('change nothing unless they limit the calls, and then act like fewer requests', () => {
    const { underWay: _, ...short } = capacityOf(INPUT);
    expect(capacityOf({ ...INPUT, answerSeconds: 10 })).toMatchObject(short);
    const { underWay: __, ...fewer } = capacityOf({ ...INPUT, requestsPerMinute: 32 });
    expect(capacityOf({ ...INPUT, answerSeconds: 60 })).toMatchObject({ ...fewer, requestsPerMinute: 118 });
  });
});

describe('the estimate', () => {
  test('gives every live SKU its interval if refreshes suffice, and more requests gain nothing for prices', () => {
    const small = { ...INPUT, skus: 100_000 };
    const now = capacityOf(small);
    expect(now).toMatchObject({ meetsLiveInterval: true, live: { worstAge: 30, skus: 5000 } });
    expect(now.live.meanAge).toBeCloseTo(15);
    expect(capacityOf({ ...small, requestsPerMinute: 128 }).live).toEqual(now.live);
    expect(now.callsPerMinute).toBeLessThan(118);
  });

  test('says so if refreshes do not suffice, and then ten more requests help', () => {
    const now = capacityOf(INPUT);
    expect(now.meetsLiveInterval).toBe(false);
    expect(now).toMatchObject({ fillCalls: 5000, callsPerMinute: 118, liveRefreshes: 590 });
    expect(now.roundMinutes).toBeCloseTo(42.4, 1);
    expect(capacityOf({ ...INPUT, requestsPerMinute: 128 }).live.freshness).toBeGreaterThan(
      now.live.freshness,
    );
    expect(capacityOf({ ...INPUT, livePolicy: 'round-robin' }).live.freshness).toBeLessThan(
      now.live.freshness,
    );
  });

  test('bounds the time of a fill and the refreshes by a ceiling on live computations, but not the calls', () => {
    const now = capacityOf({ ...INPUT, liveCeiling: 200 });
    expect(now).toMatchObject({ fillCalls: 5000, fillMinutes: 125, liveRefreshes: 200 });
    expect(capacityOf({ ...INPUT, liveCeiling: 200, requestsPerMinute: 128 }).live).toEqual(now.live);
  });

  test('sweeps no SKU sooner than allowed, and all of them by SWEEP_INTERVAL if calls suffice', () => {
    expect(capacityOf({ ...INPUT, skus: 50_000 }).snapshot.worstAge).toBeCloseTo(30);
    const none = capacityOf({ ...INPUT, liveShare: 0 });
    expect(none.snapshot.worstAge).toBeCloseTo(DAY, 0);
    expect(none.callsPerMinute).toBeCloseTo(500_000 / DAY / 100, 3);
  });

  test('without sweeps has right prices nine tenths of the time, thanks to the delta alone', () => {
    // A simulation of single moves gives 90.6 % by the delta alone, for a median of one move in three days.
    const alone = capacityOf({ ...INPUT, liveShare: 0, sweepMinutes: 0, metadataMinutes: 1000 * DAY });
    expect(alone.snapshot.freshness).toBeGreaterThan(0.89);
    expect(alone.snapshot.freshness).toBeLessThan(0.92);
    expect(capacityOf(INPUT).snapshot.freshness).toBeGreaterThan(0.98);
  });

  test('counts an empty class as always right', () => {
    expect(capacityOf({ ...INPUT, liveShare: 0 }).live).toEqual({
      skus: 0,
      meanAge: 0,
      worstAge: 0,
      freshness: 1,
    });
    expect(capacityOf({ ...INPUT, liveShare: 1 }).snapshot.freshness).toBe(1);
  });
});
