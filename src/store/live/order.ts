import type { Sql } from '../connection/db.ts';
import type { Rate } from './rate-prior.ts';
import type { LiveCandidate } from './refresh.ts';

/*
 * Moving SKUs in and out of the order of live refreshes when an incident begins or ends: in pieces by SKU, each on
 * its own, so that answers and deltas continue meanwhile, and a crash leaves only a remainder to repeat. What is
 * claimed, waits, or was marked for a reason of its own (watched, refreshed, reported with a hash) stays where it is.
 */

/** A SKU to be scheduled, and the generation of its mark. */
export interface Unscheduled extends LiveCandidate {
  readonly generation: number;
}

/**
 * The next SKUs after `after` that belong into the order of live refreshes: those there already (`scheduled`), and
 * during an incident everything that was priced once and has no better reason: swept, unlisted, due for metadata, or
 * reported as crossed and nothing else that its doubt would forget.
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
    select d.sku, d.generation, coalesce(w.weight, 1)::float8 as weight, r.alpha, r.beta, past.moves as "pastMoves",
      past.minutes as "pastMinutes", (extract(epoch from clock_timestamp() - s.asked_at) / 60)::float8 as minutes
    from catalog_internal.due d
    join catalog.skus s using (sku)
    left join catalog_internal.live_rates r using (sku)
    left join catalog_internal.watched w using (sku)
    left join lateral (
      select moves, minutes from catalog_internal.past_moves(s.sku, s.first_priced_at)
      where r.sku is null
    ) past on true
    where d.sku > ${options.after} and d.claim is null and d.deferrals = 0 and d.failures = 0
      and s.state = 'priced' and d.outside_due_at is null
      and ((${options.scheduled} and d.live and d.reason = 'live')
        or (${options.incident} and (d.reason in ('sweep', 'unlisted', 'missed', 'metadata')
          -- One that was asked for by name, too, does not say so in its reason.
          or (d.reason = 'changed' and s.price_source = 'live' and d.rank < 'Infinity'
            -- A first of two marks may say that its price has moved. Where that was a delta's, its doubt goes by reported_at.
            and (coalesce(d.generation - d.asked_generation, 0) <= 1 or s.reported_at > s.asked_at)))))
    order by d.sku limit ${options.limit}`;
}

/** A SKU's next refresh, `inMs` from now, and the belief about its rate. */
export interface Scheduled extends Rate {
  readonly sku: string;
  readonly generation: number;
  readonly inMs: number;
}

/**
 * Schedules SKUs in the order of live refreshes, those excepted that were marked or claimed meanwhile. One whose line
 * moves, or at which somebody has hinted, is refreshed no later than that had it: its rate, by which it is scheduled
 * here, knows nothing of either.
 */
export async function scheduleLive(sql: Sql, scheduled: readonly Scheduled[]): Promise<void> {
  await sql`
    with scheduled as (
      select * from unnest(${scheduled.map(({ sku }) => sku)}::text[], ${scheduled.map(({ generation }) => generation)}::int[],
        ${scheduled.map(({ alpha }) => alpha)}::float8[], ${scheduled.map(({ beta }) => beta)}::float8[],
        ${scheduled.map(({ prior }) => prior ?? null)}::float8[], ${scheduled.map(({ inMs }) => inMs)}::float8[])
        as p(sku, generation, alpha, beta, prior, in_ms)
    ),
    locked as materialized (
      select d.sku, p.in_ms, case when r.hazard > 0 or r.hint_hazard > 0 then d.due_at end as no_later
      from catalog_internal.due d join scheduled p using (sku, generation) left join catalog_internal.live_rates r using (sku)
      where d.claim is null and d.deferrals = 0 and d.failures = 0 and d.outside_due_at is null order by d.sku for update of d
    ),
    believed as (
      insert into catalog_internal.live_rates (sku, alpha, beta, prior_part) select sku, alpha, beta, prior from scheduled order by sku
      on conflict (sku) do nothing
    )
    update catalog_internal.due d set live = true, lane = catalog_internal.lane_of('live'), reason = 'live',
      due_at = least(now() + make_interval(secs => l.in_ms / 1000), l.no_later)
    from locked l where d.sku = l.sku`;
}

/**
 * After an incident, or an outage of the live source: the next priced SKUs after `after` that are not listed as live
 * go back to their sweep, and those whose moves no delta reports to their own turns. One that its own deferrals have
 * taught to be live is none of them, for as many answers as that holds. Returns the last SKU that went back; null when
 * there are no more.
 */
export async function unscheduleSnapshot(
  sql: Sql,
  options: {
    readonly after: string;
    readonly limit: number;
    /** When such a SKU's next refresh is due, in milliseconds, and why where a manifest lists it. */
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
