import type { Sql } from '../../src/store/db.ts';

/** What is due now: SKU, reason and rank. */
export async function dueNow(sql: Sql): Promise<string[]> {
  const rows = await sql`
    select format('%s %s %s', sku, reason, rank) as row from catalog_internal.due where due_at <= now() order by sku`;
  return rows.map(({ row }) => row as string);
}

export async function watch(sql: Sql, ...skus: readonly string[]): Promise<void> {
  await sql`insert into catalog.watchlist (sku) select unnest(${skus as string[]}::text[])`;
}
