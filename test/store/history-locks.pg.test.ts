import { beforeEach, expect, test } from 'vitest';
import type { Sql, Tx } from '../../src/store/connection/db.ts';
import { settledIn } from './audit-world.ts';
import { answerAsked, found, knownSkus, mark, useStore } from './support.ts';

/*
 * Postgres opens and locks what a statement may read when it plans it, and every partition of the history adds
 * three relations. Hundreds of them fill its lock table, which all sessions share.
 */

const store = useStore();
const settled = settledIn(store);
const CHUNK = 5_000_000n;
/** The chunk that is being written, and the next one. */
const ACTIVE = 2;

/** Makes a history of fifty chunks. */
beforeEach(async () => {
  const { sql } = store;
  const [row] = await sql<[{ at: string }]>`select last_value as at from catalog_internal.change_positions`;
  for (let n = BigInt(row.at) / CHUNK; n < 50n; n += 1n) {
    await sql`select setval('catalog_internal.change_positions', ${String((n + 1n) * CHUNK)}, false)`;
    await sql`select catalog_internal.add_history_chunks(true)`;
  }
});

/** Dates all changes up to now weeks ago. */
const passWeeks = () => store.sql`
  insert into catalog_internal.history_milestones
  select last_value, now() - interval '40 days' from catalog_internal.change_positions
  on conflict (position) do update set at = excluded.at`;

/** SQL: the chunks that this transaction has read, or planned to read. */
const LOCKED = `
  select count(distinct i.inhrelid)::int as chunks from pg_locks l join pg_inherits i on i.inhrelid = l.relation
  where i.inhparent = 'catalog.price_history'::regclass and l.pid = pg_backend_pid() and l.mode = 'AccessShareLock'`;

const lockedBy = async (tx: Sql | Tx): Promise<number> =>
  (await tx.unsafe<[{ chunks: number }]>(LOCKED))[0].chunks;

/** Returns the most chunks that any transaction writing SKUs had read when it was about to commit. */
async function watched(work: () => Promise<unknown>): Promise<number> {
  const { sql } = store;
  await sql.unsafe(`
    create table public.seen_chunks (chunks int);
    create function public.note_chunks() returns trigger language plpgsql as $$
    begin
      insert into public.seen_chunks ${LOCKED};
      return null;
    end $$;
    create constraint trigger noted after update on catalog.skus deferrable initially deferred
      for each row execute function public.note_chunks()`);
  try {
    await work();
    const [row] = await sql<[{ most: number | null }]>`select max(chunks) as most from public.seen_chunks`;
    return row.most ?? Infinity;
  } finally {
    await sql.unsafe(
      'drop trigger noted on catalog.skus; drop function public.note_chunks(); drop table public.seen_chunks',
    );
  }
}

test('an answer opens only the chunks being written, whatever it finds and however long the history is', async () => {
  const world = await settled('A', 'B', 'C');
  await knownSkus(store.sql, ['L'], { priceSource: 'live' });
  await passWeeks();
  const most = await watched(async () => {
    world.move('A');
    await world.refresh('sweep');
    world.move('B');
    await world.snapshot();
    await world.refresh('owed');
    await mark(store.sql, ['L'], 'live', true);
    await answerAsked(store.sql, found('L', { 8: 100 }));
  });
  expect(await store.sql`select from catalog.price_history`).toHaveLength(2);
  expect(await world.counts()).toMatchObject({ confirmed: 1 });
  expect(most).toBeLessThanOrEqual(ACTIVE);
});

test('movers of the last hour, and a reader at the end of the feed, open only those chunks as well', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await passWeeks();
  for (const price of [100, 120]) await answerAsked(sql, found('A', { 8: price }));
  const chunks = await sql.begin(async (tx) => {
    expect(await tx`select sku, old_price, new_price from catalog.movers()`).toEqual([
      { sku: 'A', old_price: 100, new_price: 120 },
    ]);
    return await lockedBy(tx);
  });
  expect(chunks).toBeLessThanOrEqual(ACTIVE);
  const [{ position }] = await sql<
    [{ position: string }]
  >`select max("position") as position from catalog.changes(0)`;
  const reader = await sql.reserve();
  // Postgres considers one plan for all positions after it has made five.
  const most = await [1, 2, 3, 4, 5, 6, 7, 8].reduce(async (before) => {
    await reader`begin`;
    await reader`select from catalog.changes(${position})`;
    await reader`select catalog_internal.changes_after(${position}, 10000)`;
    const chunks = await lockedBy(reader);
    await reader`rollback`;
    return Math.max(await before, chunks);
  }, Promise.resolve(0));
  reader.release();
  expect(most).toBeLessThanOrEqual(ACTIVE);
});
