import { dropOldMemberHistory } from '../store/answer/muted.ts';
import { trimCalibration } from '../store/calibration.ts';
import { isClockSteady } from '../store/clock.ts';
import { dropOldBatches, dropOldHistory, prepareHistory } from '../store/changes.ts';
import { dropOldDays, keepDailyPrices } from '../store/daily.ts';
import { promoteMetadata, releaseHeld } from '../store/due.ts';
import { readLivePlan } from '../store/live.ts';
import { pruneSends } from '../pace/ledger.ts';
import { trimQuarantine } from '../store/quarantine.ts';
import { trimSamples } from '../store/samples.ts';
import { readScope, readScopeState } from '../store/scope.ts';
import { forgetUnknown, readWatchlist } from '../store/watchlist.ts';
import { nextRefresh, type SyncContext } from './context.ts';
import type { TaskOutcome } from './outcome.ts';

const AT_ONCE = 10_000;
/** Of SKUs that are sorted by the rules of catalog.scope at a time: some tens of seconds. Where calls are made, they go on with it. */
const SORTED_PIECES = 100;
/** Pieces of changes that are counted to their days at a time: some seconds. */
const DAILY_PIECES = 10;
const QUARANTINE_KEPT = 1000;
const MAINTENANCE_EVERY_MS = 60_000;
const SENDS_KEPT_WINDOWS = 10;
/** The page shows a day, from the start of its first minutes. */
const SAMPLES_KEPT_MS = 26 * 3_600_000;

/**
 * Metadata on its own schedule: every refresh refreshes it, so only SKUs whose sweep has been waiting until their metadata
 * reached METADATA_INTERVAL need help; they move, oldest first, to a lane with a guaranteed part of every call. During an
 * incident it rests: every SKU is refreshed by worth, and the refresh brings its metadata.
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

/** How long rows are kept, in milliseconds. */
export interface Retention {
  /** Of the pacer: sends are needed for so long, and a multiple of it is kept. */
  readonly windowMs: number;
  /** HISTORY_RETENTION; 0: forever. */
  readonly historyMs: number;
  /** DAILY_RETENTION; 0: forever. */
  readonly dailyMs: number;
}

/**
 * Frees what crashed workers left claimed, makes room ahead for history, and drops what no one needs any more. While Postgres's clock
 * jumps, nothing that cannot be had again is dropped for its age.
 */
export async function maintain(
  ctx: SyncContext,
  { windowMs, historyMs, dailyMs }: Retention,
): Promise<TaskOutcome> {
  const released = await releaseHeld(ctx.sql, AT_ONCE);
  const pruned = await pruneSends(ctx.sql, Math.max(windowMs * SENDS_KEPT_WINDOWS, 600_000));
  await trimQuarantine(ctx.sql, QUARANTINE_KEPT);
  await prepareHistory(ctx.sql);
  await readWatchlist(ctx.sql, { most: ctx.settings.catalog.watchedSkus, everything: true });
  await readScope(ctx.sql, { everything: true, pieces: SORTED_PIECES });
  await tellScope(ctx);
  const forgotten = await forgetUnknown(ctx.sql, AT_ONCE);
  const isSteady = await isClockSteady(ctx.sql);
  if (isSteady) await trimSamples(ctx.sql, SAMPLES_KEPT_MS);
  if (isSteady) await trimCalibration(ctx.sql);
  const daily = await keepDailyPrices(ctx.sql, DAILY_PIECES);
  const daysDropped = dailyMs > 0 && isSteady ? await dropOldDays(ctx.sql, dailyMs, AT_ONCE) : 0;
  // What is dropped can be counted to its day no more.
  const mayDrop = historyMs > 0 && isSteady && daily.caughtUp;
  const historyChunksDropped = mayDrop ? await dropOldHistory(ctx.sql, historyMs) : 0;
  const membersDropped = await dropOldMemberHistory(ctx.sql, AT_ONCE);
  const batchesDropped = await dropOldBatches(ctx.sql, AT_ONCE);
  const isOver =
    daily.caughtUp && Math.max(released, forgotten, membersDropped, batchesDropped, daysDropped) < AT_ONCE;
  return {
    kind: 'done',
    nextInMs: isOver ? MAINTENANCE_EVERY_MS : 1000,
    counts: { released, pruned, forgotten, historyChunksDropped, daysWritten: daily.written, daysDropped },
  };
}

/** Tells where a daemon that started later has another MIRROR_SCOPE, which then counts. */
async function tellScope({ sql, settings, emit }: SyncContext): Promise<void> {
  const { scoped } = await readScopeState(sql);
  const own = settings.catalog.scope;
  const effective = scoped ? 'scope' : 'catalog';
  if (own !== effective) emit({ event: 'scope.differs', own, effective });
}
