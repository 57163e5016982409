import { notingLateClock } from '../clock.ts';
import { constant, type Sql, unplanned } from '../connection/db.ts';
import { type Claim, lockingClaim, returningClaimed } from '../ledger/due.ts';
import { countingRefusals } from '../ledger/tasks.ts';
import { type LiveCeiling, type IncidentCause, returningCredit, storingCeiling } from '../live/limits.ts';
import type { LiveCall } from '../live/live.ts';
import { type LineChange, storedLines, storingLines } from '../live/product-lines.ts';

/* What a bulk call writes besides its answer, in one statement, because Postgres may be far away. */

/** What a bulk call has taught, as it is stored. Null means nothing. */
export interface Lesson {
  readonly call: LiveCall | null;
  /** Live SKUs per call. */
  readonly budget: number | null;
  readonly ceiling: LiveCeiling | null;
  /** The ceiling's step with which the call was planned. */
  readonly ceilingStep: number;
  /** Whether the call tests if an incident is over. */
  readonly trial: boolean;
  /** The incident's cause now (`to`) and when the call was planned (`from`). */
  readonly incident: { readonly from: IncidentCause | null; readonly to: IncidentCause | null } | null;
}

/** A call that failed as a whole, and its consequences. */
export interface FailedCall {
  readonly claim: Claim;
  readonly because: string;
  /** Failed calls immediately before this one. Calls planned with the same number count as one. */
  readonly failures: number;
  /** Whether it was rejected: its kind is not in OUTAGE_KINDS. */
  readonly isRejection?: boolean;
  /** Milliseconds until the next call may be made. */
  readonly pauseMs: number;
  /** Milliseconds until its SKUs may be asked again. */
  readonly holdMs: number;
  /** Most SKUs of the next call with one of these; null if the failure says nothing about that. */
  readonly largestCall: number | null;
  readonly callSize: CallSize | null;
}

/** Releases the SKUs of a failed call, counts the failure, and postpones the next call: one round trip. */
export async function storeFailedCall(sql: Sql, failed: FailedCall): Promise<void> {
  const { claim, because, failures, isRejection = false, pauseMs } = failed;
  const skus = claim.skus.map(({ sku }) => sku);
  await sql`
    with claimed as materialized (${lockingClaim(sql, claim, skus)}),
    released as (${returningClaimed(sql, failed)} returning 1),
    sized as (${storingCallSize(sql, failed.callSize)}),
    noted as (${notingLateClock(sql, claim.askedAt)}),
    counted as (
      update catalog_internal.tasks set failures = failures + 1, outcome = ${because},
        next_at = greatest(next_at, clock_timestamp() + make_interval(secs => ${pauseMs / 1000}))
      where task = 'reprice' and failures = ${failures}
        -- The ledger first, as whoever refreshes SKUs locks it before this row.
        and (select count(*) from released) >= 0
      returning task, failures
    )
    ${countingRefusals(sql, isRejection)}`;
}

/** A call that worked. */
export interface WorkedCall extends Pick<FailedCall, 'failures' | 'callSize'> {
  /** What the calls of its SKUs were limited to, if they had been in a failed call. */
  readonly cleared: number | null;
  /** Milliseconds of credit that it took and did not use (returnedCreditMs in sync/live/ceiling.ts). */
  readonly returnedMs?: number;
  /** Lines of its live SKUs; none by default. */
  readonly lines?: readonly LineChange[];
  /** How large the ledger is (LedgerFloors), because Postgres keeps a plan for tables of that size. */
  readonly magnitudes?: readonly number[];
}

export interface StoredLesson {
  /** Whether an incident began or ended. */
  readonly turned: boolean;
  /** Whether other calls have changed the ceiling since this one was planned; then its ceiling is not stored. */
  readonly ceilingMoved: boolean;
  /**
   * SKUs asked as snapshot-priced in recent (five minutes) calls that deferred any; null if this call deferred none.
   */
  readonly deferrals: { readonly asked: number; readonly deferred: number } | null;
  /** Ids of the stored lines: no other call has changed them since they were read. */
  readonly lines: readonly string[];
}

/** The statement that logs the call sees the log without it, so the call is added here. */
function deferralsSince(sql: Sql, call: LiveCall | null) {
  return sql`
    select json_build_object('asked', coalesce(sum(snapshot_asked), 0) + ${call?.snapshotAsked ?? 0}::int,
      'deferred', coalesce(sum(snapshot_deferred), 0) + ${call?.snapshotDeferred ?? 0}::int)
    from catalog_internal.live_calls where called_at > now() - interval '5 minutes' and snapshot_deferred > 0`;
}

/**
 * SQL: an UPDATE that halves `largest_call` of SKUs of failed calls after a call with some of them, limited to
 * `cleared`, has worked. If one half of a failed call works, the other half fails, so it is not tried as a whole.
 */
function halvingSuspects(sql: Sql, cleared: number | null) {
  const limit = unplanned(sql, cleared, 'smallint');
  return sql`
    update catalog_internal.due d set largest_call = (largest_call + 1) / 2
    where d.ctid = any(array(
      select ctid from catalog_internal.due
      where ${limit} is not null and held_until is null and largest_call = ${limit} and largest_call > 1 for update skip locked
    )) and (
      select count(*) from catalog_internal.due where ${limit} is not null and held_until is null and largest_call = ${limit}
    ) <= ${limit}`;
}

/**
 * SQL: an UPDATE of re-pricing's own row, which all processes share, so it is written at most every five seconds. With
 * `worked` it ends the pause after failures. Faults are forgotten (callFaults). If an incident has turned (`turned`),
 * it also makes the tasks due that must run then: ending a pause and having a task run now are the same assignment.
 */
function notingCall(sql: Sql, hasWorked: boolean) {
  const worked = unplanned(sql, hasWorked, 'boolean');
  return sql`
    update catalog_internal.tasks set
      succeeded_at = case when task = 'reprice' then clock_timestamp() else succeeded_at end,
      outcome = case when task = 'reprice' and ${worked} then 'done' else outcome end,
      failures = case when task <> 'reprice' or ${worked} then 0 else failures end,
      next_at = case when task <> 'reprice' or ${worked} then clock_timestamp() else next_at end,
      progress = case when task <> 'reprice' then progress end
    where task = 'reprice'
        and (${worked} or progress is not null or coalesce(succeeded_at, '-infinity') < clock_timestamp() - interval '5 seconds')
      or task in ('live-plan', 'delta') and exists (select from turned)`;
}

/**
 * Stores that an answer was applied, and what it has taught, in one round trip. `failures` counts the failed calls
 * immediately before this one, whose pause ends. An incident neither begins nor ends if another process has changed it
 * since the call was planned. When it does, the whole schedule is planned again, and the delta says which SKUs
 * crossed, or that a fresh manifest must. `deferrals` are as of now and include this call, because many others may
 * have ended since it was planned.
 */
export async function storeLesson(
  sql: Sql,
  lesson: Lesson,
  { failures, callSize, cleared, returnedMs = 0, lines = [], magnitudes = [] }: WorkedCall,
): Promise<StoredLesson> {
  const { call, budget, ceiling, ceilingStep, incident, trial } = lesson;
  const from = unplanned(sql, incident?.from ?? null, 'text');
  const to = unplanned(sql, incident?.to ?? null, 'text');
  const newBudget = unplanned(sql, budget, 'real');
  const is = (what: boolean) => unplanned(sql, what, 'boolean');
  const [stored] = await sql<[StoredLesson]>`
    with free as materialized (
      -- A manifest being merged holds this row: what is not stored now the next call teaches again.
      select array[${constant(sql, ...magnitudes)}]::int[] as magnitudes
      from catalog_internal.sync where ${newBudget} is not null for update skip locked
    ),
    budgeted as (
      update catalog_internal.sync set live_budget = ${newBudget}
      where exists (select from free) and live_budget is distinct from ${newBudget}
    ),
    logged as (
      insert into catalog_internal.live_calls (called_at, computed, deferred, snapshot_asked, snapshot_deferred)
      select clock_timestamp(), ${call?.computed ?? 0}::int, ${call?.deferred ?? 0}::int, ${call?.snapshotAsked ?? 0}::int,
        ${call?.snapshotDeferred ?? 0}::int
      where ${is(call !== null)}
    ),
    before as materialized (
      select incident_because as cause from catalog_internal.live_plan
      where ${is(trial || incident !== null)} for update
    ),
    turned as materialized (
      select from before where ${is(incident !== null)} and cause is not distinct from ${from}
    ),
    planned as (
      update catalog_internal.live_plan p set
        incident_because = case when t.turned then ${to} else incident_because end,
        incident_since = case when not t.turned then incident_since
          when ${to} is not null then coalesce(incident_since, now()) end,
        incident_tried_at = case when t.turned or ${is(trial)} then now() else incident_tried_at end,
        solved_at = case when t.turned then null else solved_at end
      from before, (select exists (select from turned) as turned) t
    ),
    limited as (${storingCeiling(sql, ceiling)} returning 1),
    returned as (${returningCredit(sql, ceiling === null ? returnedMs : 0)}),
    sized as (${storingCallSize(sql, callSize)}),
    ${storingLines(sql, lines)},
    halved as (${halvingSuspects(sql, cleared)}),
    noted as (${notingCall(sql, failures > 0)})
    select exists (select from turned) as turned,
      case when ${is((call?.snapshotDeferred ?? 0) > 0)} then (${deferralsSince(sql, call)}) end as deferrals,
      step <> ${ceilingStep}::int or ${is(ceiling !== null)} and not exists (select from limited) as "ceilingMoved",
      ${storedLines(sql)} as lines
    from catalog_internal.live_ceiling`;
  return stored;
}

/** Returns those of the SKUs that the catalog lists as snapshot-priced. */
export async function listedAsSnapshot(sql: Sql, skus: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await sql<{ sku: string }[]>`
    select sku from catalog.skus where sku = any(${skus as string[]}) and in_manifest and price_source = 'snapshot'`;
  return new Set(rows.map(({ sku }) => sku));
}

/** What calls have taught about their size (sync/reprice/call-size.ts). */
export interface CallSize {
  /** Counts the changes: of concurrent calls only one makes the next change. */
  readonly step: number;
  /** Most SKUs per call; null: the configured maximum. */
  readonly size: number | null;
  /** The smallest size known to fail; null if none is. */
  readonly failing: number | null;
  /** Size of a failed call, until as many SKUs have worked in one call: one of its SKUs may have been the cause. */
  readonly suspected: number | null;
  /** Most SKUs with which a call has worked since a size failed. */
  readonly proven: number;
  /** Calls filled to `size` that have worked since it last changed, and how many must before a larger size is tried. */
  readonly worked: number;
  readonly patience: number;
}

/** SQL: an UPDATE that stores the size of calls, unless another call has changed it in the meantime. */
function storingCallSize(sql: Sql, size: CallSize | null) {
  return sql`
    update catalog_internal.call_size set step = ${size?.step ?? 0}::int, size = ${size?.size ?? null}::int,
      failing = ${size?.failing ?? null}::int, suspected = ${size?.suspected ?? null}::int, proven = ${size?.proven ?? 0}::int,
      worked = ${size?.worked ?? 0}::int, patience = ${size?.patience ?? 0}::int
    where step = ${size?.step ?? 0}::int - 1 and ${unplanned(sql, size !== null, 'boolean')}`;
}
