import type { Sql } from './db.ts';

/*
 * While bulk calls fail, all replicas pause between them. The pause lives in the 'reprice' task's row: re-pricing has no
 * schedule of its own, so its next_at is free for this.
 */

export interface CallPause {
  /** Milliseconds until the next call may be made; 0 = now. */
  readonly ms: number;
  /** Calls that failed in a row. */
  readonly failures: number;
}

export async function callPause(sql: Sql): Promise<CallPause> {
  const [row] = await sql<[CallPause]>`
    select greatest(0, extract(epoch from next_at - clock_timestamp()) * 1000)::float8 as ms, failures
    from catalog_internal.tasks where task = 'reprice'`;
  return row;
}

export async function noteCallFailed(sql: Sql, pauseMs: number, because: string): Promise<void> {
  await sql`
    update catalog_internal.tasks set failures = failures + 1, outcome = ${because},
      next_at = greatest(next_at, clock_timestamp() + make_interval(secs => ${pauseMs / 1000}))
    where task = 'reprice'`;
}

export async function noteCallWorked(sql: Sql): Promise<void> {
  await sql`
    update catalog_internal.tasks set failures = 0, outcome = 'done', next_at = clock_timestamp()
    where task = 'reprice'`;
}

/** Writes down that answers are applied: to five seconds, as the row is everyone's. */
export async function noteCallApplied(sql: Sql): Promise<void> {
  await sql`
    update catalog_internal.tasks set succeeded_at = clock_timestamp()
    where task = 'reprice' and coalesce(succeeded_at, '-infinity') < clock_timestamp() - interval '5 seconds'`;
}
