import { formatAge, formatDuration } from '../lib/duration.ts';
import type { AgeDistribution, DeltaAudit, MirrorStats } from '../store/stats-types.ts';
import type { BacklogEstimate } from './backlog.ts';

/* Figures as people read them, the same on the screen and on the page. */

export const count = (n: number): string => n.toLocaleString('en-US');
export const percent = (part: number, whole: number): string =>
  `${whole === 0 ? '0' : (Math.floor((1000 * part) / whole) / 10).toFixed(1)} %`;
export const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);
/** Seconds as a person would configure them. */
export const interval = (seconds: number): string => formatDuration(seconds * 1000);
export const secondsBetween = (from: Date, to: Date): number => (to.getTime() - from.getTime()) / 1000;

/** One bar of a distribution of ages. `late`: all of it is beyond the target. */
export interface AgeBand {
  readonly label: string;
  readonly count: number;
  readonly late: boolean;
}

const BANDS = [300, 1800, 3600, 21_600, 86_400, 604_800];

/** A distribution in bars, without empty ones before the first and after the last. */
export function ageBands(ages: AgeDistribution, targetSeconds: number): AgeBand[] {
  const below = (seconds: number) => ages.buckets.find(({ le }) => le === seconds)?.count ?? 0;
  const bands = [...BANDS, Infinity].map((to, i): AgeBand => {
    const from = BANDS[i - 1] ?? 0;
    return {
      label: to === Infinity ? `over ${interval(from)}` : `to ${interval(to)}`,
      count: (to === Infinity ? ages.count : below(to)) - (i === 0 ? 0 : below(from)),
      late: from >= targetSeconds,
    };
  });
  const filled = bands.map(({ count: n }) => n > 0);
  return bands.slice(Math.max(0, filled.indexOf(true)), filled.lastIndexOf(true) + 1);
}

/** How well the delta and the mirror's own looks agree. */
export function auditLine(audit: DeltaAudit): string {
  const lead = audit.seenFirstSeconds / Math.max(1, audit.movesSeenFirst);
  return [
    `reports ${count(audit.reportsConfirmed)} confirmed, ${count(audit.reportsUnchanged)} unchanged`,
    `changes ${count(audit.movesSeenFirst)} seen first${audit.movesSeenFirst > 0 ? ` (by ${formatAge(lead)})` : ''}, ${count(audit.movesNeverReported)} never reported, ${count(audit.movesWaiting)} open`,
  ].join('; ');
}

const SURE = { sure: 'close estimate', fair: 'fair estimate', rough: 'rough estimate' } as const;

/** When the backlog is worked off, in words; empty where nothing is owed. */
export function estimateLine(estimate: BacklogEstimate): string {
  const { owed, minutes, least, most, sure, because } = estimate;
  if (owed === 0) return '';
  const why = because.join(', ');
  if (minutes === null || least === null || sure === 'unknown') return `no estimate: ${why}`;
  const [from, to] = [formatAge(least * 60), most === null ? 'much longer' : formatAge(most * 60)];
  const span = from === to ? '' : `${from} to ${to}; `;
  return `done in about ${formatAge(minutes * 60)} (${span}${SURE[sure]}${why === '' ? '' : `: ${why}`})`;
}

export function liveLine({ live, liveBudgetPerCall }: MirrorStats): string {
  const ceiling =
    live.ceilingPerMinute === null ? '' : `, ceiling ${live.ceilingPerMinute.toFixed(0)} per minute`;
  const wait =
    live.longestWaitSeconds === null
      ? ''
      : `; budget too small for LIVE_INTERVAL, each SKU refreshed at least every ${formatAge(live.longestWaitSeconds)}`;
  return `${live.computedPerMinute} computed in the last minute, budget ${liveBudgetPerCall} per call${ceiling}${wait}`;
}

export function paceLine({ pace }: MirrorStats, now: Date): string {
  const silent = pace.backingOffUntil === null ? 0 : secondsBetween(now, pace.backingOffUntil);
  return `${pace.usedInWindow} requests in the last window, ceiling ${pace.ceilingPerMinute.toFixed(0)} per minute${silent > 0 ? `; back-off ends in ${formatAge(silent)}` : ''}${pace.refusal === null ? '' : `; ${pace.refusal}`}`;
}

/** Counts so young go for those of this moment. */
const PRESENT_SECONDS = 10;

/** How old the counts of a large catalog are; null while they are those of this moment. */
export function countedLine({ countedAt, countedInMs }: MirrorStats, now: Date): string | null {
  const age = secondsBetween(countedAt, now);
  if (age < PRESENT_SECONDS) return null;
  return `counted ${formatAge(age)} ago, in ${formatDuration(Math.round(countedInMs))}`;
}

const INCIDENT_CAUSES = {
  'live-count': "by the catalog's own counts",
  deferrals: 'snapshot-priced SKUs are deferred',
} as const;

export function incidentLine(
  { since, because }: NonNullable<MirrorStats['incident']>,
  ago: (at: Date) => string,
): string {
  return `since ${ago(since)}: the whole catalog is treated as live-priced (${INCIDENT_CAUSES[because]})`;
}
