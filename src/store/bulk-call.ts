import type { Sql } from './db.ts';
import {
  type Claim,
  type DueClass,
  type DueSuspects,
  DUE_LANES,
  type Lane,
  laneNumber,
  releasingHeld,
} from './due.ts';
import type { IncidentCause } from './incident.ts';
import {
  type LiveCall,
  type LiveCandidate,
  type LiveCeiling,
  type LivePlan,
  livePlanRow,
  storingCeiling,
} from './live.ts';
import type { SyncState } from './sync-state.ts';
import { type CallPause, callPauseRow } from './tasks.ts';

/*
 * What a bulk call reads before it and writes after it, beside its claim and its answer: one statement each, as every
 * statement is a round trip, and Postgres may be far away.
 */

/** For each lane, how many seconds before its due time a SKU counts as due. */
export type Early = Readonly<Record<Lane, number>>;

export interface CallInputOptions {
  /** Counting of a class stops here. */
  readonly limit: number;
  /** Usually, and while the catalog is stale. To the live lane's usual seconds those of the live plan are added. */
  readonly early: { readonly usual: Early; readonly stale: Early };
  readonly candidates: CandidateOptions;
}

/** How many live SKUs there are to choose from: this many per SKU of the live budget, within bounds. */
export interface CandidateOptions {
  readonly perBudget: number;
  /** Used until a live budget is learned. */
  readonly configuredBudget: number;
  readonly least: number;
  readonly most: number;
  /** So many minutes ago the last request for a candidate must be. */
  readonly restMinutes: number;
}

/** All that a bulk call is planned from, as of one moment. */
export interface CallInputs {
  readonly pause: CallPause;
  readonly sync: Pick<SyncState, 'liveBudget' | 'catalogState'>;
  readonly live: LivePlan;
  readonly callSize: CallSize;
  /** Classes that have something due. SKUs that are held (claimed, deferred, backing off) and suspects do not count. */
  readonly due: readonly DueClass[];
  /** SKUs of failed calls that are due, those of the largest calls first. */
  readonly suspects: readonly DueSuspects[];
  /** Milliseconds until a SKU comes due or a wait ends (0 = now); null when nothing is scheduled. */
  readonly nextDueMs: number | null;
  /** The live lane's first SKUs by due time; none where live SKUs are claimed in that order anyway. */
  readonly candidates: readonly LiveCandidate[];
}

/** Rows released before each call; were there more, the next reading releases them. */
const RELEASE_AT_ONCE = 1000;

/** Releases rows whose wait or lease is over, and reads what the next bulk call is planned from: one round trip. */
export async function readCallInputs(sql: Sql, options: CallInputOptions): Promise<CallInputs> {
  const [{ due, ...inputs }] = await sql<
    [Omit<CallInputs, 'due'> & { due: (Omit<DueClass, 'lane'> & { lane: number })[] }]
  >`
    with released as (${releasingHeld(sql, RELEASE_AT_ONCE)} returning d.sku, d.live, d.lane, d.due_at, d.largest_call),
    facts as materialized (
      select s.live_budget, catalog_internal.catalog_state(s) as catalog_state, p.refresh_threshold, p.early_minutes
      from catalog_internal.sync s, catalog_internal.live_plan p
    ),
    lanes as materialized (
      select l.lane, now() + make_interval(secs => case when f.catalog_state = 'stale' then l.stale
        else l.usual + case when l.lane = ${laneNumber('live')} then coalesce(f.early_minutes, 0) * 60 else 0 end end) as until
      from facts f, unnest(${DUE_LANES.map(laneNumber)}::smallint[], ${DUE_LANES.map((lane) => options.early.usual[lane])}::float8[],
        ${DUE_LANES.map((lane) => options.early.stale[lane])}::float8[]) as l(lane, usual, stale)
    )
    select (select to_jsonb(p) from (${callPauseRow(sql)}) p) as pause,
      (select jsonb_build_object('liveBudget', live_budget, 'catalogState', catalog_state) from facts) as sync,
      (select to_jsonb(p) from (${livePlanRow(sql)}) p) as live,
      (select to_jsonb(c) - 'id' from catalog_internal.call_size c) as "callSize",
      (${dueClasses(sql, options.limit)}) as due, (${dueSuspects(sql)}) as suspects, (${nextDueMs(sql)}) as "nextDueMs",
      (${liveCandidates(sql, options.candidates)}) as candidates`;
  const laneOf = (number: number): Lane => DUE_LANES[number - 1] ?? 'sweep';
  return { ...inputs, due: due.map(({ lane, ...rest }) => ({ ...rest, lane: laneOf(lane) })) };
}

/*
 * Pieces of readCallInputs. They see the ledger as it was before `released`, whose rows they therefore add.
 */

function dueClasses(sql: Sql, limit: number) {
  return sql`
    select coalesce(jsonb_agg(jsonb_build_object('lane', l.lane, 'live', c.live, 'count', n.count)), '[]')
    from lanes l cross join lateral (
      -- SKUs of the live lane that do not count as live are unlisted ones: none is claimed early (sync/reprice/plan.ts).
      values (true, l.until), (false, case when l.lane = ${laneNumber('live')} then now() else l.until end)
    ) as c(live, until)
    cross join lateral (
      select least(${limit}::int, waiting.count + freed.count) as count
      from (
        select count(*)::int as count from (
          select from catalog_internal.due d
          where d.held_until is null and d.largest_call is null and d.live = c.live and d.lane = l.lane and d.due_at <= c.until
          order by d.due_at limit ${limit}
        ) first
      ) waiting, (
        select count(*)::int as count from released r
        where r.largest_call is null and r.live = c.live and r.lane = l.lane and r.due_at <= c.until
      ) freed
    ) n
    where n.count > 0`;
}

/** Those of one outage are some hundreds, and of SKUs that fail alone each is one. */
function dueSuspects(sql: Sql) {
  return sql`
    select coalesce(jsonb_agg(jsonb_build_object('largestCall', s.largest_call, 'live', s.live, 'count', s.count)
      order by s.largest_call desc, s.live desc), '[]')
    from (
      select all_due.largest_call, all_due.live, count(*)::int as count from (
        select largest_call, live from catalog_internal.due
        where held_until is null and largest_call is not null and due_at <= now()
        union all select largest_call, live from released where largest_call is not null and due_at <= now()
      ) all_due group by 1, 2
    ) s`;
}

function nextDueMs(sql: Sql) {
  return sql`
    select greatest(0, extract(epoch from at - clock_timestamp()) * 1000)::float8 from (select least(
      (select min(first.due_at) from lanes l cross join (values (true), (false)) as c(live)
         cross join lateral (
           select due_at from catalog_internal.due
           where held_until is null and largest_call is null and live = c.live and lane = l.lane and due_at < 'infinity'
           order by due_at limit 1
         ) first),
      (select min(due_at) from catalog_internal.due where held_until is null and largest_call is not null and due_at < 'infinity'),
      (select min(held_until) from catalog_internal.due where held_until > now()),
      (select min(due_at) from released where due_at < 'infinity'),
      (select now() from released offset ${RELEASE_AT_ONCE - 1} limit 1)
    ) as at) next where at is not null`;
}

function liveCandidates(sql: Sql, options: CandidateOptions) {
  const live = laneNumber('live');
  const { perBudget, configuredBudget, least, most, restMinutes } = options;
  const rested = sql`(s.asked_at is null or s.asked_at <= clock_timestamp() - make_interval(secs => ${restMinutes * 60}))`;
  const limit = sql`(select least(${most}::int, greatest(${least}::int,
    ${perBudget}::int * floor(coalesce(live_budget, ${configuredBudget}::real))::int)) from facts)`;
  return sql`
    select coalesce(json_agg(json_build_object('sku', d.sku, 'weight', coalesce(w.weight, 1)::float8, 'alpha', r.alpha,
      'beta', r.beta, 'minutes', (extract(epoch from clock_timestamp() - d.asked_at) / 60)::float8) order by d.due_at), '[]')
    from (
      select * from (
        (select waiting.sku, waiting.due_at, waiting.asked_at
         from facts f join lanes l on f.refresh_threshold is not null and l.lane = ${live}
         cross join lateral (
           -- The bound that is known beforehand has the rows read in order, the other one ends the reading.
           select due.sku, due.due_at, s.asked_at from catalog_internal.due join catalog.skus s using (sku)
           where due.held_until is null and due.largest_call is null and due.live and due.lane = ${live} and due.due_at <= l.until and ${rested}
           order by due.due_at limit ${most}
         ) waiting
         limit ${limit})
        union all
        (select released.sku, released.due_at, s.asked_at
         from facts f join lanes l on f.refresh_threshold is not null and l.lane = ${live}
         join released on released.largest_call is null and released.live and released.lane = ${live} and released.due_at <= l.until
         join catalog.skus s using (sku)
         where ${rested})
      ) either
      order by due_at limit ${limit}
    ) d
    left join catalog_internal.live_rates r using (sku)
    left join catalog.watchlist w using (sku)`;
}

/** What calls have taught about their size (sync/reprice/call-size.ts). */
export interface CallSize {
  /** Counts the changes: of calls side by side one makes the next. */
  readonly step: number;
  /** Most SKUs of a call; null: as many as are configured. */
  readonly size: number | null;
  /** The least size that is known to fail; null while none is. */
  readonly failing: number | null;
  /** Size of a call that failed, while none of as many SKUs has worked since: it may have failed for one of its SKUs. */
  readonly suspected: number | null;
  /** The most SKUs with which a call has worked since a size failed. */
  readonly proven: number;
  /** Calls filled to `size` that worked since it was last changed, and how many of them a larger size waits for. */
  readonly worked: number;
  readonly patience: number;
}

/** What a bulk call has taught, as it is stored. Null: nothing. */
export interface Lesson {
  readonly call: LiveCall | null;
  /** Live SKUs a call. */
  readonly budget: number | null;
  readonly ceiling: LiveCeiling | null;
  /** The step of the ceiling that the call was planned with. */
  readonly ceilingStep: number;
  /** Whether the call tests if an incident is over. */
  readonly trial: boolean;
  /** The incident's cause now (`to`) and when the call was planned (`from`). */
  readonly incident: { readonly from: IncidentCause | null; readonly to: IncidentCause | null } | null;
}

/** SQL: an UPDATE that stores the size of calls, unless another call has changed it meanwhile. */
function storingCallSize(sql: Sql, size: CallSize | null) {
  return sql`
    update catalog_internal.call_size set step = ${size?.step ?? 0}::int, size = ${size?.size ?? null}::int,
      failing = ${size?.failing ?? null}::int, suspected = ${size?.suspected ?? null}::int, proven = ${size?.proven ?? 0}::int,
      worked = ${size?.worked ?? 0}::int, patience = ${size?.patience ?? 0}::int
    where step = ${size?.step ?? 0}::int - 1 and ${size !== null}`;
}

/** A call that failed as a whole, and what follows from it. */
export interface FailedCall {
  readonly claim: Claim;
  readonly because: string;
  /** Failed calls immediately before this one: those that were planned after as many count as one. */
  readonly failures: number;
  /** Milliseconds until the next call may be made. */
  readonly pauseMs: number;
  /** Milliseconds until its SKUs may be asked again. */
  readonly holdMs: number;
  /** How many of its SKUs the next call with one of them may have; null where it says nothing of them. */
  readonly largestCall: number | null;
  readonly callSize: CallSize | null;
}

/** Gives the SKUs of a failed call back, counts the failure, and puts the next call off: one round trip. */
export async function storeFailedCall(sql: Sql, failed: FailedCall): Promise<void> {
  const { claim, because, failures, pauseMs, holdMs, largestCall } = failed;
  await sql`
    with released as (
      update catalog_internal.due set claim = null,
        held_until = case when ${holdMs > 0} then clock_timestamp() + make_interval(secs => ${holdMs / 1000}) end,
        largest_call = least(largest_call, ${largestCall}::smallint)
      where sku = any(${claim.skus.map(({ sku }) => sku)}) and claim = ${claim.number}
    ), sized as (${storingCallSize(sql, failed.callSize)})
    update catalog_internal.tasks set failures = failures + 1, outcome = ${because},
      next_at = greatest(next_at, clock_timestamp() + make_interval(secs => ${pauseMs / 1000}))
    where task = 'reprice' and failures = ${failures}`;
}

/** A call that worked. */
export interface WorkedCall extends Pick<FailedCall, 'failures' | 'callSize'> {
  /** What the SKUs' calls were limited to, where they had been in a failed call. */
  readonly cleared: number | null;
}

export interface StoredLesson {
  /** Whether an incident began or ended. */
  readonly turned: boolean;
  /** Whether other calls have changed the ceiling since this one was planned: then it is not stored. */
  readonly ceilingMoved: boolean;
  /** SKUs asked as snapshot-priced in calls of the last five minutes that deferred any of them; null where this call deferred none. */
  readonly deferrals: { readonly asked: number; readonly deferred: number } | null;
}

/** The statement that logs the call sees the log as it was before. */
function deferralsSince(sql: Sql, call: LiveCall | null) {
  return sql`
    select json_build_object('asked', coalesce(sum(snapshot_asked), 0) + ${call?.snapshotAsked ?? 0}::int,
      'deferred', coalesce(sum(snapshot_deferred), 0) + ${call?.snapshotDeferred ?? 0}::int)
    from catalog_internal.live_calls where called_at > now() - interval '5 minutes' and snapshot_deferred > 0`;
}

/**
 * Stores what an applied answer has taught, and that one was applied: one round trip. `failures` counts the failed calls
 * immediately before this one, whose pause ends. Where one half of a failed call has worked, the other is the one that fails: it
 * is not tried whole. An incident neither begins nor ends where another process has changed it since the call was planned. After a
 * change the whole schedule is planned again, and the delta says which SKUs crossed, or that a fresh manifest must. `deferrals` are as of
 * now, with this call: many others may have ended since it was planned.
 */
export async function storeLesson(
  sql: Sql,
  lesson: Lesson,
  { failures, callSize, cleared }: WorkedCall,
): Promise<StoredLesson> {
  const { call, budget, ceiling, ceilingStep, incident, trial } = lesson;
  const to = incident?.to ?? null;
  const worked = failures > 0;
  const deferring = call !== null && call.snapshotDeferred > 0;
  const [stored] = await sql<[StoredLesson]>`
    with free as materialized (
      -- A manifest being merged holds this row: what is not stored now the next call teaches again.
      select from catalog_internal.sync where ${budget}::real is not null for update skip locked
    ),
    budgeted as (
      update catalog_internal.sync set live_budget = ${budget}::real
      where exists (select from free) and live_budget is distinct from ${budget}::real
    ),
    logged as (
      insert into catalog_internal.live_calls (called_at, computed, deferred, snapshot_asked, snapshot_deferred)
      select clock_timestamp(), ${call?.computed ?? 0}::int, ${call?.deferred ?? 0}::int, ${call?.snapshotAsked ?? 0}::int,
        ${call?.snapshotDeferred ?? 0}::int
      where ${call !== null}
    ),
    before as materialized (
      select incident_because as cause from catalog_internal.live_plan
      where ${trial || incident !== null} for update
    ),
    turned as materialized (
      select from before where ${incident !== null} and cause is not distinct from ${incident?.from ?? null}::text
    ),
    planned as (
      update catalog_internal.live_plan p set
        incident_because = case when t.turned then ${to}::text else incident_because end,
        incident_since = case when not t.turned then incident_since
          when ${to}::text is not null then coalesce(incident_since, now()) end,
        incident_tried_at = case when t.turned or ${trial} then now() else incident_tried_at end,
        solved_at = case when t.turned then null else solved_at end
      from before, (select exists (select from turned) as turned) t
    ),
    limited as (${storingCeiling(sql, ceiling)} returning 1),
    sized as (${storingCallSize(sql, callSize)}),
    halved as (
      update catalog_internal.due d set largest_call = (largest_call + 1) / 2
      where d.ctid = any(array(
        select ctid from catalog_internal.due
        where held_until is null and largest_call = ${cleared}::smallint and largest_call > 1 for update skip locked
      )) and (
        select count(*) from catalog_internal.due where held_until is null and largest_call = ${cleared}::smallint
      ) <= ${cleared}::smallint
    ),
    noted as (
      -- Re-pricing's own row is everyone's, and is written every five seconds at most. To end its pause and to have a task
      -- run now are the same.
      update catalog_internal.tasks set
        succeeded_at = case when task = 'reprice' then clock_timestamp() else succeeded_at end,
        outcome = case when task = 'reprice' and ${worked} then 'done' else outcome end,
        failures = case when task <> 'reprice' or ${worked} then 0 else failures end,
        next_at = case when task <> 'reprice' or ${worked} then clock_timestamp() else next_at end
      where task = 'reprice'
          and (${worked} or coalesce(succeeded_at, '-infinity') < clock_timestamp() - interval '5 seconds')
        or task in ('live-plan', 'delta') and exists (select from turned)
    )
    select exists (select from turned) as turned, case when ${deferring} then (${deferralsSince(sql, call)}) end as deferrals,
      step <> ${ceilingStep}::int or ${ceiling !== null} and not exists (select from limited) as "ceilingMoved"
    from catalog_internal.live_ceiling`;
  return stored;
}
