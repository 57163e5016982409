import { constant, type Sql } from '../connection/db.ts';
import { claimable, laneNumber, ownDeferrals } from '../ledger/due.ts';

/*
 * Which live SKUs a bulk call may choose from: parts of the statement of readCallInputs (bulk-call.ts), whose tables
 * `facts`, `lanes` and `released` they read. OFFSET 0 makes Postgres find each SKU of a list by its key: of a newly
 * loaded catalog it knows only the size, and would read all live SKUs to join an empty list with them.
 */

/** How many live SKUs to choose from: this many per SKU of the live budget, within bounds. */
export interface CandidateOptions {
  readonly perBudget: number;
  /** Used until a live budget has been learned. */
  readonly configuredBudget: number;
  readonly least: number;
  readonly most: number;
  /** Minutes that must have passed since a candidate was last requested. */
  readonly restMinutes: number;
}

const restedFor = (sql: Sql, minutes: number) =>
  sql`(s.asked_at is null or s.asked_at <= clock_timestamp() - make_interval(secs => ${minutes * 60}))`;

/** SQL: the SKUs drawn at random whose time has come, due or not. */
function drawnCandidates(sql: Sql, { restMinutes, most }: CandidateOptions) {
  return sql`
    (select drawn.sku, asked.due_at, asked.asked_at, true as random, null::int as place
     from facts f join catalog_internal.random_looks drawn on f.refresh_threshold is not null and drawn.look_at <= now()
     cross join lateral (
       select due.due_at, s.asked_at from catalog_internal.due join catalog.skus s using (sku)
       where due.sku = drawn.sku and ${claimable(sql, 'due')} and due.live and due.outside_due_at is null
         and ${restedFor(sql, restMinutes)} offset 0
     ) asked
     order by drawn.look_at limit ${constant(sql, most)})`;
}

function candidatesAtOnce(sql: Sql, { perBudget, configuredBudget, least, most }: CandidateOptions) {
  return sql`(select least(${most}::int, greatest(${least}::int,
    ${perBudget}::int * floor(coalesce(live_budget, ${configuredBudget}::real))::int)) from facts)`;
}

/** SQL: the next SKUs of the list that store/live/order.ts makes; empty without a backlog. */
function listedCandidates(sql: Sql, options: CandidateOptions) {
  return sql`
    (select listed.sku, asked.due_at, asked.asked_at, false as random, listed.place
     from facts f join catalog_internal.live_backlog listed on f.refresh_threshold is not null
     cross join lateral (
       select due.due_at, s.asked_at from catalog_internal.due join catalog.skus s using (sku)
       where due.sku = listed.sku and ${claimable(sql, 'due')} and due.live and due.lane = ${constant(sql, laneNumber('live'))}
         and due.due_at <= now() and (s.asked_at is null or s.asked_at < listed.listed_at)
         and ${restedFor(sql, options.restMinutes)} offset 0
     ) asked
     order by listed.place limit ${candidatesAtOnce(sql, options)})`;
}

/** SQL: the live SKUs to choose from, as JSON (CallInputs.candidates). Reads `facts`, `lanes` and `released`. */
export function liveCandidates(sql: Sql, options: CandidateOptions) {
  const live = constant(sql, laneNumber('live'));
  const most = constant(sql, options.most);
  const rested = restedFor(sql, options.restMinutes);
  const limit = candidatesAtOnce(sql, options);
  return sql`
    select coalesce(json_agg(json_build_object('sku', d.sku, 'weight', coalesce(w.weight, 1)::float8, 'alpha', r.alpha,
      'beta', r.beta, 'minutes', (extract(epoch from clock_timestamp() - d.asked_at) / 60)::float8,
      'random', d.random, 'hazard', nullif(coalesce(r.hazard, 0) + coalesce(r.hint_hazard, 0), 0))
        order by d.random desc, d.place, d.due_at), '[]')
    from (
      ${drawnCandidates(sql, options)}
      union all
      ${listedCandidates(sql, options)}
      union all
      (select *, false as random, null::int as place from (
        (select waiting.sku, waiting.due_at, waiting.asked_at
         from facts f join lanes l on f.refresh_threshold is not null and l.lane = ${live}
         cross join lateral (
           -- The bound that is known beforehand has the rows read in order, the other one ends the reading.
           select due.sku, due.due_at, s.asked_at from catalog_internal.due join catalog.skus s using (sku)
           where ${claimable(sql, 'due')} and due.live and due.lane = ${live}
             and due.due_at >= l.since_live and due.due_at <= l.until and ${rested}
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
      order by due_at limit ${limit})
    ) d
    left join lateral (select * from catalog_internal.live_rates r where r.sku = d.sku offset 0) r on true
    left join lateral (select w.weight from catalog_internal.watched w where w.sku = d.sku offset 0) w on true`;
}

/** The SKU to try is chosen from this many that are due first. */
const TRIED_OF = 100;

/**
 * SQL: CallInputs.untried. A SKU that is deferred for reasons of its own (sync/live/again.ts) would show nothing, so
 * it is tried only if there is no other. The SKU with the fewest tries since it was computed comes first: each gets
 * its turn, and one that is never computed holds up no other. Promised SKUs are tried last, unless somebody has asked
 * for them: a try is often deferred, and they come first once the ceiling is no longer met. Reads `lanes`.
 */
export function untriedSku(sql: Sql) {
  const due = sql`
    ${claimable(sql, 'd')} and d.live and d.lane = l.lane and d.outside_due_at is null
      and d.due_at >= l.since_live and d.due_at <= l.until`;
  return sql`
    select coalesce((
      select first.sku from lanes l cross join lateral (
        select sku, promised from (
          select d.sku, d.deferrals, d.due_at,
            d.promised_by is not null and d.lane > ${constant(sql, laneNumber('urgent'))} as promised
          from catalog_internal.due d
          where ${due} and ${ownDeferrals(sql, 'd')} = 0 order by d.due_at limit ${constant(sql, TRIED_OF)}
        ) due order by promised, deferrals, due_at limit 1
      ) first order by first.promised, l.lane limit 1
    ), (
      select d.sku from lanes l cross join lateral (select * from catalog_internal.due d where ${due} offset 0) d
      order by d.deferrals, d.due_at limit 1
    )) where exists (select from catalog_internal.live_ceiling where blocked_at is not null)`;
}
