import { notingUnseenClock } from '../clock.ts';
import { constant, type Sql, unplanned } from '../connection/db.ts';
import { isOwnMirror, refuseMirror, presentServer } from '../connection/own-mirror.ts';
import { type LedgerFloors, NO_FLOORS } from './due-floors.ts';
import {
  claimable,
  type Claim,
  type ClaimedSku,
  type DueSuspects,
  laneNumber,
  momentOf,
  ownDeferrals,
  PROMISED,
  promisedNow,
  type Quota,
  lockingClaim,
} from './due.ts';

/**
 * What a call is to carry: a number of SKUs of each class, live SKUs by name if no other call holds them, SKUs of
 * failed calls, or one live SKU.
 */
export interface WantedSkus {
  readonly quotas?: readonly Quota[];
  readonly named?: readonly string[];
  readonly suspects?: readonly DueSuspects[];
  /** Any one live SKU that is due within so many seconds, whether or not it was in failed calls. */
  readonly lone?: { readonly earlySeconds: number };
}

/**
 * What asking for live SKUs costs under the ceiling: `skuMs` milliseconds per SKU, taken from savings of at most
 * `mostMs`.
 */
export interface LiveSpend {
  readonly skuMs: number;
  readonly mostMs: number;
}

/**
 * Claims SKUs of each class for `leaseMs`. Promised SKUs come by earliest deadline, urgent ones by rank (the weight
 * in catalog.watchlist), all others, and those of equal rank, oldest first. Workers racing for the same rows skip
 * each other's; the claim of a worker that dies runs out. Each SKU comes with its generation at the claim: a later
 * mark increments it, so that the answer to this claim does not settle that mark. `spend`: what each live SKU takes
 * under the ceiling on live computations. `floors`: rows due before their class's floor are not claimed. If the
 * mirror has become another account's, nothing is claimed, and the daemon ends. Returns null if nothing was claimed.
 */
export async function claimDue(
  sql: Sql,
  wanted: WantedSkus,
  leaseMs: number,
  spend: LiveSpend | null = null,
  floors: LedgerFloors = NO_FLOORS,
): Promise<Claim | null> {
  const { named = [], suspects = [], lone } = wanted;
  const quotas = (wanted.quotas ?? []).filter((quota) => quota.count > 0);
  if (quotas.length + named.length + suspects.length === 0 && lone === undefined) return null;
  const names = unplanned(sql, named, 'text[]');
  const rows = await sql<(ClaimedRow | { readonly sku: null; readonly own: boolean })[]>`
    with mirror as materialized (select ${isOwnMirror(sql, sql)} as own),
    quotas as materialized (
      ${quotaRows(sql, quotas, floors)}
    ),
    by_promise as materialized (${claimedByPromise(sql)}),
    by_rank as materialized (
      -- Whatever is urgent is due: a mark made it so. Its lane is a literal, as in the condition of the index due_urgent.
      select p.ctid from quotas q cross join lateral (
        select d.ctid from catalog_internal.due d
        where ${claimable(sql, 'd')} and d.lane = 1 and d.live = q.live
          and d.due_at >= q.since
        order by d.rank desc, d.due_at limit q.count for update skip locked
      ) p
      where q.lane = ${laneNumber('urgent')}
    ),
    by_age as materialized (
      select p.ctid from quotas q cross join lateral (
        select d.ctid from catalog_internal.due d
        where ${claimable(sql, 'd')} and d.live = q.live and d.lane = q.lane
          and d.due_at >= q.since and d.due_at <= now() + make_interval(secs => q.early)
        order by d.due_at limit q.count for update skip locked
      ) p
      where q.lane > ${laneNumber('urgent')}
    ),
    by_name as materialized (
      select ctid from catalog_internal.due
      where sku = any(${names}::text[]) and ${claimable(sql)} and live and outside_due_at is null
      order by sku for update skip locked
    ),
    suspects as materialized (${suspectsOf(sql, suspects)}),
    lone as materialized (${anyLive(sql, lone)}),
    -- Whoever is claimed leaves the list of a backlog; what another claim is about to take off is passed by.
    unlisted as (
      delete from catalog_internal.live_backlog
      where ctid = any(array(select ctid from catalog_internal.live_backlog where sku = any(${names}::text[]) for update skip locked))
    ),
    claim as materialized (select nextval('catalog_internal.claim_numbers') as number, clock_timestamp() as asked_at),
    claimed as (${claiming(sql, leaseMs)}),
    spent as (${spending(sql, spend)}),
    noted as (${notingUnseenClock(sql)})
    select claimed.*, mirror.own, (select ${presentServer(sql)}) as server from mirror left join claimed on true`;
  const [first] = rows;
  if (first?.own === false) refuseMirror(sql);
  if (first === undefined || first.sku === null) return null;
  return {
    number: first.claim,
    askedAt: first.askedAt,
    server: first.server,
    skus: rows.filter((row) => row.sku !== null),
  };
}

/** A claimed SKU. If nothing was claimed, one row without a SKU says whose the mirror is. */
interface ClaimedRow extends ClaimedSku {
  readonly own: boolean;
  readonly claim: string;
  readonly askedAt: Date;
  readonly server: string;
}

function claiming(sql: Sql, leaseMs: number) {
  return sql`
    -- By their row ids, locked above: whatever the planner expects of the quotas, it reads no other row.
    update catalog_internal.due d
    set claim = claim.number, held_until = claim.asked_at + make_interval(secs => ${leaseMs / 1000})
    from claim, mirror
    where mirror.own and d.ctid = any(array(select ctid from by_promise union select ctid from by_rank union select ctid from by_age
      union select ctid from by_name union select ctid from suspects union select ctid from lone))
    returning d.sku, d.generation, ${ownDeferrals(sql, 'd')} as deferrals, d.failures, d.live, d.lane = ${laneNumber('error')} as "setBack",
      claim.number as claim, claim.asked_at as "askedAt",
      d.due_at as "dueAt", d.reason`;
}

/** Contains the ledger's size in its text, so that a cached plan is one for tables of this size. */
function quotaRows(sql: Sql, quotas: readonly Quota[], floors: LedgerFloors) {
  const all = (of: (quota: Quota) => number | null, type: string) => unplanned(sql, quotas.map(of), type);
  return sql`
    select array[${constant(sql, ...floors.magnitudes)}]::int[] as magnitudes, lane, live, count, early,
      ${momentOf(sql, sql`floor`)} as since from unnest(
      ${all(({ lane }) => laneNumber(lane), 'smallint[]')},
      ${all(({ live }) => Number(live), 'int[]::boolean[]')},
      ${all(({ count }) => count, 'int[]')},
      ${all(({ earlySeconds }) => earlySeconds, 'float8[]')},
      ${all(({ lane, live }) => floors.of(lane, live), 'float8[]')}
    ) as q(lane, live, count, early, floor)`;
}

/** SQL: the promised SKUs with the earliest deadlines, up to their quotas. */
function claimedByPromise(sql: Sql) {
  return sql`
    select p.ctid from quotas q cross join lateral (
      select d.ctid from catalog_internal.due d
      where ${claimable(sql, 'd')} and d.promised_by is not null and d.live = q.live
        and d.promised_by >= q.since and ${promisedNow(sql, sql`q.live`)}
      order by d.promised_by limit q.count for update skip locked
    ) p
    where q.lane = ${laneNumber(PROMISED)}`;
}

function suspectsOf(sql: Sql, suspects: readonly DueSuspects[]) {
  const all = (of: (suspect: DueSuspects) => number, type: string) => unplanned(sql, suspects.map(of), type);
  return sql`
    select p.ctid from unnest(
      ${all(({ largestCall }) => largestCall, 'smallint[]')},
      ${all(({ live }) => Number(live), 'int[]::boolean[]')},
      ${all(({ count }) => count, 'int[]')}
    ) as q(largest_call, live, count) cross join lateral (
      select d.ctid from catalog_internal.due d
      where d.held_until is null and d.largest_call = q.largest_call and d.live = q.live and d.due_at <= now()
      -- In an outage one call goes out at a time: what is known to fail must not be it each time.
      order by d.failures, d.promised_by is null or not (${promisedNow(sql, sql`q.live`)}),
        d.lane, d.rank desc, d.due_at limit q.count for update skip locked
    ) p`;
}

/**
 * Chooses at random, because live SKUs are tried singly while most of them fail. In a fixed order, SKUs that fail
 * for reasons of their own, and so are overdue longest, would be tried again and again, and none that shows that the
 * others work.
 */
function anyLive(sql: Sql, lone: WantedSkus['lone']) {
  const early = sql`make_interval(secs => ${unplanned(sql, lone?.earlySeconds ?? 0, 'float8')})`;
  return sql`
    select d.ctid from catalog_internal.due d
    where ${unplanned(sql, lone !== undefined, 'boolean')} and d.held_until is null and d.live and d.ctid = any(array(
      select ctid from (
        select ctid from catalog_internal.due where ${claimable(sql)} and live and due_at <= now() + ${early}
        union all
        select d.ctid from catalog_internal.due d
        where ${claimable(sql, 'd')} and d.live and d.promised_by is not null and ${promisedNow(sql, sql`true`)}
        union all
        select ctid from catalog_internal.due
        where held_until is null and largest_call is not null and live and due_at <= now()
      ) each order by random() limit 1
    )) for update skip locked`;
}

/** Savings never lie further in the future than one call, whatever the clock did. */
function spending(sql: Sql, spend: LiveSpend | null) {
  const [skuSeconds, mostSeconds] = [(spend?.skuMs ?? 0) / 1000, (spend?.mostMs ?? 0) / 1000];
  return sql`
    update catalog_internal.live_ceiling set credit_from =
      least(claim.asked_at, greatest(credit_from, claim.asked_at - make_interval(secs => ${mostSeconds})))
        + live.count * make_interval(secs => ${skuSeconds})
    from claim, (select count(*) as count from claimed where claimed.live) live
    where ${unplanned(sql, spend !== null, 'boolean')} and live.count > 0`;
}

/**
 * Makes SKUs due if the answer to their claim cannot be stored, including those from spare slots, until an answer is
 * stored: the mirror may hold a price that is known to be wrong. Call this before the claim is given back. If the
 * claim has only one SKU, that one is the cause, so a re-price is due whatever it was asked for, as if the delta had
 * left out a move. That is no report: the next answer is judged as if nothing had been reported.
 */
export async function markUnstored(sql: Sql, claim: Claim): Promise<void> {
  const skus = claim.skus.map(({ sku }) => sku);
  await sql`
    with claimed as materialized (${lockingClaim(sql, claim, skus)})
    update catalog_internal.due d set due_at = least(d.due_at, clock_timestamp()),
      -- While due for these, a price is judged by its probability (view catalog.sku_trust).
      reason = case when ${skus.length === 1} and d.reason in ('live', 'again', 'metadata') then 'missed' else d.reason end
    from claimed c join catalog.skus s using (sku)
    where d.sku = c.sku and s.state = 'priced' and d.outside_due_at is null`;
}
