import type { Fate } from './answers.ts';
import type { FieldChange, PriceMove } from './changes.ts';
import type { Tx } from './db.ts';

/**
 * Writes the prices of answered SKUs where they differ and removes vanished sizes; a SKU that is not found loses all.
 * Returns the moves that belong into the history.
 */
export async function writePrices(tx: Tx, answered: readonly Fate[], at: Date): Promise<PriceMove[]> {
  const rows = answered.flatMap((fate) =>
    fate.kind === 'record' ? fate.prices.map((price) => ({ sku: fate.sku, ...price })) : [],
  );
  return await tx<PriceMove[]>`
    with answered as (
      select sku, first_priced_at is not null as seen_before from catalog.skus
      where sku = any(${answered.map(({ sku }) => sku)})
    ),
    new as (
      select * from unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.size)}::text[],
        ${rows.map((r) => r.price)}::int[], ${rows.map((r) => r.entry)}::text[]::jsonb[]) as n(sku, size, price, entry)
    ),
    old as (select p.* from catalog.prices p join answered using (sku)),
    diff as materialized (
      select sku, size, old.price as old_price, new.price as new_price, new.entry, new.sku is null as gone,
        old.sku is null as appeared, old.price is distinct from new.price as moved
      from new full join old using (sku, size)
      where new.sku is null or old.sku is null
        or old.price is distinct from new.price or old.entry is distinct from new.entry
    ),
    vanished as (
      delete from catalog.prices p using diff where diff.gone and p.sku = diff.sku and p.size = diff.size
    ),
    -- An update and an insert, where an upsert would lock each row before it writes it. The SKU's row is locked.
    changed as (
      update catalog.prices p set price = diff.new_price, entry = diff.entry,
        changed_at = case when moved then ${at}::timestamptz else p.changed_at end
      from diff where not (gone or appeared) and p.sku = diff.sku and p.size = diff.size
    ),
    added as (
      insert into catalog.prices (sku, size, price, entry, changed_at)
      select sku, size, new_price, entry, ${at} from diff where appeared order by sku, size
    )
    select sku, size, old_price as "oldPrice", new_price as "newPrice" from diff join answered using (sku)
    where moved and seen_before`;
}

/** Writes the metadata of answered SKUs. Returns every field that changed. */
export async function writeProducts(tx: Tx, answered: readonly Fate[], at: Date): Promise<FieldChange[]> {
  const rows = answered.flatMap((fate) =>
    fate.kind === 'record' ? [{ sku: fate.sku, ...fate.product }] : [],
  );
  if (rows.length === 0) return [];
  return await tx<FieldChange[]>`
    with new as (
      select * from unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.name)}::text[],
        ${rows.map((r) => r.model)}::text[], ${rows.map((r) => r.brand)}::text[],
        ${rows.map((r) => r.genderSize)}::text[], ${rows.map((r) => r.sizeType)}::text[],
        ${rows.map((r) => r.category)}::text[], ${rows.map((r) => r.sizeMapSizeType)}::text[],
        ${rows.map((r) => r.product)}::text[]::jsonb[]
      ) as n(sku, name, model, brand, gender_size, size_type, category, size_map_size_type, product)
    ),
    fields as materialized (
      select new.sku, f.field, f.old_value, f.new_value
      from new join catalog.products old using (sku)
      cross join lateral (values
        ('name', old.name, new.name), ('model', old.model, new.model), ('brand', old.brand, new.brand),
        ('gender_size', old.gender_size, new.gender_size), ('size_type', old.size_type, new.size_type),
        ('category', old.category, new.category),
        ('size_map_size_type', old.size_map_size_type, new.size_map_size_type)
      ) as f(field, old_value, new_value)
      where f.old_value is distinct from f.new_value
    ),
    -- Members beyond the documented ones: the whole object is the field, where no column of its own tells the change.
    changes as materialized (
      select * from fields
      union all
      select new.sku, 'product', old.product::text, new.product::text
      from new join catalog.products old using (sku)
      where old.product is distinct from new.product and not exists (select from fields where fields.sku = new.sku)
    ),
    written as (
      insert into catalog.products as p (sku, name, model, brand, gender_size, size_type, category, size_map_size_type,
        product, refreshed_at, changed_at)
      select new.*, ${at}, ${at} from new order by sku
      on conflict (sku) do update set name = excluded.name, model = excluded.model, brand = excluded.brand,
        gender_size = excluded.gender_size, size_type = excluded.size_type, category = excluded.category,
        size_map_size_type = excluded.size_map_size_type, product = excluded.product,
        refreshed_at = excluded.refreshed_at,
        changed_at = case when exists (select from changes where changes.sku = p.sku) then excluded.changed_at else p.changed_at end
    )
    select sku, field, old_value as "oldValue", new_value as "newValue" from changes`;
}
