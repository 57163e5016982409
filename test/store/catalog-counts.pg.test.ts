import { describe, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { waitForLock } from '../../src/store/connection/locks.ts';
import {
  countCatalog,
  countCatalogAlone,
  createCountsReader,
  planCounts,
  readCounts,
  storedCounts,
} from '../../src/store/status/counts-reader.ts';
import { AGE_BUCKETS, type CatalogCounts } from '../../src/store/status/counts.ts';
import { eventually } from '../support/eventually.ts';
import { someCatalog } from './some-catalog.ts';
import { useStore } from './support.ts';

const store = useStore();

/** Counts the same figures with one plain query each. */
async function plainly(sql: Sql): Promise<Record<string, unknown>> {
  const [{ skus, fresh, price, metadata }] = await sql<[Record<string, unknown>]>`
    select
      (select json_object_agg(k, n) from (select state || ' ' || coalesce(price_source, 'unknown') as k, count(*) as n from catalog.skus group by 1) t) as skus,
      (select json_object_agg(k, n) from (
        select coalesce(s.price_source, 'unknown') as k, count(*) filter (where not c.stale and s.priced_at >= now() - case
          when s.price_source = 'live' then interval '30 minutes' else interval '1 day' end) as n
        from catalog.skus s join catalog.current_prices c using (sku) group by 1) t) as fresh,
      (select json_object_agg(k, n) from (
        select coalesce(price_source, 'unknown') || ' ' || le as k, count(*) filter (where now() - priced_at <= make_interval(secs => le)) as n
        from catalog.skus, unnest(${AGE_BUCKETS}::float8[]) le where state = 'priced' group by 1) t) as price,
      (select json_object_agg(k, n) from (
        select le as k, count(*) filter (where now() - refreshed_at <= make_interval(secs => le)) as n
        from catalog.products join catalog.skus using (sku), unnest(${AGE_BUCKETS}::float8[]) le where state = 'priced' group by 1) t) as metadata`;
  const [{ due, deferred }] = await sql<[Record<string, unknown>]>`
    select (select json_build_object('due', due_skus, 'deferred', deferred_skus) from catalog.sync_status) as due,
      (select count(*)::int from catalog_internal.due where deferrals > 0) as deferred`;
  return { skus, fresh, price, metadata, due, deferred };
}

function shown(counts: CatalogCounts): Record<string, unknown> {
  return {
    skus: Object.fromEntries(counts.skus.map((r) => [`${r.state} ${r.priceSource}`, r.count])),
    fresh: Object.fromEntries(counts.freshSkus.map((r) => [r.priceSource, r.count])),
    price: Object.fromEntries(
      counts.priceAge.flatMap(({ priceSource, ages }) =>
        ages.buckets.map(({ le, count }) => [`${priceSource} ${le}`, count]),
      ),
    ),
    metadata: Object.fromEntries(counts.metadataAge.buckets.map(({ le, count }) => [le, count])),
    due: { due: counts.due.reduce((sum, { count }) => sum + count, 0), deferred: counts.deferredSkus },
    deferred: counts.deferredSkus,
  };
}

describe('counting the catalog', () => {
  test.each([0.1, 0.2, 0.3, 0.4])('gives the same as plain queries (seed %d)', async (seed) => {
    const { sql } = store;
    await someCatalog(sql, 2000, seed);
    const counts = await countCatalog(sql);
    expect(shown(counts)).toEqual(await plainly(sql));
    const [sums] = await sql<[{ sum: number; oldest: number; n: number }]>`
      select sum(extract(epoch from now() - priced_at))::float8 as sum, max(extract(epoch from now() - priced_at))::float8 as oldest,
        count(*)::int as n from catalog.skus where state = 'priced'`;
    const { metadataAge, oldestMetadataAgeSeconds } = counts;
    expect(Math.abs(metadataAge.sumSeconds / sums.sum - 1)).toBeLessThan(1e-4);
    expect(metadataAge.count).toBe(sums.n);
    expect(Math.abs(oldestMetadataAgeSeconds - sums.oldest)).toBeLessThan(10);
  });

  test('of an empty mirror gives zeros and no cohorts', async () => {
    const counts = await countCatalog(store.sql);
    expect(counts).toMatchObject({
      skus: [],
      priceAge: [],
      freshSkus: [],
      due: [],
      deferredSkus: 0,
      oldestMetadataAgeSeconds: 0,
      metadataAge: { count: 0, sumSeconds: 0 },
    });
  });

  test('works if the database takes no writes, but stores nothing', async () => {
    const { sql, url } = store;
    await someCatalog(sql, 50, 0.5);
    const reader = connect(url, { max: 1 });
    try {
      await reader`set default_transaction_read_only = on`;
      expect((await countCatalog(reader)).metadataAge.count).toBeGreaterThan(0);
    } finally {
      await reader.end({ timeout: 2 });
    }
    expect(await storedCounts(sql)).toBeNull();
  });

  test('is skipped while another process counts', async () => {
    const { sql } = store;
    await sql.begin(async (tx) => {
      await waitForLock(tx, 'counts');
      await countCatalogAlone(sql);
      expect(await storedCounts(sql)).toBeNull();
    });
    await countCatalogAlone(sql);
    expect(await storedCounts(sql)).not.toBeNull();
  });
});

test.each([
  [null, 'count'],
  [{ ageMs: 0, countedInMs: 25 }, 'count'],
  [{ ageMs: 0, countedInMs: 1000 }, 'show'],
  [{ ageMs: 18_999, countedInMs: 1000 }, 'show'],
  [{ ageMs: 19_000, countedInMs: 1000 }, 'show-and-count'],
  [{ ageMs: 157_999, countedInMs: 1000 }, 'show-and-count'],
  [{ ageMs: 158_000, countedInMs: 1000 }, 'count'],
  [{ ageMs: -60_000, countedInMs: 1000 }, 'show'],
  [{ ageMs: -60_001, countedInMs: 1000 }, 'count'],
] as const)('for the last counts %j the plan is to %s', (last, plan) => {
  expect(planCounts(last)).toBe(plan);
});

describe('the counts of a large catalog', () => {
  /** Stores counts as if they had taken so long, so long ago. */
  async function counted(countedInMs: number, secondsAgo: number): Promise<void> {
    await someCatalog(store.sql, 20, 0.6);
    await countCatalog(store.sql);
    await store.sql`
      update catalog_internal.catalog_counts
      set counted_in_ms = ${countedInMs}, counted_at = now() - make_interval(secs => ${secondsAgo}), counts = counts || '{"deferredSkus": 999}'`;
  }
  const deferred = async () => (await storedCounts(store.sql))?.counts.deferredSkus;

  test('are shown as they are during the rest after a count', async () => {
    await counted(1000, 10);
    expect((await createCountsReader(store.sql)()).deferredSkus).toBe(999);
    expect((await readCounts(store.sql)).deferredSkus).toBe(999);
    expect(await deferred()).toBe(999);
  });

  test('are shown at once while a daemon counts new ones', async () => {
    await counted(1000, 60);
    const read = createCountsReader(store.sql);
    expect((await read()).deferredSkus).toBe(999);
    await eventually(async () => expect(await deferred()).not.toBe(999));
  });

  test('are waited for if the last ones are too old', async () => {
    await counted(1000, 300);
    expect((await createCountsReader(store.sql)()).deferredSkus).not.toBe(999);
  });

  test.each([
    ['a command', () => readCounts(store.sql)],
    ['a daemon', () => createCountsReader(store.sql)()],
  ])('are waited for by %s if a manifest was applied since', async (_, read) => {
    await counted(1000, 10);
    await store.sql`update catalog_internal.sync set manifest_applied_at = now() - interval '5 seconds'`;
    expect((await read()).deferredSkus).not.toBe(999);
  });

  test('are retried by a daemon after its rest if counting after a new manifest fails', async () => {
    await counted(1000, 10);
    await store.sql`update catalog_internal.sync set manifest_applied_at = now() - interval '5 seconds'`;
    let ms = 0;
    const read = createCountsReader(store.sql, () => (ms += 100));
    await store.sql`alter table catalog.skus rename to elsewhere`;
    try {
      await expect(read()).rejects.toMatchObject({ code: '42P01' });
    } finally {
      await store.sql`alter table catalog.elsewhere rename to skus`;
    }
    await expect(read(), 'nothing is counted').rejects.toMatchObject({ code: '42P01' });
    expect(await deferred()).toBe(999);
    ms += 2000;
    expect((await read()).deferredSkus).not.toBe(999);
  });

  test.each([
    [100, 0],
    [500, 3],
    [1000, 20],
    [5000, 320],
  ])(
    'that took %d ms are redone by a command after %d s, because there may be no daemon to do it',
    async (ms, ago) => {
      await counted(ms, ago);
      expect((await readCounts(store.sql)).deferredSkus).not.toBe(999);
    },
  );

  test.each([
    [1, 'shown as they are'],
    [3, 'counted'],
  ])('are, for a screen that is redrawn over and over, after %d s %s', async (ago, what) => {
    await counted(100, ago);
    const isOld = (await readCounts(store.sql, 'seldom')).deferredSkus === 999;
    expect(isOld ? 'shown as they are' : 'counted').toBe(what);
  });

  test('that took long are shown by a command as they are, until they are too old', async () => {
    await counted(5000, 200);
    expect((await readCounts(store.sql)).deferredSkus).toBe(999);
  });
});
