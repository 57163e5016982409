import type { Sql, Tx } from './db.ts';
import type { Incident } from './incident.ts';

/** The plan of live refreshes as it is stored. Ceiling times are epoch milliseconds, waits minutes. */
export interface LivePlan {
  /** Null while there are refreshes enough for every SKU's LIVE_INTERVAL. */
  readonly refreshThreshold: number | null;
  readonly maxIntervalMinutes: number | null;
  readonly earlyMinutes: number | null;
  /** Whether an incident has begun or ended since the last solution. */
  readonly unsolved: boolean;
  /** Set while every SKU is treated as live-priced. */
  readonly incident: Incident | null;
  readonly ceilingPerMinute: number | null;
  readonly ceilingAt: number;
  /** Live computations of the last minute. */
  readonly computed: number;
  /** The most live computations of one call in the last minute. */
  readonly best: number;
  /** Live SKUs in calls in flight. */
  readonly underWay: number;
  /** SKUs asked as snapshot-priced in calls of the last five minutes that deferred any of them. */
  readonly snapshotDeferrals: { readonly asked: number; readonly deferred: number };
  /** Database time in epoch milliseconds. */
  readonly now: number;
}

/** SQL fragment that selects a LivePlan as one row. */
export function livePlanRow(sql: Sql) {
  return sql`
    select refresh_threshold as "refreshThreshold", max_interval_minutes as "maxIntervalMinutes", early_minutes as "earlyMinutes",
      solved_at is null as unsolved, ceiling_per_minute as "ceilingPerMinute",
      case when incident_because is not null then json_build_object('because', incident_because,
        'since', extract(epoch from incident_since) * 1000, 'triedAt', extract(epoch from incident_tried_at) * 1000)
      end as incident,
      coalesce(extract(epoch from ceiling_at) * 1000, 0)::float8 as "ceilingAt",
      recent.computed, recent.best, recent.deferrals as "snapshotDeferrals",
      -- A claim whose lease is over is not under way, whether or not it has been released.
      (select count(*)::int from (
         select from catalog_internal.due where claim is not null and live and held_until > now() limit 1000
       ) claimed) as "underWay",
      floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now
    from catalog_internal.live_plan, (
      select coalesce(sum(computed) filter (where minute), 0)::int as computed,
        coalesce(max(computed) filter (where minute), 0) as best,
        json_build_object('asked', coalesce(sum(snapshot_asked) filter (where snapshot_deferred > 0), 0),
          'deferred', coalesce(sum(snapshot_deferred), 0)) as deferrals
      from (
        select *, called_at > now() - interval '1 minute' as minute
        from catalog_internal.live_calls where called_at > now() - interval '5 minutes'
      ) calls
    ) recent`;
}

export async function readLivePlan(sql: Sql): Promise<LivePlan> {
  const [row] = await sql<[LivePlan]>`${livePlanRow(sql)}`;
  return row;
}

/** A solution: the refresh threshold and the longest allowed wait; null where refreshes suffice for every SKU. */
export type RefreshThreshold = Pick<LivePlan, 'refreshThreshold' | 'maxIntervalMinutes' | 'earlyMinutes'>;

/** Stores a solution, unless an incident began or ended since the plan it was made from. */
export async function storeRefreshThreshold(
  sql: Sql,
  solved: RefreshThreshold,
  incidentSince: number | null,
): Promise<void> {
  await sql`
    update catalog_internal.live_plan set refresh_threshold = ${solved.refreshThreshold}, max_interval_minutes = ${solved.maxIntervalMinutes},
      early_minutes = ${solved.earlyMinutes}, solved_at = now()
    where (extract(epoch from incident_since) * 1000)::float8 is not distinct from ${incidentSince}::float8`;
}

/** What a bulk call did with its live SKUs, and with those asked as snapshot-priced. */
export interface LiveCall {
  readonly computed: number;
  readonly deferred: number;
  readonly snapshotAsked: number;
  readonly snapshotDeferred: number;
}

export async function pruneLiveCalls(sql: Sql): Promise<void> {
  await sql`delete from catalog_internal.live_calls where called_at < now() - interval '10 minutes'`;
}

/**
 * All live SKUs in groups alike in rate and weight (half powers of two), for solving the refresh threshold: some hundred
 * rows however many SKUs there are; during an incident all others too. `prior` is what is believed of a SKU of which not even a
 * past is known, as shape and minutes.
 */
export async function rateGroups(
  sql: Sql,
  prior: { readonly alpha: number; readonly beta: number },
  everything: boolean,
): Promise<{ count: number; lambda: number; weight: number }[]> {
  return await sql<{ count: number; lambda: number; weight: number }[]>`
    select count(*)::int as count, avg(lambda)::float8 as lambda, avg(weight)::float8 as weight
    from (
      select coalesce(r.alpha / r.beta, (${prior.alpha} + coalesce(past.moves, 0)) / (${prior.beta} + coalesce(past.minutes, 0))) as lambda,
        coalesce(w.weight, 1)::float8 as weight
      from catalog_internal.due d
      join catalog.skus s using (sku)
      left join catalog_internal.live_rates r using (sku)
      left join catalog.watchlist w using (sku)
      left join lateral (
        select * from catalog_internal.past_moves(s.sku, s.first_priced_at) where r.sku is null
      ) past on true
      where d.live or (${everything} and s.state = 'priced')
    ) skus
    group by round(log(2, lambda::numeric) * 2), round(log(2, weight::numeric) * 2)`;
}

export interface LiveRefresh extends LiveCandidate {
  /** Whether a price changed since the previous refresh. */
  readonly moved: boolean;
}

/** What was learned from a refresh, and when the next one is due. */
export interface LearnedRefresh {
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
  /** Where nothing is known yet: in how many refreshes of the last three days a price had moved, and how many minutes that is. */
  readonly pastMoves?: number | null;
  readonly pastMinutes?: number | null;
  /** Minutes since the last refresh; null where there was none. */
  readonly minutes: number | null;
}

/** Writes what was learned of live SKUs from one answer. */
export async function writeRates(tx: Tx, rates: readonly LearnedRefresh[]): Promise<void> {
  if (rates.length === 0) return;
  await tx`
    insert into catalog_internal.live_rates as r (sku, alpha, beta)
    select * from unnest(${rates.map(({ sku }) => sku)}::text[], ${rates.map(({ alpha }) => alpha)}::float8[],
      ${rates.map(({ beta }) => beta)}::float8[]) as n(sku, alpha, beta)
    order by sku
    on conflict (sku) do update set alpha = excluded.alpha, beta = excluded.beta`;
}

/** Those of the SKUs that the catalog lists as snapshot-priced. */
export async function listedAsSnapshot(sql: Sql, skus: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await sql<{ sku: string }[]>`
    select sku from catalog.skus where sku = any(${skus as string[]}) and in_manifest and price_source = 'snapshot'`;
  return new Set(rows.map(({ sku }) => sku));
}
