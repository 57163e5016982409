import { expect, test } from 'vitest';
import { answerAsked, found, knownSkus, mark, useStore } from './support.ts';

const store = useStore();

/** Makes a mirror in which SKU A is priced, swept and fresh. */
async function standing(): Promise<void> {
  await store.sql`update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now(), delta_checked_at = now(),
    snapshot_generated_at = now()`;
  await knownSkus(store.sql, ['A']);
  await answerAsked(store.sql, found('A', { 8: null, 9: 100 }));
}

test('a size without a price is not actionable, whatever its SKU is', async () => {
  await standing();
  const rows = await store.sql`select size, price, actionable from catalog.current_prices order by size`;
  expect([...rows]).toEqual([
    { size: '8', price: null, actionable: false },
    { size: '9', price: 100, actionable: true },
  ]);
});

test('a fault of the catalog is the doubt shown, even if the delta is late because of it', async () => {
  await standing();
  await store.sql`update catalog.skus set priced_at = now() - interval '2 hours'`;
  await store.sql`update catalog_internal.sync set delta_checked_at = now() - interval '2 hours'`;
  const doubt = async () => (await store.sql`select doubt from catalog.sku_trust`)[0]?.['doubt'] as string;
  expect(await doubt()).toBe('delta_late');
  await store.sql`update catalog_internal.sync set catalog_fault = '0012'`;
  expect(await doubt()).toBe('catalog_stale');
});

test('sync_status shows the SKU that has been due for longest', async () => {
  const { sql } = store;
  await mark(sql, ['A', 'B', 'C']);
  await sql`
    update catalog_internal.due set due_at = to_timestamp(case sku when 'A' then 1000 when 'B' then 2000 else 9e9 end)`;
  const [row] =
    await sql`select extract(epoch from oldest_due_at)::int as oldest, due_skus::int as due from catalog.sync_status`;
  expect(row).toEqual({ oldest: 1000, due: 2 });
  // What waits for its second answer is not due.
  await sql`update catalog_internal.due set held_until = now() + interval '1 minute', doubt = 'implausible' where sku = 'A'`;
  expect(
    (
      await sql`select extract(epoch from oldest_due_at)::int as oldest, due_skus::int as due from catalog.sync_status`
    )[0],
  ).toEqual({
    oldest: 2000,
    due: 1,
  });
});

test('catalog.changes continues from the newest position, but refuses one in the future', async () => {
  const { sql } = store;
  await standing();
  await answerAsked(sql, found('A', { 9: 200 }));
  const [{ newest }] = await sql<[{ newest: string }]>`select catalog.changes_position() as newest`;
  expect(await sql`select * from catalog.changes(${newest}::bigint, 10)`).toHaveLength(0);
  expect(await sql`select * from catalog.changes(${newest}::bigint - 1, 10)`).toHaveLength(1);
  await expect(sql`select * from catalog.changes(${newest}::bigint + 1, 10)`).rejects.toMatchObject({
    code: 'CM001',
  });
});
