import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { keepDailyPrices } from '../../src/store/history/daily.ts';
import { prepareHistory, pruneDays, pruneHistory } from '../../src/store/history/retention.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { maintain } from '../../src/sync/maintenance.ts';
import { eventually } from '../support/eventually.ts';
import { settingsWith } from '../support/settings.ts';
import { failing, knownSkus, useStore, watchedForHours } from './support.ts';

const store = useStore();
const DAY_MS = 86_400_000;
const CHUNK = 5_000_000n;

/** A change: when, from what to what, and whether size_type was corrected with it. */
type Row = readonly [at: string, before: number | null, after: number | null, corrected?: true];

async function changed(...rows: readonly Row[]): Promise<void> {
  for (const [at, before, after, corrected = false] of rows)
    await store.sql`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at, size_type_changed)
      values ('A', '9', ${before}, ${after}, ${`2026-03-${at}+00`}::text::timestamptz, ${corrected})`;
}

async function days(): Promise<string[]> {
  const rows = await store.sql`
    select to_char(day, 'DD') as day, open, low, median, close, changes, size_type_changed as corrected
    from catalog.daily_prices order by sku, size, day`;
  return rows.map((row) =>
    [
      row['day'],
      row['open'],
      row['low'],
      row['median'],
      row['close'],
      row['changes'],
      row['corrected'] === true ? 'corrected' : '',
    ]
      .map((value) => value ?? '-')
      .join(' ')
      .trim(),
  );
}

const keep = async () => expect(await keepDailyPrices(store.sql, 100, 2)).toMatchObject({ caughtUp: true });

async function pricedSince(at: string): Promise<void> {
  await knownSkus(store.sql, ['A']);
  await store.sql`update catalog.skus set first_priced_at = ${`2026-${at}+00`}::text::timestamptz`;
}

test.each<{ what: string; since?: string; rows: Row[]; days: string[] }>([
  {
    what: 'its prices are weighted by the time that they were held, the newest until midnight',
    rows: [
      ['03 06:00', 100, 110],
      ['03 12:00', 110, 90],
      ['03 13:00', 90, 120],
    ],
    days: ['03 100 90 110 120 3'],
  },
  {
    what: 'of two prices held equally long the lower one is the median',
    rows: [['03 12:00', 100, 120]],
    days: ['03 100 100 100 120 1'],
  },
  {
    what: 'a change at midnight begins a day, and the price before it is none of that',
    rows: [
      ['03 12:00', 100, 90],
      ['04 00:00', 90, 200],
    ],
    days: ['03 100 90 90 90 1', '04 90 200 200 200 1'],
  },
  {
    what: 'a change in the last microsecond is one of its day',
    rows: [['03 23:59:59.999999', 100, 90]],
    days: ['03 100 90 100 90 1'],
  },
  {
    what: 'the day of the first price begins with it, and with no price before',
    since: '03-03 20:00',
    rows: [['03 21:00', 100, 90]],
    days: ['03 - 90 90 90 1'],
  },
  {
    what: 'a size that appears and goes is judged by the time in which it was there',
    rows: [
      ['03 06:00', null, 80],
      ['03 18:00', 80, null],
      ['05 23:00', null, 70],
    ],
    days: ['03 - 80 80 - 2', '05 - 70 70 70 1'],
  },
  {
    what: 'after a correction of size_type only what comes after it counts',
    rows: [
      ['03 06:00', 100, 10],
      ['03 12:00', 10, 500, true],
      ['03 20:00', 500, 510],
    ],
    days: ['03 100 500 500 510 1 corrected'],
  },
  {
    what: 'a correction alone is no move',
    rows: [['03 12:00', 100, 500, true]],
    days: ['03 100 500 500 500 0 corrected'],
  },
  {
    what: 'a change that is observed before one that was committed earlier counts from then on',
    rows: [
      ['04 00:30', 100, 90],
      ['03 23:00', 90, 80],
    ],
    days: ['04 100 80 80 80 2'],
  },
])('a day: $what', async ({ since = '01-01 00:00', rows, days: expected }) => {
  await pricedSince(since);
  await changed(...rows);
  await keep();
  expect(await days()).toEqual(expected);
  // Once more from the start.
  await store.sql`update catalog_internal.daily set position = 0`;
  expect(await keepDailyPrices(store.sql, 100, 1)).toEqual({ written: expect.any(Number), caughtUp: true });
  expect(await days()).toEqual(expected);
});

test('each change counts for its day whenever it comes, and an unchanged row is not written', async () => {
  await pricedSince('01-01 00:00');
  await changed(['03 06:00', 100, 110]);
  await keep();
  await changed(['03 18:00', 110, 90]);
  expect(await keepDailyPrices(store.sql, 1)).toEqual({ written: 1, caughtUp: true });
  expect(await days()).toEqual(['03 100 90 100 90 2']);
  await store.sql`update catalog_internal.daily set position = position - 1`;
  expect(await keepDailyPrices(store.sql, 1)).toEqual({ written: 0, caughtUp: true });
  expect(await keepDailyPrices(store.sql, 1)).toEqual({ written: 0, caughtUp: true });
});

test('a piece commits whole or not at all, and the work of a call is bounded', async () => {
  const { sql } = store;
  await pricedSince('01-01 00:00');
  await changed(['03 06:00', 100, 110], ['04 06:00', 110, 120], ['05 06:00', 120, 130]);
  {
    await using _ = await failing(sql, 'update on catalog_internal.daily', { times: 1 });
    await expect(keepDailyPrices(sql, 1, 2)).rejects.toMatchObject({ code: 'P0001' });
    expect(await days()).toEqual([]);
    expect(await keepDailyPrices(sql, 1, 2)).toEqual({ written: 2, caughtUp: false });
  }
  expect(await days()).toHaveLength(2);
  expect(await keepDailyPrices(sql, 1, 2)).toEqual({ written: 1, caughtUp: true });
  const [row] = await sql`
    select position = (select max(id) from catalog.price_history) as newest from catalog_internal.daily`;
  expect(row).toEqual({ newest: true });
});

test('a second worker continues after the first one', async () => {
  const { sql } = store;
  await pricedSince('01-01 00:00');
  await changed(['03 06:00', 100, 110], ['04 06:00', 110, 120]);
  let second: Promise<unknown> = Promise.resolve();
  await sql.begin(async (tx) => {
    await tx`select from catalog_internal.daily for update`;
    second = keepDailyPrices(sql, 1, 1);
    await eventually(
      async () => {
        const waiting = await sql`
          select from pg_locks where not granted and pid in (select pid from pg_stat_activity where datname = current_database())`;
        expect(waiting).toHaveLength(1);
      },
      { what: 'the other one at the lock' },
    );
    await tx`update catalog_internal.daily set position = (select min(id) from catalog.price_history)`;
  });
  expect(await second).toEqual({ written: 1, caughtUp: false });
  expect(await days()).toEqual(['04 110 110 120 120 1']);
});

describe('when chunks of the history are dropped', () => {
  const settings = settingsWith({});

  async function enterNextChunk(): Promise<void> {
    const [row] = await store.sql<
      [{ at: string }]
    >`select last_value as at from catalog_internal.change_positions`;
    await store.sql`select setval('catalog_internal.change_positions', ${String((BigInt(row.at) / CHUNK + 1n) * CHUNK)}, false)`;
    await prepareHistory(store.sql);
  }

  test('days whose changes are gone stay as they are, and late changes to them count for the next day', async () => {
    await pricedSince('01-01 00:00');
    await enterNextChunk();
    await changed(['03 06:00', 100, 110], ['04 06:00', 110, 120]);
    await keep();
    await enterNextChunk();
    await changed(['04 12:00', 120, 80]);
    expect(await pruneHistory(store.sql, { olderThanMs: DAY_MS })).toBeGreaterThan(0);
    expect(await store.sql`select from catalog.price_history`).toHaveLength(1);
    await keep();
    expect(await days()).toEqual(['03 100 100 110 110 1', '04 110 110 120 120 1', '05 120 80 80 80 1']);
    await changed(['05 12:00', 80, 70]);
    await keep();
    expect((await days()).at(-1)).toBe('05 120 70 70 70 2');
  });

  test('positions that were never assigned cost nothing', async () => {
    await pricedSince('01-01 00:00');
    await changed(['03 06:00', 100, 110]);
    await keep();
    await store.sql`select setval('catalog_internal.change_positions', last_value + 1000000000) from catalog_internal.change_positions`;
    await prepareHistory(store.sql);
    await changed(['04 06:00', 110, 120]);
    expect(await keepDailyPrices(store.sql, 1)).toEqual({ written: 1, caughtUp: true });
  });

  test('maintenance drops no chunk that is not counted, and continues at once until all are', async () => {
    const ctx = {
      sql: store.sql,
      clock: systemClock,
      settings,
      tracer: NO_TRACER,
      emit: () => {},
    } as unknown as SyncContext;
    const run = () => maintain(ctx, { windowMs: 60_000, historyMs: 7 * DAY_MS, dailyMs: 0 });
    await pricedSince('01-01 00:00');
    await enterNextChunk();
    await store.sql`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
      select 'A', n::text, 100, 90, '2026-03-03 12:00+00' from generate_series(1, 50000) n`;
    await enterNextChunk();
    await watchedForHours(store.sql);
    expect(await run()).toMatchObject({
      nextInMs: 1000,
      counts: { historyChunksDropped: 0, daysWritten: 50_000 },
    });
    const { counts, nextInMs } = (await run()) as { counts: Record<string, number>; nextInMs: number };
    expect([nextInMs, counts['historyChunksDropped'], counts['daysWritten']]).toEqual([
      60_000,
      expect.any(Number),
      0,
    ]);
    // A chunk that autovacuum is scanning is dropped by the next maintenance.
    await eventually(async () => {
      const left = await store.sql`select from catalog.price_history limit 1`;
      if (left.length > 0) await run();
      expect(left).toHaveLength(0);
    });
    const [row] =
      await store.sql`select count(*)::int as days, min(median) as median from catalog.daily_prices`;
    expect(row).toEqual({ days: 50_000, median: 90 });
  });
});

test('days older than DAILY_RETENTION are deleted in batches, and the rest keep their opening prices', async () => {
  const { sql } = store;
  await pricedSince('01-01 00:00');
  for (const [ago, before, after] of [
    [20, 100, 110],
    [11, 110, 120],
    [9, 120, 130],
  ] as const)
    await sql`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
      values ('A', '9', ${before}, ${after}, now() - make_interval(days => ${ago}))`;
  await keep();
  expect(await pruneDays(sql, { olderThanMs: 10 * DAY_MS, limit: 1 })).toBe(1);
  expect(await pruneDays(sql, { olderThanMs: 10 * DAY_MS, limit: 10 })).toBe(1);
  expect(await pruneDays(sql, { olderThanMs: 10 * DAY_MS, limit: 10 })).toBe(0);
  expect([...(await sql`select open, close from catalog.daily_prices`)]).toEqual([{ open: 120, close: 130 }]);
});

test('maintenance drops days only by DAILY_RETENTION, and only by a clock that was watched', async () => {
  const ctx = {
    sql: store.sql,
    clock: systemClock,
    settings: settingsWith({}),
    tracer: NO_TRACER,
    emit: () => {},
  } as unknown as SyncContext;
  const dropped = async (dailyMs: number) => {
    const outcome = await maintain(ctx, { windowMs: 60_000, historyMs: 0, dailyMs });
    return (outcome as { counts: Record<string, number> }).counts['daysDropped'];
  };
  await pricedSince('01-01 00:00');
  await changed(['03 06:00', 100, 110]);
  expect(await dropped(7 * DAY_MS)).toBe(0);
  await watchedForHours(store.sql);
  expect(await dropped(0)).toBe(0);
  expect(await dropped(7 * DAY_MS)).toBe(1);
});
