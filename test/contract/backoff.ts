import type { Sql } from '../../src/store/connection/db.ts';
import type { Stack } from '../support/stack.ts';

/** The present back-off in seconds, and the requests that anyone sent since it began. */
export async function silence(sql: Sql): Promise<{ seconds: number; sent: number }> {
  const [row] = await sql<[{ seconds: number; sent: number }]>`
    select extract(epoch from backoff_until - refused_at)::float8 as seconds,
      (select count(*)::int from catalog_internal.pace_sends where sent_at > refused_at) as sent
    from catalog_internal.pace`;
  return row;
}

/** The back-off, where there is one, is over as if its time had passed. */
export async function letBackoffEnd(sql: Sql): Promise<void> {
  await sql`
    update catalog_internal.pace set backoff_until = clock_timestamp() where backoff_until > clock_timestamp()`;
}

/** Everything there is to do, for every route: whoever does not keep silent is heard. */
export async function everythingToDo(stack: Stack): Promise<void> {
  await stack.everythingDue();
  await stack.sql`update catalog_internal.tasks set next_at = now() where task in ('delta', 'catalog-check')`;
}
