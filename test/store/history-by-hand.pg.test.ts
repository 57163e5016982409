import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { repairSequences, writeChanges } from '../../src/store/history/changes.ts';
import { prepareHistory, pruneHistory } from '../../src/store/history/retention.ts';
import { movePrices, positionNow, positionsAfter } from '../follow/changes.ts';
import { eventually } from '../support/eventually.ts';
import { answerAsked, found, knownSkus, useStore } from './support.ts';

/* What people do to the history by hand. */

const store = useStore();
const DAY = 86_400_000;
const CHUNK = 5_000_000n;
/** The chunk that the test's first change goes into; each test has chunks of its own. */
let first: bigint;
/** The position after each of three changes, each of them in a chunk of its own. */
let after: bigint[];

beforeEach(async () => {
  const [row] = await store.sql<
    [{ at: string }]
  >`select last_value as at from catalog_internal.change_positions`;
  first = BigInt(row.at) / CHUNK + 1n;
  after = [];
  for (const n of [0n, 1n, 2n]) {
    await store.sql`select setval('catalog_internal.change_positions', ${String((first + n) * CHUNK)}, false)`;
    await prepareHistory(store.sql);
    await movePrices(store.sql, 1);
    after.push(await positionNow(store.sql));
  }
});

const chunk = (n: number) => `catalog_internal.price_history_${first + BigInt(n)}`;
const drop = (n: number) => store.sql.unsafe(`drop table ${chunk(n)}`);
const detach = async (n: number) => {
  await store.sql.unsafe(`alter table catalog.price_history detach partition ${chunk(n)}`);
  onTestFinished(async () => void (await drop(n)));
};
const empty = (n: number) => store.sql.unsafe(`truncate ${chunk(n)}`);
const oldest = async () => {
  const [row] = await store.sql<[{ at: string }]>`select catalog.changes_oldest() as at`;
  return BigInt(row.at);
};
const LOST = { code: 'CM001' };

describe('a reader that has not read all of a chunk is told at once when the chunk is', () => {
  test.each([
    { what: 'dropped', take: drop, n: 0 },
    { what: 'dropped between others', take: drop, n: 1 },
    { what: 'detached between others', take: detach, n: 1 },
    { what: 'dropped while it is being written', take: drop, n: 2 },
    { what: 'emptied', take: empty, n: 0 },
    { what: 'emptied between others', take: empty, n: 1 },
    { what: 'emptied while it is being written', take: empty, n: 2 },
  ])('$what', async ({ take, n }) => {
    const { sql } = store;
    const before = after[0]! - 1n;
    await take(n);
    await expect(positionsAfter(sql, before)).rejects.toMatchObject(LOST);
    const newest = after[2]!;
    expect(await positionsAfter(sql, newest)).toEqual([]);
    expect(await positionsAfter(sql, await oldest())).toEqual(after.slice(n + 1).map(Number));
    // Neither the next writes nor maintenance hide the loss.
    await movePrices(sql, 1);
    await repairSequences(sql);
    await expect(positionsAfter(sql, before)).rejects.toMatchObject(LOST);
    expect(await positionsAfter(sql, newest)).toEqual([Number(newest) + 1]);
  });
});

test('a chunk that is detached while it is being written is attached again with all its rows', async () => {
  const { sql } = store;
  await detach(2);
  await movePrices(sql, 1);
  const newest = Number(after[2]);
  expect(await positionsAfter(sql, after[1]!)).toEqual([newest, newest + 1]);
});

test('prices from the time of an emptied chunk are unknown, however it was emptied', async () => {
  const { sql } = store;
  const isKnown = async () => {
    const [row] = await sql<[{ is: boolean }]>`select catalog_internal.history_known_from() <= now() as is`;
    return row.is;
  };
  await sql`update catalog_internal.history_milestones set at = at - interval '2 days'`;
  expect(await isKnown()).toBe(true);
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx.unsafe(`truncate ${chunk(2)}`);
  });
  expect(await isKnown()).toBe(false);
  await expect(positionsAfter(sql, after[2]! - 1n)).rejects.toMatchObject(LOST);
});

test('emptying a chunk that was detached before costs no reader a change', async () => {
  await detach(0);
  const from = await oldest();
  await empty(0);
  expect(await oldest()).toBe(from);
  expect(await positionsAfter(store.sql, from)).toEqual(after.slice(1).map(Number));
});

test('positions from before a TRUNCATE are refused even after retention has dropped what is older', async () => {
  const { sql } = store;
  await sql`update catalog.price_history set observed_at = now() - interval '40 days' where id = ${String(after[0]!)}`;
  await sql`truncate catalog.skus`;
  await expect(positionsAfter(sql, after[1]!)).rejects.toMatchObject(LOST);
  expect(await pruneHistory(sql, { olderThanMs: 30 * DAY })).toBeGreaterThan(0);
  await expect(positionsAfter(sql, after[1]!)).rejects.toMatchObject(LOST);
});

test('after a rolled-back TRUNCATE, past prices are known again once maintenance has run', async () => {
  const { sql } = store;
  const undone = new Error('taken back');
  await expect(
    sql.begin(async (tx) => {
      await tx`truncate catalog.skus`;
      throw undone;
    }),
  ).rejects.toBe(undone);
  await repairSequences(sql);
  const [row] = await sql<[{ soon: boolean }]>`
    select catalog_internal.history_known_from() <= now() + interval '1 hour' as soon`;
  expect(row.soon).toBe(true);
});

test.each(['catalog.price_history', 'catalog.product_history', 'catalog_internal.change_batches'])(
  'after a TRUNCATE of %s nobody continues from a position before it, and no earlier price is known',
  async (table) => {
    const { sql } = store;
    await sql.unsafe(`truncate ${table}`);
    await expect(positionsAfter(sql, after[1]!)).rejects.toMatchObject(LOST);
    const from = await oldest();
    expect(await positionsAfter(sql, from)).toEqual([]);
    await movePrices(sql, 1);
    expect(await positionsAfter(sql, from)).toHaveLength(1);
    const [row] = await sql<
      [{ known: boolean }]
    >`select catalog_internal.history_known_from() < now() as known`;
    expect(row.known).toBe(false);
  },
);

describe('a reader that waits for a table being rewritten gets an error to retry, never an empty table', () => {
  /** Returns what a reader gets that waits for the table: the number of rows, or the error's code. */
  async function readBehind(table: string, reading: (session: typeof store.sql) => Promise<unknown[]>) {
    const { sql } = store;
    const [altering, reader] = [await sql.reserve(), await sql.reserve()];
    onTestFinished(async () => {
      await altering`rollback`;
      altering.release();
      reader.release();
      await sql.unsafe(`alter table ${table} drop column if exists made`);
    });
    const [{ pid }] = await reader<[{ pid: number }]>`select pg_backend_pid() as pid`;
    await altering`begin`;
    await altering.unsafe(`alter table ${table} add column made int generated always as (1 + 1) stored`);
    const read = reading(reader).then(
      (rows) => rows.length,
      (error: { code: string }) => error.code,
    );
    await eventually(async () => {
      const rows = await sql`select from pg_stat_activity where pid = ${pid} and wait_event_type = 'Lock'`;
      return rows.length === 1;
    });
    await altering`commit`;
    return await read;
  }

  test.each(['catalog.price_history', 'catalog.product_history', 'catalog_internal.change_batches'])(
    'reading changes: %s',
    async (table) => {
      const { sql } = store;
      const from = after[2]!;
      await movePrices(sql, 1);
      const fields = [{ sku: 'A', field: 'brand', oldValue: 'a', newValue: 'b' } as const];
      const states = [{ sku: 'A', oldState: 'pending', newState: 'priced' }];
      await sql.begin((tx) => writeChanges(tx, { moves: [], fields }, null));
      await sql.begin((tx) => writeChanges(tx, { moves: [], fields: [], states }, null));
      expect(
        await readBehind(table, (session) => session`select from catalog.changes(${String(from)})`.execute()),
      ).toBe('40001');
      expect(await positionsAfter(sql, from)).toHaveLength(3);
    },
  );

  test.each(['catalog.skus', 'catalog.products', 'catalog.prices'])(
    'making a first copy: %s',
    async (table) => {
      const { sql } = store;
      await knownSkus(sql, ['A']);
      await answerAsked(sql, found('A', { 9: 100 }, { brand: 'b' }));
      const snapshot = (session: typeof sql) => session`select from catalog.changes_snapshot()`.execute();
      const whole = (await snapshot(sql)).length;
      expect(await readBehind(table, snapshot)).toBe('40001');
      expect(await snapshot(sql)).toHaveLength(whole);
    },
  );
});

describe('a transaction that began before the history was taken away', () => {
  test.each([
    { what: 'emptied', take: () => store.sql.unsafe('truncate catalog.price_history') },
    {
      what: 'emptied beside the prices',
      take: () => store.sql.unsafe('truncate catalog.product_history, catalog_internal.change_batches'),
    },
    {
      what: 'dropped',
      take: async () => {
        for (const n of [0, 1, 2]) await drop(n);
      },
    },
    {
      what: 'detached',
      take: async () => {
        for (const n of [0, 1, 2]) await detach(n);
      },
    },
  ])('gets no position for a copy of what it sees: $what', async ({ take }) => {
    const { sql } = store;
    const reader = await sql.reserve();
    onTestFinished(() => reader.release());
    await reader`begin isolation level repeatable read`;
    await reader`select 1 from pg_class limit 1`;
    await movePrices(sql, 1);
    await take();
    await reader`savepoint before`;
    await expect(reader`select catalog.changes_position()`).rejects.toMatchObject(LOST);
    await reader`rollback to before`;
    await expect(reader`select * from catalog.changes_snapshot()`).rejects.toMatchObject(LOST);
    await reader`rollback`;
    expect(await positionNow(sql)).toBe(await oldest());
  });

  test('continues if that is rolled back, and so does one that begins then', async () => {
    const { sql } = store;
    const reader = await sql.reserve();
    onTestFinished(() => reader.release());
    await reader`begin isolation level repeatable read`;
    await reader`select 1 from pg_class limit 1`;
    const undone = new Error('taken back');
    const taken = sql.begin(async (tx) => {
      await tx`truncate catalog.price_history`;
      throw undone;
    });
    await expect(taken).rejects.toBe(undone);
    for (const session of [reader, sql]) {
      const [row] = await session<[{ at: string }]>`select catalog.changes_position() as at`;
      expect(BigInt(row.at)).toBe(await oldest());
    }
    await reader`rollback`;
  });
});
