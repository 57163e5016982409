import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { repairSequences } from '../../src/store/history/changes.ts';
import { prepareHistory, pruneHistory } from '../../src/store/history/retention.ts';
import { movePrices, positionNow, positionsAfter } from '../follow/changes.ts';
import { useStore } from './support.ts';

/* What people do to the history by hand. */

const store = useStore();
const DAY = 86_400_000;
const CHUNK = 5_000_000n;
/** The chunk that the test's first change goes into: each test has chunks of its own. */
let first: bigint;
/** A position after each of three changes, each of them in a chunk of its own. */
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
const oldest = async () => {
  const [row] = await store.sql<[{ at: string }]>`select catalog.changes_oldest() as at`;
  return BigInt(row.at);
};
const LOST = { code: 'CM001' };

describe('a reader who has not read all of a chunk that somebody takes away is told so at once', () => {
  test.each([
    { what: 'dropped', take: drop, n: 0 },
    { what: 'dropped between others', take: drop, n: 1 },
    { what: 'detached between others', take: detach, n: 1 },
    { what: 'dropped while it is being written', take: drop, n: 2 },
  ])('$what', async ({ take, n }) => {
    const { sql } = store;
    const before = after[0]! - 1n;
    await take(n);
    await expect(positionsAfter(sql, before)).rejects.toMatchObject(LOST);
    const newest = after[2]!;
    expect(await positionsAfter(sql, newest)).toEqual([]);
    expect(await positionsAfter(sql, await oldest())).toEqual(after.slice(n + 1).map(Number));
    // What is written next, and maintenance, hide nothing of it.
    await movePrices(sql, 1);
    await repairSequences(sql);
    await expect(positionsAfter(sql, before)).rejects.toMatchObject(LOST);
    expect(await positionsAfter(sql, newest)).toEqual([Number(newest) + 1]);
  });
});

test('a chunk that is detached while it is being written is attached again, with all that is in it', async () => {
  const { sql } = store;
  await detach(2);
  await movePrices(sql, 1);
  const newest = Number(after[2]);
  expect(await positionsAfter(sql, after[1]!)).toEqual([newest, newest + 1]);
});

test('positions from before a TRUNCATE are refused also when retention has dropped what is older', async () => {
  const { sql } = store;
  await sql`update catalog.price_history set observed_at = now() - interval '40 days' where id = ${String(after[0]!)}`;
  await sql`truncate catalog.skus`;
  await expect(positionsAfter(sql, after[1]!)).rejects.toMatchObject(LOST);
  expect(await pruneHistory(sql, { olderThanMs: 30 * DAY })).toBeGreaterThan(0);
  await expect(positionsAfter(sql, after[1]!)).rejects.toMatchObject(LOST);
});

test('after a TRUNCATE that was taken back prices of the past are known again, once maintenance has run', async () => {
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
  'after a TRUNCATE of %s nobody goes on behind what was in it, and nothing of before is known',
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

describe('a transaction that has begun before the history is taken away', () => {
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

  test('goes on where that is taken back, and so does one that begins then', async () => {
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
