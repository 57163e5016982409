import { scanning, type Sql, type Tx } from '../connection/db.ts';
import type { HintTest, PredictedMove, PredictionTest, WaitingHint } from './hint-state.ts';
import type { Incident } from './incident.ts';
import type { HeldLine, Releases, Wholesale } from './line-state.ts';
import { releasesRow } from './lines.ts';
import type { Memories, Rate } from './rate-prior.ts';

/**
 * The partner's ceiling on live computations, as learned (partner rules 4.1.3, 8.open). Times are epoch milliseconds,
 * by the database's clock.
 */
export interface LiveCeiling {
  /** Counts the changes: what a call teaches is stored only where no other call has taught since it was planned. */
  readonly step: number;
  /** Live computations a minute that were allowed at `since`; null while no ceiling has been met. */
  readonly perMinute: number | null;
  readonly since: number;
  /** How many cycles in a row have measured about the same, up to a bound. */
  readonly alike: number;
  /** While nothing is computed: since when, and when that was last seen. */
  readonly blockedAt: number | null;
  readonly failedAt: number | null;
  /** The first computation after the last block. */
  readonly cycleFrom: number;
}

/** As long as no ceiling has been met. */
export const NO_CEILING: LiveCeiling = {
  step: 0,
  perMinute: null,
  since: 0,
  alike: 0,
  blockedAt: null,
  failedAt: null,
  cycleFrom: 0,
};

/** SQL: the columns of catalog_internal.live_ceiling as a LiveCeiling. */
function ceilingColumns(sql: Sql) {
  const ms = (column: string) => sql`(extract(epoch from ${sql(column)}) * 1000)::float8`;
  return sql`json_build_object('step', step, 'perMinute', per_minute, 'since', ${ms('since')}, 'alike', alike,
    'blockedAt', ${ms('blocked_at')}, 'failedAt', ${ms('failed_at')}, 'cycleFrom', ${ms('cycle_from')})`;
}

/**
 * SQL: an UPDATE that stores a ceiling, unless another call has changed it meanwhile. What may be asked for grows
 * from the end of a block.
 */
export function storingCeiling(sql: Sql, ceiling: LiveCeiling | null) {
  const at = (ms: number | null) => sql`to_timestamp(${ms === null ? null : ms / 1000}::float8)`;
  const { step, perMinute, since, alike, blockedAt, failedAt, cycleFrom } = ceiling ?? NO_CEILING;
  return sql`
    update catalog_internal.live_ceiling set step = ${step}::int, per_minute = ${perMinute}::float8, since = ${at(since)},
      alike = ${alike}::int, blocked_at = ${at(blockedAt)}, failed_at = ${at(failedAt)}, cycle_from = ${at(cycleFrom)},
      credit_from = case when blocked_at is not null and ${blockedAt === null} then clock_timestamp() else credit_from end
    where step = ${step}::int - 1 and ${ceiling !== null}`;
}

/** Stores a ceiling. False where another call has changed it meanwhile. */
export async function storeCeiling(sql: Sql, ceiling: LiveCeiling): Promise<boolean> {
  return (await sql`${storingCeiling(sql, ceiling)}`).count > 0;
}

/** The plan of live refreshes as it is stored. Ceiling times are epoch milliseconds, waits minutes. */
export interface LivePlan {
  /** Null while there are refreshes enough for every SKU's LIVE_INTERVAL. */
  readonly refreshThreshold: number | null;
  readonly maxIntervalMinutes: number | null;
  readonly earlyMinutes: number | null;
  /** After how long a wait a SKU is refreshed before all others; null likewise. */
  readonly overdueMinutes: number | null;
  /** Whether an incident has begun or ended since the last solution. */
  readonly unsolved: boolean;
  /** Set while every SKU is treated as live-priced. */
  readonly incident: Incident | null;
  readonly ceiling: LiveCeiling;
  /** What may be asked for under the ceiling has grown since. Epoch milliseconds. */
  readonly creditFrom: number;
  /** When something was computed live last, in epoch milliseconds; null: nobody knows. */
  readonly computedAt: number | null;
  /** Live computations of the last minute. */
  readonly computed: number;
  /**
   * Live computations a minute while there were any: as in the last minute or in its last ten seconds, whichever is
   * more.
   */
  readonly computedRate: number;
  /** The most live computations of one call in the last minute. */
  readonly best: number;
  /**
   * Calls of the last minute of which a part of the live SKUs was deferred and no other, and those that deferred
   * others.
   */
  readonly partlyDeferred: number;
  readonly othersDeferred: number;
  /** Of the last LAST_CALLS calls of that minute, those that deferred any of the live SKUs and no other. */
  readonly lastDeferred: number;
  /** What is known of lines of live SKUs that move together. */
  readonly releases: Releases;
  /** Database time in epoch milliseconds. */
  readonly now: number;
}

/** Calls with live SKUs that are taken for the last ones. */
export const LAST_CALLS = 28;

/** SQL fragment that selects a LivePlan as one row. */
export function livePlanRow(sql: Sql) {
  return sql`
    select refresh_threshold as "refreshThreshold", max_interval_minutes as "maxIntervalMinutes", early_minutes as "earlyMinutes",
      overdue_minutes as "overdueMinutes", solved_at is null as unsolved, ceiling.ceiling, ceiling.credit_from as "creditFrom",
      case when incident_because is not null then json_build_object('because', incident_because,
        'since', extract(epoch from incident_since) * 1000, 'triedAt', extract(epoch from incident_tried_at) * 1000)
      end as incident,
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

export async function readLivePlan(sql: Sql): Promise<LivePlan> {
  const [row] = await sql<[LivePlan]>`${livePlanRow(sql)}`;
  return row;
}

/** A solution: the refresh threshold and the longest allowed wait; null where refreshes suffice for every SKU. */
export type RefreshThreshold = Pick<LivePlan, 'refreshThreshold' | 'maxIntervalMinutes' | 'earlyMinutes'>;

/** For how long nothing was refreshed (sync/live/backlog.ts), and what follows. */
export interface RefreshGap {
  readonly minutes: number;
  readonly overdueMinutes: number | null;
  /** The last refresh that is taken into account; null: none. */
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
 * SQL: minutes between refreshes that keep the promise of a SKU's age, of its row `w` of the watchlist; null where
 * none is kept.
 */
export const promisedMinutes = (sql: Sql) =>
  sql`case when w.feasible then catalog_internal.promised_interval(w.max_age) / 60 end`;

/**
 * All live SKUs in groups alike in rate, weight and promised age (half powers of two), for solving the refresh
 * threshold: some hundred rows however many SKUs there are; during an incident all others too. `prior` is what is
 * believed of a SKU of which not even a past is known, as shape and minutes.
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

export interface LiveRefresh extends LiveCandidate {
  /** Whether a price changed since the previous refresh. */
  readonly moved: boolean;
  /** Of the sizes that had a price, how many there were, and how many moved. */
  readonly sizes?: { readonly held: number; readonly moved: number } | undefined;
  /** Prices that moved since, by size: what they were and what they are. */
  readonly prices?: ReadonlyMap<string, { readonly from: number | null; readonly to: number | null }>;
  /** What alpha and beta are made of; null where nothing is known yet, or only what an earlier version has learned. */
  readonly memories?: Memories | null;
  /** What the previous refresh has found, where hints had told of it; null: nothing of the kind. */
  readonly prediction?: PredictedMove | null;
  /** Of the refreshes before that found a move: sizes, and those that had moved; null where nothing is known yet. */
  readonly sizesSeen?: number | null;
  readonly sizesMoved?: number | null;
  /** When it was asked, in minutes since 1970. */
  readonly at?: number;
  /** Its line; null where it has none, or is not listed as live. */
  readonly line?: HeldLine | null;
  /** How often it has moved wholesale by itself, in how many minutes; null where nothing is known yet. */
  readonly wholesaleMoves?: number | null;
  readonly wholesaleMinutes?: number | null;
  /** Hints at it since the refresh before; null: none. */
  readonly hints?: readonly WaitingHint[] | null;
  /** Mean minutes between two changes of a SKU of which nothing is known (store/live/rate-prior.ts). */
  readonly priorMinutes?: number;
}

/** What was learned from a refresh, and when the next one is due. */
export interface LearnedRefresh extends Rate {
  readonly sku: string;
  /** What alpha and beta are made of; absent: of nothing else. */
  readonly memories?: Memories;
  readonly sizesSeen: number;
  readonly sizesMoved: number;
  /** How often it moves wholesale by itself; absent: nobody knows. */
  readonly wholesale?: Wholesale;
  /** What it shows of the sources that had hinted at it. */
  readonly hintTests?: readonly HintTest[];
  /** What hints had told of, and what has become of what those before had told of. */
  readonly prediction?: PredictedMove | null;
  readonly predictionTests?: readonly PredictionTest[];
  readonly nextMs: number;
}

export interface LiveCandidate {
  readonly sku: string;
  readonly weight: number;
  /** Null where nothing is known yet. */
  readonly alpha: number | null;
  readonly beta: number | null;
  /** As of a rate, where it is wanted. */
  readonly prior?: number | null;
  /**
   * Where nothing is known yet: in how many refreshes of the last three days a price had moved, and how many minutes
   * that is.
   */
  readonly pastMoves?: number | null;
  readonly pastMinutes?: number | null;
  /** Minutes since the last refresh; null where there was none. */
  readonly minutes: number | null;
  /** It was drawn at random, and this is the time to refresh it, whatever that is worth. */
  readonly random?: boolean;
  /** It has moved with its line, or as somebody hints, with a probability of 1 − e^−hazard; null: nothing says so. */
  readonly hazard?: number | null;
}

/** SQL: both memories of a row `r` of live_rates, as JSON; null where it has none. */
export const heldMemories = (tx: Tx) => tx`
  case when r.short_odds is not null then json_build_object(
    'long', json_build_object('alpha', r.long_alpha, 'beta', r.long_beta, 'prior', r.long_prior),
    'short', json_build_object('alpha', r.short_alpha, 'beta', r.short_beta, 'prior', r.short_prior), 'odds', r.short_odds) end`;

/** Writes what was learned of live SKUs from one answer. After their products, which say what lines they are of. */
export async function writeRates(tx: Tx, rates: readonly LearnedRefresh[]): Promise<void> {
  if (rates.length === 0) return;
  const rows = rates.map(
    ({ sku, alpha, beta, prior, memories, sizesSeen, sizesMoved, wholesale, prediction }) => ({
      sku,
      alpha,
      beta,
      long_alpha: memories?.long.alpha,
      long_beta: memories?.long.beta,
      short_alpha: memories?.short.alpha,
      short_beta: memories?.short.beta,
      short_odds: memories?.odds,
      prior_part: prior,
      long_prior: memories?.long.prior,
      short_prior: memories?.short.prior,
      sizes_seen: sizesSeen,
      sizes_moved: sizesMoved,
      wholesale_moves: wholesale?.moves,
      wholesale_minutes: wholesale?.minutes,
      told: prediction,
    }),
  );
  await tx`
    insert into catalog_internal.live_rates as r (sku, alpha, beta, long_alpha, long_beta, short_alpha, short_beta, short_odds,
      prior_part, long_prior, short_prior, sizes_seen, sizes_moved, wholesale_moves, wholesale_minutes, told, line)
    select n.sku, n.alpha, n.beta, n.long_alpha, n.long_beta, n.short_alpha, n.short_beta, n.short_odds,
      n.prior_part, n.long_prior, n.short_prior, n.sizes_seen, n.sizes_moved, n.wholesale_moves, n.wholesale_minutes,
      n.told, catalog_internal.line_of(p.brand, p.model)
    from jsonb_to_recordset(${tx.json(rows as never)}) as n(
      sku text, alpha float8, beta float8, long_alpha real, long_beta real, short_alpha real,
      short_beta real, short_odds real, prior_part real, long_prior real, short_prior real, sizes_seen real, sizes_moved real,
      wholesale_moves real, wholesale_minutes real, told jsonb)
    left join catalog.products p using (sku)
    order by sku
    on conflict (sku) do update set alpha = excluded.alpha, beta = excluded.beta,
      long_alpha = excluded.long_alpha, long_beta = excluded.long_beta,
      short_alpha = excluded.short_alpha, short_beta = excluded.short_beta, short_odds = excluded.short_odds,
      prior_part = excluded.prior_part, long_prior = excluded.long_prior, short_prior = excluded.short_prior,
      sizes_seen = excluded.sizes_seen,
      sizes_moved = excluded.sizes_moved, wholesale_moves = excluded.wholesale_moves, wholesale_minutes = excluded.wholesale_minutes,
      line = excluded.line, hazard = null, hint_hazard = null, told = excluded.told`;
}

/**
 * SKUs were refreshed that are not live any longer: whether their line moves, or somebody hinted at them, says
 * nothing of them.
 */
export async function forgetHazards(tx: Tx, skus: readonly string[]): Promise<void> {
  if (skus.length === 0) return;
  await tx`update catalog_internal.live_rates set hazard = null, hint_hazard = null, told = null where sku = any(${skus as string[]})`;
}

/** Takes SKUs that were refreshed off the list of those drawn at random. */
export async function forgetDrawn(tx: Tx, skus: readonly string[]): Promise<void> {
  if (skus.length === 0) return;
  await tx`delete from catalog_internal.random_looks where sku = any(${skus as string[]})`;
}

/** Those of the SKUs that the catalog lists as snapshot-priced. */
export async function listedAsSnapshot(sql: Sql, skus: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await sql<{ sku: string }[]>`
    select sku from catalog.skus where sku = any(${skus as string[]}) and in_manifest and price_source = 'snapshot'`;
  return new Set(rows.map(({ sku }) => sku));
}
