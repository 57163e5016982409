import { constant, type Queryable, type Sql } from '../connection/db.ts';
import { presentServer } from '../connection/own-mirror.ts';

/**
 * Lanes of the due ledger, most urgent first. `catalog_internal.lane_of` maps reasons to lanes, and `lane_names`
 * contains the names that people read; a test compares the order of both with this.
 */
export const DUE_LANES = ['urgent', 'live', 'new', 'error', 'metadata', 'sweep'] as const;
export type Lane = (typeof DUE_LANES)[number];

/** Comes before all lanes: SKUs of any lane whose promised age (catalog.watchlist.max_age) requires asking now. */
export const PROMISED = 'promised';
export type ClaimedLane = typeof PROMISED | Lane;

/**
 * SQL: the reason of the next turn of a snapshot-priced SKU that is due only by `snapshot_target` of the settings
 * `g`: its sweep, or its metadata if that comes first or there are no sweeps.
 */
export const SNAPSHOT_REASON =
  "case when g.sweep_interval > 0 and g.sweep_interval <= g.metadata_interval then 'sweep' else 'metadata' end";

/** One kind of due work: a lane and whether its SKUs count against the live budget. */
export interface LaneClass {
  readonly lane: ClaimedLane;
  readonly live: boolean;
}

/**
 * SKUs that were in a failed call, by how many of them the next call may contain. They are due, and wait for a call
 * without any others. The count stops at the limit asked for.
 */
export interface DueSuspects {
  readonly largestCall: number;
  readonly live: boolean;
  readonly count: number;
}

/** How many SKUs of a class can be claimed; the count stops at the limit asked for. */
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
  /** Consecutive deferrals that may have reasons of the SKU's own (ownDeferrals). */
  readonly deferrals: number;
  readonly failures: number;
  readonly live: boolean;
  /** It is in the error lane: it failed, or was deferred again, while others were not. */
  readonly setBack?: boolean;
  /** Since when it was due, by the database's clock; later than the claim if it was taken early. */
  readonly dueAt: Date;
  /** Why it was due (`catalog_internal.lane_of`). */
  readonly reason: string;
}

/** SKUs that only this worker may ask about until the lease ends. */
export interface Claim {
  readonly number: string;
  /** The database's time of the claim. The request is sent after it. */
  readonly askedAt: Date;
  /** The server that issued the number (`presentServer`); undefined: whichever is asked. */
  readonly server?: string;
  readonly skus: readonly ClaimedSku[];
}

/** What distinguishes a claim from all others. */
export type ClaimId = Pick<Claim, 'number' | 'server'>;

/**
 * Returns a lane's number in the ledger. The urgent lane is 1, which is named in its partial index. PROMISED is no
 * lane of the ledger: 0.
 */
export const laneNumber = (lane: ClaimedLane): number =>
  lane === PROMISED ? 0 : DUE_LANES.indexOf(lane) + 1;

/** The ledger's alias in a statement; undefined if its columns are unqualified. */
type LedgerAlias = 'd' | 'due' | 'l';

/**
 * SQL: a row of the ledger that nobody holds and that may be in any call. This is the condition of the partial
 * indexes due_claim, due_urgent and due_promised (store/schema/ledger.ts), which serve only statements that contain
 * it.
 */
export function claimable(sql: Queryable, alias?: LedgerAlias) {
  const row = alias === undefined ? '' : `${alias}.`;
  return sql.unsafe(`${row}held_until is null and ${row}largest_call is null`);
}

/**
 * The `last_error` of a SKU that was deferred while the ceiling on live computations was met, which says nothing
 * about the SKU.
 */
export const CEILING_MET = 'ceiling';
/** More such deferrals in a row can hardly be chance. */
export const MOST_UNCOUNTED = 5;

/** SQL: how many consecutive deferrals of a SKU may have reasons of its own. */
export function ownDeferrals(sql: Queryable, alias: LedgerAlias) {
  const row = sql.unsafe(alias);
  const met = sql.unsafe(`'${CEILING_MET}'`);
  return sql`
    case when ${row}.last_error is not distinct from ${met} and ${row}.deferrals <= ${constant(sql, MOST_UNCOUNTED)} then 0
      else ${row}.deferrals end`;
}

/** SQL: a row of the ledger that is due only by the order of live refreshes, so that its due time may be moved. */
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
 * The longest time before its promise is broken at which a SKU comes first, as in
 * catalog_internal.promised_interval. For live SKUs it is longer by `deferral_lead` if the partner computes few.
 */
export const LONGEST_LEAD_SECONDS = 45;

/** SQL: how long before its promise is broken a SKU comes first at most, if it counts as `live`. */
export const longestLead = (sql: Sql, live: ReturnType<Sql>) =>
  sql`make_interval(secs => ${constant(sql, LONGEST_LEAD_SECONDS)} + case when ${live}
    then coalesce((select catalog_internal.deferral_lead(catalog_internal.live_rate())), 0) else 0 end)`;

/**
 * SQL: whether a row `d`, which counts as live if `live`, comes first now because of its promise. The index is
 * ordered by the deadline, so the bound ends the scan.
 */
export const promisedNow = (sql: Sql, live: ReturnType<Sql>) =>
  sql`d.outside_due_at is null and d.promised_at <= now() and d.promised_by <= now() + ${longestLead(sql, live)}`;

/** SQL: a floor in epoch milliseconds as a timestamp; null is before all others. */
export const momentOf = (sql: Sql, ms: ReturnType<Sql>) =>
  sql`coalesce(to_timestamp(${ms} / 1000), '-infinity')`;

/** What else happens to the SKUs of a claim that is given back. They stay due in any case. */
export interface ReturnOptions {
  /** Until a call with them has worked, they share no larger call than this; null: any. */
  readonly largestCall?: number | null;
  /** Milliseconds for which they are not claimed again. */
  readonly holdMs?: number;
}

/** SQL: whether a row of the ledger is still this claim's, and the claim is this server's. */
export function heldBy(sql: Queryable, { number, server }: ClaimId, alias?: LedgerAlias) {
  const row = sql.unsafe(alias === undefined ? '' : `${alias}.`);
  return sql`${row}claim = ${number} and coalesce(${server ?? null}::text = ${presentServer(sql)}, true)`;
}

/** Gives a claim back after its call failed as a whole. Its SKUs stay due as they were, except for `options`. */
export async function returnClaim(
  sql: Sql,
  claim: ClaimId,
  skus: readonly string[],
  options: ReturnOptions = {},
): Promise<void> {
  await sql`
    with claimed as materialized (${lockingClaim(sql, claim, skus)})
    ${returningClaimed(sql, options)}`;
}

/** SQL: an UPDATE that gives back the rows of `claimed` (lockingClaim) according to `options`. */
export function returningClaimed(sql: Sql, { largestCall = null, holdMs = 0 }: ReturnOptions) {
  return sql`
    update catalog_internal.due d set claim = null,
      held_until = case when ${holdMs > 0} then clock_timestamp() + make_interval(secs => ${holdMs / 1000}) end,
      largest_call = least(largest_call, ${largestCall}::smallint)
    from claimed c where d.sku = c.sku`;
}

/**
 * SQL: the SKUs that a claim still holds. Locks their rows of the ledger in order of sku, as everyone does: an
 * UPDATE by itself locks them in physical order, and a seller's commit could become a deadlock's victim.
 */
export function lockingClaim(sql: Sql, claim: ClaimId, skus: readonly string[]) {
  return sql`
    select sku from catalog_internal.due where sku = any(${skus as string[]}) and ${heldBy(sql, claim)} order by sku for update`;
}

/**
 * SQL: an UPDATE that releases rows whose wait or lease is over, longest over first, at most `limit`. It uses now()
 * instead of clock_timestamp(), so that the scan of the index of waits ends at the first that is not over. It uses
 * an array instead of a joined subquery, because a nested loop would run that again for each row of the ledger, and
 * lock the next ones. `since`: SQL for the epoch milliseconds before which no wait is over; null if not known.
 */
export function endingWaits(sql: Sql, limit: number, since: ReturnType<Sql> = sql`null::float8`) {
  return sql`
    update catalog_internal.due d set held_until = null, claim = null
    where d.ctid = any(array(
      select ctid from catalog_internal.due
      where held_until <= now()
        and held_until >= ${momentOf(sql, since)}
      order by held_until limit ${constant(sql, limit)} for update skip locked
    ))`;
}

/** Releases rows whose wait or lease is over, at most `limit`. Returns how many. */
export async function endWaits(sql: Sql, limit: number): Promise<number> {
  const released = await sql`${endingWaits(sql, limit)}`;
  return released.count;
}

/**
 * Moves SKUs into the metadata lane, which has a guaranteed share, if their metadata has reached its greatest age
 * while their sweep was waiting. `overdueSeconds`: how long the sweep must have been overdue. Returns how many
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

/** SKUs of one class that come up at a configured interval. */
export interface Turns extends LaneClass {
  readonly reasons: readonly string[];
  readonly intervalSeconds: number;
  /** Why they are due at that interval. */
  readonly as: string | null;
}

/**
 * Brings SKUs forward that are due later than their interval allows, for example after a start with a shorter
 * interval, because their due times were set when they were answered. At most `limit`, furthest first; returns how
 * many.
 */
export async function bringForward(
  sql: Sql,
  { lane, live, reasons, intervalSeconds, as }: Turns,
  limit: number,
): Promise<number> {
  const interval = sql`make_interval(secs => ${intervalSeconds})`;
  const moved = await sql`
    with late as materialized (
      select d.sku, s.asked_at from catalog_internal.due d join catalog.skus s using (sku)
      where ${claimable(sql, 'd')} and d.live = ${live} and d.lane = ${laneNumber(lane)} and d.reason = any(${reasons as string[]})
        and d.outside_due_at is null and d.deferrals = 0 and d.failures = 0
        and d.due_at > now() + ${interval} and d.due_at < 'infinity' and s.state = 'priced'
      order by d.due_at desc limit ${limit} for update of d skip locked
    )
    update catalog_internal.due d set due_at = greatest(now(), late.asked_at + ${interval}),
      reason = coalesce(${as}, d.reason), lane = coalesce(catalog_internal.lane_of(${as}), d.lane)
    from late where d.sku = late.sku`;
  return moved.count;
}

/** Counts the SKUs that are due now, and those that a fill still has to fetch: never priced, and not failed either. */
export async function dueNow(sql: Sql): Promise<{ readonly skus: number; readonly unfetched: number }> {
  const [row] = await sql<[{ skus: number; unfetched: number }]>`
    select (count(*) filter (where not catalog_internal.is_waiting(d, clock_timestamp())))::int as skus,
      (count(*) filter (where reason = 'new' and failures = 0))::int as "unfetched"
    from catalog_internal.due d where due_at <= clock_timestamp()`;
  return row;
}

/** Whether due work is being done. */
export interface Idle {
  /** Seconds since the last answer to a bulk call, at most five too many; null if there never was one. */
  readonly answeredSeconds: number | null;
  /**
   * How many seconds a SKU has been due that waits for nothing but its turn. Null if there is none, or if a call was
   * answered within the last minute. Live SKUs do not count: they may wait for the partner's ceiling.
   */
  readonly dueSeconds: number | null;
}

/** Reads whether work is due that nobody does, and since when; for the judge of health. */
export async function readIdle(sql: Queryable): Promise<Idle> {
  const [row] = await sql<[Idle]>`
    with answered as materialized (select succeeded_at as at from catalog_internal.tasks where task = 'reprice')
    select (select extract(epoch from clock_timestamp() - at)::float8 from answered) as "answeredSeconds",
      case when not exists (select from answered where at between clock_timestamp() - interval '1 minute' and clock_timestamp()) then (
        select extract(epoch from clock_timestamp() - min(greatest(oldest.due_at, 'epoch')))::float8
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
