import type { Sql } from '../../src/store/connection/db.ts';
import type { Stack } from '../support/stack.ts';

/** Returns the present back-off in seconds, and the number of requests sent since it began. */
export async function silence(sql: Sql): Promise<{ seconds: number; sent: number }> {
  const [row] = await sql<[{ seconds: number; sent: number }]>`
    select extract(epoch from backoff_until - refused_at)::float8 as seconds,
      (select count(*)::int from catalog_internal.pace_sends where sent_at > refused_at) as sent
    from catalog_internal.pace`;
  return row;
}

/** Ends the back-off, if there is one, as if its time had passed. */
export async function letBackoffEnd(sql: Sql): Promise<void> {
  await sql`
    update catalog_internal.pace set backoff_until = clock_timestamp() where backoff_until > clock_timestamp()`;
}

/** Makes everything due on every route, so that a daemon that does not back off is noticed. */
export async function everythingToDo(stack: Stack): Promise<void> {
  await stack.everythingDue();
  await stack.sql`update catalog_internal.tasks set next_at = now() where task in ('delta', 'catalog-check')`;
}
