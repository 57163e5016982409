import type { Sql } from '../connection/db.ts';
import type { LivePlan } from './live.ts';

/** Whether a live SKU waits because the partner has deferred it. */
export async function isLiveDeferred(sql: Sql): Promise<boolean> {
  const [row] = await sql<[{ is: boolean }]>`
    select exists (select from catalog_internal.due where held_until > now() and live and deferrals > 0) as is`;
  return row.is;
}

/**
 * Since when the partner has computed no live SKU while it defers those that are asked for, in epoch milliseconds. Null
 * where none waits for that, or nobody knows when one was computed; an outage of the live source is told as such.
 */
export function nothingComputedSince(
  { computedAt, outageSince = null, ceiling }: Pick<LivePlan, 'computedAt' | 'outageSince' | 'ceiling'>,
  isDeferred: boolean,
): number | null {
  if (!isDeferred || outageSince !== null) return null;
  const known = [computedAt, ceiling.blockedAt].filter((at) => at !== null);
  return known.length === 0 ? null : Math.max(...known);
}
