import type { Sql } from '../../src/store/connection/db.ts';

/**
 * Gives every priced SKU of a loaded mirror what a record brings: `sizes` prices, plain numbers, and its metadata.
 * Set by set, and without WAL, as the tables are new in their transaction.
 */
export async function loadRecords(sql: Sql, sizes: number): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`truncate catalog.prices, catalog.products`;
    await tx`alter table catalog.prices drop constraint prices_sku_size_pk`;
    await tx`
      insert into catalog.prices (sku, size, price, changed_at)
      select sku, (35 + size / 2.0)::numeric(4, 1)::text, 1000 + (hashint4(substr(sku, 5)::int * 64 + size) & 16383), first_priced_at
      -- Through each SKU's own array, so that the sizes of a SKU lie together, as an answer writes them.
      from (select *, array(select generate_series(1, ${sizes})) as all_sizes from catalog.skus offset 0) s cross join unnest(all_sizes) as size
      where state = 'priced'`;
    await tx`alter table catalog.prices add constraint prices_sku_size_pk primary key (sku, size)`;
    await tx`
      insert into catalog.products (sku, name, model, brand, gender_size, size_type, category, size_map_size_type, product, refreshed_at, changed_at)
      select sku, 'Shoe ' || sku, 'Model ' || right(sku, 2), 'Brand', 'men', 'US', 'sneakers', 'US',
        jsonb_build_object('name', 'Shoe ' || sku, 'brand', 'Brand', 'colour', 'white'), priced_at, priced_at
      from catalog.skus where state = 'priced'`;
  });
  await sql.unsafe('vacuum analyze catalog.prices, catalog.products');
}
