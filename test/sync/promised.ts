import type { LiveCeiling } from '../../src/store/live/limits.ts';

/*
 * The promises of live SKUs' ages that are possible, decided like in catalog_internal
 * (test/store/promises-scarce.pg.test.ts compares both). Ages are in seconds, rates in live prices a minute.
 */

/** The part of the capacity that promises may take (promise_capacity). */
const PROMISED_PART = 0.8;

/** Same as live_rate. Returns null if no ceiling is known. */
export function liveRate({ perMinute, blockedAt }: LiveCeiling, now: number): number | null {
  if (perMinute === null) return null;
  const seconds = blockedAt === null ? 0 : (now - blockedAt) / 1000;
  return seconds > 180 ? Math.min(perMinute, 60 / seconds) : perMinute;
}

/** Same as promise_capacity, for live SKUs. */
export const liveCapacity = (rate: number | null, mostPerMinute: number): number =>
  PROMISED_PART * Math.min(mostPerMinute, rate ?? Infinity);

/** Same as deferral_lead. */
export function deferralLead(rate: number | null): number {
  if (rate === null || rate >= 32) return 0;
  return rate < 4 ? 1050 : 390;
}

/** Same as shortest_promise. */
export function shortestPromise(rate: number | null): number {
  if (rate === null) return 0;
  return rate < 32 ? 45 + 2 * deferralLead(rate) : 11_000 / (1 + rate);
}

/** Same as promised_interval and live_promised_interval. */
export function liveInterval(maxAge: number, rate: number | null): number {
  const usual = maxAge - Math.max(8, Math.min(45, maxAge / 5));
  return Math.max(usual - deferralLead(rate), usual / 2);
}
