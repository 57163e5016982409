import type { Sql } from './db.ts';

/** What `run --once` still waits for; `baseline` and `delta` count only if they came after `since`. */
export interface StillOwed {
  readonly baseline: boolean;
  readonly deltaCaughtUp: boolean;
  /** SKUs owed now, waits included, by reason. */
  readonly due: readonly { reason: string; count: number }[];
}

/** The database's present time: what a one-off run measures its progress from. */
export async function databaseNow(sql: Sql): Promise<Date> {
  const [row] = await sql<[{ at: Date }]>`select clock_timestamp() as at`;
  return row.at;
}

/**
 * Is the mirror caught up? A baseline stands, a delta poll begun after `since` has ended well (and none is asked for), and
 * no SKU is owed a look: deferred and erring SKUs are owed, a live SKU whose turn lies in the future is not.
 */
export async function stillOwed(sql: Sql, since: Date): Promise<StillOwed> {
  const [sync] = await sql<[{ baseline: boolean; delta: boolean }]>`
    select s.manifest_applied_at is not null and s.chain_broken_at is null and m.next_at > clock_timestamp()
        and m.running_until is null as baseline,
      coalesce(d.succeeded_at > ${since} and d.started_at > ${since} and d.started_at >= s.manifest_applied_at, false)
        and d.next_at > clock_timestamp() and d.running_until is null as delta
    from catalog_internal.sync s, catalog_internal.tasks m, catalog_internal.tasks d
    where m.task = 'manifest' and d.task = 'delta'`;
  const due = await sql<{ reason: string; count: number }[]>`
    select case when deferrals > 0 then 'deferred' when failures > 0 then 'error' else reason end as reason,
      count(*)::int as count
    from catalog_internal.due where due_at <= now()
    group by 1 order by 2 desc`;
  return { baseline: sync.baseline, deltaCaughtUp: sync.delta, due };
}
