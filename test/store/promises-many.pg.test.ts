import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect, type Queryable, type Sql, type Tx } from '../../src/store/connection/db.ts';
import { readWatchlist } from '../../src/store/sellers/watchlist.ts';
import { knownSkus, settleKnown, useStore } from './support.ts';

const store = useStore();

/** Generous: the statement takes about a second if nothing else runs. */
const MOST_SECONDS = 30;

test('a statement with 20,000 promises gets its warning within seconds', async () => {
  const { sql, url } = store;
  const skus = Array.from({ length: 20_000 }, (_, n) => `S${n}`);
  await knownSkus(sql, skus);
  await sql`insert into catalog_internal.due (sku, lane, reason, live, due_at, generation) select sku, 6, 'sweep', false, now() + interval '1 day', 1 from catalog.skus`;
  const said: string[] = [];
  const seller = connect(url, { max: 1, onNotice: ({ message }) => said.push(message ?? '') });
  try {
    const start = performance.now();
    await seller`insert into catalog.watchlist (sku, max_age) select sku, '1 minute' from catalog.skus`;
    expect((performance.now() - start) / 1000).toBeLessThan(MOST_SECONDS);
    expect(said).toEqual([expect.stringContaining('of 20000 are not kept')]);
  } finally {
    await seller.end({ timeout: 2 });
  }
});

describe('a session that asks row by row', () => {
  const said: string[] = [];
  let seller: Sql;
  beforeEach(async () => {
    said.length = 0;
    seller = connect(store.url, { max: 1, onNotice: ({ message }) => said.push(message ?? '') });
    await store.sql`
      insert into catalog.skus (sku, in_manifest, price_source) select 'S' || n, true, 'snapshot' from generate_series(1, 20000) n`;
    await settleKnown(store.sql);
  });
  afterEach(async () => {
    await seller.end({ timeout: 2 });
  });

  /** Returns the rows that the transaction has read of the tables by which all promises are weighed. */
  async function read(tx: Tx): Promise<number> {
    const [row] = await tx<[{ rows: number }]>`
      select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_xact_all_tables
      where relid in ('catalog.skus'::regclass, 'catalog.watchlist'::regclass, 'catalog_internal.due'::regclass, 'catalog_internal.watched'::regclass)`;
    return row.rows;
  }

  test('has all promises weighed only now and then, and never if it changes none', async () => {
    await seller`insert into catalog.watchlist (sku, max_age) select sku, '30 days' from catalog.skus`;
    await readWatchlist(store.sql, { most: 100_000, everything: true });
    await seller.begin(async (tx) => {
      const before = await read(tx);
      for (let n = 1; n <= 10; n += 1)
        await tx`update catalog.watchlist set note = 'seen', weight = 1, max_age = '30 days' where sku = ${`S${n}`}`;
      expect((await read(tx)) - before).toBeLessThan(200);
      for (let n = 1; n <= 30; n += 1)
        await tx`update catalog.watchlist set max_age = '20 days' where sku = ${`S${n}`}`;
      // 60,000 each time.
      expect((await read(tx)) - before).toBeLessThan(200_000);
    });
    expect(said).toEqual([]);
  });

  const ask = async (sql: Queryable, sku: string) =>
    await sql`insert into catalog.watchlist (sku, max_age) values (${sku}, '1 minute')`;
  /**
   * Promises 471.25 of the 472 refreshes a minute for live SKUs (test/store/promises.pg.test.ts), with S377 as the
   * last.
   */
  async function nearlyAll(): Promise<void> {
    await store.sql`update catalog_internal.due set live = true`;
    await seller`insert into catalog.watchlist (sku, max_age) select 'S' || n, '1 minute' from generate_series(1, 376) n`;
    await ask(seller, 'S377');
    expect(said).toEqual([]);
  }

  test('is warned with its first infeasible promise, even in one transaction, and not if that is undone', async () => {
    await nearlyAll();
    await seller`delete from catalog.watchlist where sku = 'S377'`;
    await seller.begin(async (tx) => {
      await tx
        .savepoint(async (point) => {
          await ask(point, 'S400');
          throw new Error('taken back');
        })
        .catch(() => {});
      await ask(tx, 'S401');
      expect(said).toEqual([]);
      await ask(tx, 'S402');
      expect(said).toEqual([expect.stringContaining('1 of 378 are not kept')]);
    });
  });

  test('is warned because of what others have asked for, after ten seconds at the latest', async () => {
    await nearlyAll();
    await store.sql`insert into catalog.watchlist (sku, max_age) values ('S500', '1 minute')`;
    await seller`select set_config('catalog_internal.promised', regexp_replace(current_setting('catalog_internal.promised'), ' [0-9]+', ' 1000000'), false)`;
    await seller`update catalog.watchlist set max_age = '61 seconds' where sku = 'S1'`;
    expect(said).toEqual([expect.stringContaining('1 of 378 are not kept')]);
  });

  test.each(['', 'nonsense', 'false 9999999999.000 0 0', 'false 99999999999999999999.000 0.000000 0.000000'])(
    'survives a session setting that was overwritten with %j',
    async (value) => {
      await seller`select set_config('catalog_internal.promised', ${value}, false)`;
      await ask(seller, 'S1');
      expect(said).toEqual([]);
    },
  );
});
