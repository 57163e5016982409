import type { Sql } from '../../src/store/connection/db.ts';
import { sizes } from '../frame/options.ts';
import { loadRecords } from '../frame/records.ts';
import { withMirrorDatabase } from '../frame/server.ts';
import { report, type Row } from '../frame/table.ts';
import { loadMirror } from '../scrape/load.ts';

/*
 * npm run bench:size [-- --skus 200000 --json FILE] Bytes a SKU on disk, by table with its indexes, freshly written:
 * 14 sizes, prices as plain numbers, one in twenty live; and bytes a row of price_history. What a mirror of another
 * size takes follows from it: ops/capacity.md.
 */

const { skus, json } = sizes({ skus: 200_000, rounds: 1 });
const SIZES = 14;

async function bytesOf(sql: Sql, table: string): Promise<number> {
  const [row] = await sql<[{ bytes: number }]>`
    select coalesce(sum(pg_total_relation_size(relid)), pg_total_relation_size(${table}::regclass))::float8 as bytes
    from pg_partition_tree(${table}::regclass)`;
  return row.bytes;
}

const rows = await withMirrorDatabase(async ({ sql }): Promise<Row[]> => {
  await loadMirror(sql, skus);
  await loadRecords(sql, SIZES);
  await sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
    select sku, size, price, price + 10, now() from catalog.prices order by sku limit ${skus}`;
  const tables = ['catalog.prices', 'catalog.skus', 'catalog.products', 'catalog_internal.due'];
  const perSku = await Promise.all(
    tables.map(async (table) => ({
      work: `${table}, ${SIZES} sizes a SKU`,
      ours: (await bytesOf(sql, table)) / skus,
      unit: 'bytes a SKU',
    })),
  );
  const history = (await bytesOf(sql, 'catalog.price_history')) / skus;
  const total = perSku.reduce((sum, { ours }) => sum + ours, 0);
  return [
    ...perSku,
    { work: 'all four', ours: total, unit: 'bytes a SKU' },
    { work: 'catalog.price_history', ours: history, unit: 'bytes a row' },
  ];
});
report(rows, json);
