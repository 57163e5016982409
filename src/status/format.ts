import { formatAge, formatDuration } from '../lib/duration.ts';
import { count, plural } from '../lib/format.ts';
import type { DeltaAudit } from '../store/catalog/audit.ts';
import { CEILING_MET } from '../store/ledger/due.ts';
import { FAILURES_BEFORE_PAUSE } from '../store/ledger/tasks.ts';
import type { HintStats } from '../store/sellers/hint-sources.ts';
import type { PromiseStats } from '../store/sellers/promises.ts';
import type { Targets } from '../store/setup/sql-settings.ts';
import type { AgeDistribution } from '../store/status/counts.ts';
import type { CohortCalibration } from '../store/trust/calibration.ts';
import type { MirrorStats, Status } from './status.ts';

/* Texts that the screen and the page share. */

export const skusText = (n: number): string => `${count(n)} ${plural(n, 'SKU')}`;
export const refreshesText = (n: number): string => `${count(n)} ${plural(n, 'refresh', 'refreshes')}`;
/** Formats a part of a whole in percent, rounded down, so that only the whole is 100 %. `0 %` of nothing. */
export const percentOf = (part: number, whole: number): string =>
  `${whole === 0 ? '0' : (Math.floor((1000 * part) / whole) / 10).toFixed(1)} %`;
export const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);
export const interval = (seconds: number): string => formatDuration(seconds * 1000);
export const secondsBetween = (from: Date, to: Date): number => (to.getTime() - from.getTime()) / 1000;

/**
 * Returns the target age of a class of prices. SKUs of unknown source are in no manifest, and nobody reports their
 * moves.
 */
export const targetSeconds = (priceSource: string, targets: Targets): number =>
  priceSource === 'snapshot' ? targets.snapshotSeconds : targets.liveSeconds;

/** One bar of an age distribution. `late`: all of it is beyond the target. */
export interface AgeBand {
  readonly label: string;
  readonly count: number;
  readonly late: boolean;
}

const BANDS = [300, 1800, 3600, 21_600, 86_400, 604_800];

/** Returns a distribution as bars, without empty ones before the first and after the last. */
export function ageBands(ages: AgeDistribution, target: number): AgeBand[] {
  const below = (seconds: number) => ages.buckets.find(({ le }) => le === seconds)?.count ?? 0;
  const bands = [...BANDS, Infinity].map((to, i): AgeBand => {
    const from = BANDS[i - 1] ?? 0;
    return {
      label: to === Infinity ? `over ${interval(from)}` : `to ${interval(to)}`,
      count: (to === Infinity ? ages.count : below(to)) - (i === 0 ? 0 : below(from)),
      late: from >= target,
    };
  });
  const filled = bands.map(({ count: n }) => n > 0);
  return bands.slice(Math.max(0, filled.indexOf(true)), filled.lastIndexOf(true) + 1);
}

/** Describes how well the delta and the mirror's own refreshes agree. */
export function auditLine(audit: DeltaAudit): string {
  const lead = audit.seenFirstSeconds / Math.max(1, audit.movesSeenFirst);
  return [
    `reports ${count(audit.reportsConfirmed)} confirmed, ${count(audit.reportsUnchanged)} unchanged`,
    [
      `changes ${count(audit.movesSeenFirst)} seen first${audit.movesSeenFirst > 0 ? ` (by ${formatAge(lead)})` : ''}`,
      `${count(audit.movesNeverReported)} never reported`,
      `${count(audit.movesWaiting)} open`,
    ].join(', '),
  ].join('; ');
}

/** Describes how many SKUs may be acted on, by price source. */
export function actionableLine({ trust, priceAge }: Pick<MirrorStats, 'trust' | 'priceAge'>): string {
  const each = trust.map(({ priceSource, actionable }) => {
    const priced = priceAge.find((row) => row.priceSource === priceSource)?.ages.count ?? 0;
    return `${priceSource} ${count(actionable)} of ${count(priced)}`;
  });
  return each.length === 0 ? 'none yet' : each.join(', ');
}

/**
 * Describes how often prices were right beside how often they were said to be, by cohort of SKUs; cohorts of
 * single sizes are left out.
 */
export function calibrationLine(calibration: readonly CohortCalibration[]): string {
  const each = calibration
    .filter(({ cohort }) => !cohort.endsWith(' sizes'))
    .map(
      ({ cohort, looks, rightShare, claimedShare }) =>
        `${cohort} ${percentOf(rightShare, 1)} right (claimed ${percentOf(claimedShare, 1)}) in ${refreshesText(looks)}`,
    );
  return each.length === 0 ? 'no refresh has tested it yet' : each.join('; ');
}

/** Sources beyond these are only counted: their names may be long, and there may be more than fifty. */
const SHOWN_SOURCES = 3;

/** Describes who has given hints, and how often each was right; null: nobody. */
export function hintsLine({ unread, sources }: HintStats): string | null {
  if (unread === 0 && sources.length === 0) return null;
  const others = sources.length - SHOWN_SOURCES;
  return [
    ...sources
      .slice(0, SHOWN_SOURCES)
      .map(
        ({ source, hints, refreshesBroughtForward, precision, recall }) =>
          `${source} right ${percentOf(precision, 1)} of the time, told of ${percentOf(recall, 1)} of all moves ` +
          `(${count(hints)} ${plural(hints, 'hint')}, ${refreshesText(refreshesBroughtForward)} brought forward)`,
      ),
    ...(others > 0 ? [`${others} other ${plural(others, 'source')}`] : []),
    ...(unread > 0 ? [`${count(unread)} not read yet`] : []),
  ].join('; ');
}

/** Describes whether promised ages of prices can be kept, and were; null: nothing is promised. */
export function promisesLine(stats: PromiseStats): string | null {
  const { promises, leftOut, neededPerMinute, availablePerMinute, cases, kept } = stats;
  if (promises === 0) return null;
  const [needed, available] = [count(Math.ceil(neededPerMinute)), count(Math.floor(availablePerMinute))];
  const fit =
    leftOut === 0
      ? `they need ${needed} of ${available} requests per minute`
      : neededPerMinute <= availablePerMinute
        ? `the partner computes too few live prices to keep ${count(leftOut)}`
        : `the account cannot keep ${count(leftOut)}: they need ${needed} requests per minute, ${available} can be had`;
  const day =
    cases === 0
      ? ''
      : `; ${(Math.floor((10_000 * kept) / cases) / 100).toFixed(2)} % of the last day's were kept`;
  return `the ages of ${skusText(promises)}; ${fit}${day}`;
}

const ERROR_TEXTS: Readonly<Record<string, string>> = {
  reported: 'the partner has it in `errors`',
  omitted: 'the answer leaves it out',
  contradictory: 'the answer has it twice, with different results',
  unreadable: 'its record cannot be read',
  'call-not-stored': 'Postgres rejects its rows',
};

/**
 * Describes for people why a SKU's last answer was an error (catalog_internal.due.last_error); null: unknown, or
 * it was a deferral.
 */
export function errorText(error: string | null | undefined): string | null {
  if (error === null || error === undefined || error === CEILING_MET) return null;
  const known = ERROR_TEXTS[error];
  return known ?? (error.startsWith('call-') ? `calls with it alone fail: ${error.slice(5)}` : error);
}

/**
 * Describes SKUs that the partner answers with errors, even if they are too few to affect the state; null: none.
 */
export function failingLine({ due, failing }: Pick<MirrorStats, 'due' | 'failing'>): string | null {
  const all = sum(due.filter(({ reason }) => reason === 'error').map(({ count: n }) => n));
  if (all === 0 || failing.length === 0) return null;
  const named = failing.map(
    ({ sku, failures, oldestAgeSeconds, error }) =>
      `${sku} (${[errorText(error), `${count(failures)} in a row`, `due for ${formatAge(oldestAgeSeconds)}`]
        .filter((part) => part !== null)
        .join(', ')})`,
  );
  const others = all - failing.length;
  const rest = others > 0 ? [`${count(others)} ${plural(others, 'other')}`] : [];
  return `${skusText(all)}: ${[...named, ...rest].join(', ')}; \`catalog-mirror show SKU\` tells more`;
}

/** Names the columns of metadata that keep going back and forth; null: none. */
export function unsteadyLine({
  unsteadyColumns: columns,
}: Pick<MirrorStats, 'unsteadyColumns'>): string | null {
  if (columns.length === 0) return null;
  const change = plural(columns.length, 'changes', 'change');
  return `${columns.join(', ')} ${change} with each refresh of many SKUs; see catalog.product_history, and tell the partner`;
}

const SURE = { sure: 'close estimate', fair: 'fair estimate', rough: 'rough estimate' } as const;

/** Describes when the backlog will be finished; empty if nothing is due. */
export function estimateLine(estimate: BacklogEstimate): string {
  const { owed, minutes, least, most, sure, because } = estimate;
  if (owed === 0) return '';
  const why = because.join(', ');
  if (minutes === null || least === null || sure === 'unknown') return `no estimate: ${why}`;
  const [from, to] = [formatAge(least * 60), most === null ? 'much longer' : formatAge(most * 60)];
  const span = from === to ? '' : `${from} to ${to}; `;
  return `done in about ${formatAge(minutes * 60)} (${span}${SURE[sure]}${why === '' ? '' : `: ${why}`})`;
}

/** Returns a line about live refreshes: how many, their budget, the ceiling. Pure. */
export function liveLine({ live, liveBudgetPerCall }: MirrorStats): string {
  const ceiling =
    live.ceilingPerMinute === null ? '' : `, ceiling ${live.ceilingPerMinute.toFixed(0)} per minute`;
  const wait =
    live.longestWaitSeconds === null
      ? ''
      : `; budget too small for LIVE_INTERVAL, each SKU refreshed at least every ${formatAge(live.longestWaitSeconds)}`;
  return `${live.computedPerMinute} computed in the last minute, budget ${liveBudgetPerCall} per call${ceiling}${wait}`;
}

/** Returns a line about the request pace, and what holds requests back. Pure. */
export function paceLine({ pace }: MirrorStats, now: Date): string {
  const backingOff = pace.backingOffUntil === null ? 0 : secondsBetween(now, pace.backingOffUntil);
  return [
    `${pace.usedInWindow} requests in the last window, ceiling ${pace.ceilingPerMinute.toFixed(0)} per minute`,
    ...(pace.paused === null ? [] : ['paused']),
    ...(backingOff > 0 ? [`back-off ends in ${formatAge(backingOff)}`] : []),
    ...(pace.refusal === null ? [] : [pace.refusal]),
  ].join('; ');
}

/** Counts younger than this are shown without their age. */
const PRESENT_SECONDS = 10;

/** Describes how old the counts of a large catalog are; null while they are younger than `present` seconds. */
export function countedLine(
  { countedAt, countedInMs }: MirrorStats,
  now: Date,
  present = PRESENT_SECONDS,
): string | null {
  const age = secondsBetween(countedAt, now);
  if (age < present) return null;
  return `counted ${formatAge(age)} ago, in ${formatDuration(Math.round(countedInMs))}`;
}

const INCIDENT_CAUSES = {
  'live-count': "by the catalog's own counts",
  deferrals: 'snapshot-priced SKUs are deferred',
} as const;

/** Returns a line about the current incident; `ago` writes how long ago a moment was. Pure. */
export function incidentLine(
  { since, because }: NonNullable<MirrorStats['incident']>,
  ago: (at: Date) => string,
): string {
  return `since ${ago(since)}: the whole catalog is treated as live-priced (${INCIDENT_CAUSES[because]})`;
}

/** When the present backlog will be finished, in minutes from now, and how reliable that estimate is. */
export interface BacklogEstimate {
  readonly owed: number;
  /** Null if there is no estimate; if only `most` is null, there is no upper bound. */
  readonly minutes: number | null;
  readonly least: number | null;
  readonly most: number | null;
  readonly sure: 'sure' | 'fair' | 'rough' | 'unknown';
  readonly because: readonly string[];
}

/** Up to this ratio of `most` to `least`, an estimate counts as sure. */
const CLOSE = 1.25;
/** Part of the requests that live calls must leave for an upper bound to be worth stating. */
const LEFT_OVER = 0.05;

type Input = Pick<Status, 'stats' | 'targets' | 'failedCalls' | 'daemons' | 'bulkMaxSkus' | 'fullPerMinute'>;

/** Counts due SKUs and the calls they take: cheap SKUs fill calls, live ones their budget. */
function dueWork({ stats, bulkMaxSkus }: Pick<Status, 'stats' | 'bulkMaxSkus'>) {
  const owed = sum(stats.due.map(({ count }) => count));
  const live = sum(
    stats.due.filter(({ reason }) => reason === 'live' || reason === 'deferred').map(({ count }) => count),
  );
  const calls = Math.max(
    Math.ceil(owed / bulkMaxSkus),
    Math.ceil(live / Math.max(1, stats.liveBudgetPerCall)),
  );
  return { owed, live, calls };
}

/** Returns the plain estimate: everything at the present ceiling, starting now. */
export function backlogMinutes(status: Pick<Status, 'stats' | 'bulkMaxSkus'>): number {
  return dueWork(status).calls / Math.max(1, status.stats.pace.ceilingPerMinute);
}

/**
 * Estimates when the backlog will be finished. `least` assumes the whole request share, `most` what live SKUs'
 * calls leave of it; a back-off is added to both. There is no estimate while no daemon runs, while bulk calls keep
 * failing, while requests are refused for a reason that waiting does not remove, or if only live SKUs are due and
 * the partner's live source fails; if others are due, too, there is no upper bound.
 */
export function estimateBacklog(status: Input, now: Date): BacklogEstimate {
  const { stats, fullPerMinute } = status;
  const { owed, live, calls } = dueWork(status);
  if (owed === 0) return { owed, minutes: 0, least: 0, most: 0, sure: 'sure', because: [] };
  const stopped = whyNothingMoves(status, { owed, live });
  if (stopped !== null)
    return { owed, minutes: null, least: null, most: null, sure: 'unknown', because: [stopped] };
  const { backingOffUntil, ceilingPerMinute } = stats.pace;
  const sendsFrom = Math.max(backingOffUntil?.getTime() ?? 0, stats.pace.paused?.until?.getTime() ?? 0);
  const backoff = Math.max(0, sendsFrom - now.getTime()) / 60_000;
  const liveMinutes = live / (stats.live.ceilingPerMinute ?? Infinity);
  const at = (callsPerMinute: number) => backoff + Math.max(calls / callsPerMinute, liveMinutes);
  const present = Math.max(ceilingPerMinute, 0.1);
  const left = present - Math.min(present, liveCallRate(status));
  const isLiveSourceDown = live > 0 && isLiveOutage(stats);
  const most = left > present * LEFT_OVER && !isLiveSourceDown ? at(left) : null;
  const least = at(Math.max(present, fullPerMinute));
  const because = [
    ...(stats.pace.paused === null ? [] : ['requests are paused']),
    ...(stats.pace.refused === null ? [] : ['requests are being rejected']),
    ...(stats.incident === null ? [] : ['the whole catalog is live-priced']),
    ...(status.failedCalls === 0 ? [] : ['bulk calls are failing']),
    ...(isLiveSourceDown ? [LIVE_SOURCE_DOWN] : most === null ? ['live refreshes use every request'] : []),
  ];
  const sure = because.length > 0 || most === null ? 'rough' : most / least <= CLOSE ? 'sure' : 'fair';
  return { owed, minutes: at(present), least, most, sure, because };
}

function whyNothingMoves(
  { stats, daemons, failedCalls }: Input,
  { owed, live }: Pick<ReturnType<typeof dueWork>, 'owed' | 'live'>,
): string | null {
  if (daemons === 0) return 'no daemon is running';
  if (stats.pace.paused !== null && stats.pace.paused.until === null) return 'requests are paused';
  if (failedCalls >= FAILURES_BEFORE_PAUSE) return 'bulk calls are failing';
  const { suspected } = stats.pace.refused ?? {};
  if (suspected === 'account') return 'the supplier account is not configured';
  if (suspected === 'credential') return 'requests are rejected, the credential is suspected';
  if (owed === live && isLiveOutage(stats)) return LIVE_SOURCE_DOWN;
  return null;
}

const LIVE_SOURCE_DOWN = "the partner's live source is failing";
const isLiveOutage = ({ liveOutage = null }: MirrorStats): boolean => liveOutage !== null;

/** Returns the calls per minute that regular refreshes of live SKUs take. */
function liveCallRate({ stats, targets }: Input): number {
  const live = sum(
    stats.skus
      .filter(({ state, priceSource }) => state === 'priced' && priceSource === 'live')
      .map(({ count }) => count),
  );
  return (live * 60) / targets.liveSeconds / Math.max(1, stats.liveBudgetPerCall);
}
