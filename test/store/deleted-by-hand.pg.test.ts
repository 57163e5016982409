import { expect, test } from 'vitest';
import { useStore } from './support.ts';

const store = useStore();

const CHUNK = 5_000_000;
/** More than a writer makes room for. */
const PRICES = 510_000;

test('SKUs can be deleted by hand all at once, with more prices than price_history has positions prepared', async () => {
  const { sql } = store;
  await sql`insert into catalog.skus (sku, in_manifest, state) select 'S' || n, true, 'priced' from generate_series(1, 100) n`;
  await sql`
    insert into catalog.prices (sku, size, price, changed_at)
    select 'S' || n % 100 + 1, 'size ' || n, 100, now() from generate_series(1, ${PRICES}::int) n`;
  await sql`select setval('catalog_internal.change_positions', ${2 * CHUNK - PRICES + 5000}::bigint, true)`;
  await sql`delete from catalog.skus`;
  const [row] = await sql<[{ gone: number; last: string }]>`
    select count(*)::int as gone, max(id) as last from catalog.price_history where old_price = 100 and new_price is null`;
  expect(row.gone).toBe(PRICES);
  expect(Number(row.last)).toBeGreaterThan(2 * CHUNK);
});
