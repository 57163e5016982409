import { expect } from 'vitest';
import { PARTS } from '../../bench/freshness/results.ts';

/** They compute for minutes, and longer on a busy machine. */
export const TIMEOUT = { timeout: 1_200_000 };

/** The short form of `npm run bench:freshness`: fewer SKUs and hours, but the same code and the same targets. */
const SIZE = {
  skus: 1500,
  hours: 10,
  fillSkus: 40_000,
  pacingHours: 4,
  incident: { skus: 20_000, hours: 2, sweptMinutes: 43 },
  worlds: {
    large: { skus: 4000, hours: 16, outageFrom: 12 },
    small: { skus: 4000, hours: 4, outageFrom: 1 },
  },
  releases: { skus: 2000, hours: 12 },
  hints: { skus: 2000, hours: 6 },
  scope: { all: 5000, own: 250, hours: 6 },
};

/**
 * Targets that the short form cannot reach: it is too short to learn rates and wholesale moves well, for a fill to
 * outlast its deferrals, and for five minutes not to matter; it has so few SKUs that no price gets as old as
 * LIVE_INTERVAL, and only one seed for the hour after an outage.
 */
const NEEDS_THE_FULL_LENGTH =
  /redrawn|course of things|against by age|mislisted|from cold|closed|above known rates|points lost|ceiling 200: (?:longest|deferred|part of the ceiling used)|lines, .*dismissed|lines, releases, no ceiling: points|lines, all of it, no ceiling: part|lines, (?:stationary|regimes), ceiling: points|stationary, ceiling: hour after an outage/;

/** Simulates one part of the bench, and expects this many figures, none of which misses its target. */
export function expectFiguresReached(part: keyof typeof PARTS, count: number): void {
  const figures = [...(PARTS[part]?.([3], SIZE) ?? [])];
  expect(figures).toHaveLength(count);
  expect(figures.filter(({ ok, what }) => !ok && !NEEDS_THE_FULL_LENGTH.test(what))).toEqual([]);
}
