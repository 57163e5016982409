import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { takeHints, withHints } from '../../src/store/sellers/hints.ts';
import { refreshSkus, takeRefreshes } from '../../src/store/sellers/refresh.ts';
import { forgetUnknown } from '../../src/store/sellers/watchlist.ts';
import { onlyScope } from './scoping.ts';
import { empty, followWatchlist, knownSkus, mark, useStore } from './support.ts';

const store = useStore();
const SKUS = Array.from({ length: 10_000 }, (_, n) => `S${String(n).padStart(5, '0')}`);

/** Its statements are planned as a daemon's are: for the given values. */
let sql: Sql;
beforeAll(async () => {
  await store.sql.unsafe(`alter database ${new URL(store.url).pathname.slice(1)} set plan_cache_mode = auto`);
  sql = connect(store.url, { max: 4 });
});
afterAll(() => sql.end());

/**
 * Leaves tables as ANALYZE does if all of their rows are deleted, or not committed yet: autovacuum may run between
 * a DELETE of a whole list and the INSERT of the next, or after a queue was read. Tables that grow with the
 * catalog are never in this state.
 */
async function analyzedEmpty(): Promise<void> {
  await sql`
    update pg_class set reltuples = 0, relpages = 1
    where relkind = 'r' and relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)
      and relname not in ('skus', 'due', 'prices', 'products')`;
}

interface Work {
  readonly prepare: () => Promise<unknown>;
  readonly work: () => Promise<unknown>;
}

async function priced(): Promise<void> {
  await sql`update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now()`;
  await knownSkus(sql, SKUS);
  await sql`
    insert into catalog.prices (sku, size, price, changed_at)
    select sku, size, 100, now() from unnest(${SKUS}::text[]) sku, unnest(array['8', '9', '10']) size`;
}

async function marked(): Promise<void> {
  await priced();
  await mark(sql, SKUS);
}

/** Twice as many as the others, so that the effect shows. */
const watchAll = () =>
  sql`insert into catalog.watchlist (sku, weight, max_age)
    select 'S' || lpad(n::text, 5, '0'), 2, case when n < 100 then interval '1 day' end from generate_series(0, ${2 * SKUS.length - 1}::int) n`;

async function watched(): Promise<void> {
  await watchAll();
  await followWatchlist(sql);
  await sql`delete from catalog.watchlist`;
}

const WORKS: Readonly<Record<string, Work>> = {
  'a watchlist of SKUs that nobody lists': { prepare: watchAll, work: () => followWatchlist(sql) },
  'a watchlist of known SKUs': {
    prepare: async () => {
      await marked();
      await watchAll();
    },
    work: () => followWatchlist(sql),
  },
  'a watchlist that was emptied': { prepare: watched, work: () => followWatchlist(sql) },
  'SKUs that nobody watches any longer': {
    prepare: async () => {
      await watched();
      await followWatchlist(sql);
    },
    work: () => forgetUnknown(sql, 2 * SKUS.length),
  },
  'a scope of so many rules': {
    prepare: async () => {
      await marked();
      await sql`insert into catalog.scope (kind, value) select 'sku', sku from unnest(${SKUS}::text[]) sku`;
    },
    work: () => onlyScope(sql),
  },
  'requests for so many SKUs': {
    prepare: async () => {
      await marked();
      for (let from = 0; from < SKUS.length; from += 1000)
        await sql`select catalog.refresh(${SKUS.slice(from, from + 1000)}::text[])`;
    },
    work: async () => {
      while ((await takeRefreshes(sql)) > 0);
    },
  },
  'so many SKUs named by an operator': { prepare: priced, work: () => refreshSkus(sql, SKUS) },
  'so many hints': {
    prepare: async () => {
      await marked();
      await sql`select catalog.hint(sku, 'me') from unnest(${SKUS}::text[]) sku`;
    },
    work: async () => {
      for (let read = 1; read > 0;)
        read = (await withHints(sql, (tx) => takeHints(tx, 1000)))?.hints.length ?? 0;
    },
  },
};

/** Like `analyzedEmpty`, if the whole mirror was empty when autovacuum ran. */
async function allAnalyzedEmpty(): Promise<void> {
  await sql`
    update pg_class set reltuples = 0, relpages = 1
    where relkind = 'r' and relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)`;
}

async function timeOf({ prepare, work }: Work, analyze: () => Promise<void>): Promise<number> {
  await empty(store.sql);
  await prepare();
  await analyze();
  const from = performance.now();
  await work();
  return performance.now() - from;
}

describe('on tables that were analyzed while they were empty', () => {
  test.each(Object.entries(WORKS))('%s takes no longer than on any others', async (_, work) => {
    const usual = await timeOf(work, async () => void (await sql.unsafe('analyze')));
    const misled = await timeOf(work, analyzedEmpty);
    // If each was compared with each, it took twenty to ninety times as long.
    expect(misled).toBeLessThan(Math.max(3000, 6 * usual));
  });
});

test('deleting SKUs in one statement takes no longer if the whole mirror was empty when analyzed', async () => {
  const deleting = { prepare: marked, work: () => sql`delete from catalog.skus` };
  const usual = await timeOf(deleting, async () => void (await sql.unsafe('analyze')));
  const misled = await timeOf(deleting, allAnalyzedEmpty);
  expect(misled).toBeLessThan(Math.max(3000, 6 * usual));
});

test('hints given one by one in one statement each read no more than the first', async () => {
  await empty(store.sql);
  await marked();
  await analyzedEmpty();
  const hinted = SKUS.slice(0, 3000);
  // A separate session, whose plans are made for the first hint.
  const own = connect(store.url, { max: 1 });
  const read = await own.begin(async (tx) => {
    await tx`select catalog.hint(sku, 'me') from unnest(${hinted}::text[]) sku`;
    const [table] = await tx<[{ read: number }]>`
      select (seq_tup_read + idx_tup_fetch)::int as read from pg_stat_xact_all_tables where relid = 'catalog_internal.hints'::regclass`;
    return table.read;
  });
  await own.end();
  // If each hint read those before it, that would be four and a half million.
  expect(read).toBeLessThan(10 * hinted.length);
});
