import type { Sql } from '../connection/db.ts';

/**
 * An answer about a SKU cannot be stored: what the mirror holds of it may be known to be wrong, so it counts as
 * reported until an answer is stored, whatever it was asked for.
 */
export async function markUnstored(sql: Sql, sku: string): Promise<void> {
  await sql`
    update catalog_internal.due d set reason = 'changed', due_at = least(d.due_at, clock_timestamp())
    from catalog.skus s
    where d.sku = ${sku} and s.sku = d.sku and s.state = 'priced' and d.claim is null and d.outside_due_at is null`;
}
