import type { Sql, Tx } from './db.ts';
import type { Quota } from './due.ts';

/** The plan of live looks as it is stored. Ceiling times are epoch milliseconds, waits minutes. */
export interface LivePlan {
  /** Null while there are looks enough for every SKU's LIVE_INTERVAL. */
  readonly lookPrice: number | null;
  readonly mostMinutes: number | null;
  readonly ceilingPerMinute: number | null;
  readonly ceilingAt: number;
  /** Live computations of the last minute. */
  readonly computed: number;
  /** The most live computations of one call in the last minute. */
  readonly best: number;
  /** Live SKUs in calls that are under way. */
  readonly underWay: number;
  /** The database's time, epoch milliseconds. */
  readonly now: number;
}

export async function readLivePlan(sql: Sql): Promise<LivePlan> {
  const [row] = await sql<[LivePlan]>`
    select look_price as "lookPrice", most_minutes as "mostMinutes", ceiling_per_minute as "ceilingPerMinute",
      coalesce(extract(epoch from ceiling_at) * 1000, 0)::float8 as "ceilingAt",
      recent.computed, recent.best,
      (select count(*)::int from (
         select from catalog_internal.due where claim is not null and held_until is not null and live limit 1000
       ) claimed) as "underWay",
      floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now
    from catalog_internal.live_plan, (
      select coalesce(sum(computed), 0)::int as computed, coalesce(max(computed), 0) as best
      from catalog_internal.live_calls where called_at > clock_timestamp() - interval '1 minute'
    ) recent`;
  return row;
}

export async function storeLookPrice(
  sql: Sql,
  price: number | null,
  mostMinutes: number | null,
): Promise<void> {
  await sql`
    update catalog_internal.live_plan set look_price = ${price}, most_minutes = ${mostMinutes}, solved_at = now()`;
}

export async function storeLiveCeiling(sql: Sql, perMinute: number | null, at: number): Promise<void> {
  await sql`
    update catalog_internal.live_plan set ceiling_per_minute = ${perMinute},
      ceiling_at = to_timestamp(${at}::float8 / 1000)`;
}

export async function noteLiveCall(sql: Sql, computed: number, deferred: number): Promise<void> {
  await sql`
    insert into catalog_internal.live_calls (called_at, computed, deferred)
    values (clock_timestamp(), ${computed}, ${deferred})`;
}

export async function pruneLiveCalls(sql: Sql): Promise<void> {
  await sql`delete from catalog_internal.live_calls where called_at < now() - interval '10 minutes'`;
}

/**
 * All live SKUs in groups alike in rate and weight (half powers of two), for solving the price of a look: some hundred
 * rows however many SKUs there are. `prior` is the rate, in changes a minute, of a SKU of which nothing is known.
 */
export async function rateGroups(
  sql: Sql,
  prior: number,
): Promise<{ count: number; lambda: number; weight: number }[]> {
  return await sql<{ count: number; lambda: number; weight: number }[]>`
    select count(*)::int as count, avg(lambda)::float8 as lambda, avg(weight)::float8 as weight
    from (
      select coalesce(r.alpha / r.beta, ${prior}::float8) as lambda, coalesce(w.weight, 1)::float8 as weight
      from catalog_internal.due d
      left join catalog_internal.live_rates r using (sku)
      left join catalog.watchlist w using (sku)
      where d.live
    ) skus
    group by round(log(2, lambda::numeric) * 2), round(log(2, weight::numeric) * 2)`;
}

/** A look at a live SKU that was answered. */
export interface LiveLook extends LiveCandidate {
  /** Whether a price had moved since the look before. */
  readonly moved: boolean;
}

/** What was learned from a look, and when the next one is due. */
export interface LookAhead {
  readonly sku: string;
  readonly alpha: number;
  readonly beta: number;
  readonly nextMs: number;
}

export interface LiveCandidate {
  readonly sku: string;
  readonly weight: number;
  /** Null where nothing is known yet. */
  readonly alpha: number | null;
  readonly beta: number | null;
  /** Minutes since the last look; null where there was none. */
  readonly minutes: number | null;
}

/** The first SKUs of a quota by due time, with what is needed to choose between them. */
export async function liveCandidates(sql: Sql, quota: Quota, limit: number): Promise<LiveCandidate[]> {
  return await sql<LiveCandidate[]>`
    select d.sku, coalesce(w.weight, 1)::float8 as weight, r.alpha, r.beta,
      (extract(epoch from clock_timestamp() - s.asked_at) / 60)::float8 as minutes
    from (
      select sku from catalog_internal.due
      where held_until is null and live and lane = catalog_internal.lane_of(${quota.lane})
        and due_at <= now() + make_interval(secs => ${quota.earlySeconds})
      order by due_at limit ${limit}
    ) d
    join catalog.skus s using (sku)
    left join catalog_internal.live_rates r using (sku)
    left join catalog.watchlist w using (sku)`;
}

/** Writes what was learned of live SKUs from one answer. */
export async function writeRates(tx: Tx, rates: readonly LookAhead[]): Promise<void> {
  if (rates.length === 0) return;
  await tx`
    insert into catalog_internal.live_rates as r (sku, alpha, beta)
    select * from unnest(${rates.map(({ sku }) => sku)}::text[], ${rates.map(({ alpha }) => alpha)}::float8[],
      ${rates.map(({ beta }) => beta)}::float8[]) as n(sku, alpha, beta)
    order by sku
    on conflict (sku) do update set alpha = excluded.alpha, beta = excluded.beta`;
}
