import type { Queryable, Sql } from '../connection/db.ts';
import { claimable } from './due.ts';

/** How many SKUs are due now, and how many of them a fill has still to fetch: never priced, and not failed either. */
export async function dueNow(sql: Sql): Promise<{ readonly skus: number; readonly unfetched: number }> {
  const [row] = await sql<[{ skus: number; unfetched: number }]>`
    select count(*)::int as skus, (count(*) filter (where reason = 'new' and failures = 0))::int as "unfetched"
    from catalog_internal.due where due_at <= clock_timestamp()`;
  return row;
}

/** Whether what could be asked for is asked for. */
export interface Idle {
  /** Seconds since a bulk call was last answered, at most five too many; null: none ever was. */
  readonly answeredSeconds: number | null;
  /**
   * For how many seconds a SKU has been due that waits for nothing but its turn; null: there is none, or a call was
   * answered within the last minute. Live ones may wait for the partner's ceiling.
   */
  readonly dueSeconds: number | null;
}

/** Whether work is due that nobody does, and since when; for the judge of health. */
export async function readIdle(sql: Queryable): Promise<Idle> {
  const [row] = await sql<[Idle]>`
    with answered as materialized (select succeeded_at as at from catalog_internal.tasks where task = 'reprice')
    select (select extract(epoch from clock_timestamp() - at)::float8 from answered) as "answeredSeconds",
      case when not exists (select from answered where at between clock_timestamp() - interval '1 minute' and clock_timestamp()) then (
        select extract(epoch from clock_timestamp() - min(greatest(oldest.due_at, 'epoch')))::float8
        from generate_series(1, cardinality(catalog_internal.lane_names())) as lane
        cross join lateral (
          select due_at from catalog_internal.due d
          where ${claimable(sql)} and not live and d.lane = lane.lane::smallint
          order by due_at limit 1
        ) oldest
        where oldest.due_at <= now()
      ) end as "dueSeconds"`;
  return row;
}
