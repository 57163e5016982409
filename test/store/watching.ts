import type { Sql } from '../../src/store/connection/db.ts';
import { followWatchlist } from './support.ts';

/** Returns what is due now: SKU, reason and rank. */
export async function dueNow(sql: Sql): Promise<string[]> {
  await followWatchlist(sql);
  const rows = await sql`
    select format('%s %s %s', sku, reason, rank) as row from catalog_internal.due where due_at <= now() order by sku`;
  return rows.map(({ row }) => row as string);
}

/** Watches SKUs, and lets a daemon read that. */
export async function watchNow(sql: Sql, ...skus: readonly string[]): Promise<void> {
  await watch(sql, ...skus);
  await followWatchlist(sql);
}

export async function watch(sql: Sql, ...skus: readonly string[]): Promise<void> {
  await sql`insert into catalog.watchlist (sku) select unnest(${skus as string[]}::text[])`;
}
