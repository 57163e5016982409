import { scanning, type Sql } from '../connection/db.ts';
import { ceilingColumns, type LiveCeiling, type Incident, isOutage } from './limits.ts';
import type { Releases } from './product-line-state.ts';
import { releasesRow } from './product-lines.ts';
import { RATES_START_AS } from './rate-prior.ts';

/** The stored plan of live refreshes. Times of the ceiling are epoch milliseconds, waits are minutes. */
export interface LivePlan {
  /** Null while there are enough refreshes for every SKU's LIVE_INTERVAL. */
  readonly refreshThreshold: number | null;
  readonly maxIntervalMinutes: number | null;
  readonly earlyMinutes: number | null;
  /** The wait after which a SKU is refreshed before all others; null likewise. */
  readonly overdueMinutes: number | null;
  /** Whether an incident has begun or ended since the last solution. */
  readonly unsolved: boolean;
  /** Set while every SKU is treated as live-priced. */
  readonly incident: Incident | null;
  /**
   * Since when the partner's live source has been failing (store/live/limits.ts), in epoch milliseconds; null if it
   * works.
   */
  readonly outageSince?: number | null;
  readonly ceiling: LiveCeiling;
  /** Since when the credit under the ceiling has been growing, in epoch milliseconds. */
  readonly creditFrom: number;
  /** When a price was last computed live, in epoch milliseconds; null if unknown. */
  readonly computedAt: number | null;
  /** Live computations of the last minute. */
  readonly computed: number;
  /**
   * The rate of live computations a minute while there were any: over the last minute or its last ten seconds,
   * whichever is higher.
   */
  readonly computedRate: number;
  /** The most live computations of one call in the last minute. */
  readonly best: number;
  /**
   * Calls of the last minute in which some live SKUs were deferred and no others, and calls in which others were
   * deferred.
   */
  readonly partlyDeferred: number;
  readonly othersDeferred: number;
  /** How many of the last LAST_CALLS calls of that minute deferred live SKUs and no others. */
  readonly lastDeferred: number;
  /** What is known about lines of live SKUs that move together. */
  readonly releases: Releases;
  /** Database time in epoch milliseconds. */
  readonly now: number;
}

/** This many calls with live SKUs count as the last ones. */
export const LAST_CALLS = 28;

/** SQL fragment that selects a LivePlan as one row. */
export function livePlanRow(sql: Sql) {
  return sql`
    select refresh_threshold as "refreshThreshold", max_interval_minutes as "maxIntervalMinutes", early_minutes as "earlyMinutes",
      overdue_minutes as "overdueMinutes", solved_at is null as unsolved, ceiling.ceiling, ceiling.credit_from as "creditFrom",
      case when incident_because is not null then json_build_object('because', incident_because,
        'since', extract(epoch from incident_since) * 1000, 'triedAt', extract(epoch from incident_tried_at) * 1000)
      end as incident,
      case when ${isOutage(sql)} then (extract(epoch from outage_since) * 1000)::float8 end as "outageSince",
      (extract(epoch from greatest(refreshed_at, recent.computed_at)) * 1000)::float8 as "computedAt",
      (${releasesRow(sql)}) as releases,
      recent.computed, recent.best, recent."computedRate", recent."partlyDeferred", recent."othersDeferred",
      recent."lastDeferred",
      floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now
    from catalog_internal.live_plan, (
      select ${ceilingColumns(sql)} as ceiling, (extract(epoch from credit_from) * 1000)::float8 as credit_from
      from catalog_internal.live_ceiling
    ) ceiling, (
      select (select max(called_at) from catalog_internal.live_calls where computed > 0) as computed_at,
        coalesce(sum(computed), 0)::int as computed, coalesce(max(computed), 0) as best,
        greatest(0, sum(computed) / greatest(extract(epoch from now() - min(called_at)), 1) * 60,
          sum(computed) filter (where called_at > now() - interval '10 seconds') * 6)::float8 as "computedRate",
        (count(*) filter (where computed > 0 and deferred > 0 and snapshot_deferred = 0))::int as "partlyDeferred",
        (count(*) filter (where snapshot_deferred > 0))::int as "othersDeferred",
        (count(*) filter (where deferred > 0 and snapshot_deferred = 0 and place <= ${LAST_CALLS}))::int as "lastDeferred"
      from (
        select *, row_number() over (order by called_at desc) as place
        from catalog_internal.live_calls where called_at > now() - interval '1 minute'
      ) calls
    ) recent`;
}

/** Reads the plan of live refreshes, with what calls of the last minute have shown. */
export async function readLivePlan(sql: Sql): Promise<LivePlan> {
  const [row] = await sql<[LivePlan]>`${livePlanRow(sql)}`;
  return row;
}

/** A solution: the refresh threshold and the longest allowed wait; null if refreshes suffice for every SKU. */
export type RefreshThreshold = Pick<LivePlan, 'refreshThreshold' | 'maxIntervalMinutes' | 'earlyMinutes'>;

/** How long nothing was refreshed (sync/live/choose.ts), and what follows from it. */
export interface RefreshGap {
  readonly minutes: number;
  readonly overdueMinutes: number | null;
  /** The last refresh that was taken into account; null if there was none. */
  readonly refreshedAt: Date | null;
}

/** Stores a solution, unless an incident began or ended since the plan it was made from. */
export async function storeRefreshThreshold(
  sql: Sql,
  solved: RefreshThreshold,
  idle: RefreshGap,
  incidentSince: number | null,
): Promise<void> {
  await sql`
    update catalog_internal.live_plan set refresh_threshold = ${solved.refreshThreshold},
      max_interval_minutes = ${solved.maxIntervalMinutes},
      early_minutes = ${solved.earlyMinutes}, overdue_minutes = ${idle.overdueMinutes}, idle_minutes = ${idle.minutes},
      refreshed_at = ${idle.refreshedAt}, solved_at = now()
    where (extract(epoch from incident_since) * 1000)::float8 is not distinct from ${incidentSince}::float8`;
}

/** The result of a bulk call for its live SKUs, and for those asked for as snapshot-priced. */
export interface LiveCall {
  readonly computed: number;
  readonly deferred: number;
  readonly snapshotAsked: number;
  readonly snapshotDeferred: number;
}

/**
 * Deletes calls older than ten minutes from their log: the plan reads those of the last minute, the backlog those
 * since the last solution.
 */
export async function pruneLiveCalls(sql: Sql): Promise<void> {
  await sql`delete from catalog_internal.live_calls where called_at < now() - interval '10 minutes'`;
}

/**
 * SQL: minutes between refreshes that keep the promised age in a SKU's row `w` of the watchlist; null if no promise
 * is kept.
 */
const promisedMinutes = (sql: Sql) =>
  sql`case when w.feasible then
    catalog_internal.live_promised_interval(w.max_age, (select catalog_internal.live_rate())) / 60 end`;

/**
 * Reads all live SKUs, and during an incident all others too, in groups of similar rate, weight and promised age
 * (half powers of two), to solve the refresh threshold. There are some hundred rows however many SKUs there are.
 * `prior`: the assumed rate of a SKU without even a past, as shape and minutes.
 */
export async function rateGroups(
  sql: Sql,
  prior: { readonly alpha: number; readonly beta: number },
  everything: boolean,
): Promise<{ count: number; lambda: number; weight: number; promised: number | null }[]> {
  return await scanning(sql<{ count: number; lambda: number; weight: number; promised: number | null }[]>`
    select count(*)::int as count, avg(lambda)::float8 as lambda, avg(weight)::float8 as weight,
      (count(promised) / sum(1 / promised))::float8 as promised
    from (
      select coalesce(r.alpha / r.beta,
          (${prior.alpha}::float8 + coalesce(past.moves, 0)) / (${prior.beta}::float8 + coalesce(past.minutes, 0))) as lambda,
        coalesce(w.weight, 1)::float8 as weight, ${promisedMinutes(sql)} as promised
      from catalog_internal.due d
      join catalog.skus s using (sku)
      left join catalog_internal.live_rates r using (sku)
      left join catalog_internal.watched w using (sku)
      left join lateral (
        select * from catalog_internal.past_moves(s.sku, s.first_priced_at) where r.sku is null
      ) past on true
      where d.outside_due_at is null and (d.live or (${everything} and s.state = 'priced'))
    ) skus
    group by round(log(2, lambda::numeric) * 2), round(log(2, weight::numeric) * 2), round(log(2, promised::numeric) * 2)`);
}

/**
 * Returns since when the partner has computed no live SKU while deferring those asked for, in epoch milliseconds.
 * Null if no SKU waits for that, or if it is unknown when one was computed; an outage of the live source is reported
 * separately.
 */
export function nothingComputedSince(
  { computedAt, outageSince = null, ceiling }: Pick<LivePlan, 'computedAt' | 'outageSince' | 'ceiling'>,
  isDeferred: boolean,
): number | null {
  if (!isDeferred || outageSince !== null) return null;
  const known = [computedAt, ceiling.blockedAt].filter((at) => at !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/**
 * Live SKUs grouped by similar rate and weight, and the part of them whose own refreshes say more about their rate
 * than the refreshes of all others.
 */
export interface LearnedRates {
  readonly groups: readonly {
    readonly count: number;
    readonly lambda: number;
    readonly weight: number;
    readonly promised: number | null;
  }[];
  readonly knownPart: number;
}

const { alpha: ALPHA, beta: BETA } = RATES_START_AS;

/** Reads the same groups by what is believed of rates (catalog_internal.p_right), for estimates. */
export async function readLearnedRates(sql: Sql): Promise<LearnedRates> {
  const [row] = await scanning(sql<[LearnedRates]>`
    with skus as (
      select coalesce(r.alpha, ${ALPHA}) / (coalesce(r.beta, ${BETA})
          + coalesce(r.prior_part, least(1, r.beta / ${BETA})) * (b.live_prior_minutes - ${BETA})) as lambda,
        coalesce(w.weight, 1)::float8 as weight,
        coalesce(r.long_beta, r.beta, 0) > 2 * ${BETA}::float8 or coalesce(r.long_alpha, r.alpha, 0) > 2 as known,
        ${promisedMinutes(sql)} as promised
      from catalog_internal.due d join catalog.skus s using (sku) cross join catalog_internal.beliefs b
      left join catalog_internal.live_rates r using (sku) left join catalog_internal.watched w using (sku)
      where d.live and d.outside_due_at is null and s.state = 'priced'
    ),
    alike as (
      select count(*)::int as count, avg(lambda) as lambda, avg(weight) as weight, count(*) filter (where known) as known,
        count(promised) / sum(1 / promised) as promised
      from skus group by round(log(2, lambda::numeric) * 2), round(log(2, weight::numeric) * 2), round(log(2, promised::numeric) * 2)
    )
    select coalesce(json_agg(json_build_object('count', count, 'lambda', lambda, 'weight', weight, 'promised', promised)), '[]') as groups,
      coalesce(sum(known) / sum(count), 0)::float8 as "knownPart"
    from alike`);
  return row;
}
