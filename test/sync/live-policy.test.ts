import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  chooseLive,
  learnRate,
  refreshValue,
  MOST_ROUNDS,
  nextRefreshMinutes,
  PRIOR,
  type Rate,
  roundMinutes,
  solveThreshold,
} from '../../src/sync/live/policy.ts';

const rates = fc.record({
  alpha: fc.double({ min: 0.05, max: 20, noNaN: true }),
  beta: fc.double({ min: 0.5, max: 4320, noNaN: true }),
});
const mean = ({ alpha, beta }: Rate) => alpha / beta;

describe('the belief about a rate', () => {
  test('moves towards what is seen, and never beyond its bounds', () => {
    fc.assert(
      fc.property(rates, fc.double({ min: 0.1, max: 10_000, noNaN: true }), (rate, tau) => {
        const still = learnRate(rate, tau, false);
        const moved = learnRate(rate, tau, true);
        expect(mean(still)).toBeLessThanOrEqual(mean(rate) * 1.0001);
        expect(mean(moved)).toBeGreaterThanOrEqual(mean(rate) * 0.9999);
        for (const { alpha, beta } of [still, moved]) {
          expect(alpha).toBeGreaterThan(0);
          expect(alpha).toBeLessThanOrEqual(20.0001);
          expect(beta).toBeLessThanOrEqual(4320.0001);
        }
      }),
    );
  });

  test('finds the true rate of a steady SKU', () => {
    let rate = PRIOR;
    // A change in every second look of 30 minutes: e^(−30 λ) = ½.
    for (let refresh = 0; refresh < 200; refresh += 1) rate = learnRate(rate, 30, refresh % 2 === 0);
    expect(mean(rate)).toBeGreaterThan(0.015);
    expect(mean(rate)).toBeLessThan(0.031);
  });
});

test('a refresh is worth more the heavier the SKU and the longer ago the last one', () => {
  fc.assert(
    fc.property(rates, fc.double({ min: 1, max: 5000, noNaN: true }), (rate, tau) => {
      const value = refreshValue(1, rate, tau);
      expect(value).toBeGreaterThanOrEqual(-1e-6);
      expect(refreshValue(2, rate, tau)).toBeCloseTo(2 * value, 6);
      expect(refreshValue(1, rate, tau * 1.5)).toBeGreaterThanOrEqual(value - 1e-6);
    }),
  );
});

test('at the solved threshold all SKUs together ask for what refreshes there are, and nobody waits longer than allowed', () => {
  const groups = fc.array(
    fc.record({
      count: fc.integer({ min: 1, max: 5000 }),
      lambda: fc.double({ min: 1e-6, max: 1, noNaN: true }),
      weight: fc.double({ min: 0.01, max: 50, noNaN: true }),
    }),
    { minLength: 1, maxLength: 20 },
  );
  fc.assert(
    fc.property(groups, fc.double({ min: 1, max: 1000, noNaN: true }), (all, refreshes) => {
      const skus = all.reduce((n, { count }) => n + count, 0);
      const most = MOST_ROUNDS * roundMinutes(skus, refreshes);
      const threshold = solveThreshold(all, refreshes, most);
      const waits = all.map(({ lambda, weight }) =>
        nextRefreshMinutes(weight, { alpha: lambda, beta: 1 }, threshold, most),
      );
      const asked = all.reduce((sum, { count }, i) => sum + count / (waits[i] ?? 1), 0);
      expect(asked).toBeLessThanOrEqual(refreshes * 1.0001);
      for (const wait of waits) expect(wait).toBeLessThanOrEqual(Math.max(most, 1) * 1.0001);
    }),
  );
});

test('who has waited longest beyond the limit goes first, then by value; none again within a minute', () => {
  const candidate = (sku: string, tau: number, weight = 1) => ({ sku, tau, weight, rate: PRIOR });
  const chosen = chooseLive(
    [
      candidate('recent', 0.5, 1e6),
      candidate('light', 30),
      candidate('heavy', 30, 10),
      candidate('old', 200),
      candidate('older', 300),
      candidate('never', Infinity),
    ],
    5,
    150,
  );
  expect(chosen.map(({ sku }) => sku)).toEqual(['never', 'older', 'old', 'heavy', 'light']);
});
