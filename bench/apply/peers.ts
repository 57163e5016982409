import type { Sql, Tx } from '../../src/store/connection/db.ts';
import { type Answer, NEXT } from './answer.ts';

/*
 * What somebody would write who knows Postgres, with the same driver: prices and their history, metadata, state and
 * ledger, in one transaction an answer. None learns rates or audits the delta, as ours does beside.
 */

const key = (sku: string, size: string) => `${sku}\t${size}`;
const rowsOf = ({ records }: Answer) =>
  records.flatMap(({ sku, prices }) => prices.map((price) => ({ sku, ...price })));
const skusOf = ({ records }: Answer) => records.map(({ sku }) => sku);

/** One statement for each row, those of a SKU sent in one go. */
export async function rowByRow(sql: Sql, { claim, records }: Answer): Promise<void> {
  const at = claim.askedAt;
  await sql.begin(async (tx) => {
    for (const { sku, prices, product } of records) {
      const old = await tx<{ size: string; price: number | null }[]>`
        select size, price from catalog.prices where sku = ${sku}`;
      const before = new Map(old.map(({ size, price }) => [size, price]));
      const sizes = new Set(prices.map(({ size }) => size));
      await Promise.all([
        ...prices.map(
          ({ size, price, entry }) => tx`
            insert into catalog.prices (sku, size, price, entry, changed_at) values (${sku}, ${size}, ${price}, ${entry}::text::jsonb, ${at})
            on conflict (sku, size) do update set price = excluded.price, entry = excluded.entry`,
        ),
        ...prices
          .filter(({ size, price }) => before.get(size) !== price)
          .map(
            ({ size, price }) => tx`
              insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
              values (${sku}, ${size}, ${before.get(size) ?? null}, ${price}, ${at})`,
          ),
        ...old
          .filter(({ size }) => !sizes.has(size))
          .map(({ size }) => tx`delete from catalog.prices where sku = ${sku} and size = ${size}`),
        tx`
          insert into catalog.products (sku, name, model, brand, gender_size, size_type, category, size_map_size_type, product, refreshed_at, changed_at)
          values (${sku}, ${product.name}, ${product.model}, ${product.brand}, ${product.gender_size}, ${product.size_type},
            ${product.category}, ${product.size_map_size_type}, ${product.product}::text::jsonb, ${at}, ${at})
          on conflict (sku) do update set name = excluded.name, model = excluded.model, brand = excluded.brand,
            gender_size = excluded.gender_size, size_type = excluded.size_type, category = excluded.category,
            size_map_size_type = excluded.size_map_size_type, product = excluded.product, refreshed_at = excluded.refreshed_at`,
        tx`update catalog.skus set state = 'priced', priced_at = ${at}, asked_at = ${at} where sku = ${sku}`,
        settle(tx, [sku]),
      ]);
    }
  });
}

/** Statements of many VALUES; what has moved is found by reading the old prices first. */
export async function multiRowValues(sql: Sql, answer: Answer): Promise<void> {
  const at = answer.claim.askedAt;
  const skus = skusOf(answer);
  const rows = rowsOf(answer);
  await sql.begin(async (tx) => {
    const old = await tx<{ sku: string; size: string; price: number | null }[]>`
      select sku, size, price from catalog.prices where sku = any(${skus})`;
    const before = new Map(old.map(({ sku, size, price }) => [key(sku, size), price]));
    const moves = rows
      .filter(({ sku, size, price }) => before.get(key(sku, size)) !== price)
      .map(({ sku, size, price }) => ({
        sku,
        size,
        old_price: before.get(key(sku, size)) ?? null,
        new_price: price,
        observed_at: at,
      }));
    const prices = rows.map((row) => ({ ...row, changed_at: at }));
    const products = answer.records.map(({ sku, product }) => ({
      sku,
      ...product,
      refreshed_at: at,
      changed_at: at,
    }));
    await tx`
      insert into catalog.prices ${tx(prices, 'sku', 'size', 'price', 'entry', 'changed_at')}
      on conflict (sku, size) do update set price = excluded.price, entry = excluded.entry`;
    if (moves.length > 0) await tx`insert into catalog.price_history ${tx(moves)}`;
    await deleteVanished(tx, old, rows);
    await tx`
      insert into catalog.products ${tx(products)}
      on conflict (sku) do update set name = excluded.name, model = excluded.model, brand = excluded.brand,
        gender_size = excluded.gender_size, size_type = excluded.size_type, category = excluded.category,
        size_map_size_type = excluded.size_map_size_type, product = excluded.product, refreshed_at = excluded.refreshed_at`;
    await tx`update catalog.skus set state = 'priced', priced_at = ${at}, asked_at = ${at} where sku = any(${skus})`;
    await settle(tx, skus);
  });
}

/** Arrays, unfolded by the server; ON CONFLICT writes only what differs. */
export async function unnestOnConflict(sql: Sql, answer: Answer): Promise<void> {
  const at = answer.claim.askedAt;
  const skus = skusOf(answer);
  const rows = rowsOf(answer);
  const products = answer.records.map(({ product }) => product);
  await sql.begin(async (tx) => {
    await tx`
      with new as materialized (
        select * from unnest(${rows.map((r) => r.sku)}::text[], ${rows.map((r) => r.size)}::text[],
          ${rows.map((r) => r.price)}::int[], ${rows.map((r) => r.entry)}::text[]::jsonb[]) as n(sku, size, price, entry)
      ),
      old as materialized (select sku, size, price from catalog.prices where sku = any(${skus})),
      written as (
        insert into catalog.prices as p (sku, size, price, entry, changed_at) select new.*, ${at} from new
        on conflict (sku, size) do update set price = excluded.price, entry = excluded.entry, changed_at = excluded.changed_at
        where (p.price, p.entry) is distinct from (excluded.price, excluded.entry)
        returning sku, size, price
      ),
      vanished as (
        delete from catalog.prices p using old
        where p.sku = old.sku and p.size = old.size and not exists (select from new where new.sku = p.sku and new.size = p.size)
        returning p.sku, p.size
      )
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
      select sku, size, old.price, w.price, ${at}
      from (select sku, size, price from written union all select sku, size, null from vanished) w left join old using (sku, size)`;
    await tx`
      insert into catalog.products as p (sku, name, model, brand, gender_size, size_type, category, size_map_size_type,
        product, refreshed_at, changed_at)
      select n.*, ${at}, ${at} from unnest(${skus}::text[], ${products.map((p) => p.name)}::text[], ${products.map((p) => p.model)}::text[],
        ${products.map((p) => p.brand)}::text[], ${products.map((p) => p.gender_size)}::text[], ${products.map((p) => p.size_type)}::text[],
        ${products.map((p) => p.category)}::text[], ${products.map((p) => p.size_map_size_type)}::text[],
        ${products.map((p) => p.product)}::text[]::jsonb[]) as n
      on conflict (sku) do update set name = excluded.name, model = excluded.model, brand = excluded.brand,
        gender_size = excluded.gender_size, size_type = excluded.size_type, category = excluded.category,
        size_map_size_type = excluded.size_map_size_type, product = excluded.product, refreshed_at = excluded.refreshed_at`;
    await tx`update catalog.skus set state = 'priced', priced_at = ${at}, asked_at = ${at} where sku = any(${skus})`;
    await settle(tx, skus);
  });
}

async function deleteVanished(
  tx: Tx,
  old: readonly { sku: string; size: string }[],
  rows: readonly { sku: string; size: string }[],
): Promise<void> {
  const answered = new Set(rows.map(({ sku, size }) => key(sku, size)));
  const gone = old.filter(({ sku, size }) => !answered.has(key(sku, size)));
  if (gone.length > 0)
    await tx`
      delete from catalog.prices
      where (sku, size) in (select * from unnest(${gone.map(({ sku }) => sku)}::text[], ${gone.map(({ size }) => size)}::text[]))`;
}

async function settle(tx: Tx, skus: string[]): Promise<void> {
  await tx`
    update catalog_internal.due set claim = null, held_until = null, deferrals = 0, failures = 0,
      due_at = now() + make_interval(secs => case when live then ${NEXT.liveMs / 1000}::float8 else ${NEXT.snapshotMs / 1000}::float8 end),
      reason = case when live then 'live' else 'sweep' end,
      lane = catalog_internal.lane_of(case when live then 'live' else 'sweep' end)
    where sku = any(${skus})`;
}
