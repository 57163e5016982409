import type { Sql } from '../connection/db.ts';

/** Those of the SKUs that the catalog lists as snapshot-priced. */
export async function listedAsSnapshot(sql: Sql, skus: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await sql<{ sku: string }[]>`
    select sku from catalog.skus where sku = any(${skus as string[]}) and in_manifest and price_source = 'snapshot'`;
  return new Set(rows.map(({ sku }) => sku));
}
