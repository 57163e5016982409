import { expect, test } from 'vitest';
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

test('a count that took long takes no newer one away', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await countCatalog(sql);
  await sql`update catalog_internal.catalog_counts set counted_at = now() + interval '1 minute', counted_in_ms = 77`;
  await knownSkus(sql, ['B']);
  await countCatalog(sql);
  expect((await storedCounts(sql))?.counts).toMatchObject({ countedInMs: 77, skus: [{ count: 1 }] });
});

test('a count that was begun while a manifest was being applied is not taken for a count of it', async () => {
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
