import type { Queryable, Sql } from '../connection/db.ts';
import { type LedgerFloors, NO_FLOORS } from './due-floors.ts';

/**
 * Lanes of the due ledger, most urgent first. `catalog_internal.lane_of` says which reason each serves, and
 * `lane_names` how people read them; both are held to this order by a test.
 */
export const DUE_LANES = ['urgent', 'live', 'new', 'error', 'metadata', 'sweep'] as const;
export type Lane = (typeof DUE_LANES)[number];

/**
 * Before all lanes, and whatever lane they are in: SKUs whose promised age (catalog.watchlist.max_age) asks for it now.
 */
export const PROMISED = 'promised';
export type ClaimedLane = typeof PROMISED | Lane;

/** One kind of due work: a lane and whether its SKUs count against the live budget. */
export interface LaneClass {
  readonly lane: ClaimedLane;
  readonly live: boolean;
}

/**
 * SKUs that were in a failed call, by how many of them the next call may have: they are due, and wait for a call with
 * no others. The count stops at the asked limit.
 */
export interface DueSuspects {
  readonly largestCall: number;
  readonly live: boolean;
  readonly count: number;
}

/** How many such SKUs to claim. */
export type SuspectQuota = DueSuspects;

/** How much of a class is there to claim: a count that stops at the asked limit. */
export interface DueClass extends LaneClass {
  readonly count: number;
}

/** How many SKUs of a class to claim, and how far before its due time a SKU may be taken. */
export interface Quota extends LaneClass {
  readonly count: number;
  readonly earlySeconds: number;
}

export interface ClaimedSku {
  readonly sku: string;
  readonly generation: number;
  readonly deferrals: number;
  readonly failures: number;
  readonly live: boolean;
  /** It is in the lane of errors: it was in errors, or deferred again, while others were not. */
  readonly setBack?: boolean;
  /** Since when it was due, by the database's clock; later than the claim where it was taken early. */
  readonly dueAt: Date;
  /** Why it was due (`catalog_internal.lane_of`). */
  readonly reason: string;
}

/** SKUs that only this worker may ask about until the lease ends. */
export interface Claim {
  readonly number: string;
  /** The database's time of the claim; the request is sent after it. */
  readonly askedAt: Date;
  readonly skus: readonly ClaimedSku[];
}

/**
 * What a call is to carry: of each class so many, live SKUs by name if nobody else holds them, or SKUs of failed calls.
 */
export interface WantedSkus {
  readonly quotas?: readonly Quota[];
  readonly named?: readonly string[];
  readonly suspects?: readonly SuspectQuota[];
}

/**
 * The number of a lane in the ledger; the urgent one is 1, which the partial index of it names. What is promised is
 * no lane there: 0.
 */
export const laneNumber = (lane: ClaimedLane): number =>
  lane === PROMISED ? 0 : DUE_LANES.indexOf(lane) + 1;

/** What the ledger is called in a statement; undefined: its columns are named without it. */
type LedgerAlias = 'd' | 'due' | 'l';

/**
 * SQL: a row of the ledger that nobody holds and that may be in any call. This is the condition of the partial indexes
 * due_claim, due_urgent and due_promised (store/schema/internal.ts): they serve a statement only where it says so.
 */
export function claimable(sql: Queryable, alias?: LedgerAlias) {
  const row = alias === undefined ? '' : `${alias}.`;
  return sql.unsafe(`${row}held_until is null and ${row}largest_call is null`);
}

/** SQL: a row of the ledger whose due time is only that of the order of live refreshes. */
export function movable(sql: Queryable, alias: LedgerAlias) {
  const row = sql.unsafe(alias);
  return sql`
    ${row}.claim is null
    and ${claimable(sql, alias)}
    and ${row}.doubt is null
    and ${row}.deferrals = 0
    and ${row}.failures = 0
    and ${row}.live
    and ${row}.reason = 'live'
    and ${row}.lane = ${laneNumber('live')}
    and ${row}.outside_due_at is null`;
}

/**
 * What asking for live SKUs takes under the ceiling: so many milliseconds a SKU, from what was saved up, which is at
 * most so long.
 */
export interface LiveSpend {
  readonly skuMs: number;
  readonly mostMs: number;
}

/**
 * Claims SKUs of each class for `leaseMs`: what is promised by the earliest deadline, in the urgent lane by rank (the
 * weight in catalog.watchlist), elsewhere, and where ranks are equal, the oldest first. Workers racing for the same
 * rows pass each other by; a worker that dies leaves its claim to run out. The generation at the claim comes along: a
 * mark made later moves it on, and the answer to this claim then does not settle that mark. `spend`: what each live
 * SKU takes under the ceiling on live computations. `floors`: nothing of a class is claimed that is due before its
 * own.
 */
export async function claimDue(
  sql: Sql,
  wanted: WantedSkus,
  leaseMs: number,
  spend: LiveSpend | null = null,
  floors: LedgerFloors = NO_FLOORS,
): Promise<Claim | null> {
  const { named = [], suspects = [] } = wanted;
  const quotas = (wanted.quotas ?? []).filter((quota) => quota.count > 0);
  if (quotas.length + named.length + suspects.length === 0) return null;
  const rows = await sql<(ClaimedSku & { claim: string; askedAt: Date })[]>`
    with quotas as materialized (
      ${quotaRows(sql, quotas, floors)}
    ),
    by_promise as materialized (${claimedByPromise(sql)}),
    by_rank as materialized (
      -- Whatever is urgent is due: a mark made it so.
      select p.ctid from quotas q cross join lateral (
        select d.ctid from catalog_internal.due d
        where ${claimable(sql, 'd')} and d.lane = 1 and d.live = q.live
          and d.due_at >= q.since
        order by d.rank desc, d.due_at limit q.count for update skip locked
      ) p
      where q.lane = 1
    ),
    by_age as materialized (
      select p.ctid from quotas q cross join lateral (
        select d.ctid from catalog_internal.due d
        where ${claimable(sql, 'd')} and d.live = q.live and d.lane = q.lane
          and d.due_at >= q.since and d.due_at <= now() + make_interval(secs => q.early)
        order by d.due_at limit q.count for update skip locked
      ) p
      where q.lane > 1
    ),
    by_name as materialized (
      select ctid from catalog_internal.due
      where sku = any(${named as string[]}) and ${claimable(sql)} and live and outside_due_at is null
      order by sku for update skip locked
    ),
    suspects as materialized (${suspectsOf(sql, suspects)}),
    -- Whoever is claimed leaves the list of a backlog; what another claim is about to take off is passed by.
    unlisted as (
      delete from catalog_internal.live_backlog
      where ctid = any(array(select ctid from catalog_internal.live_backlog where sku = any(${named as string[]}) for update skip locked))
    ),
    claim as materialized (select nextval('catalog_internal.claim_numbers') as number, clock_timestamp() as asked_at),
    claimed as (
      -- By their row ids, locked above: whatever the planner expects of the quotas, it reads no other row.
      update catalog_internal.due d
      set claim = claim.number, held_until = claim.asked_at + make_interval(secs => ${leaseMs / 1000})
      from claim
      where d.ctid = any(array(select ctid from by_promise union select ctid from by_rank union select ctid from by_age
        union select ctid from by_name union select ctid from suspects))
      returning d.sku, d.generation, d.deferrals, d.failures, d.live, d.lane = ${laneNumber('error')} as "setBack",
        claim.number as claim, claim.asked_at as "askedAt",
        d.due_at as "dueAt", d.reason
    ),
    spent as (${spending(sql, spend)})
    select * from claimed`;
  const first = rows[0];
  if (first === undefined) return null;
  return { number: first.claim, askedAt: first.askedAt, skus: [...rows] };
}

/** None comes first for its promise longer before that is broken (catalog_internal.promised_interval). */
const LONGEST_LEAD_SECONDS = 45;

/**
 * SQL: whether a row `d` comes first now for its promise. Its deadline is what the index is ordered by; the bound
 * ends the reading.
 */
export const promisedNow = (sql: Sql) =>
  sql`d.outside_due_at is null and d.promised_at <= now() and d.promised_by <= now() + make_interval(secs => ${LONGEST_LEAD_SECONDS})`;

function quotaRows(sql: Sql, quotas: readonly Quota[], floors: LedgerFloors) {
  return sql`
    select lane, live, count, early, ${momentOf(sql, sql`floor`)} as since from unnest(
      ${quotas.map(({ lane }) => laneNumber(lane))}::smallint[],
      ${quotas.map(({ live }) => Number(live))}::int[]::boolean[],
      ${quotas.map(({ count }) => count)}::int[],
      ${quotas.map(({ earlySeconds }) => earlySeconds)}::float8[],
      ${quotas.map(({ lane, live }) => floors.of(lane, live))}::float8[]
    ) as q(lane, live, count, early, floor)`;
}

/** SQL: a floor in epoch milliseconds as a moment; null is before all others. */
export const momentOf = (sql: Sql, ms: ReturnType<Sql>) =>
  sql`coalesce(to_timestamp(${ms} / 1000), '-infinity')`;

/** SQL: of the quotas of what is promised, those of the earliest deadline. */
function claimedByPromise(sql: Sql) {
  return sql`
    select p.ctid from quotas q cross join lateral (
      select d.ctid from catalog_internal.due d
      where ${claimable(sql, 'd')} and d.promised_by is not null and d.live = q.live
        and d.promised_by >= q.since and ${promisedNow(sql)}
      order by d.promised_by limit q.count for update skip locked
    ) p
    where q.lane = ${laneNumber(PROMISED)}`;
}

function suspectsOf(sql: Sql, suspects: readonly SuspectQuota[]) {
  return sql`
    select p.ctid from unnest(
      ${suspects.map(({ largestCall }) => largestCall)}::smallint[],
      ${suspects.map(({ live }) => Number(live))}::int[]::boolean[],
      ${suspects.map(({ count }) => count)}::int[]
    ) as q(largest_call, live, count) cross join lateral (
      select d.ctid from catalog_internal.due d
      where d.held_until is null and d.largest_call = q.largest_call and d.live = q.live and d.due_at <= now()
      -- In an outage one call goes out at a time: what is known to fail must not be it each time.
      order by d.failures, d.promised_by is null or not (${promisedNow(sql)}),
        d.lane, d.rank desc, d.due_at limit q.count for update skip locked
    ) p`;
}

/** What was saved up is never further in the future than by one call, whatever the clock did. */
function spending(sql: Sql, spend: LiveSpend | null) {
  const [skuSeconds, mostSeconds] = [(spend?.skuMs ?? 0) / 1000, (spend?.mostMs ?? 0) / 1000];
  return sql`
    update catalog_internal.live_ceiling set credit_from =
      least(claim.asked_at, greatest(credit_from, claim.asked_at - make_interval(secs => ${mostSeconds})))
        + live.count * make_interval(secs => ${skuSeconds})
    from claim, (select count(*) as count from claimed where claimed.live) live
    where ${spend !== null} and live.count > 0`;
}

/** What becomes of the SKUs of a claim that is given back, beside that they stay due. */
export interface ReturnOptions {
  /** They share no larger call until one with them has worked; null: any. */
  readonly largestCall?: number | null;
  /** Milliseconds for which they are not claimed again. */
  readonly holdMs?: number;
}

/** Gives a claim back: the call failed as a whole, its SKUs stay due as they were, but for `options`. */
export async function returnClaim(
  sql: Sql,
  claim: string,
  skus: readonly string[],
  options: ReturnOptions = {},
): Promise<void> {
  await sql`
    with claimed as materialized (${lockingClaim(sql, claim, skus)})
    ${returningClaimed(sql, options)}`;
}

/** SQL: an UPDATE that gives back the rows of `claimed` (lockingClaim), as `options` say. */
export function returningClaimed(sql: Sql, { largestCall = null, holdMs = 0 }: ReturnOptions) {
  return sql`
    update catalog_internal.due d set claim = null,
      held_until = case when ${holdMs > 0} then clock_timestamp() + make_interval(secs => ${holdMs / 1000}) end,
      largest_call = least(largest_call, ${largestCall}::smallint)
    from claimed c where d.sku = c.sku`;
}

/**
 * SQL: the SKUs of a claim that are still its own, their rows of the ledger locked in order of sku, as everyone locks
 * them: an UPDATE by itself takes them as they lie, and a seller's commit could be a deadlock's victim.
 */
export function lockingClaim(sql: Sql, claim: string, skus: readonly string[]) {
  return sql`
    select sku from catalog_internal.due where sku = any(${skus as string[]}) and claim = ${claim} order by sku for update`;
}

/**
 * SQL: an UPDATE that releases rows whose wait or lease is over, the longest over first, at most `limit`. now() and
 * not clock_timestamp(): the index of waits then ends the scan at the first that is not over. An array, and no joined
 * subquery: a nested loop runs such a one again for each row of the ledger, and then it locks the next ones. `since`:
 * epoch milliseconds before which none is over; null where that is not known.
 */
export function endingWaits(sql: Sql, limit: number, since: number | null = null) {
  return sql`
    update catalog_internal.due d set held_until = null, claim = null
    where d.ctid = any(array(
      select ctid from catalog_internal.due
      where held_until <= now()
        and held_until >= ${momentOf(sql, sql`${since}::float8`)}
      order by held_until limit ${limit} for update skip locked
    ))`;
}

/** Releases rows whose wait or lease is over, at most `limit`. Returns how many. */
export async function endWaits(sql: Sql, limit: number): Promise<number> {
  const released = await sql`${endingWaits(sql, limit)}`;
  return released.count;
}

/**
 * Moves SKUs whose metadata has reached its greatest age while their sweep was waiting into the metadata lane, which
 * has a guaranteed share. `overdueSeconds` is how long a sweep must have been overdue for that. Returns how many
 * moved.
 */
export async function promoteMetadata(sql: Sql, overdueSeconds: number, limit: number): Promise<number> {
  const moved = await sql`
    update catalog_internal.due d
    set lane = catalog_internal.lane_of('metadata'), reason = 'metadata'
    where d.ctid = any(array(
      select ctid from catalog_internal.due
      where ${claimable(sql)} and not live and lane = catalog_internal.lane_of('sweep')
        and outside_due_at is null and due_at <= now() - make_interval(secs => ${overdueSeconds})
      order by due_at limit ${limit} for update skip locked
    ))`;
  return moved.count;
}

/** How many SKUs are due now, and how many of them were never fetched. */
export async function dueNow(sql: Sql): Promise<{ readonly skus: number; readonly unfetched: number }> {
  const [row] = await sql<[{ skus: number; unfetched: number }]>`
    select count(*)::int as skus, (count(*) filter (where reason = 'new'))::int as "unfetched"
    from catalog_internal.due where due_at <= clock_timestamp()`;
  return row;
}

/** Whether what could be asked for is asked for. */
export interface Idle {
  /** Seconds since a bulk call was last answered, at most five too many; null: none ever was. */
  readonly answeredSeconds: number | null;
  /**
   * For how many seconds a SKU has been due that waits for nothing but its turn; null: there is none, or a call was
   * answered within the last minute. Live ones may wait for the partner's ceiling.
   */
  readonly dueSeconds: number | null;
}

export async function readIdle(sql: Sql): Promise<Idle> {
  const [row] = await sql<[Idle]>`
    with answered as materialized (select succeeded_at as at from catalog_internal.tasks where task = 'reprice')
    select (select extract(epoch from clock_timestamp() - at)::float8 from answered) as "answeredSeconds",
      case when not exists (select from answered where at between clock_timestamp() - interval '1 minute' and clock_timestamp()) then (
        select extract(epoch from clock_timestamp() - min(oldest.due_at))::float8
        from generate_series(1, cardinality(catalog_internal.lane_names())) as lane
        cross join lateral (
          select due_at from catalog_internal.due d
          where ${claimable(sql)} and not live and d.lane = lane.lane::smallint
          order by due_at limit 1
        ) oldest
        where oldest.due_at <= now()
      ) end as "dueSeconds"`;
  return row;
}
