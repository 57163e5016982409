import { beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { connect } from '../../src/store/connection/db.ts';
import { writeChanges } from '../../src/store/history/changes.ts';
import { prepareHistory, pruneHistory } from '../../src/store/history/retention.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { maintain } from '../../src/sync/maintenance.ts';
import { settingsWith } from '../support/settings.ts';
import { useStore, watchedForHours } from './support.ts';

const store = useStore();
const DAY = 86_400_000;
const CHUNK = 5_000_000n;
/** The chunk that the test's first row goes into; each test has chunks of its own. */
let first: bigint;

beforeEach(async () => {
  const { sql } = store;
  const [row] = await sql<[{ at: string }]>`select last_value as at from catalog_internal.change_positions`;
  first = BigInt(row.at) / CHUNK + 1n;
  await enter(first);
  // Chunks of earlier tests are empty by now, and are dropped.
  await pruneHistory(sql, { olderThanMs: DAY });
});

/** Lets the next position be the first of a chunk. */
async function enter(chunk: bigint): Promise<void> {
  await store.sql`select setval('catalog_internal.change_positions', ${String(chunk * CHUNK)}, false)`;
  await prepareHistory(store.sql);
}

/** Writes one row into each chunk from `first` on, observed so many days ago. */
async function fill(...days: number[]): Promise<void> {
  for (const [n, ago] of days.entries()) {
    await enter(first + BigInt(n));
    await store.sql`
      insert into catalog.price_history (sku, size, observed_at) values (${`S${n}`}, '9', now() - make_interval(days => ${ago}))`;
  }
}

async function chunks(): Promise<bigint[]> {
  const rows = await store.sql<{ n: string }[]>`
    select replace(inhrelid::regclass::text, 'catalog_internal.price_history_', '') as n
    from pg_inherits where inhparent = 'catalog.price_history'::regclass`;
  return rows.map(({ n }) => BigInt(n) - first).toSorted((a, b) => Number(a - b));
}

const kept = async () =>
  (await store.sql`select sku from catalog.price_history order by id`).map((row) => row['sku'] as string);

test.each([
  { what: 'nothing, where nothing is old', ago: [20, 10, 0], kept: ['S0', 'S1', 'S2'] },
  { what: 'whole chunks whose newest row is old', ago: [50, 40, 0], kept: ['S2'] },
  { what: 'nothing after what is newer', ago: [50, 10, 40, 0], kept: ['S1', 'S2', 'S3'] },
  { what: 'not what is being written, however old', ago: [50, 40], kept: ['S1'] },
])('retention drops $what', async ({ ago, kept: wanted }) => {
  const { sql } = store;
  await fill(...ago);
  expect(await pruneHistory(sql, { olderThanMs: 30 * DAY })).toBe(ago.length - wanted.length);
  expect(await kept()).toEqual(wanted);
  expect(await pruneHistory(sql, { olderThanMs: 30 * DAY })).toBe(0);
});

test('a chunk with one new row stays whole, whichever row it is', async () => {
  const { sql } = store;
  await sql`
    insert into catalog.price_history (sku, size, observed_at)
    values ('old', '9', now() - interval '9 days'), ('new', '9', now() - interval '1 day'), ('old', '9', now() - interval '9 days')`;
  await enter(first + 1n);
  expect(await pruneHistory(sql, { olderThanMs: 7 * DAY })).toBe(0);
  expect(await kept()).toHaveLength(3);
});

test.each([
  {
    what: 'SKUs that appear',
    write: (at: string) => store.sql`
      select catalog_internal.lock_changes(),
        catalog_internal.add_changes('sku', '{A,B}', null, null, '{state}', null, '{pending}', ${at}::text::timestamptz)`,
  },
  {
    what: 'metadata that changes',
    write: (at: string) => store.sql`
      insert into catalog.product_history (sku, field, old_value, new_value, observed_at) values ('A', 'brand', 'x', 'y', ${at}::text::timestamptz)`,
  },
])('a chunk without price moves is as old as the newest of $what', async ({ write }) => {
  const at = (days: number) => new Date(Date.now() - days * DAY).toISOString();
  await write(at(50));
  await write(at(1));
  // An answer that was requested before the other, and is stored after it.
  await write(at(8));
  await enter(first + 1n);
  expect(await pruneHistory(store.sql, { olderThanMs: 7 * DAY })).toBe(0);
  const behind = String(first * CHUNK - 1n);
  expect((await store.sql`select from catalog.changes(${behind})`).length).toBeGreaterThanOrEqual(3);
  expect(await pruneHistory(store.sql, { olderThanMs: DAY / 2 })).toBe(1);
});

test('a reader behind the oldest change kept is told so, even if its snapshot is older than the drop', async () => {
  const { sql } = store;
  await fill(50, 50, 0);
  const behind = String(first * CHUNK);
  const reader = await sql.reserve();
  await reader`begin isolation level repeatable read`;
  await reader`select 1 from pg_class`;
  expect(await pruneHistory(sql, { olderThanMs: 30 * DAY })).toBe(2);
  const [oldest] = await sql<[{ oldest: string }]>`select catalog.changes_oldest() as oldest`;
  expect(BigInt(oldest.oldest)).toBe((first + 2n) * CHUNK - 1n);
  const gone = { code: 'CM001', message: expect.stringContaining(`go on from is ${oldest.oldest}`) };
  await expect(reader`select * from catalog.changes(${behind})`).rejects.toMatchObject(gone);
  await reader`rollback`;
  reader.release();
  await expect(
    sql`select * from catalog.changes(${String(BigInt(oldest.oldest) - 1n)})`,
  ).rejects.toMatchObject(gone);
  expect(await sql`select sku from catalog.changes(${oldest.oldest})`).toEqual([{ sku: 'S2' }]);
  const [now] = await sql<[{ now: string }]>`select catalog.changes_position() as now`;
  expect(BigInt(now.now)).toBe((first + 2n) * CHUNK);
});

test('a chunk that is being read is kept, and dropped later', async () => {
  const { sql } = store;
  await fill(50, 0);
  await sql.begin(async (tx) => {
    await tx`select from catalog.price_history`;
    expect(await pruneHistory(sql, { olderThanMs: 30 * DAY })).toBe(0);
    expect(await kept()).toEqual(['S0', 'S1']);
  });
  expect(await pruneHistory(sql, { olderThanMs: 30 * DAY })).toBe(1);
});

test('chunks are made ahead by maintenance, or by a writer that finds none, however many at once', async () => {
  const { sql } = store;
  expect((await chunks()).slice(-2)).toEqual([0n, 1n]);
  // The last position of the last existing chunk.
  await sql`select setval('catalog_internal.change_positions', ${String((first + 2n) * CHUNK - 1n)}, true)`;
  const pool = connect(store.url, { max: 4 });
  const moves = ['A', 'B'].map((sku) => ({ sku, size: '9', oldPrice: 1, newPrice: 2 }));
  await Promise.all(
    [1, 2, 3, 4].map(() => pool.begin((tx) => writeChanges(tx, { moves, fields: [] }, null))),
  );
  await pool.end({ timeout: 2 });
  expect(await kept()).toHaveLength(8);
  expect((await chunks()).slice(-2)).toEqual([1n, 2n]);
  await prepareHistory(sql);
  expect((await chunks()).slice(-2)).toEqual([2n, 3n]);
});

/** What can keep a table from being created or attached, and the SQLSTATE it causes; `begin` returns what ends it. */
const OBSTACLES: { what: string; state: string; begin: () => Promise<() => Promise<unknown>> }[] = [
  {
    what: 'an event trigger that forbids tables',
    state: 'P0001',
    async begin() {
      await store.sql.unsafe(`
        create function public.no_tables() returns event_trigger language plpgsql as $$ begin raise 'no tables' ; end $$;
        create event trigger no_tables on ddl_command_start when tag in ('CREATE TABLE') execute function public.no_tables()`);
      return () =>
        store.sql.unsafe('drop event trigger no_tables; drop function public.no_tables()').simple();
    },
  },
  {
    what: 'an ANALYZE of the history',
    state: '55P03',
    async begin() {
      const analyzing = await store.sql.reserve();
      await analyzing`begin`;
      await analyzing`lock table only catalog.price_history in share update exclusive mode`;
      return async () => {
        await analyzing`rollback`;
        analyzing.release();
      };
    },
  },
];

test.each(OBSTACLES)(
  '$what that stops the next chunk from being made costs no answer, and maintenance reports it',
  async ({ state, begin }) => {
    const { sql } = store;
    const settings = settingsWith();
    const maintained = () =>
      maintain({ sql, settings, clock: systemClock } as unknown as SyncContext, {
        windowMs: 1000,
        historyMs: 0,
        dailyMs: 0,
      });
    const write = (sku: string) =>
      sql.begin((tx) =>
        writeChanges(tx, { moves: [{ sku, size: '9', oldPrice: 1, newPrice: 2 }], fields: [] }, null),
      );
    // In the last existing chunk: far from its end, and near it.
    await sql`select setval('catalog_internal.change_positions', ${String((first + 1n) * CHUNK)}, true)`;
    const end = await begin();
    try {
      await write('A');
      await sql`select setval('catalog_internal.change_positions', ${String((first + 2n) * CHUNK - 9n)}, true)`;
      await write('B');
      expect(await kept()).toEqual(['A', 'B']);
      expect((await chunks()).slice(-1)).toEqual([1n]);
      const failed = { kind: 'failed', because: 'history-ahead', problem: expect.stringContaining(state) };
      expect(await maintained()).toMatchObject(failed);
    } finally {
      await end();
    }
    expect(await maintained()).toMatchObject({ kind: 'done' });
    expect((await chunks()).slice(-1)).toEqual([2n]);
  },
);

test("making a chunk leaves the writer's lock_timeout as it was", async () => {
  const { sql } = store;
  await sql`select setval('catalog_internal.change_positions', ${String((first + 2n) * CHUNK - 9n)}, true)`;
  await sql.begin(async (tx) => {
    await tx`set local lock_timeout = '7s'`;
    await tx`select catalog_internal.add_history_chunks()`;
    expect(await tx`select current_setting('lock_timeout') as timeout`).toEqual([{ timeout: '7s' }]);
  });
  expect((await chunks()).slice(-1)).toEqual([2n]);
});

test('moves since a time are searched for from where the history stood when a chunk was made before it', async () => {
  const { sql } = store;
  await fill(50);
  await sql`update catalog_internal.history_milestones set at = at - interval '40 days'`;
  await enter(first + 1n);
  await sql`
    insert into catalog.price_history (sku, size, observed_at)
    values ('S0', '9', now() - interval '2 days'), ('S0', '9', now() - interval '1 day')`;
  const before = async (days: number) => {
    const [row] = await sql<[{ position: string }]>`
      select catalog_internal.position_before(now() - make_interval(days => ${days})) as position`;
    return BigInt(row.position);
  };
  expect(await before(3)).toBeGreaterThanOrEqual(first * CHUNK);
  expect(await before(3)).toBeLessThan((first + 1n) * CHUNK);
  expect(await before(45)).toBeLessThan(first * CHUNK);
  const moves = await sql`
    select p.moves, planned.moves as planned from catalog_internal.past_moves('S0', now() - interval '9 days') p,
      catalog_internal.past_moves_planned('S0', now() - interval '9 days') planned`;
  expect(moves).toEqual([{ moves: 2, planned: 2 }]);
});

test('maintenance drops what HISTORY_RETENTION allows, and nothing if it is 0', async () => {
  const settings = settingsWith();
  const ctx = { sql: store.sql, clock: systemClock, settings } as unknown as SyncContext;
  await fill(50, 0);
  await watchedForHours(store.sql);
  for (const [days, historyChunksDropped] of [
    [0, 0],
    [60, 0],
    [40, 1],
  ] as const)
    expect(await maintain(ctx, { windowMs: 1000, historyMs: days * DAY, dailyMs: 0 })).toMatchObject({
      counts: { historyChunksDropped },
    });
});

test('a drop undone by a crash refuses readers of the chunk, skips nothing, and is repeated', async () => {
  const { sql } = store;
  await fill(50, 0);
  const behind = String(first * CHUNK);
  const undone = new Error('undone');
  await sql
    .begin(async (tx) => {
      const [row] = await tx`select catalog_internal.drop_history_chunk(${30 * 86_400}) as outcome`;
      expect(row).toEqual({ outcome: 'dropped' });
      throw undone;
    })
    .catch((error: unknown) => expect(error).toBe(undone));
  expect(await kept()).toEqual(['S0', 'S1']);
  await expect(sql`select from catalog.changes(${behind})`).rejects.toMatchObject({ code: 'CM001' });
  const left = await sql`select sku from catalog.changes(catalog.changes_oldest())`;
  expect(left.map((row) => row['sku'] as string)).toEqual(['S1']);
  expect(await pruneHistory(sql, { olderThanMs: 30 * DAY })).toBe(1);
  expect(await kept()).toEqual(['S1']);
});
