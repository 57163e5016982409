import type { Sql } from './db.ts';

/** A row of catalog.price_history and the product's name. */
export interface PriceChange {
  readonly sku: string;
  readonly name: string | null;
  readonly size: string;
  readonly oldPrice: number | null;
  readonly newPrice: number | null;
  readonly observedAt: Date;
}

/** The newest price changes; by the primary key, so the length of the history does not matter. */
export async function readRecentChanges(sql: Sql, most: number): Promise<PriceChange[]> {
  return await sql<PriceChange[]>`
    select h.sku, p.name, h.size, h.old_price as "oldPrice", h.new_price as "newPrice", h.observed_at as "observedAt"
    from (select * from catalog.price_history order by id desc limit ${most}) h
    left join catalog.products p using (sku)
    order by h.id desc`;
}
