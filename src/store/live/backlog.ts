import { scanning, type Sql } from '../connection/db.ts';
import { claimable, laneNumber } from '../ledger/due.ts';
import type { Rate } from './rate-prior.ts';

/*
 * What is due of the live SKUs, and the list of the most valuable of it, which is refreshed before all else while
 * there is a backlog (sync/live/backlog.ts).
 */

/** Times in minutes, `elapsed` since the last solution of the plan. */
export interface FoundBacklog {
  /** Live SKUs that are due, and neither claimed nor waiting. */
  readonly due: number;
  /** How long the first of them has been due. */
  readonly waiting: number;
  /** Between one answered live call and the next since then, longest first; those of a minute and more. */
  readonly gaps: readonly number[];
  /** Since the last one. */
  readonly sinceLast: number;
  readonly idle: number;
  readonly elapsed: number;
  readonly refreshedAt: Date | null;
}

/** SQL: a live SKU `d` that can be claimed now. */
const isDue = (sql: Sql) =>
  sql`${claimable(sql, 'd')} and d.live and d.lane = ${laneNumber('live')} and d.due_at <= now()`;

/** What is due of live SKUs, and how long nothing was refreshed since the last plan. Scans the due live SKUs. */
export async function readBacklog(sql: Sql): Promise<FoundBacklog> {
  const [row] = await scanning(sql<[FoundBacklog]>`
    with plan as materialized (
      -- What a clock that was ahead has written is none of it.
      select solved_at, idle_minutes, case when refreshed_at <= clock_timestamp() then refreshed_at end as refreshed_at
      from catalog_internal.live_plan
    ),
    calls as materialized (
      select c.called_at, extract(epoch from c.called_at - lag(c.called_at, 1, p.refreshed_at) over (order by c.called_at)) / 60 as gap
      from plan p join catalog_internal.live_calls c on c.called_at > coalesce(p.refreshed_at, '-infinity')
      where c.computed > 0 and c.called_at <= clock_timestamp()
    ),
    last as materialized (
      select greatest((select max(called_at) from calls), p.refreshed_at) as at from plan p
    )
    select waiting.due, coalesce(extract(epoch from clock_timestamp() - waiting.since) / 60, 0)::float8 as waiting,
      array(select gap::float8 from calls where gap >= 1 order by gap desc) as gaps,
      coalesce(extract(epoch from clock_timestamp() - last.at) / 60, 0)::float8 as "sinceLast", coalesce(p.idle_minutes, 0) as idle,
      coalesce(extract(epoch from clock_timestamp() - p.solved_at) / 60, 0)::float8 as elapsed, last.at as "refreshedAt"
    from plan p, last,
      (select count(*)::int as due, min(greatest(d.due_at, 'epoch')) as since from catalog_internal.due d where ${isDue(sql)}) waiting`);
  return row;
}

/** Forgets the list of the backlog: none of the due live SKUs comes before the others any longer. */
export async function clearBacklog(sql: Sql): Promise<void> {
  await sql`delete from catalog_internal.live_backlog`;
}

/**
 * Lists the `count` SKUs that are to be refreshed first of those due: who has waited for `overdueMinutes` (oldest
 * first), then by what a refresh gains (chooseLive in sync/live/policy.ts). `prior`: what is believed of a rate of
 * which nothing is known.
 */
export async function listBacklog(
  sql: Sql,
  {
    count,
    overdueMinutes,
    prior,
  }: { readonly count: number; readonly overdueMinutes: number; readonly prior: Rate },
): Promise<void> {
  const listed = await scanning(sql<{ at: string }[]>`
    insert into catalog_internal.live_backlog as b (sku, place, listed_at)
    select sku, row_number() over (order by overdue desc, gain desc, sku), now() from (
      select d.sku, w.tau >= ${overdueMinutes} as overdue,
        case when w.tau >= ${overdueMinutes} then w.tau else ${gain(sql, overdueMinutes)} end as gain
      from catalog_internal.due d join catalog.skus s using (sku)
      left join catalog_internal.live_rates r using (sku) left join catalog_internal.watched watched using (sku)
      cross join lateral (
        select coalesce(watched.weight, 1)::float8 as weight,
          coalesce(r.alpha, ${prior.alpha}) as alpha, coalesce(r.beta, ${prior.beta}) as beta,
          coalesce(extract(epoch from now() - s.asked_at)::float8 / 60, 'infinity') as tau
      ) w
      cross join lateral (select coalesce(r.hazard, 0) + coalesce(r.hint_hazard, 0) as hazard) h
      cross join lateral (select case when w.tau < 'infinity' then ln(1 + greatest(0, w.tau) / w.beta) end as r) g
      cross join lateral (
        select case when w.tau < 'infinity' then least(60, w.alpha / w.beta * greatest(0, w.tau) + h.hazard) end as moves
      ) m
      where ${isDue(sql)}
      order by overdue desc, gain desc, d.sku limit ${count}
    ) best
    order by sku
    on conflict (sku) do update set place = excluded.place, listed_at = excluded.listed_at
    returning listed_at::text as at`);
  // Also what a clock that was ahead has dated.
  await sql`delete from catalog_internal.live_backlog where listed_at::text is distinct from ${listed[0]?.at ?? null}::text`;
}

/**
 * SQL: refreshValue of sync/live/policy.ts, or boostedValue where something says that the SKU has moved. Exponents
 * are bounded: after days without a refresh exp() of one that moves by the minute is too small for Postgres, which
 * takes that for an error.
 */
const gain = (sql: Sql, most: number) => sql`
  case when h.hazard > 0 then w.weight * (1 - exp(-m.moves) * (1 + m.moves)) / (w.alpha / w.beta + 1 / ${most}::float8)
    else w.weight * (w.beta * (case when abs(w.alpha - 1) < 1e-9 then g.r
        else (1 - exp(-least(60, (w.alpha - 1) * g.r))) / (w.alpha - 1) end)
      - w.tau * exp(-least(60, w.alpha * g.r))) end`;
