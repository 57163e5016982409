import type { Queryable } from '../../src/store/connection/db.ts';

/** Inserts answered SKUs that are listed as snapshot-priced, named by a prefix and a number. */
export async function snapshotPriced(sql: Queryable, prefix: string, skus: number): Promise<void> {
  await sql`
    insert into catalog.skus (sku, state, price_source, in_manifest)
    select ${prefix}::text || n, 'priced', 'snapshot', true from generate_series(1, ${skus}::int) n`;
}
