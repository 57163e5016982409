import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { knownSkus, settleKnown, useStore } from './support.ts';

const store = useStore();

/** Opens a seller's session, which plans as the server does by default. */
function seller() {
  const sql = postgres(store.url, { max: 1, onnotice: () => {} });
  onTestFinished(() => sql.end({ timeout: 1 }));
  return sql;
}

/** Simulates that nothing has analyzed tables that hardly change, such as those with a single row. */
const neverAnalyzed = () => store.sql`
  update pg_class set reltuples = -1, relpages = 0
  where relkind = 'r' and relnamespace = 'catalog_internal'::regnamespace and relname <> 'due'`;

test('catalog.refresh reads only the given SKUs, not the whole ledger', async () => {
  const { sql } = store;
  const skus = Array.from({ length: 30_000 }, (_, n) => `S${String(n).padStart(5, '0')}`);
  await knownSkus(sql, skus);
  await settleKnown(sql);
  await sql.unsafe('analyze catalog.skus, catalog_internal.due');
  await neverAnalyzed();
  const read = await seller().begin(async (tx) => {
    const [asked] = await tx`select catalog.refresh(${skus.slice(0, 300)}) as skus`;
    expect(asked).toEqual({ skus: 300 });
    const [row] = await tx`
      select (seq_tup_read + idx_tup_fetch)::int as read from pg_stat_xact_all_tables where relid = 'catalog_internal.due'::regclass`;
    return Number(row?.['read']);
  });
  expect(read).toBeLessThan(1000);
});

test('catalog.sync_status is planned as one row, and too cheap for JIT compilation', async () => {
  await neverAnalyzed();
  const sql = seller();
  const [row] = await sql<[{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }]>`
    explain (format json) select * from catalog.sync_status`;
  const [{ Plan }] = row['QUERY PLAN'];
  expect(Plan['Plan Rows']).toBe(1);
  const [{ above }] = await sql<[{ above: number }]>`
    select current_setting('jit_above_cost')::int as above`;
  expect(Plan['Total Cost']).toBeLessThan(above);
});
