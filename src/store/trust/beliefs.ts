import { scanning, type Sql } from '../connection/db.ts';
import { learnPrior, type PriorLesson, type RatePrior } from '../live/rate-prior.ts';
import {
  lateMovesOf,
  type LatePrices,
  type LatePricesChange,
  learnSecondLooks,
  pricesLag,
  type SecondLooks,
} from './late-prices.ts';

/**
 * Learns what is believed about prices in general from what refreshes found: from the last seven days for what each
 * of them tests (catalog_internal.calibration_hours), from each SKU's own moves for the sizes that move with it, and
 * from the delta's reports for how long moves wait for them. If there is little to learn from, the first beliefs weigh
 * as many refreshes, sizes or SKU-minutes as the statement adds. Returns whether prices began or stopped lagging behind
 * the delta's reports; null if that did not change.
 */
export async function learnBeliefs(sql: Sql): Promise<LatePricesChange | null> {
  await learnRatePrior(sql);
  const change = await learnLatePrices(sql);
  await scanning(sql`
    with found as materialized (
      select cohort, sum(looks)::float8 as looks, sum(looks - "right")::float8 as moved, sum(minutes) as minutes,
        sum(missed)::float8 as missed, extract(epoch from now() - min(hour)) / 60 as span
      from catalog_internal.calibration_hours where hour > now() - interval '7 days' and hour <= now()
      group by cohort
    ),
    told as materialized (
      select coalesce(sum(looks), 0) as looks, coalesce(sum(moved), 0) as moved, coalesce(sum(missed), 0) as missed,
        coalesce(sum(minutes), 0) as minutes, coalesce(max(span), 0) as span,
        coalesce(sum(looks) filter (where cohort = 'reported'), 0) as reported,
        coalesce(sum(moved) filter (where cohort = 'reported'), 0) as reported_moved
      from found where cohort in ('snapshot', 'reported')
    ),
    -- With those of outages of the delta, in which the market goes on.
    covered as materialized (
      select coalesce(sum(looks), 0) as looks, coalesce(sum(moved), 0) as moved, coalesce(max(span), 0) as span
      from found where cohort in ('snapshot', 'reported', 'unreported')
    ),
    sizes as materialized (
      select coalesce(sum(looks), 0) as looks, coalesce(sum(moved), 0) as moved from found
      where cohort in ('snapshot sizes', 'reported sizes', 'unreported sizes')
    ),
    live as materialized (
      select sum(sizes_seen)::float8 as seen, sum(sizes_moved)::float8 as moved from catalog_internal.live_rates
    ),
    waits as materialized (
      select coalesce(sum(minutes) / nullif(sum(reports), 0), 0)::float8 as each from catalog_internal.report_waits
      where hour > now() - interval '7 days' and hour <= now()
    ),
    catalog as materialized (
      -- Those of which refreshes find moves, and not what a manifest says of its lines.
      select greatest(1, count(*))::float8 as skus,
        (extract(epoch from now() - min(s.first_priced_at)) / 60)::float8 as known_minutes
      from catalog.skus s
      where s.in_manifest and s.price_source = 'snapshot' and s.state = 'priced'
        and not exists (select from catalog_internal.due d where d.sku = s.sku and d.outside_due_at is not null)
    ),
    -- Hours are counted from their beginning, and the first one may have begun long before the mirror.
    spans as materialized (
      select least(told.span, catalog.known_minutes) as told, least(covered.span, catalog.known_minutes) as covered
      from told, covered, catalog
    )
    update catalog_internal.beliefs set
      live_moved_part = (20 + coalesce(live.moved, 0)) / (20 + coalesce(live.seen, 0)),
      snapshot_moved_part = least(1, (20 + sizes.moved) / (20 + covered.moved * sizes.looks / greatest(covered.looks, 1))),
      reported_moves = (9 + told.reported_moved) / (10 + told.reported),
      -- What moves often is reported, and refreshed for that, before any other refresh finds that it waits. So the
      -- moves that reports have brought count for as long as they had waited.
      waiting_moves = greatest(
        (4 + greatest(0, told.moved - told.reported_moved - told.missed)) / (200 + told.looks - told.reported),
        least(1, (4 + told.reported_moved * waits.each) / (200 + catalog.skus * spans.told))
      ),
      missed_rate = told.missed / greatest(told.minutes, 1),
      move_rate = (1 + covered.moved) / (4320 + catalog.skus * spans.covered)
    from told, covered, sizes, live, catalog, waits, spans`);
  return change;
}

/**
 * Returns whether little has been learned yet: on a new mirror, or after a night without refreshes. Then each minute of
 * refreshes teaches much.
 */
export async function areBeliefsYoung(sql: Sql): Promise<boolean> {
  const [{ known }] = await sql<[{ known: boolean }]>`
    select exists (
      select from catalog_internal.calibration_hours where hour between now() - interval '8 hours' and now() - interval '2 hours'
    ) as known`;
  return !known;
}

/**
 * Updates the prior of rates by what refreshes have found since the last time. Uses two separate statements, because
 * answers add to that row, and no dead connection may hold it.
 */
async function learnRatePrior(sql: Sql): Promise<void> {
  const [held] = await sql<[RatePrior & PriorLesson]>`
    select live_prior_minutes as minutes, live_prior_variance as variance, live_prior_surprise as surprise,
      live_prior_leverage as leverage, live_prior_noise as noise
    from catalog_internal.beliefs`;
  const { minutes, variance } = learnPrior(held, held);
  await sql`
    update catalog_internal.beliefs set live_prior_minutes = ${minutes}, live_prior_variance = ${variance},
      live_prior_surprise = live_prior_surprise - ${held.surprise},
      live_prior_leverage = greatest(0, live_prior_leverage - ${held.leverage}),
      live_prior_noise = greatest(0, live_prior_noise - ${held.noise})`;
}

/**
 * Learns from the second looks since the last time how many there are to be, and what an answer with nothing new
 * about a report is worth. Uses two statements, like learnRatePrior.
 */
async function learnLatePrices(sql: Sql): Promise<LatePricesChange | null> {
  const [held] = await sql<[SecondLooks & { newLooks: number; newFound: number; lagged: boolean }]>`
    select again_looks as looks, again_found as found, again_share as share,
      again_new_looks as "newLooks", again_new_found as "newFound", late_since is not null as lagged
    from catalog_internal.beliefs`;
  const { newLooks, newFound, lagged } = held;
  const known = learnSecondLooks(held, { looks: newLooks, found: newFound });
  const lags = pricesLag(known, lagged);
  const [{ minutes }] = await sql<[{ minutes: number | null }]>`
    with before as (select late_since from catalog_internal.beliefs)
    update catalog_internal.beliefs set again_looks = ${known.looks}, again_found = ${known.found},
      again_share = ${known.share}, again_new_looks = greatest(0, again_new_looks - ${newLooks}),
      again_new_found = greatest(0, again_new_found - ${newFound}), late_moves = ${lateMovesOf(known)},
      late_since = case when ${lags} then coalesce(beliefs.late_since, clock_timestamp()) end
    from before
    returning (extract(epoch from clock_timestamp() - before.late_since) / 60)::float8 as minutes`;
  if (lags === lagged) return null;
  return lags
    ? { kind: 'began', looks: Math.round(known.looks), found: Math.round(known.found) }
    : { kind: 'ended', minutes: Math.round(Math.max(0, minutes ?? 0)) };
}

/** Reads whether prices lag behind the delta's reports, and by what evidence; null if they do not. */
export async function readLatePrices(sql: Sql): Promise<LatePrices | null> {
  const [row] = await sql<{ since: Date | null; looks: number; found: number }[]>`
    select late_since as since, again_looks as looks, again_found as found from catalog_internal.beliefs`;
  return row === undefined || row.since === null ? null : { ...row, since: row.since };
}

/**
 * Draws live SKUs at random, each with the probability `part`, to be refreshed some time in the next `minutes`.
 * `seed`: an integer; the same one draws the same SKUs. Forgets SKUs that have not been refreshed an hour after they
 * were due.
 */
export async function drawRandomRefreshes(
  sql: Sql,
  { part, minutes, seed }: { readonly part: number; readonly minutes: number; readonly seed: number },
): Promise<void> {
  await scanning(sql`
    with forgotten as (
      delete from catalog_internal.random_looks
      where look_at not between clock_timestamp() - interval '1 hour' and clock_timestamp() + interval '1 hour'
    )
    insert into catalog_internal.random_looks (sku, look_at)
    select d.sku, clock_timestamp() + make_interval(secs => ${minutes * 60} * ${uniform(sql, seed + 1)})
    from catalog_internal.due d join catalog.skus s using (sku)
    where d.live and d.outside_due_at is null and d.held_until is null
      and s.state = 'priced' and s.price_source = 'live'
      and ${uniform(sql, seed)} < ${part}
    order by d.sku
    on conflict (sku) do nothing`);
}

/** SQL: the number in [0, 1) that a SKU `d` gets for a seed. */
const uniform = (sql: Sql, seed: number) =>
  sql`((hashtextextended(d.sku, ${seed}::bigint) & 4294967295) / 4294967296.0)::float8`;
