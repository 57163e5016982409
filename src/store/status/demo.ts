import type { Sql } from '../connection/db.ts';

export interface SampleRow {
  readonly sku: string;
  readonly size: string;
  readonly price: number | null;
  readonly size_type: string | null;
  readonly name: string | null;
  readonly price_source: string | null;
  readonly stale: boolean;
}

/** Reads a few rows of catalog.current_prices: the newest changes first, one size per SKU. */
export async function sampleRows(sql: Sql, rows: number): Promise<SampleRow[]> {
  return await sql<SampleRow[]>`
    select sku, size, price, size_type, name, price_source, stale
    from (select distinct on (sku) * from catalog.current_prices where price is not null order by sku, changed_at desc) c
    order by changed_at desc, sku limit ${rows}`;
}

export interface ChangeRow {
  readonly sku: string;
  readonly size: string;
  readonly old_price: number | null;
  readonly new_price: number | null;
  readonly observed_at: Date;
}

/** Reads the newest price changes, at most one per SKU. */
export async function changesOf(sql: Sql, rows: number): Promise<ChangeRow[]> {
  return await sql<ChangeRow[]>`
    select sku, size, old_price, new_price, observed_at
    from (select distinct on (sku) * from catalog.price_history order by sku, id desc) h
    order by id desc limit ${rows}`;
}

export interface RecentChanges {
  readonly count: number;
  readonly newest: readonly ChangeRow[];
}

/** Counts the price changes and reads the newest `rows` of them. Scans the whole history, which a demo keeps short. */
export async function recentChanges(sql: Sql, rows: number): Promise<RecentChanges> {
  const [[{ count }], newest] = await Promise.all([
    sql<[{ count: number }]>`select count(*)::int as count from catalog.price_history`,
    sql<ChangeRow[]>`
      select sku, size, old_price, new_price, observed_at from catalog.price_history order by id desc limit ${rows}`,
  ]);
  return { count, newest };
}

/** Empties the demo's own database: every demo starts with a new market. */
export async function dropMirror(sql: Sql): Promise<void> {
  await sql`drop schema if exists catalog, catalog_internal, catalog_queue cascade`;
}
