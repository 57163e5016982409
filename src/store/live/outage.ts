import type { Sql } from '../connection/db.ts';
import { laneNumber } from '../ledger/due.ts';

/*
 * The partner's live source fails while it answers for others (sync/reprice/outage.ts): one row says so for all
 * daemons, and no live SKU is asked for but one now and then.
 */

/** What an answer shows of an outage of the live source. */
export type OutageChange = 'begins' | 'ends';

/**
 * SQL: whether the outage of catalog_internal.live_plan goes on. Each try moves credit_from; where no live SKU was
 * there to try it for an hour, the outage does not go on either.
 */
export const isOutage = (sql: Sql) => sql`
  (outage_since is not null and greatest(outage_since, (select c.credit_from from catalog_internal.live_ceiling c))
    > clock_timestamp() - interval '1 hour')`;

/**
 * Stores that an outage begins. The SKUs by which it was found are due again as they were: the errors are none of
 * theirs. False where it was known already.
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
 * Stores that an outage is over, and has the whole schedule planned again. Returns how many minutes it has lasted;
 * null where that was known already.
 */
export async function endOutage(sql: Sql): Promise<number | null> {
  const [ended] = await sql<{ minutes: number }[]>`
    with before as (select outage_since from catalog_internal.live_plan where outage_since is not null for update)
    update catalog_internal.live_plan p set outage_since = null, solved_at = null from before
    returning greatest(0, round(extract(epoch from clock_timestamp() - before.outage_since) / 60))::int as minutes`;
  return ended?.minutes ?? null;
}
