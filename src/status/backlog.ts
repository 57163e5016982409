import { sum } from './figures.ts';
import type { Status } from './status.ts';

/** When what is owed now is worked off, in minutes from now, and how far that can be relied on. */
export interface BacklogEstimate {
  readonly owed: number;
  /** Null where nothing can be said; `most` alone null: no bound. */
  readonly minutes: number | null;
  readonly least: number | null;
  readonly most: number | null;
  readonly sure: 'sure' | 'fair' | 'rough' | 'unknown';
  /** What makes it unsure. */
  readonly because: readonly string[];
}

/** A ratio of `most` to `least` up to which an estimate counts as sure. */
const CLOSE = 1.25;
/** Part of the requests that has to be left beside the live turns for a bound to be worth saying. */
const LEFT_OVER = 0.05;

type Input = Pick<Status, 'stats' | 'targets' | 'failedCalls' | 'daemons' | 'skusPerCall' | 'fullPerMinute'>;

/** Calls that what is owed takes: cheap SKUs fill calls, live ones their budget. */
function owedWork({ stats, skusPerCall }: Pick<Status, 'stats' | 'skusPerCall'>) {
  const owed = sum(stats.due.map(({ count }) => count));
  const live = sum(
    stats.due.filter(({ reason }) => reason === 'live' || reason === 'deferred').map(({ count }) => count),
  );
  const calls = Math.max(
    Math.ceil(owed / skusPerCall),
    Math.ceil(live / Math.max(1, stats.liveBudgetPerCall)),
  );
  return { owed, live, calls };
}

/** The plain figure: all of it at the present ceiling, from now on. */
export function backlogMinutes(status: Pick<Status, 'stats' | 'skusPerCall'>): number {
  return owedWork(status).calls / Math.max(1, status.stats.pace.ceilingPerMinute);
}

/**
 * The least is at the whole share, the most beside the turns that live SKUs take meanwhile; a silence comes before either. No
 * estimate is made while nobody works, or while what refuses requests will not end by waiting.
 */
export function estimateBacklog(status: Input, now: Date): BacklogEstimate {
  const { stats, fullPerMinute } = status;
  const { owed, live, calls } = owedWork(status);
  if (owed === 0) return { owed, minutes: 0, least: 0, most: 0, sure: 'sure', because: [] };
  const stopped = whyNothingMoves(status);
  if (stopped !== null)
    return { owed, minutes: null, least: null, most: null, sure: 'unknown', because: [stopped] };
  const { backingOffUntil, ceilingPerMinute } = stats.pace;
  const silence = Math.max(0, (backingOffUntil?.getTime() ?? 0) - now.getTime()) / 60_000;
  const liveMinutes = live / (stats.live.ceilingPerMinute ?? Infinity);
  const at = (callsPerMinute: number) => silence + Math.max(calls / callsPerMinute, liveMinutes);
  const present = Math.max(ceilingPerMinute, 0.1);
  const left = present - Math.min(present, liveTurns(status));
  const most = left > present * LEFT_OVER ? at(left) : null;
  const least = at(Math.max(present, fullPerMinute));
  const because = [
    ...(stats.pace.refused === null ? [] : ['requests are being rejected']),
    ...(stats.incident === null ? [] : ['the whole catalog is live-priced']),
    ...(status.failedCalls === 0 ? [] : ['bulk calls are failing']),
    ...(most === null ? ['live refreshes use every request'] : []),
  ];
  const sure = because.length > 0 || most === null ? 'rough' : most / least <= CLOSE ? 'sure' : 'fair';
  return { owed, minutes: at(present), least, most, sure, because };
}

function whyNothingMoves({ stats, daemons }: Input): string | null {
  if (daemons === 0) return 'no daemon is running';
  const { suspected } = stats.pace.refused ?? {};
  if (suspected === 'account') return 'the supplier account is not configured';
  if (suspected === 'credential') return 'requests are rejected, the credential is suspected';
  return null;
}

/** Calls a minute that the regular turns of live SKUs take. */
function liveTurns({ stats, targets }: Input): number {
  const live = sum(
    stats.skus
      .filter(({ state, priceSource }) => state === 'priced' && priceSource === 'live')
      .map(({ count }) => count),
  );
  return (live * 60) / targets.liveSeconds / Math.max(1, stats.liveBudgetPerCall);
}
