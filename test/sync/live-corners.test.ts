import { describe, expect, test } from 'vitest';
import {
  chooseLive,
  MIN_MINUTES,
  learnRate,
  nextRefreshMinutes,
  PRIOR,
  rateFromPast,
  refreshValue,
} from '../../src/sync/live/policy.ts';

const DAYS = 24 * 60;

describe('the estimated rate of change', () => {
  test.each([0, -5])('is unchanged by a refresh that comes %i minutes after the one before', (minutes) => {
    expect(learnRate(PRIOR, minutes, false)).toEqual(PRIOR);
    expect(learnRate(PRIOR, minutes, true)).toEqual(PRIOR);
  });

  test('counts each move of the past once, and each minute', () => {
    expect(rateFromPast(3, 600)).toEqual({ alpha: PRIOR.alpha + 3, beta: PRIOR.beta + 600, prior: 1 });
    expect(rateFromPast(0, 0)).toEqual(PRIOR);
  });

  test('remembers at most three days and twenty moves, and keeps its mean', () => {
    const still = rateFromPast(0, 30 * DAYS);
    expect(still.beta).toBeCloseTo(3 * DAYS, 6);
    expect(still.alpha / still.beta).toBeCloseTo(PRIOR.alpha / (PRIOR.beta + 30 * DAYS), 12);
    const busy = rateFromPast(199, 1000);
    expect(busy.alpha).toBeCloseTo(20, 6);
    expect(busy.alpha / busy.beta).toBeCloseTo((PRIOR.alpha + 199) / (PRIOR.beta + 1000), 12);
  });
});

describe('the next refresh', () => {
  const fast = { alpha: 20, beta: 20 };

  test('is never sooner than a minute, whatever the weight of the SKU', () => {
    expect(
      nextRefreshMinutes({ weight: 1e6, rate: fast }, { refreshThreshold: 1e-9, maxIntervalMinutes: 100 }),
    ).toBe(MIN_MINUTES);
  });

  test('is never later than the longest allowed wait, which is at least a minute', () => {
    const light = { weight: 1e-6, rate: { alpha: 1, beta: 1e6 } };
    expect(nextRefreshMinutes(light, { refreshThreshold: 1e3, maxIntervalMinutes: 100 })).toBeCloseTo(100, 9);
    expect(nextRefreshMinutes(light, { refreshThreshold: 1e3, maxIntervalMinutes: 0.1 })).toBe(MIN_MINUTES);
  });

  test('has a value in proportion to the weight of the SKU', () => {
    expect(refreshValue(7, PRIOR, 60)).toBeCloseTo(7 * refreshValue(1, PRIOR, 60), 9);
    expect(refreshValue(1, PRIOR, 60)).toBeGreaterThan(0);
  });
});

describe('the SKU to refresh first', () => {
  const candidate = (sku: string, tau: number, weight = 1) => ({ sku, weight, rate: PRIOR, tau });
  const chosen = (most: number, count: number, ...candidates: ReturnType<typeof candidate>[]) =>
    chooseLive(candidates, count, most).map(({ sku }) => sku);

  test('is one that has waited as long as allowed, the longest wait first, however valuable others are', () => {
    const all = [candidate('heavy', 40, 1e6), candidate('late', 60), candidate('just', 50)];
    expect(chosen(50, 3, ...all)).toEqual(['late', 'just', 'heavy']);
    expect(chosen(50.1, 2, ...all)).toEqual(['late', 'heavy']);
    expect(chosen(100, 3, ...all)).toEqual(['heavy', 'late', 'just']);
  });

  test('is never one that was refreshed within the last minute', () => {
    expect(chosen(100, 3, candidate('now', 0.99, 1e6), candidate('a minute ago', 1))).toEqual([
      'a minute ago',
    ]);
  });

  test('is one that was never refreshed', () => {
    expect(chosen(1000, 1, candidate('long ago', 999), candidate('never', Infinity))).toEqual(['never']);
  });
});
