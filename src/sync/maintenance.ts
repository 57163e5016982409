import { pruneSends } from '../pace/ledger.ts';
import { readUnsteadyColumns } from '../store/answer/members.ts';
import { pruneOddMoves } from '../store/answer/odd-moves.ts';
import { pruneLeftTokens } from '../store/catalog/tokens.ts';
import { isClockSteady, isSteadinessNew } from '../store/clock.ts';
import type { Sql } from '../store/connection/db.ts';
import { putBackAccount } from '../store/connection/own-mirror.ts';
import { repairSequences } from '../store/history/changes.ts';
import { keepDailyPrices } from '../store/history/daily.ts';
import {
  type HistoryRest,
  NOTHING_PRUNED,
  prepareHistory,
  pruneBatches,
  pruneDays,
  pruneHistory,
  pruneMemberHistory,
  type PrunedMembers,
} from '../store/history/retention.ts';
import { bringForward, promoteMetadata, endWaits, type Turns } from '../store/ledger/due.ts';
import { hasPrices, restoreLedger, restoreLostRows, restorePrices } from '../store/ledger/lost-rows.ts';
import { bringTasksForward } from '../store/ledger/tasks.ts';
import { pruneLiveCalls, readLivePlan } from '../store/live/live.ts';
import { pruneQuarantine } from '../store/quarantine.ts';
import { pruneHints } from '../store/sellers/hints.ts';
import { readScope, readScopeState } from '../store/sellers/scope.ts';
import { forgetUnknown, readWatchlist } from '../store/sellers/watchlist.ts';
import { analyzeGrown } from '../store/statistics.ts';
import { pruneSamples } from '../store/status/samples.ts';
import { pruneCalibration } from '../store/trust/calibration.ts';
import type { SyncContext } from './context.ts';
import type { TaskOutcome } from './outcome.ts';
import { nextRefresh } from './settings.ts';
import { Steps } from './steps.ts';

const AT_ONCE = 10_000;
/** SKUs that one run compares with the ledger, in some ten milliseconds: a million within two hours. */
const LOOKED_THROUGH = 10_000;
/**
 * Pieces of SKUs that one run sorts by the rules of catalog.scope, in some tens of seconds. Bulk calls, if any are
 * made, continue it.
 */
const SORTED_PIECES = 100;
/** Pieces of changes that one run adds to daily prices, in some seconds. */
const DAILY_PIECES = 10;
const QUARANTINE_KEPT = 1000;
/** The manifest lags by hours, and the delta leaves a token every few minutes. */
const LEFT_TOKENS = { keep: 10_000, olderThanMs: 14 * 24 * 3_600_000 };
const MAINTENANCE_EVERY_MS = 60_000;
/**
 * How soon retention retries while it waits for the first answer, which shows that the clock is right: `run
 * --once` may end soon.
 */
const CLOCK_KNOWN_MS = 5000;
/** How often all SKUs are read to find those that may be forgotten. */
const FORGETTING_EVERY_MS = 600_000;
/**
 * How often due times for metadata are read again once none was too far ahead. This daemon never sets such times,
 * but another one may have longer intervals.
 */
const TURNS_EVERY_MS = 3_600_000;
const SENDS_KEPT_WINDOWS = 10;
/** The page shows a day, from the start of its first five minutes. */
const SAMPLES_KEPT_MS = 26 * 3_600_000;

/**
 * Refreshes metadata on its own schedule. Every refresh brings metadata, so only SKUs whose sweep has waited until
 * their metadata reached METADATA_INTERVAL need help: they move, oldest first, to a lane with a guaranteed part of
 * every call. During an incident none do, because every SKU is refreshed by worth.
 */
export async function syncMetadata(ctx: SyncContext): Promise<TaskOutcome> {
  const { incident } = await readLivePlan(ctx.sql);
  if (incident !== null) return { kind: 'postponed', nextInMs: MAINTENANCE_EVERY_MS, because: 'incident' };
  const { snapshotMs, snapshotReason } = nextRefresh(ctx.settings);
  const overdueMs = ctx.settings.intervals.metadataMs - snapshotMs;
  const promoted =
    snapshotReason === 'metadata' ? 0 : await promoteMetadata(ctx.sql, overdueMs / 1000, AT_ONCE);
  return { kind: 'done', nextInMs: promoted < AT_ONCE ? MAINTENANCE_EVERY_MS : 1000, counts: { promoted } };
}

/**
 * What a daemon remembers from one run to the next, about rows that may be lost and history that is referred to.
 */
export interface MaintenanceMemory {
  /** The SKU up to which the ledger has been compared with the catalog. */
  lookedUpTo: string;
  /** Whether there was any price. A partner without prices has not lost them anew each minute. */
  hadPrices: boolean;
  /** In milliseconds of the monotonic clock. */
  readonly historyRest: HistoryRest;
  /** Until when forgetting rests, and bringing metadata forward, by the same clock. */
  forgottenUntilMs: number;
  turnsUntilMs: number;
  prunedMembers: PrunedMembers;
}

export const newMemory = (): MaintenanceMemory => ({
  lookedUpTo: '',
  hadPrices: true,
  historyRest: { untilMs: 0 },
  forgottenUntilMs: 0,
  turnsUntilMs: 0,
  prunedMembers: NOTHING_PRUNED,
});

/** How long rows are kept, in milliseconds. */
export interface Retention {
  /** The pacer's window, for which it needs sends; a multiple of it is kept. */
  readonly windowMs: number;
  /** HISTORY_RETENTION; 0: forever. */
  readonly historyMs: number;
  /** DAILY_RETENTION; 0: forever. */
  readonly dailyMs: number;
}

/**
 * Corrects sequences that are behind their rows, frees what crashed workers left claimed, creates history's next
 * chunk, and drops what is no longer needed. While Postgres's clock jumps, nothing that is irreplaceable is
 * dropped for its age. The daemon keeps `memory` from one run to the next. If a step fails, for example because a
 * seller's foreign key keeps a SKU from being forgotten, the run fails with that step's name, and the other steps
 * are still done.
 */
export async function maintain(
  ctx: SyncContext,
  { windowMs, historyMs, dailyMs }: Retention,
  memory: MaintenanceMemory = newMemory(),
): Promise<TaskOutcome> {
  const { sql, settings } = ctx;
  const steps = new Steps();
  // First, because these statistics decide how Postgres plans the following steps.
  const analyzed = await steps.count('statistics', async () => (await analyzeGrown(sql)).length);
  const restored = await steps.count('lost-rows', () => restoreRows(ctx, memory));
  await steps.run('sequences', () => repairSequences(sql));
  const released = await steps.count('release', () => endWaits(sql, AT_ONCE));
  const broughtForward = await steps.count('intervals', () => keepIntervals(ctx, memory));
  const pruned = await pruneNotes(sql, steps, windowMs);
  await steps.run('history-ahead', () => prepareHistory(sql));
  await steps.run('watchlist', () =>
    readWatchlist(sql, { most: settings.catalog.watchedSkus, everything: true }),
  );
  await steps.run('scope', async () => {
    await readScope(sql, { everything: true, pieces: SORTED_PIECES });
    await tellScope(ctx);
  });
  const forgotten = await steps.count('unknown-skus', async () => {
    const done = await forgetSometimes(ctx, memory);
    if (done.rejected !== null) steps.fail('unknown-skus', done.rejected);
    return done.forgotten;
  });
  const isSteady = (await steps.run('clock', () => isClockSteady(sql))) === true;
  if (isSteady) await steps.run('samples', () => pruneSamples(sql, { olderThanMs: SAMPLES_KEPT_MS }));
  if (isSteady) await steps.run('calibration', () => pruneCalibration(sql));
  if (isSteady) await steps.run('left-tokens', () => pruneLeftTokens(sql, LEFT_TOKENS));
  const daily = await steps.run('daily-prices', () => keepDailyPrices(sql, DAILY_PIECES));
  const mayDropDays = dailyMs > 0 && isSteady;
  const daysDropped = mayDropDays
    ? await steps.count('daily-retention', () => pruneDays(sql, { olderThanMs: dailyMs, limit: AT_ONCE }))
    : 0;
  // A dropped change can no longer be counted in its day.
  const mayDrop = historyMs > 0 && isSteady && daily?.caughtUp === true;
  const historyChunksDropped = mayDrop
    ? await steps.count('history-retention', () => dropHistory(ctx, historyMs, memory))
    : 0;
  const membersDropped = await steps.count('members', () => pruneMembers(ctx, memory));
  const batchesDropped = await steps.count('changes', () => pruneBatches(sql, { limit: AT_ONCE }));
  const most = Math.max(
    released,
    broughtForward,
    forgotten,
    membersDropped,
    batchesDropped,
    daysDropped,
    restored > 0 ? AT_ONCE : 0,
  );
  const rests = !isSteady && (dailyMs > 0 || historyMs > 0);
  const isMore = most >= AT_ONCE || daily?.caughtUp === false;
  const nextInMs = isMore ? 1000 : rests ? await afterRest(ctx, steps) : MAINTENANCE_EVERY_MS;
  const counts = {
    released,
    broughtForward,
    pruned,
    forgotten,
    historyChunksDropped,
    daysWritten: daily?.written ?? 0,
    daysDropped,
    ...(analyzed > 0 && { analyzed }),
    ...(rests && { retentionRests: 1 }),
  };
  return steps.failure(nextInMs) ?? { kind: 'done', nextInMs, counts };
}

/** Drops short-lived notes, whatever the clock says. Returns the number of sends dropped. */
async function pruneNotes(sql: Sql, steps: Steps, windowMs: number): Promise<number> {
  const pruned = await steps.count('sends', () =>
    pruneSends(sql, { olderThanMs: Math.max(windowMs * SENDS_KEPT_WINDOWS, 600_000) }),
  );
  await steps.run('live-calls', () => pruneLiveCalls(sql));
  await steps.run('hints', () => pruneHints(sql));
  await steps.run('odd-moves', () => pruneOddMoves(sql));
  await steps.run('quarantine', () => pruneQuarantine(sql, { keep: QUARANTINE_KEPT }));
  return pruned;
}

/**
 * Returns in how many milliseconds to retry retention that rests until Postgres's clock is known to run steadily.
 */
async function afterRest({ sql }: SyncContext, steps: Steps): Promise<number> {
  const isNew = await steps.run('clock', () => isSteadinessNew(sql));
  return isNew === true ? CLOCK_KNOWN_MS : MAINTENANCE_EVERY_MS;
}

async function dropHistory(
  { sql, clock }: SyncContext,
  olderThanMs: number,
  { historyRest: rest }: MaintenanceMemory,
): Promise<number> {
  return await pruneHistory(sql, { olderThanMs }, { rest, nowMs: clock.monotonic() });
}

async function pruneMembers({ sql }: SyncContext, memory: MaintenanceMemory): Promise<number> {
  const limits = { unsteady: await readUnsteadyColumns(sql), limit: AT_ONCE };
  const { dropped, pruned } = await pruneMemberHistory(sql, limits, memory.prunedMembers);
  memory.prunedMembers = pruned;
  return dropped;
}

/**
 * Forgets SKUs like `forgetUnknown`. Once all have been read, it rests, unless a SKU was kept that must be
 * reported.
 */
async function forgetSometimes(
  { sql, clock }: SyncContext,
  memory: MaintenanceMemory,
): ReturnType<typeof forgetUnknown> {
  if (clock.monotonic() < memory.forgottenUntilMs) return { forgotten: 0, rejected: null };
  const done = await forgetUnknown(sql, AT_ONCE);
  if (done.forgotten < AT_ONCE && done.rejected === null)
    memory.forgottenUntilMs = clock.monotonic() + FORGETTING_EVERY_MS;
  return done;
}

/**
 * Brings forward due times of SKUs and tasks that were set by longer intervals than those configured now. Live
 * SKUs have such times only if they are refreshed in rotation. SKUs that were not found wait longest, for their
 * metadata. Skipping them takes longer the more there are, so these due times are read only every TURNS_EVERY_MS.
 */
async function keepIntervals(
  { sql, clock, settings }: SyncContext,
  memory: MaintenanceMemory,
): Promise<number> {
  const { incident, refreshThreshold } = await readLivePlan(sql);
  const { liveMs, snapshotMs, snapshotReason } = nextRefresh(settings);
  const inRotation = incident === null && refreshThreshold === null;
  const turns: readonly Turns[] = [
    {
      lane: 'sweep',
      live: false,
      reasons: ['sweep'],
      intervalSeconds: snapshotMs / 1000,
      as: snapshotReason,
    },
    { lane: 'live', live: false, reasons: ['unlisted', 'missed'], intervalSeconds: liveMs / 1000, as: null },
    ...(inRotation
      ? [{ lane: 'live', live: true, reasons: ['live'], intervalSeconds: liveMs / 1000, as: null } as const]
      : []),
  ];
  const { deltaMs, manifestMs, catalogCheckMs } = settings.intervals;
  const tasks = { delta: deltaMs, manifest: manifestMs, 'catalog-check': catalogCheckMs };
  let moved = (await bringTasksForward(sql, tasks)).length;
  for (const each of turns) moved += await bringForward(sql, each, AT_ONCE);
  if (clock.monotonic() < memory.turnsUntilMs) return moved;
  const intervalSeconds = snapshotMs / 1000;
  const forMetadata = {
    lane: 'metadata',
    live: false,
    reasons: ['metadata'],
    intervalSeconds,
    as: snapshotReason,
  } as const;
  const broughtForward = await bringForward(sql, forMetadata, AT_ONCE);
  if (broughtForward < AT_ONCE) memory.turnsUntilMs = clock.monotonic() + TURNS_EVERY_MS;
  return moved + broughtForward;
}

/**
 * Restores rows that somebody else has deleted and the mirror cannot do without: those of one-row tables, and
 * those of the ledger in the next part of the catalog. If no price is left, all are asked for. Returns how many
 * SKUs had lost their ledger row; if there were any, the next part follows without a wait.
 */
async function restoreRows({ sql, emit }: SyncContext, memory: MaintenanceMemory): Promise<number> {
  const tables = await restoreLostRows(sql);
  await putBackAccount(sql);
  const { upTo, restored } = await restoreLedger(sql, memory.lookedUpTo, LOOKED_THROUGH);
  memory.lookedUpTo = upTo ?? '';
  const hasSome = await hasPrices(sql);
  const unpriced = memory.hadPrices && !hasSome ? await restorePrices(sql, LOOKED_THROUGH) : 0;
  memory.hadPrices = hasSome;
  const skus = restored + unpriced;
  if (tables.length > 0 || skus > 0) emit({ event: 'rows.restored', tables, skus });
  return restored;
}

/** Reports if a daemon that started later has another MIRROR_SCOPE, which then takes effect. */
async function tellScope({ sql, settings, emit }: SyncContext): Promise<void> {
  const { scoped } = await readScopeState(sql);
  const own = settings.catalog.scope;
  const effective = scoped ? 'scope' : 'catalog';
  if (own !== effective) emit({ event: 'scope.differs', own, effective });
}
