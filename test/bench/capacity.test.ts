import { expect, test } from 'vitest';
import { simulateLive } from '../../bench/freshness/live.ts';
import { Account, Market } from '../../bench/freshness/market.ts';
import { capacityOf } from '../../src/sync/live/capacity.ts';
import { DAY, INPUT } from '../sync/default-capacity.ts';

const LIMITS = { maxPerWindow: 120, windowMs: 60_000, backoffMs: 60_000 };

test.each([
  ['round-robin', 30],
  ['index', 30],
  ['round-robin', 60],
  ['index', 60],
] as const)('live prices are as fresh as `plan` predicts: %s, ceiling %i', (livePolicy, liveCeiling) => {
  const skus = 2000;
  const measured = [1, 2].map((seed) => {
    const account = new Account(0.5 * DAY);
    const run = { policy: livePolicy, minutes: DAY, limits: LIMITS, liveBudget: 5, liveCeiling };
    simulateLive(new Market(skus, 'uniform', seed), run, [account]);
    return account.result();
  });
  const { live, roundMinutes } = capacityOf({ ...INPUT, skus, liveShare: 1, liveCeiling, livePolicy });
  const freshness = measured.reduce((sum, result) => sum + result.freshness, 0) / measured.length;
  // Two markets of two thousand SKUs differ by that much, and the learned index does not know the rates as the
  // plan does.
  expect(Math.abs(live.freshness - freshness)).toBeLessThan(livePolicy === 'index' ? 0.015 : 0.008);
  expect(live.worstAge).toBeLessThanOrEqual(3.1 * roundMinutes);
});
