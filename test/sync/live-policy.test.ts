import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Rate } from '../../src/store/live/rate-prior.ts';
import {
  bounded,
  chooseLive,
  drawnPart,
  learnMovedSizes,
  learnHintedMove,
  learnRate,
  refreshValue,
  MAX_ROUNDS,
  nextRefreshMinutes,
  PRIOR,
  roundMinutes,
  solveThreshold,
} from '../../src/sync/live/policy.ts';

const rates = fc.record({
  alpha: fc.double({ min: 0.05, max: 20, noNaN: true }),
  beta: fc.double({ min: 0.5, max: 4320, noNaN: true }),
});
const mean = ({ alpha, beta }: Rate) => alpha / beta;

describe('the estimated rate of change', () => {
  test('moves towards what is observed, and never beyond its bounds', () => {
    fc.assert(
      fc.property(rates, fc.double({ min: 0.1, max: 10_000, noNaN: true }), (rate, tau) => {
        const still = bounded(learnRate(rate, tau, false));
        const moved = bounded(learnRate(rate, tau, true));
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

  test('counts a hinted move at its exact time: so many moves in so much time', () => {
    let rate = PRIOR;
    for (let refresh = 0; refresh < 100; refresh += 1) rate = bounded(learnHintedMove(rate, 5));
    expect(rate.beta / rate.alpha).toBeCloseTo(5, 0);
    expect(learnHintedMove(PRIOR, 0)).toEqual(PRIOR);
    // Without a hint there may have been more than one move in the wait.
    const [hinted, found] = [learnHintedMove(PRIOR, 600), learnRate(PRIOR, 600, true)];
    expect(hinted.alpha / hinted.beta).toBeLessThan(found.alpha / found.beta);
  });

  test('approaches the true rate of a steady SKU', () => {
    let rate = PRIOR;
    // A change in every second refresh of 30 minutes: e^(−30 λ) = ½.
    for (let refresh = 0; refresh < 200; refresh += 1) rate = bounded(learnRate(rate, 30, refresh % 2 === 0));
    expect(mean(rate)).toBeGreaterThan(0.015);
    expect(mean(rate)).toBeLessThan(0.031);
  });
});

describe('the part of the sizes that move', () => {
  const learn = (moved: number, tau = 10, times = 200) => {
    let sizes = { seen: 0, moved: 0 };
    for (let look = 0; look < times; look += 1)
      sizes = learnMovedSizes(sizes, { alpha: 1, beta: 1000 }, tau, { held: 10, moved });
    return sizes;
  };

  test('is learned only from refreshes that found a move', () => {
    expect(learn(0)).toEqual({ seen: 0, moved: 0 });
    expect(learn(3).moved / learn(3).seen).toBeCloseTo(0.3, 2);
    expect(learn(10)).toEqual({ seen: 300, moved: 300 });
    expect(
      learnMovedSizes({ seen: 5, moved: 1 }, { alpha: 1, beta: 100 }, 10, { held: 0, moved: 0 }),
    ).toEqual({ seen: 5, moved: 1 });
  });

  test('is that of a single move, even if several happened in a long time', () => {
    // Ten moves in that time, each of a tenth of the sizes: about two thirds are found moved.
    const { seen, moved } = learn(6.5, 10_000, 20);
    expect(moved / seen).toBeCloseTo(0.1, 1);
  });

  test('fades in favour of recent observations', () => {
    const before = { seen: 300, moved: 300 };
    let sizes = before;
    for (let look = 0; look < 100; look += 1)
      sizes = learnMovedSizes(sizes, { alpha: 1, beta: 1000 }, 10, { held: 10, moved: 1 });
    expect(sizes.moved / sizes.seen).toBeLessThan(0.15);
  });
});

test('a small part of the refreshes goes to SKUs drawn at random, and at least some each day', () => {
  // 590 refreshes a minute, half a per cent of them, over ten minutes.
  expect(20_000 * drawnPart(20_000, 590, 10)).toBeCloseTo(29.5);
  expect(20_000 * drawnPart(20_000, 1, 24 * 60)).toBeCloseTo(50);
  expect(drawnPart(1, 590, 10)).toBe(1);
  expect(drawnPart(0, 590, 10)).toBe(1);
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

test('at the solved threshold SKUs need no more than the available refreshes, and none waits too long', () => {
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
      const most = MAX_ROUNDS * roundMinutes(skus, refreshes);
      const threshold = solveThreshold(all, refreshes, most);
      const waits = all.map(({ lambda, weight }) =>
        nextRefreshMinutes(
          { weight, rate: { alpha: lambda, beta: 1 } },
          { refreshThreshold: threshold, maxIntervalMinutes: most },
        ),
      );
      const asked = all.reduce((sum, { count }, i) => sum + count / (waits[i] ?? 1), 0);
      expect(asked).toBeLessThanOrEqual(refreshes * 1.0001);
      for (const wait of waits) expect(wait).toBeLessThanOrEqual(Math.max(most, 1) * 1.0001);
    }),
  );
});

test('SKUs overdue beyond the limit go first, then the most valuable; none again within a minute', () => {
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

test('a SKU drawn at random goes before all others, unless it was refreshed within the last minute', () => {
  const candidate = (sku: string, tau: number, random = false) => ({
    sku,
    tau,
    weight: 1,
    rate: PRIOR,
    random,
  });
  const candidates = [
    candidate('old', 200),
    candidate('drawn', 2, true),
    candidate('recent', 0.5, true),
    candidate('worth it', 100),
  ];
  expect(chooseLive(candidates, 2, 150).map(({ sku }) => sku)).toEqual(['drawn', 'old']);
});
