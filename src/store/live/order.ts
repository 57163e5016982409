import { type Sql, scanning } from '../connection/db.ts';
import { claimable, laneNumber } from '../ledger/due.ts';
import type { Rate } from './rate-prior.ts';
import type { LiveCandidate } from './refresh.ts';

/*
 * Moves SKUs into and out of the order of live refreshes when an incident begins or ends: in pieces by SKU, each in
 * its own transaction, so that answers and deltas continue meanwhile, and a crash leaves only a remainder to repeat.
 * SKUs that are claimed, wait, or were marked for a reason of their own (watched, refreshed, reported with a hash)
 * stay where they are.
 */

/** A SKU to be scheduled, and the version of its ledger row that was read: every write to the row changes it. */
export interface Unscheduled extends LiveCandidate {
  readonly version: string;
}

/**
 * Returns the next SKUs after `after` that belong in the order of live refreshes: those already in it (`scheduled`),
 * and during an incident everything that was priced once and has no better reason: swept, unlisted, due for
 * metadata, or reported only as crossed, with no other mark that its doubt would forget.
 */
export async function unscheduledLive(
  sql: Sql,
  options: {
    readonly after: string;
    readonly limit: number;
    readonly scheduled: boolean;
    readonly incident: boolean;
  },
): Promise<Unscheduled[]> {
  return await sql<Unscheduled[]>`
    ${unscheduled(sql, sql`catalog_internal.due`)}
      and d.sku > ${options.after} and ((${options.scheduled} and d.live and d.reason = 'live')
        or (${options.incident} and (d.reason in ('sweep', 'unlisted', 'missed', 'metadata')
          -- One that was asked for by name, too, does not say so in its reason.
          or (d.reason = 'changed' and s.price_source = 'live' and d.rank < 'Infinity'
            -- A first of two marks may say that its price has moved. Where that was a delta's, its doubt goes by reported_at.
            and (coalesce(d.generation - d.asked_generation, 0) <= 1 or s.reported_at > s.asked_at)))))
    order by d.sku limit ${options.limit}`;
}

/** SQL: those of these rows of the ledger that may be scheduled; further conditions can be appended. */
function unscheduled(sql: Sql, rows: ReturnType<Sql>) {
  return sql`
    select d.sku, d.xmin::text as version, coalesce(w.weight, 1)::float8 as weight, r.alpha, r.beta, past.moves as "pastMoves",
      past.minutes as "pastMinutes", (extract(epoch from clock_timestamp() - s.asked_at) / 60)::float8 as minutes
    from ${rows} d
    join catalog.skus s using (sku)
    left join catalog_internal.live_rates r using (sku)
    left join catalog_internal.watched w using (sku)
    left join lateral (
      select moves, minutes from catalog_internal.past_moves(s.sku, s.first_priced_at)
      where r.sku is null
    ) past on true
    where d.claim is null and d.deferrals = 0 and d.failures = 0 and s.state = 'priced' and d.outside_due_at is null`;
}

/** Returns SKUs in the order of live refreshes whose next refresh is more than `minutes` away, latest first. */
export async function putOffLive(
  sql: Sql,
  { minutes, limit }: { readonly minutes: number; readonly limit: number },
): Promise<Unscheduled[]> {
  const latest: ReturnType<Sql> = sql`(
    select *, xmin from catalog_internal.due
    where ${claimable(sql)} and live and lane = ${laneNumber('live')} and reason = 'live'
      and deferrals = 0 and failures = 0 and outside_due_at is null
      and due_at > now() + make_interval(secs => ${minutes * 60}) and due_at < 'infinity'
    order by due_at desc limit ${limit})`;
  return await sql<Unscheduled[]>`${unscheduled(sql, latest)}`;
}

/** A SKU's next refresh, `inMs` from now, and the belief about its rate. */
export interface Scheduled extends Rate {
  readonly sku: string;
  readonly version: string;
  readonly inMs: number;
}

/**
 * Schedules SKUs in the order of live refreshes, except those marked, claimed, answered or doubted meanwhile: an
 * answer moves no generation, but its decision is newer than what the schedule is based on. A SKU whose line moves,
 * or at which a hint points, is refreshed no later than it was due, because its rate takes neither into account.
 * Returns how many were scheduled.
 */
export async function scheduleLive(sql: Sql, scheduled: readonly Scheduled[]): Promise<number> {
  const moved = await sql`
    with scheduled as (
      select * from unnest(${scheduled.map(({ sku }) => sku)}::text[], ${scheduled.map(({ version }) => version)}::text[],
        ${scheduled.map(({ alpha }) => alpha)}::float8[], ${scheduled.map(({ beta }) => beta)}::float8[],
        ${scheduled.map(({ prior }) => prior ?? null)}::float8[], ${scheduled.map(({ inMs }) => inMs)}::float8[])
        as p(sku, version, alpha, beta, prior, in_ms)
    ),
    locked as materialized (
      select d.sku, p.in_ms, case when r.hazard > 0 or r.hint_hazard > 0 then d.due_at end as no_later
      from catalog_internal.due d join scheduled p using (sku) left join catalog_internal.live_rates r using (sku)
      where d.xmin::text = p.version and d.claim is null and d.deferrals = 0 and d.failures = 0 and d.outside_due_at is null
      order by d.sku for update of d
    ),
    believed as (
      insert into catalog_internal.live_rates (sku, alpha, beta, prior_part) select sku, alpha, beta, prior from scheduled order by sku
      on conflict (sku) do nothing
    )
    update catalog_internal.due d set live = true, lane = catalog_internal.lane_of('live'), reason = 'live',
      due_at = least(now() + make_interval(secs => l.in_ms / 1000), l.no_later)
    from locked l where d.sku = l.sku`;
  return moved.count;
}

/**
 * Moves, after an incident or an outage of the live source, the next priced SKUs after `after` that are not listed
 * as live back to their sweep, or, if no delta reports their moves, to their own schedule. A SKU that counts as live
 * because of its own deferrals stays, for as many answers as that holds. Returns the last SKU that went back; null
 * if there are no more.
 */
export async function unscheduleSnapshot(
  sql: Sql,
  options: {
    readonly after: string;
    readonly limit: number;
    /** In how many milliseconds such a SKU's next refresh is due, and for what reason if a manifest lists it. */
    readonly next: {
      readonly liveMs: number;
      readonly snapshotMs: number;
      readonly snapshotReason: 'sweep' | 'metadata';
    };
  },
): Promise<string | null> {
  const { liveMs, snapshotMs, snapshotReason } = options.next;
  const [row] = await sql<[{ last: string | null }]>`
    with piece as materialized (
      select d.sku, case when not s.in_manifest then 'unlisted' when d.missed_moves > 0 then 'missed' else ${snapshotReason} end as reason,
        coalesce(s.asked_at, now())
          + make_interval(secs => case when s.in_manifest and d.missed_moves is null then ${snapshotMs / 1000}::float8
            else ${liveMs / 1000}::float8 end) as next_at
      from catalog_internal.due d cross join lateral (
        -- OFFSET 0: each by its key. Before its tables are analyzed a plan may read all of one for each row of the other.
        select * from catalog.skus where sku = d.sku and state = 'priced' and price_source is distinct from 'live' offset 0
      ) s
      where d.sku > ${options.after} and d.reason = 'live' and d.live_left = 0 and d.deferrals = 0 and d.claim is null
      order by d.sku limit ${options.limit} for update of d
    ),
    released as (
      update catalog_internal.due d set live = false, reason = piece.reason,
        lane = case when d.outside_due_at is null then catalog_internal.lane_of(piece.reason) else d.lane end,
        due_at = case when d.outside_due_at is null then piece.next_at else d.due_at end,
        outside_due_at = case when d.outside_due_at is not null then piece.next_at end
      from piece where d.sku = piece.sku
    )
    select max(sku) as last from piece`;
  return row.last;
}

/*
 * The due live SKUs, and the list of the most valuable of them, which are refreshed first while there is a backlog
 * (sync/live/choose.ts).
 */

/** Times in minutes; `elapsed` is since the last solution of the plan. */
export interface FoundBacklog {
  /** Live SKUs that are due, and neither claimed nor waiting. */
  readonly due: number;
  /** How long the first of them has been due. */
  readonly waiting: number;
  /** The gaps since then between consecutive answered live calls, of a minute or more, longest first. */
  readonly gaps: readonly number[];
  /** Since the last answered live call. */
  readonly sinceLast: number;
  readonly idle: number;
  readonly elapsed: number;
  readonly refreshedAt: Date | null;
}

/** SQL: a live SKU `d` that can be claimed now. */
const isDue = (sql: Sql) =>
  sql`${claimable(sql, 'd')} and d.live and d.lane = ${laneNumber('live')} and d.due_at <= now()`;

/** Reads which live SKUs are due, and how long nothing was refreshed since the last plan. Scans the due live SKUs. */
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

/** Deletes the list of the backlog: no due live SKU comes before the others any longer. */
export async function clearBacklog(sql: Sql): Promise<void> {
  await sql`delete from catalog_internal.live_backlog`;
}

/**
 * Lists the `count` due SKUs that are to be refreshed first: those that have waited for `overdueMinutes` (oldest
 * first), then by what a refresh gains (chooseLive in sync/live/policy.ts). `prior`: what is believed about the rate
 * of a SKU about which nothing is known.
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
  // Also deletes rows dated by a clock that was ahead.
  await sql`delete from catalog_internal.live_backlog where listed_at::text is distinct from ${listed[0]?.at ?? null}::text`;
}

/**
 * SQL: refreshValue of sync/live/policy.ts, or boostedValue if something says that the SKU has moved. Exponents are
 * bounded: after days without a refresh, exp() for a SKU that moves by the minute is too small for Postgres, which
 * raises an error.
 */
const gain = (sql: Sql, most: number) => sql`
  case when h.hazard > 0 then w.weight * (1 - exp(-m.moves) * (1 + m.moves)) / (w.alpha / w.beta + 1 / ${most}::float8)
    else w.weight * (w.beta * (case when abs(w.alpha - 1) < 1e-9 then g.r
        else (1 - exp(-least(60, (w.alpha - 1) * g.r))) / (w.alpha - 1) end)
      - w.tau * exp(-least(60, w.alpha * g.r))) end`;
