import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { restoreLedger } from '../../src/store/ledger/lost-rows.ts';
import { analyzeGrown } from '../../src/store/statistics.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { maintain } from '../../src/sync/maintenance.ts';
import { useStore } from '../store/support.ts';
import { serverMajor } from '../support/db.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();

/** One connection, because each flushes its own writes to the statistics. */
let sql: Sql;
beforeAll(() => {
  sql = connect(store.url, { max: 1 });
});
afterAll(async () => {
  await sql.end({ timeout: 2 });
});

async function fill(from: number, count: number): Promise<void> {
  await sql`
    insert into catalog.skus (sku, in_manifest)
    select 'S' || n, true from generate_series(${from}::int, ${from + count - 1}::int) n`;
  await sql`select pg_stat_force_next_flush()`;
}

/** Leaves pages without rows, like a manifest that was not committed or a mirror that was emptied. */
async function emptied(): Promise<void> {
  await sql`alter table catalog.skus set (autovacuum_enabled = off)`;
  await sql`alter table catalog_internal.due set (autovacuum_enabled = off)`;
  await fill(0, 100);
  await sql`insert into catalog_internal.due (sku, lane, reason, live, due_at) select sku, 1, 'changed', false, now() from catalog.skus`;
  await sql`delete from catalog_internal.due`;
  await sql`delete from catalog.skus`;
  await sql`select pg_stat_force_next_flush()`;
  await sql`analyze catalog.skus, catalog_internal.due`;
}

const plannedRows = async (): Promise<number> => {
  const [row] = await sql<[{ rows: number }]>`
    select reltuples::int as rows from pg_class where oid = 'catalog.skus'::regclass`;
  return row.rows;
};

test('only tables that were analyzed while empty and have many rows since are analyzed again', async ({
  skip,
}) => {
  skip((await serverMajor()) < 15, 'statistics come with a delay before Postgres 15');
  await emptied();
  await fill(0, 1000);
  expect(await analyzeGrown(sql)).toEqual([]);
  await fill(1000, 9001);
  const other = connect(store.url, { max: 1 });
  try {
    await other.begin(async (tx) => {
      await tx`lock table catalog.skus in share update exclusive mode`;
      await analyzeGrown(sql);
      expect(await plannedRows()).toBe(0);
    });
  } finally {
    await other.end({ timeout: 2 });
  }
  const ctx = {
    sql,
    emit: () => {},
    clock: systemClock,
    settings: settingsWith({}),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
  const keep = { windowMs: 60_000, historyMs: 0, dailyMs: 0 };
  expect(await maintain(ctx, keep)).toMatchObject({ kind: 'done', counts: { analyzed: 1 } });
  expect(await plannedRows()).toBe(10_001);
  expect(await analyzeGrown(sql)).toEqual([]);
  expect(await maintain(ctx, keep)).not.toHaveProperty('counts.analyzed');
});

test('tables never analyzed, or without a page then, are planned by their size and left alone', async ({
  skip,
}) => {
  skip((await serverMajor()) < 15, 'statistics come with a delay before Postgres 15');
  for (const name of ['never_analyzed', 'had_no_page'])
    await sql`create table catalog_internal.${sql(name)} (n int) with (autovacuum_enabled = off)`;
  await sql`analyze catalog_internal.had_no_page`;
  for (const name of ['never_analyzed', 'had_no_page'])
    await sql`insert into catalog_internal.${sql(name)} select generate_series(1, 20000)`;
  await sql`select pg_stat_force_next_flush()`;
  expect(await analyzeGrown(sql)).toEqual([]);
  await sql`drop table catalog_internal.never_analyzed, catalog_internal.had_no_page`;
});

test('before tables are analyzed, maintenance looks up each SKU in the ledger instead of scanning it', async ({
  skip,
}) => {
  skip((await serverMajor()) < 15, 'statistics come with a delay before Postgres 15');
  const ledgerRead = async () => {
    await sql`select pg_stat_force_next_flush()`;
    const [row] = await sql<[{ rows: number }]>`
      select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_user_tables where relid = 'catalog_internal.due'::regclass`;
    return row.rows;
  };
  await emptied();
  await fill(0, 2000);
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at) select sku, 1, 'changed', false, now() from catalog.skus`;
  const before = await ledgerRead();
  expect(await restoreLedger(sql, '', 10_000)).toEqual({ upTo: null, restored: 0 });
  expect((await ledgerRead()) - before).toBeLessThanOrEqual(2 * 2000);
});
