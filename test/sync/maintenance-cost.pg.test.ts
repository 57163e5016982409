import { afterAll, beforeAll, expect, test } from 'vitest';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { NOTHING_PRUNED, pruneMemberHistory } from '../../src/store/history/retention.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { maintain, newMemory } from '../../src/sync/maintenance.ts';
import { useStore } from '../store/support.ts';
import { serverMajor } from '../support/db.ts';
import { type SettingsEnv, settingsWith } from '../support/settings.ts';

/* What maintenance reads each minute grows with the work to do, not with the size of the mirror. */

const store = useStore();
const ROWS = 30_000;
const MINUTE = 60_000;

/** One connection, because each flushes its own reads to the statistics. */
let sql: Sql;
beforeAll(() => {
  sql = connect(store.url, { max: 1 });
});
afterAll(async () => {
  await sql.end({ timeout: 2 });
});

/** A daemon whose clock advances on request. */
function daemon(env: SettingsEnv = {}) {
  let now = 0;
  const memory = newMemory();
  const clock = { now: () => now, monotonic: () => now, sleep: () => Promise.resolve() };
  const ctx = { sql, clock, settings: settingsWith(env), tracer: NO_TRACER } as unknown as SyncContext;
  return {
    pass: (minutes: number) => (now += minutes * MINUTE),
    run: () => maintain(ctx, { windowMs: 60_000, historyMs: 0, dailyMs: 0 }, memory),
  };
}

async function fetched(): Promise<Record<string, number>> {
  await sql`select pg_stat_force_next_flush()`;
  const rows = await sql<{ name: string; rows: number }[]>`
    select relname as name, (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows
    from pg_stat_user_tables where relname in ('skus', 'due', 'product_history')`;
  return Object.fromEntries(rows.map(({ name, rows: read }) => [name, read]));
}

async function fetchedBy(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await fetched();
  await work();
  const after = await fetched();
  return Object.fromEntries(Object.entries(after).map(([name, rows]) => [name, rows - (before[name] ?? 0)]));
}

/** Inserts SKUs that the partner does not know, each due again in some days. */
async function notFound(): Promise<void> {
  await sql`
    insert into catalog.skus (sku, state, price_source, in_manifest, asked_at)
    select 'S' || n, 'not_found', 'snapshot', true, now() from generate_series(1, ${ROWS}) n`;
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at)
    select sku, catalog_internal.lane_of('metadata'), 'metadata', false, now() + interval '6 days' from catalog.skus`;
  await sql`analyze catalog.skus, catalog_internal.due`;
}

async function history(from: number, count: number, field: string): Promise<void> {
  await sql`
    insert into catalog.product_history (id, sku, field, old_value, new_value, observed_at) overriding system value
    select ${from}::int + n, 'S1', ${field}, n::text, 'x', now() from generate_series(1, ${count}::int) n`;
}

test('SKUs not to be forgotten or brought forward, and kept history, are read only occasionally', async ({
  skip,
}) => {
  skip((await serverMajor()) < 15, 'statistics come with a delay before Postgres 15');
  await notFound();
  await history(0, ROWS, 'name');
  await sql`select setval('catalog_internal.dropped_positions', ${ROWS})`;
  const { run, pass } = daemon();
  await run();
  pass(1);
  const read = await fetchedBy(run);
  // The ledger is compared with the next ten thousand SKUs.
  expect(read['skus']).toBeLessThan(22_000);
  expect(read['due']).toBeLessThan(22_000);
  expect(read['product_history']).toBe(0);
  await sql`select setval('catalog_internal.dropped_positions', 1, false)`;
});

test('SKUs are forgotten within ten minutes, and due times of another daemon brought forward within an hour', async () => {
  const { run, pass } = daemon();
  await run();
  await sql`
    insert into catalog.skus (sku, state, in_manifest, asked_at) values ('gone', 'not_found', false, now() - interval '2 hours')`;
  await sql`
    insert into catalog.skus (sku, state, price_source, in_manifest, asked_at, priced_at, first_priced_at) values ('late', 'priced', 'snapshot', true, now(), now(), now())`;
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at)
    select sku, catalog_internal.lane_of('metadata'), 'metadata', false, now() + interval '6 days' from catalog.skus`;
  pass(9);
  expect(await run()).toMatchObject({ counts: { forgotten: 0, broughtForward: 0 } });
  pass(1);
  expect(await run()).toMatchObject({ counts: { forgotten: 1, broughtForward: 0 } });
  pass(50);
  expect(await run()).toMatchObject({ counts: { forgotten: 0, broughtForward: 1 } });
});

test('whatever keeps a SKU from being forgotten is reported each minute', async () => {
  await sql`
    insert into catalog.skus (sku, state, in_manifest, asked_at) values ('kept', 'not_found', false, now() - interval '2 hours')`;
  await sql`
    insert into catalog_internal.due (sku, lane, reason, live, due_at) values ('kept', 5, 'metadata', false, now() + interval '6 days')`;
  await sql`create table public.stock (sku text references catalog.skus)`;
  try {
    await sql`insert into public.stock values ('kept')`;
    const { run, pass } = daemon();
    for (let minute = 0; minute < 3; minute += 1) {
      expect(await run()).toMatchObject({ kind: 'failed', because: 'unknown-skus' });
      pass(1);
    }
  } finally {
    await sql`drop table public.stock`;
  }
  const { run } = daemon();
  expect(await run()).toMatchObject({ counts: { forgotten: 1 } });
});

test('pruning resumes at its position, but restarts for other columns, earlier positions and a new process', async () => {
  const dropTo = (position: number) => sql`select setval('catalog_internal.dropped_positions', ${position})`;
  const prune = (unsteady: readonly string[], pruned = NOTHING_PRUNED, limit = 100) =>
    pruneMemberHistory(sql, { unsteady, limit }, pruned);
  await history(0, 10, 'product');
  await history(10, 10, 'brand');
  await history(20, 10, 'product');
  await dropTo(20);
  const part = await prune([], NOTHING_PRUNED, 4);
  expect(part).toEqual({ dropped: 4, pruned: { upTo: '4', unsteady: [] } });
  const first = await prune([], part.pruned);
  expect(first).toEqual({ dropped: 6, pruned: { upTo: '20', unsteady: [] } });
  await dropTo(25);
  const next = await prune([], first.pruned);
  expect(next).toEqual({ dropped: 5, pruned: { upTo: '25', unsteady: [] } });
  const more = await prune(['brand'], next.pruned);
  expect(more).toEqual({ dropped: 10, pruned: { upTo: '25', unsteady: ['brand'] } });
  // They rest, and continue later.
  const rested = await prune([], more.pruned);
  await history(100, 5, 'brand');
  await dropTo(110);
  const kept = await prune([], rested.pruned);
  expect(kept.dropped).toBe(5);
  expect((await prune(['brand'], kept.pruned)).dropped).toBe(5);
  await history(0, 3, 'product');
  expect((await prune([], kept.pruned)).dropped).toBe(0);
  await dropTo(50);
  expect((await prune([], kept.pruned)).dropped).toBe(3);
  await history(0, 3, 'product');
  expect((await prune([])).dropped).toBe(3);
  await sql`select setval('catalog_internal.dropped_positions', 1, false)`;
});
