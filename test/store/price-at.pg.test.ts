import { beforeEach, describe, expect, test } from 'vitest';
import { keepDailyPrices } from '../../src/store/history/daily.ts';
import { prepareHistory, pruneHistory } from '../../src/store/history/retention.ts';
import { answerAsked, found, knownSkus, removeByDelta, useStore } from './support.ts';

const store = useStore();
const CHUNK = 5_000_000n;

async function priceAt(at: string, size = '9', sku = 'A'): Promise<number | null> {
  const [row] = await store.sql<[{ price: number | null }]>`
    select catalog.price_at(${sku}, ${size}, ${at}::text::timestamptz) as price`;
  return row.price;
}

/** Returns the prices at a time, as `size price (size type)`. */
async function pricesAt(at: string, sku = 'A'): Promise<string[]> {
  const rows = await store.sql`select * from catalog.prices_at(${sku}, ${at}::text::timestamptz)`;
  return rows.map((row) => `${row['size']} ${row['price']} (${row['size_type']})`);
}

/** Returns the present time, which excludes everything that comes later. */
async function moment(): Promise<string> {
  const [row] = await store.sql<[{ now: string }]>`select clock_timestamp()::text as now`;
  return row.now;
}

test("from the first answer to the last, prices_at gives each size's price and the meaning of its key", async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  const moments: string[] = [];
  const steps: (() => Promise<unknown>)[] = [
    async () => {},
    () => answerAsked(sql, found('A', { 9: 100, 10: 50, 11: null }, { size_map_size_type: 'EU' })),
    () => answerAsked(sql, found('A', { 9: 110, 10: 50 }, { size_map_size_type: 'EU' })),
    () => answerAsked(sql, found('A', { 9: 500, 10: 50, 12: 7 }, { size_map_size_type: 'US' })),
    () => answerAsked(sql, found('A', { 9: 490, 11: 60 }, { size_map_size_type: 'US' })),
    () => removeByDelta(sql, 'A'),
    () => answerAsked(sql, found('A', { 9: 480 }, { size_map_size_type: 'US' })),
  ];
  for (const step of steps) {
    await step();
    moments.push(await moment());
  }
  const seen = await Promise.all(moments.map((at) => pricesAt(at)));
  expect(seen).toEqual([
    [],
    ['10 50 (EU)', '9 100 (EU)'],
    ['10 50 (EU)', '9 110 (EU)'],
    ['10 50 (US)', '12 7 (US)', '9 500 (US)'],
    ['11 60 (US)', '9 490 (US)'],
    [],
    ['9 480 (US)'],
  ]);
  const single = await Promise.all(
    moments.map((at) => Promise.all(['9', '10', '13'].map((size) => priceAt(at, size)))),
  );
  expect(single).toEqual([
    [null, null, null],
    [100, 50, null],
    [110, 50, null],
    [500, 50, null],
    [490, null, null],
    [null, null, null],
    [480, null, null],
  ]);
  expect(await priceAt('infinity')).toBe(480);
  expect(await priceAt('-infinity')).toBeNull();
  expect(await priceAt(moments[1] ?? '', '9', 'never heard of')).toBeNull();
});

/** What maintenance has done about the days of the three changes made here. */
const COUNTED: Readonly<Record<string, () => Promise<unknown>>> = {
  none: async () => {},
  'the first change': () => keepDailyPrices(store.sql, 1, 1),
  'all changes': () => keepDailyPrices(store.sql, 100),
  'all changes, and somebody has deleted the days of the size': async () => {
    await keepDailyPrices(store.sql, 100);
    await store.sql`insert into catalog.daily_prices (sku, size, day, changes, size_type_changed, first_position) values ('Z', '9', '2020-01-01', 1, false, 1)`;
    await store.sql`delete from catalog.daily_prices where sku = 'A'`;
  },
};

/** Begins a history a hundred days ago, in the chunk that it returns. */
async function beginHistory(): Promise<bigint> {
  const [row] = await store.sql<
    [{ at: string }]
  >`select last_value as at from catalog_internal.change_positions`;
  const first = BigInt(row.at) / CHUNK + 1n;
  await store.sql`update catalog_internal.history_milestones set at = now() - interval '101 days'`;
  await keepDailyPrices(store.sql, 100);
  await store.sql`delete from catalog.daily_prices`;
  await enter(first, 100);
  await knownSkus(store.sql, ['A']);
  await store.sql`update catalog.skus set first_priced_at = now() - interval '99 days'`;
  await store.sql`insert into catalog.prices (sku, size, price, changed_at) values ('A', '9', 4, now()), ('A', '10', 9, now())`;
  return first;
}

/** Begins a chunk so many days ago. */
async function enter(chunk: bigint, ago: number): Promise<void> {
  await store.sql`select setval('catalog_internal.change_positions', ${String(chunk * CHUNK)}, false)`;
  await prepareHistory(store.sql);
  await store.sql`
    update catalog_internal.history_milestones set at = now() - make_interval(secs => ${ago * 86_400}) where position >= ${String(chunk * CHUNK)}`;
}

/** Returns an hour (UTC) of the day so many days ago. */
const hourOf = (daysAgo: number, hour: number) =>
  `${new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10)} ${String(hour).padStart(2, '0')}:00Z`;

const changedAt = (at: string, before: number, after: number) => store.sql`
  insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
  values ('A', '9', ${before}, ${after}, ${at}::text::timestamptz)`;

test('changes of a day whose first change is dropped count from when they were observed', async () => {
  const first = await beginHistory();
  await store.sql`select setval('catalog_internal.dropped_positions', 0, true)`;
  // The oldest day that exists is never taken as complete.
  await store.sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at) values ('B', '9', 1, 2, ${hourOf(60, 1)}::text::timestamptz)`;
  await changedAt(hourOf(50, 1), 1, 2);
  await keepDailyPrices(store.sql, 100);
  await enter(first + 1n, 50);
  await store.sql`
    update catalog_internal.history_milestones set at = ${hourOf(50, 2)}::text::timestamptz where position >= ${String((first + 1n) * CHUNK)}`;
  expect(await pruneHistory(store.sql, { olderThanMs: 45 * 86_400_000 })).toBeGreaterThan(0);
  await changedAt(hourOf(50, 12), 2, 3);
  await changedAt(hourOf(20, 12), 3, 4);
  await keepDailyPrices(store.sql, 100);
  const hours = [2, 4, 11, 12, 18];
  expect(await Promise.all(hours.map((hour) => priceAt(hourOf(50, hour))))).toEqual([null, 2, 2, 3, 3]);
  expect(await Promise.all([priceAt(hourOf(49, 0)), priceAt(hourOf(20, 13))])).toEqual([3, 4]);
});

test('a day on which the size was first priced has that price until its only change', async () => {
  await beginHistory();
  await store.sql`update catalog.skus set first_priced_at = ${hourOf(50, 6)}::text::timestamptz`;
  await store.sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at) values ('B', '9', 1, 2, ${hourOf(60, 1)}::text::timestamptz)`;
  await changedAt(hourOf(50, 12), 1, 2);
  await changedAt(hourOf(20, 12), 2, 3);
  await keepDailyPrices(store.sql, 100);
  const hours = [5, 6, 11, 12, 18];
  expect(await Promise.all(hours.map((hour) => priceAt(hourOf(50, hour))))).toEqual([null, 1, 1, 2, 2]);
});

test('days counted without first_change_at give the same prices, with one change or several', async () => {
  await beginHistory();
  await store.sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at) values ('B', '9', 1, 2, ${hourOf(60, 1)}::text::timestamptz)`;
  await changedAt(hourOf(50, 6), 1, 2);
  await changedAt(hourOf(40, 6), 2, 3);
  await changedAt(hourOf(40, 12), 3, 2);
  await changedAt(hourOf(20, 12), 2, 4);
  await keepDailyPrices(store.sql, 100);
  const seenAt = (day: number, hours: readonly number[]) =>
    Promise.all(hours.map((hour) => priceAt(hourOf(day, hour))));
  const asked = async () => [
    await seenAt(50, [5, 6, 7]),
    await seenAt(40, [5, 6, 11, 12, 13]),
    await seenAt(20, [11, 12]),
  ];
  const expected = [
    [1, 2, 2],
    [2, 3, 3, 2, 2],
    [2, 4],
  ];
  expect(await asked()).toEqual(expected);
  await store.sql`update catalog.daily_prices set first_change_at = null`;
  expect(await asked()).toEqual(expected);
});

test('a day with one change keeps its prices when a daemon of an earlier version adds another', async () => {
  await beginHistory();
  await changedAt(hourOf(50, 6), 1, 2);
  await keepDailyPrices(store.sql, 100);
  await changedAt(hourOf(50, 12), 2, 3);
  await changedAt(hourOf(20, 12), 3, 4);
  await keepDailyPrices(store.sql, 100);
  const before = await store.sql`select * from catalog.daily_prices order by day`;
  // What a version without first_change_at writes.
  await store.sql`update catalog.daily_prices set changes = 1, close = 2 where changes = 2`;
  await store.sql`update catalog.daily_prices set changes = 2, close = 3 where close = 2`;
  expect(await store.sql`select * from catalog.daily_prices order by day`).toEqual(before);
  const hours = [5, 6, 11, 12, 18];
  expect(await Promise.all(hours.map((hour) => priceAt(hourOf(50, hour))))).toEqual([1, 2, 2, 3, 3]);
});

describe.each(Object.keys(COUNTED))(
  'after the beginning of the history is dropped, days counted: %s',
  (name) => {
    let first: bigint;
    beforeEach(async () => {
      first = await beginHistory();
    });

    const changed = (ago: number, before: number, after: number) => store.sql`
    insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
    values ('A', '9', ${before}, ${after}, now() - make_interval(days => ${ago}))`;
    const daysAgo = async (days: number) => {
      const [row] = await store.sql<
        [{ at: string }]
      >`select (now() - make_interval(days => ${days}))::text as at`;
      return row.at;
    };
    const seen = async (...ago: number[]) =>
      await Promise.all(
        ago.map(async (days) => [
          await priceAt(await daysAgo(days)),
          await priceAt(await daysAgo(days), '10'),
        ]),
      );

    async function threeChunks(): Promise<void> {
      await changed(90, 1, 2);
      await enter(first + 1n, 60);
      await changed(50, 2, 3);
      await enter(first + 2n, 30);
      await changed(20, 3, 4);
      await COUNTED[name]?.();
    }

    test('times whose changes are gone have no price, and later ones do', async () => {
      await threeChunks();
      // Earlier drops belong to other tests.
      await store.sql`select setval('catalog_internal.dropped_positions', 0, true)`;
      expect(await seen(95, 70, 40, 10)).toEqual([
        [1, 9],
        [2, 9],
        [3, 9],
        [4, 9],
      ]);
      await pruneHistory(store.sql, { olderThanMs: 80 * 86_400_000 });
      expect(await seen(95, 70, 61, 59, 40, 10)).toEqual([
        [null, null],
        [null, null],
        [null, null],
        [2, 9],
        [3, 9],
        [4, 9],
      ]);
      expect(await pricesAt(await daysAgo(61))).toEqual([]);
      expect(await pricesAt(await daysAgo(59))).toEqual(['10 9 (null)', '9 2 (null)']);
      await pruneHistory(store.sql, { olderThanMs: 45 * 86_400_000 });
      expect(await seen(40, 31, 29, 10)).toEqual([
        [null, null],
        [null, null],
        [3, 9],
        [4, 9],
      ]);
    });

    test('a reader whose snapshot is from before the drop gets no wrong price either', async () => {
      await threeChunks();
      await store.sql`select setval('catalog_internal.dropped_positions', 0, true)`;
      const before = await daysAgo(70);
      await store.sql.begin('isolation level repeatable read', async (tx) => {
        await tx`select from catalog.skus limit 1`;
        expect(await pruneHistory(store.sql, { olderThanMs: 80 * 86_400_000 })).toBeGreaterThan(0);
        const [row] = await tx`select catalog.price_at('A', '9', ${before}::text::timestamptz) as price`;
        expect(row).toEqual({ price: null });
      });
    });

    test('an unseen milestone, and one by a clock that was behind, hide what is not known', async () => {
      await threeChunks();
      await pruneHistory(store.sql, { olderThanMs: 80 * 86_400_000 });
      // By its clock, the former chunk was begun later than the one after it.
      await store.sql`update catalog_internal.history_milestones set at = now() - interval '55 days' where position < ${String((first + 1n) * CHUNK)}`;
      expect(await seen(59, 54)).toEqual([
        [null, null],
        [2, 9],
      ]);
      await store.sql`delete from catalog_internal.history_milestones`;
      expect(await seen(54, 10, 0)).toEqual([
        [null, null],
        [null, null],
        [null, null],
      ]);
    });
  },
);
