import { expect, test } from 'vitest';
import { dueNow } from '../../src/store/ledger/due.ts';
import { countCatalog, readCounts, storedCounts } from '../../src/store/status/counts-reader.ts';
import { knownSkus, mark, useStore } from './support.ts';

const store = useStore();

test('a SKU that failed and is deferred counts as deferred', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B']);
  await mark(sql, ['A', 'B']);
  await sql`update catalog_internal.due set failures = 1, deferrals = case sku when 'A' then 1 else 0 end`;
  const { due, deferredSkus } = await countCatalog(sql);
  expect(due.map(({ reason, count }) => [reason, count])).toEqual([
    ['deferred', 1],
    ['error', 1],
  ]);
  expect(deferredSkus).toBe(1);
});

test('SKUs without a price that failed or were deferred are counted apart from those not yet requested', async () => {
  const { sql } = store;
  await knownSkus(sql, ['asked', 'failed', 'deferred', 'new', 'priced']);
  await mark(sql, ['asked', 'failed', 'deferred', 'new', 'priced'], 'new');
  await sql`update catalog.skus set state = 'priced', priced_at = now() where sku = 'priced'`;
  await sql`update catalog_internal.due set failures = 1 where sku in ('failed', 'deferred', 'priced')`;
  await sql`update catalog_internal.due set deferrals = 1 where sku in ('asked', 'deferred')`;
  await sql`update catalog_internal.due set held_until = now() + interval '6 hours' where sku = 'failed'`;
  expect((await countCatalog(sql)).unanswered).toBe(2);
  expect(await dueNow(sql)).toEqual({ skus: 5, unfetched: 2 });
  // A deferred SKU waits and is not due now, but an initial load has not ended while it does.
  await sql`update catalog_internal.due set held_until = now() + interval '5 minutes' where sku = 'asked'`;
  expect(await dueNow(sql)).toEqual({ skus: 4, unfetched: 2 });
  await sql`update catalog_internal.catalog_counts set counts = counts - 'unanswered'`;
  expect((await storedCounts(sql))?.counts.unanswered).toBe(0);
});

test('the SKUs in errors that failed most often are named, whether they wait or not', async () => {
  const { sql } = store;
  const skus = ['A', 'B', 'C', 'D', 'E', 'F', 'deferred', 'well', 'later'];
  await knownSkus(sql, skus);
  await mark(sql, skus);
  await sql`
    update catalog_internal.due set due_at = now() - interval '2 hours', failures = case sku
      when 'A' then 9 when 'B' then 12 when 'C' then 1 when 'D' then 2 when 'E' then 3 when 'F' then 4 when 'deferred' then 99
      when 'later' then 99 else 0 end`;
  await sql`update catalog_internal.due set deferrals = 1 where sku = 'deferred'`;
  await sql`update catalog_internal.due set due_at = now() + interval '1 hour' where sku = 'later'`;
  await sql`update catalog_internal.due set held_until = now() + interval '6 hours' where sku = 'B'`;
  const { failing, due } = await countCatalog(sql);
  expect(failing.map(({ sku, failures }) => [sku, failures])).toEqual([
    ['B', 12],
    ['A', 9],
    ['F', 4],
    ['E', 3],
    ['D', 2],
  ]);
  expect(failing.map(({ oldestAgeSeconds }) => Math.round(oldestAgeSeconds / 60))).toEqual(
    Array(5).fill(120),
  );
  expect(due).toMatchObject([
    { reason: 'changed', count: 1 },
    { reason: 'deferred', count: 1 },
    { reason: 'error', count: 6 },
  ]);
  await sql`update catalog_internal.catalog_counts set counts = counts - 'failing'`;
  expect((await storedCounts(sql))?.counts.failing).toEqual([]);
});

test('a count that took long does not replace a newer one', async () => {
  const { sql } = store;
  const begin = async (...counting: Parameters<typeof sql.begin>) => {
    const counted = await sql.begin(...counting);
    await knownSkus(sql, ['A']);
    await countCatalog(sql);
    return counted;
  };
  expect((await countCatalog(Object.assign(sql.bind(null), sql, { begin }) as typeof sql)).skus).toEqual([]);
  expect((await storedCounts(sql))?.counts).toMatchObject({ skus: [{ count: 1 }] });
});

test('a count that began while a manifest was being applied does not count as one of it', async () => {
  const { sql } = store;
  await sql.begin(async (tx) => {
    await tx`update catalog_internal.sync set manifest_applied_at = now()`;
    await knownSkus(tx, ['A']);
    expect((await countCatalog(sql)).skus).toEqual([]);
  });
  await sql`update catalog_internal.catalog_counts set counted_in_ms = 1000`;
  expect((await readCounts(sql, 'seldom')).skus).toMatchObject([{ count: 1 }]);
  await sql`update catalog_internal.catalog_counts set counted_in_ms = 1000, counts = counts || '{"deferredSkus": 999}'`;
  expect((await readCounts(sql, 'seldom')).deferredSkus).toBe(999);
});
