import type { SyncState } from '../catalog/sync-state.ts';
import { constant, type Sql } from '../connection/db.ts';
import { type DueFloors, type LedgerFloors, type LedgerReading, NO_FLOORS } from '../ledger/due-floors.ts';
import {
  claimable,
  type ClaimedLane,
  type DueClass,
  type DueSuspects,
  DUE_LANES,
  type Lane,
  laneNumber,
  longestLead,
  momentOf,
  PROMISED,
  promisedNow,
  endingWaits,
} from '../ledger/due.ts';
import { type CallPause, callPauseRow } from '../ledger/tasks.ts';
import { type LivePlan, livePlanRow } from '../live/live.ts';
import type { LiveCandidate } from '../live/refresh.ts';
import { HINTS_CAME } from '../sellers/hints.ts';
import { REFRESHES_CAME } from '../sellers/refresh.ts';
import { SCOPE_MOVED } from '../sellers/scope.ts';
import { WATCHLIST_MOVED } from '../sellers/watchlist.ts';
import type { CallSize } from './call-lesson.ts';
import { type CandidateOptions, liveCandidates, untriedSku } from './candidates.ts';

/*
 * What a bulk call reads beforehand, in one statement, because Postgres may be far away. What it writes is in
 * call-lesson.ts.
 */

/** For each lane, how many seconds before its due time a SKU counts as due. */
export type Early = Readonly<Record<Lane, number>>;

export interface CallInputOptions {
  /** A class is counted up to this number. */
  readonly limit: number;
  /** Normally, and while the catalog is stale. The live plan's seconds are added to the live lane's `usual` ones. */
  readonly early: { readonly usual: Early; readonly stale: Early };
  readonly candidates: CandidateOptions;
}

/** Everything that a bulk call is planned from, as of one moment. */
export interface CallInputs {
  readonly pause: CallPause;
  readonly sync: Pick<SyncState, 'liveBudget' | 'catalogState'>;
  readonly livePlan: LivePlan;
  readonly callSize: CallSize;
  /** Classes with SKUs that are due. Held SKUs (claimed, deferred, backing off) and suspects do not count. */
  readonly due: readonly DueClass[];
  /** Due SKUs of failed calls, those of the largest calls first. */
  readonly suspects: readonly DueSuspects[];
  /** Milliseconds until a SKU comes due or a wait ends (0 = now); null if nothing is scheduled. */
  readonly nextDueMs: number | null;
  /**
   * Live SKUs to choose from: first those drawn at random, then those listed from a backlog, then by due time. Empty
   * if live SKUs are claimed by due time anyway.
   */
  readonly candidates: readonly LiveCandidate[];
  /**
   * While the ceiling on live computations is met: a due live SKU to test whether it still is, preferably one that was
   * not deferred when last asked, or only while the ceiling was met. Null if no live SKU is due, or the ceiling is not
   * met.
   */
  readonly untried: string | null;
  /** Whether sellers have made changes to the watchlist that the ledger does not contain yet. */
  readonly watchlistMoved: boolean;
  /** Whether catalog.scope has rules that are not read yet, or SKUs are not sorted by its rules yet. */
  readonly scopeMoved: boolean;
  /** Whether sellers have given hints that are not read yet. */
  readonly hintsCame: boolean;
  /** Whether sellers have requested SKUs that are not marked yet. */
  readonly refreshesCame: boolean;
}

/** Most rows released before each call; the next reading releases the rest. */
const RELEASE_AT_ONCE = 1000;

/** A row of the result, with lanes as numbers. */
interface InputsRow extends Omit<CallInputs, 'due'> {
  readonly due: (Omit<DueClass, 'lane'> & { lane: number })[];
  readonly reading: Omit<LedgerReading, 'firsts'> & {
    readonly firsts: readonly { readonly lane: number; readonly live: boolean; readonly dueAt: number }[];
  };
}

/**
 * Releases rows whose wait or lease is over, and reads what the next bulk call is planned from: one round trip.
 * `floors`: where this process starts reading the ledger; by default at its beginning.
 */
export async function readCallInputs(
  sql: Sql,
  options: CallInputOptions,
  floors?: DueFloors,
): Promise<CallInputs> {
  const from = floors?.next() ?? NO_FLOORS;
  const early = (when: 'usual' | 'stale') =>
    constant(sql, ...DUE_LANES.map((lane) => options.early[when][lane]));
  const [{ due, reading, ...inputs }] = await sql<[InputsRow]>`
    with given as materialized (${givenFloors(sql, from)}),
    released as (${endingWaits(sql, RELEASE_AT_ONCE, sql`(select held from given)`)}
      returning d.sku, d.live, d.lane, d.due_at,
        case when d.outside_due_at is null then d.promised_at end as promised_at, d.largest_call),
    facts as materialized (
      select s.live_budget, catalog_internal.catalog_state(s) as catalog_state, p.refresh_threshold, p.early_minutes,
        concat_ws(' ', s.snapshot_id, s.delta_checked_at, s.manifest_applied_at) as catalog
      from catalog_internal.sync s, catalog_internal.live_plan p
    ),
    lanes as materialized (
      select l.lane, now() + make_interval(secs => case when f.catalog_state = 'stale' then l.stale
        else l.usual + case when l.lane = ${laneOf(sql, 'live')} then coalesce(f.early_minutes, 0) * 60 else 0 end end) as until,
        ${momentOf(sql, sql`case when f.catalog = g.catalog then l.live end`)} as since_live,
        ${momentOf(sql, sql`case when f.catalog = g.catalog then l.other end`)} as since_other
      from facts f, given g, unnest(array[${constant(sql, ...DUE_LANES.map(laneNumber))}]::smallint[],
        array[${early('usual')}]::float8[], array[${early('stale')}]::float8[], g.live, g.other) as l(lane, usual, stale, live, other)
    ),
    waiting as materialized (${waitingClasses(sql, options.limit)} union all ${waitingPromises(sql, options.limit)})
    select (select to_jsonb(p) from (${callPauseRow(sql)}) p) as pause,
      (select jsonb_build_object('liveBudget', live_budget, 'catalogState', catalog_state) from facts) as sync,
      (select to_jsonb(p) from (${livePlanRow(sql)}) p) as "livePlan",
      (select to_jsonb(c) - 'id' from catalog_internal.call_size c) as "callSize",
      (${dueClasses(sql, options.limit)}) as due, (${dueSuspects(sql)}) as suspects, (${nextDueMs(sql)}) as "nextDueMs",
      (${liveCandidates(sql, options.candidates)}) as candidates, (${untriedSku(sql)}) as untried,
      ${sql.unsafe(WATCHLIST_MOVED)} as "watchlistMoved",
      ${sql.unsafe(SCOPE_MOVED)} as "scopeMoved",
      ${sql.unsafe(HINTS_CAME)} as "hintsCame", ${sql.unsafe(REFRESHES_CAME)} as "refreshesCame",
      (${ledgerReading(sql)}) as reading`;
  const firsts = reading.firsts.map(({ lane, ...rest }) => ({ ...rest, lane: laneNamed(lane) }));
  floors?.note(from, { ...reading, firsts });
  return { ...inputs, due: due.map(({ lane, ...rest }) => ({ ...rest, lane: laneNamed(lane) })) };
}

const laneNamed = (number: number): ClaimedLane =>
  number === laneNumber(PROMISED) ? PROMISED : (DUE_LANES[number - 1] ?? 'sweep');

const laneOf = (sql: Sql, lane: ClaimedLane) => constant(sql, laneNumber(lane));

const floorsOf = (from: LedgerFloors, live: boolean) => DUE_LANES.map((lane) => from.of(lane, live));

/**
 * The floors, as a table of their own: planned with their values, each reading would look cheaper than any generic
 * plan, and Postgres would plan this statement each time, which takes several times as long as executing it. The plan
 * that it keeps instead is made for tables of this size, so the text names the size: if nobody analyzes the tables,
 * the plan for an empty mirror would otherwise be used for a full catalog.
 */
function givenFloors(sql: Sql, from: LedgerFloors) {
  return sql`
    select ${from.catalog}::text as catalog, ${from.held}::float8 as held,
      ${floorsOf(from, true)}::float8[] as live, ${floorsOf(from, false)}::float8[] as other,
      ${from.of(PROMISED, true)}::float8 as promised_live, ${from.of(PROMISED, false)}::float8 as promised_other,
      array[${constant(sql, ...from.magnitudes)}]::int[] as magnitudes`;
}

/* Parts of readCallInputs. They see the ledger as it was before `released`, so they add the rows of `released`. */

/** Counts what waits in each class, and reads since when. */
function waitingClasses(sql: Sql, limit: number) {
  return sql`
    select l.lane, c.live, c.until, n.count, n.first
    from lanes l cross join lateral (
      -- SKUs of the live lane that do not count as live are unlisted ones: none is claimed early (sync/reprice/packing.ts).
      values (true, l.until, l.since_live), (false, case when l.lane = ${laneOf(sql, 'live')} then now() else l.until end, l.since_other)
    ) as c(live, until, since)
    cross join lateral (
      select count(*)::int as count, min(due_at) as first from (
        select d.due_at from catalog_internal.due d
        where ${claimable(sql, 'd')} and d.live = c.live and d.lane = l.lane
          and d.due_at >= c.since and d.due_at <= c.until
        order by d.due_at limit ${constant(sql, limit)}
      ) earliest
    ) n`;
}

/** Counts the promised SKUs that take precedence now. */
function waitingPromises(sql: Sql, limit: number) {
  return sql`
    select ${laneOf(sql, PROMISED)}::smallint, c.live, now(), n.count, n.first
    from facts f, given g, lateral (values (true, g.promised_live), (false, g.promised_other)) as c(live, floor)
    cross join lateral (
      select count(*)::int as count, min(promised_at) as first from (
        select d.promised_at from catalog_internal.due d
        where ${claimable(sql, 'd')} and d.promised_by is not null and d.live = c.live
          and d.promised_by >= ${momentOf(sql, sql`case when f.catalog = g.catalog then c.floor end`)} and ${promisedNow(sql, sql`c.live`)}
        order by d.promised_by limit ${constant(sql, limit)}
      ) earliest
    ) n`;
}

/** When a row of `released` comes due in a class of `waiting`: a promised SKU counts in two. */
const releasedAt = (sql: Sql) =>
  sql`case when w.lane = ${laneOf(sql, PROMISED)} then r.promised_at when r.lane = w.lane then r.due_at end`;

function dueClasses(sql: Sql, limit: number) {
  return sql`
    select coalesce(jsonb_agg(jsonb_build_object('lane', w.lane, 'live', w.live, 'count', n.count)), '[]')
    from waiting w cross join lateral (
      select least(${constant(sql, limit)}, w.count + count(*)::int) as count from released r
      where r.largest_call is null and r.live = w.live and ${releasedAt(sql)} <= w.until
    ) n
    where n.count > 0`;
}

/** What the floors of the next reading are derived from. */
function ledgerReading(sql: Sql) {
  return sql`
    select jsonb_build_object('now', floor(extract(epoch from now()) * 1000), 'catalog', (select catalog from facts),
      'allWaitsEnded', (select count(*) from released) < ${constant(sql, RELEASE_AT_ONCE)},
      'deadVersions', pg_stat_get_dead_tuples('catalog_internal.due'::regclass),
      'pages', array(select pg_relation_size(t) / current_setting('block_size')::int
        from unnest(array['catalog_internal.due', 'catalog_internal.live_backlog']::regclass[]) t),
      'firsts', coalesce(jsonb_agg(jsonb_build_object('lane', f.lane, 'live', f.live,
        'dueAt', floor(extract(epoch from greatest(f.first, 'epoch')) * 1000))), '[]'))
    from (
      select lane, live, min(first) as first from (
        select lane, live, first from waiting where first is not null
        union all select lane, live, due_at from released where largest_call is null
        union all select ${laneOf(sql, PROMISED)}::smallint, live, promised_at from released
          where largest_call is null and promised_at is not null
      ) all_due group by lane, live
    ) f`;
}

/** Counted without a limit: one outage makes a few hundred of them, and a SKU that fails alone is one. */
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

/**
 * SQL: milliseconds until something is due. If something is due now, nothing else is read, because waiting rows may
 * be all that were claimed in the last minutes.
 */
function nextDueMs(sql: Sql) {
  return sql`
    select (extract(epoch from greatest(at, now()) - now()) * 1000)::float8 from (select case
      when (select min(first) from waiting) <= now() then now()
      else least(
      (select min(coalesce(w.first, (
         select due_at from catalog_internal.due
         where ${claimable(sql)} and live = w.live and lane = w.lane and due_at < 'infinity' and due_at > w.until
         order by due_at limit 1))) from waiting w),
      (select min(due_at) from catalog_internal.due where held_until is null and largest_call is not null and due_at < 'infinity'),
      (select min(held_until) from catalog_internal.due where held_until > now()),
      (select min(least(due_at, promised_at)) from released where least(due_at, promised_at) < 'infinity'),
      ${nextPromised(sql)},
      (select now() from released offset ${constant(sql, RELEASE_AT_ONCE - 1)} limit 1)
      ) end as at) next where at is not null`;
}

const nextPromised = (sql: Sql) => sql`
  (select min(at) from (values (true), (false)) as c(live) cross join lateral (
     -- Of the next ones by their deadline the first to come: a later deadline may come sooner by some seconds.
     select min(at) as at from (
       select greatest(promised_at, promised_by - ${longestLead(sql, sql`c.live`)}) as at from catalog_internal.due
       where ${claimable(sql)} and promised_by is not null and live = c.live and outside_due_at is null
         and greatest(promised_at, promised_by - ${longestLead(sql, sql`c.live`)}) > now()
       order by promised_by limit 50) soon) n)`;
