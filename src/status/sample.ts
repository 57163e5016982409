import type { AgeDistribution } from '../store/status/counts.ts';
import type { CohortSample, NewSample } from '../store/status/samples.ts';
import { secondsBetween, sum } from './format.ts';
import type { MirrorState } from './reason.ts';
import type { Status } from './status.ts';

/* What is kept of a status each minute, for the charts. Pure. */

/** Older counts were not repeated when they should have been, so they say nothing about the present. */
const COUNTED_WITHIN_SECONDS = 120;
/** The same in durations of a count, for slow ones: a count is repeated after twenty times its duration. */
const COUNTED_WITHIN_COUNTS = 25;

/** Returns the sample of a status that was judged to be in `state` at `now`. */
export function sampleOf(
  { stats, mostInWindow, fullPerMinute }: Status,
  state: MirrorState,
  now: Date,
): NewSample {
  const { pace } = stats;
  const age = secondsBetween(stats.countedAt, now);
  const isPresent =
    age <= Math.max(COUNTED_WITHIN_SECONDS, (COUNTED_WITHIN_COUNTS * stats.countedInMs) / 1000);
  const counted = (count: number) => (isPresent ? count : null);
  return {
    state,
    backingOff: pace.refusal !== null,
    incident: stats.incident !== null,
    requests: pace.usedInWindow,
    otherRequests: pace.othersInWindow,
    ceiling: fullPerMinute > 0 ? (pace.ceilingPerMinute * mostInWindow) / fullPerMinute : 0,
    requestLimit: pace.limitInWindow,
    skus: counted(sum(stats.skus.map(({ count }) => count))),
    pending: counted(sum(stats.skus.filter(({ state: of }) => of === 'pending').map(({ count }) => count))),
    due: counted(sum(stats.due.map(({ count }) => count))),
    snapshot: isPresent ? cohortOf(stats, 'snapshot') : NOT_COUNTED,
    live: isPresent ? cohortOf(stats, 'live') : NOT_COUNTED,
  };
}

const NOT_COUNTED: CohortSample = { priced: null, fresh: null, p50: null, p95: null };

function cohortOf({ priceAge, freshSkus }: Status['stats'], name: string): CohortSample {
  const ages = priceAge.find(({ priceSource }) => priceSource === name);
  if (ages === undefined) return { priced: 0, fresh: 0, p50: null, p95: null };
  return {
    priced: ages.ages.count,
    fresh: freshSkus.find(({ priceSource }) => priceSource === name)?.count ?? 0,
    p50: quantile(ages.ages, 0.5, ages.oldestSeconds),
    p95: quantile(ages.ages, 0.95, ages.oldestSeconds),
  };
}

/**
 * Returns the age in seconds that the share `q` of a distribution does not exceed: linear within a bucket, as in
 * Prometheus, and never above the oldest. Null if it is empty.
 */
export function quantile({ buckets, count }: AgeDistribution, q: number, oldest: number): number | null {
  if (count <= 0) return null;
  const rank = q * count;
  const at = buckets.findIndex((bucket) => bucket.count >= rank);
  if (at === -1) return oldest;
  const { le = 0, count: upTo = 0 } = buckets[at] ?? {};
  const from = buckets[at - 1] ?? { le: 0, count: 0 };
  const within = upTo > from.count ? (rank - from.count) / (upTo - from.count) : 1;
  return Math.min(oldest, from.le + (le - from.le) * within);
}
