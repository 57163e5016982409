import { plural } from '../lib/format.ts';
import { readPace } from '../pace/ledger.ts';
import type { PaceReader, PaceStatus } from '../pace/view.ts';
import { readUnsteadyColumns } from '../store/answer/members.ts';
import { type Doubts, readDoubts, withCounted } from '../store/answer/seller-doubts.ts';
import { readSyncState, type SyncState } from '../store/catalog/sync-state.ts';
import { type DatabaseClock, readClock } from '../store/clock.ts';
import { type StatementAtWork, readSlowStatements } from '../store/connection/at-work.ts';
import { allSent, type Sql } from '../store/connection/db.ts';
import { type Idle, readIdle } from '../store/ledger/due.ts';
import { readTasks, type TaskState } from '../store/ledger/tasks.ts';
import { type LivePlan, nothingComputedSince, readLivePlan } from '../store/live/live.ts';
import { type NotStored, readNotStored } from '../store/quarantine.ts';
import { readScopeState, type Scope } from '../store/sellers/scope.ts';
import { readLeftOut } from '../store/sellers/watchlist.ts';
import { readDaemons } from '../store/setup/instance.ts';
import { type Lacking, readLacking } from '../store/setup/privileges.ts';
import { readTargets, type Targets } from '../store/setup/sql-settings.ts';
import type { CatalogCounts } from '../store/status/counts.ts';
import {
  type LockHolder,
  readLockHolders,
  readSnapshotHolder,
  type SnapshotHolder,
} from '../store/status/holders.ts';
import { readLatePrices } from '../store/trust/beliefs.ts';
import type { LatePrices } from '../store/trust/late-prices.ts';

/** What Postgres says about the mirror at one moment: all that health is judged by, the same for every process. */
export interface Facts {
  /** Postgres's time, by which all other times are given. */
  readonly now: Date;
  readonly sync: SyncState;
  readonly tasks: readonly TaskState[];
  readonly pace: PaceStatus;
  readonly incident: boolean;
  /** Since when the partner's live source has failed; null: it does not fail. */
  readonly liveOutage?: Date | null;
  /** Since when the partner has computed no live SKU, and has deferred those asked for; null: it computes some. */
  readonly nothingComputedSince?: Date | null;
  readonly targets: Targets;
  readonly daemons: number;
  /** How long the first of them has been running, in seconds; 0 if none is. */
  readonly daemonSeconds: number;
  readonly idle: Idle;
  /** The window of the pace: how long it may take until the next request may leave. */
  readonly windowSeconds: number;
  /** Consecutive failed bulk calls. */
  readonly failedCalls: number;
  readonly clock: DatabaseClock;
  /** Sessions that the mirror waits for. */
  readonly lockHolders: readonly LockHolder[];
  /** Statements of the mirror that take long because of something that belongs to others. */
  readonly slowStatements: readonly StatementAtWork[];
  /** Who has long kept Postgres from vacuuming; null: nobody, or the role may not see it. */
  readonly snapshotHolder: SnapshotHolder | null;
  /** SKUs of the watchlist that are not watched, because there are too many. */
  readonly watchlistLeftOut: number;
  /** What decides which SKUs are priced. */
  readonly scope: Scope;
  /** SKUs that wait because Postgres rejects their rows. */
  readonly notStored: NotStored;
  /** SKUs whose prices wait for a second answer. */
  readonly doubts: Doubts;
  /** Prices that lag behind the delta's reports; null: they do not. */
  readonly latePrices?: LatePrices | null;
  /** Columns of metadata that change with each refresh. */
  readonly unsteadyColumns: readonly string[];
  /** Privileges that the mirror's role lacks on its own tables. */
  readonly lacking?: readonly Lacking[];
  /** Null before the first count. */
  readonly counts: CatalogCounts | null;
}

/**
 * How facts are read that each process reads in its own way: the pace by its limits, counts without waiting for
 * them.
 */
export interface FactReaders {
  readonly windowMs: number;
  readonly paceOf: PaceReader;
  readonly counts: () => Promise<CatalogCounts | null>;
  /**
   * After how long Postgres ends statements on tables of the catalog's size, because nobody waits for them any
   * longer; absent: never.
   */
  readonly endAfterMs?: number;
}

/** Postgres answers, but tables are empty that have had exactly one row since their migration. */
export class IncompleteMirror extends Error {
  override readonly name = 'IncompleteMirror';

  constructor(tables: readonly string[]) {
    super(
      `the mirror cannot be read: ${tables.join(', ')} ${plural(tables.length, 'has', 'have')} no row; a daemon ` +
        'makes them anew within a minute, `catalog-mirror migrate` at once',
    );
  }
}

const dateOf = (ms: number | null) => (ms === null ? null : new Date(ms));
const liveOf = (plan: LivePlan, isDeferred: boolean) => ({
  incident: plan.incident !== null,
  liveOutage: dateOf(plan.outageSince ?? null),
  nothingComputedSince: dateOf(nothingComputedSince(plan, isDeferred)),
});

/** Returns the tables whose row is missing. */
const withoutRow = (rows: Readonly<Record<string, unknown>>): string[] =>
  Object.entries(rows)
    .filter(([, row]) => row === undefined || row === null)
    .map(([table]) => `catalog_internal.${table}`);

/** Reads what answers have shown about the partner. */
async function readShown(sql: Sql): Promise<Pick<Facts, 'latePrices' | 'unsteadyColumns'>> {
  const [latePrices, unsteadyColumns] = await Promise.all([readLatePrices(sql), readUnsteadyColumns(sql)]);
  return { latePrices, unsteadyColumns };
}

/**
 * Reads, through their indexes, tables as large as the catalog. If a statement takes long all the same, Postgres
 * ends it, because a caller that stops waiting does not stop it, and asks again.
 */
async function readLedger(sql: Sql, endAfterMs: number) {
  return await sql.begin('read only', async (tx) => {
    const [, idle, notStored, doubts] = await allSent([
      // `execute` sends it before the others, not only when it is awaited.
      tx`select set_config('statement_timeout', ${String(Math.ceil(endAfterMs))}, true)`.execute(),
      readIdle(tx),
      readNotStored(tx),
      readDoubts(tx),
    ]);
    return { idle, notStored, doubts };
  });
}

/** The facts, and the plan of live SKUs that was read with them. */
export interface ReadFacts {
  readonly facts: Facts;
  readonly plan: LivePlan;
}

/**
 * Reads the facts in one round of small statements: without a scan of the catalog, unless `counts` makes one.
 * Throws if Postgres does not answer, or if the tables or their one row are missing.
 */
export async function readFacts(
  sql: Sql,
  { windowMs, paceOf, counts, endAfterMs = 0 }: FactReaders,
): Promise<ReadFacts> {
  const [
    sync,
    tasks,
    pace,
    plan,
    targets,
    daemons,
    { idle, notStored, doubts },
    clock,
    lockHolders,
    slowStatements,
    snapshotHolder,
    watchlistLeftOut,
    scope,
    shown,
    lacking,
    counted,
  ] = await Promise.all([
    readSyncState(sql),
    readTasks(sql),
    readPace(sql, windowMs),
    readLivePlan(sql),
    readTargets(sql),
    readDaemons(sql),
    readLedger(sql, endAfterMs),
    readClock(sql),
    readLockHolders(sql),
    readSlowStatements(sql),
    readSnapshotHolder(sql),
    readLeftOut(sql),
    readScopeState(sql),
    readShown(sql),
    readLacking(sql),
    counts(),
  ]);
  const missing = withoutRow({ sync, settings: targets, live_plan: plan, clock, scoping: scope });
  if (missing.length > 0 || clock === null) throw new IncompleteMirror(missing);
  const facts: Facts = {
    now: new Date(pace.now),
    sync,
    tasks,
    pace: paceOf(pace),
    ...liveOf(plan, counted?.liveDeferred ?? false),
    ...daemons,
    idle,
    windowSeconds: windowMs / 1000,
    clock,
    lockHolders,
    slowStatements,
    snapshotHolder,
    watchlistLeftOut,
    scope,
    notStored,
    doubts: withCounted(doubts, counted?.doubted ?? null),
    ...shown,
    lacking,
    failedCalls: tasks.find(({ task }) => task === 'reprice')?.failures ?? 0,
    counts: counted,
    targets,
  };
  return { facts, plan };
}
