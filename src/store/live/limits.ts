import { type Sql, type Queryable, transaction, unplanned } from '../connection/db.ts';
import { laneNumber } from '../ledger/due.ts';

/**
 * The learned ceiling on the partner's live computations (partner rules 4.1.3, 8.open). Times are epoch milliseconds
 * by the database's clock.
 */
export interface LiveCeiling {
  /**
   * Counts the changes. What a call teaches is stored only if no other call has stored anything since it was
   * planned.
   */
  readonly step: number;
  /** Live computations a minute that were allowed at `since`; null until a ceiling has been met. */
  readonly perMinute: number | null;
  readonly since: number;
  /** How many consecutive cycles have measured about the same, up to a bound. */
  readonly alike: number;
  /** While nothing is computed: since when, and when that was last observed. */
  readonly blockedAt: number | null;
  readonly failedAt: number | null;
  /** The first computation after the last block. */
  readonly cycleFrom: number;
}

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
export function ceilingColumns(sql: Sql) {
  const ms = (column: string) => sql`(extract(epoch from ${sql(column)}) * 1000)::float8`;
  return sql`json_build_object('step', step, 'perMinute', per_minute, 'since', ${ms('since')}, 'alike', alike,
    'blockedAt', ${ms('blocked_at')}, 'failedAt', ${ms('failed_at')}, 'cycleFrom', ${ms('cycle_from')})`;
}

/**
 * SQL: an UPDATE that stores a ceiling, unless another call has changed it meanwhile. The credit for live
 * computations grows from the end of a block.
 */
export function storingCeiling(sql: Sql, ceiling: LiveCeiling | null) {
  const at = (ms: number | null) => sql`to_timestamp(${ms === null ? null : ms / 1000}::float8)`;
  const { step, perMinute, since, alike, blockedAt, failedAt, cycleFrom } = ceiling ?? NO_CEILING;
  return sql`
    update catalog_internal.live_ceiling set step = ${step}::int, per_minute = ${perMinute}::float8, since = ${at(since)},
      alike = ${alike}::int, blocked_at = ${at(blockedAt)}, failed_at = ${at(failedAt)}, cycle_from = ${at(cycleFrom)},
      credit_from = case when blocked_at is not null and ${blockedAt === null} then clock_timestamp() else credit_from end
    where step = ${step}::int - 1 and ${unplanned(sql, ceiling !== null, 'boolean')}`;
}

/** SQL: an UPDATE that gives credit back, unless the ceiling is met at present. */
export const returningCredit = (sql: Sql, ms: number) => sql`
  update catalog_internal.live_ceiling set credit_from = credit_from - make_interval(secs => ${ms / 1000})
  where ${unplanned(sql, ms > 0, 'boolean')} and blocked_at is null`;

/** Stores a ceiling. Returns false if another call has changed it meanwhile. */
export async function storeCeiling(sql: Sql, ceiling: LiveCeiling): Promise<boolean> {
  return (await sql`${storingCeiling(sql, ceiling)}`).count > 0;
}

/** The evidence for an incident: the manifest route's counts, or calls whose snapshot-priced SKUs are deferred. */
export type IncidentCause = 'live-count' | 'deferrals';

/** The current incident; times are epoch milliseconds. */
export interface Incident {
  readonly because: IncidentCause;
  readonly since: number;
  /** When a call last tried whether it is over; before the first trial, its beginning. */
  readonly triedAt: number;
}

export interface IncidentChange {
  readonly from: IncidentCause | null;
  readonly to: IncidentCause | null;
  /** How long the former state lasted, in minutes; 0 when an incident begins. */
  readonly minutes: number;
}

interface PresentIncident {
  readonly from: IncidentCause | null;
  readonly minutes: number;
  /** A trial call ended the last incident, and the manifest route's counts have not agreed since. */
  readonly disproved: boolean;
}

/**
 * Stores the decision of `judge` about the present state, and has the whole schedule planned again. Returns null if
 * nothing changes. Without an incident, `incident_tried_at` is when a trial call disproved the last one.
 */
export async function storeIncident(
  sql: Sql,
  judge: (present: PresentIncident) => IncidentCause | null,
): Promise<IncidentChange | null> {
  const read = (queryable: Queryable) => queryable`
    select incident_because as "from", coalesce(round(extract(epoch from now() - incident_since) / 60), 0)::int as minutes,
      incident_because is null and incident_tried_at is not null as disproved
    from catalog_internal.live_plan`;
  const [present] = await sql<[PresentIncident]>`${read(sql)}`;
  if (judge(present) === present.from) return null;
  return await transaction(sql, async (tx) => {
    const [now] = await tx<[PresentIncident]>`${read(tx)} for update`;
    const { from, minutes } = now;
    const to = judge(now);
    if (to === from) return null;
    await tx`
      update catalog_internal.live_plan set incident_because = ${to}::text,
        incident_since = case when ${to}::text is not null then coalesce(incident_since, now()) end,
        incident_tried_at = case when ${to}::text is not null then now() end, solved_at = null`;
    return { from, to, minutes };
  });
}

/** Trusts the manifest route's counts again, whatever a trial call showed about earlier ones. */
export async function forgetTrial(sql: Sql): Promise<void> {
  await sql`
    update catalog_internal.live_plan set incident_tried_at = null
    where incident_because is null and incident_tried_at is not null`;
}

/*
 * The partner's live source may fail while the partner answers for other SKUs (sync/reprice/partner-faults.ts). One
 * row says so for all daemons; live SKUs are then asked for only now and then.
 */

export type OutageChange = 'begins' | 'ends';

/**
 * SQL: whether the outage of catalog_internal.live_plan continues. Each try moves credit_from. If no live SKU was
 * there to be tried for an hour, the outage counts as over.
 */
export const isOutage = (sql: Sql) => sql`
  (outage_since is not null and greatest(outage_since, (select c.credit_from from catalog_internal.live_ceiling c))
    > clock_timestamp() - interval '1 hour')`;

/**
 * Stores that an outage begins. The SKUs that revealed it become due again as they were, because the errors are not
 * theirs. Returns false if the outage was known already.
 */
export async function beginOutage(sql: Sql): Promise<boolean> {
  const error = laneNumber('error');
  const [row] = await sql<[{ began: boolean }]>`
    with began as (
      update catalog_internal.live_plan set outage_since = clock_timestamp() where not ${isOutage(sql)} returning 1
    ),
    found as materialized (
      select sku from catalog_internal.due
      where held_until > now() and claim is null and live and lane = ${error} and failures = 1 and deferrals = 0
        and largest_call is null and exists (select from began)
      order by sku for update skip locked
    ),
    restored as (
      update catalog_internal.due d set failures = 0, held_until = null, lane = catalog_internal.lane_of(d.reason)
      from found where d.sku = found.sku
    )
    select exists (select from began) as began`;
  return row.began;
}

/**
 * Stores that an outage is over, and has the whole schedule planned again. Live SKUs are due at once, without their
 * failures, if calls with only them failed. Otherwise none of those that the outage made fail before it was found
 * would be asked for an hour or more, or all would be blamed at the next failure; a SKU that fails by itself costs a
 * call or two. Returns how many minutes the outage lasted; null if its end was known already.
 */
export async function endOutage(sql: Sql): Promise<number | null> {
  const [ended] = await sql<{ minutes: number }[]>`
    with before as materialized (
      select outage_since from catalog_internal.live_plan where outage_since is not null for update
    ),
    waiting as materialized (
      select sku from catalog_internal.due
      where claim is null and live and largest_call is not null and exists (select from before)
      order by sku for update skip locked
    ),
    -- What Postgres does not take of a SKU is no fault of the partner's.
    freed as (
      update catalog_internal.due d set held_until = null, failures = case when last_error = 'call-not-stored' then failures else 0 end
      from waiting w where d.sku = w.sku
    )
    update catalog_internal.live_plan p set outage_since = null, solved_at = null from before
    returning greatest(0, round(extract(epoch from clock_timestamp() - before.outage_since) / 60))::int as minutes`;
  return ended?.minutes ?? null;
}
