import { describe, expect, test } from 'vitest';
import { Baseline } from '../../src/store/catalog/baseline.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { eventually } from '../support/eventually.ts';
import { baseline, GENERATED_AT, line, marks, skuRow, standing } from './manifest.ts';
import { followWatchlist, found, answerAsked, mark, pricesOf, useStore } from './support.ts';
import { dueNow } from './watching.ts';

/* What others see and can do while a manifest is applied to the mirror. */

const store = useStore();
const SKUS = Array.from({ length: 500 }, (_, n) => `SKU-${n}`);
const all = (hash: string) => SKUS.map((sku) => line(sku, { hash }));

/** Resolves once a manifest's connection waits for somebody's lock. */
async function untilItWaits(sql: Sql): Promise<void> {
  const waiting = async () => {
    const [row] = await sql<[{ count: number }]>`
      select count(*)::int from pg_stat_activity
      where datname = current_database() and application_name = 'catalog-mirror manifest' and wait_event_type = 'Lock'`;
    return row.count;
  };
  await eventually(async () => expect(await waiting()).toBe(1));
}

/** Returns what a reader finds in one statement: how many SKUs have the new hash, and the mirror's snapshot. */
async function seen(reader: Sql): Promise<string> {
  const [row] = await reader<[{ moved: number; snapshot: string }]>`
    select count(*) filter (where hash = 'h2')::int as moved, (select snapshot_id from catalog.sync_status) as snapshot
    from catalog.skus`;
  return `${row.moved} of ${row.snapshot}`;
}

describe('readers', () => {
  test('find the former mirror or the new one, never a mixture, and wait for nobody', async () => {
    await standing(store, ...all('h1'));
    const reader = connect(store.url, { max: 1 });
    // A reader that waits for any lock fails.
    await reader`set lock_timeout = '1ms'`;
    const finds = new Set<string>();
    const during = { running: true };
    const reading = (async () => {
      while (during.running) finds.add(await seen(reader));
    })();
    try {
      let merging: Promise<unknown> = Promise.resolve();
      await store.sql.begin(async (other) => {
        // The merge gets as far as the ledger: the SKUs are written, but not committed.
        await other`select from catalog_internal.due where sku = 'SKU-0' for update`;
        merging = baseline(store.url, all('h2'));
        await untilItWaits(store.sql);
        expect(await seen(reader)).toBe('0 of m0');
      });
      await merging;
      expect(await seen(reader)).toBe('500 of m1');
    } finally {
      during.running = false;
      await reading;
      await reader.end({ timeout: 2 });
    }
    expect([...finds].toSorted()).toEqual(['0 of m0', '500 of m1']);
  });
});

describe('while a manifest is staged and compared, but not merged', () => {
  test('a delta and a bulk answer are applied, and survive the merge', async () => {
    const { sql, url } = store;
    await standing(store, line('A'), line('B'), line('C'));
    await sql`set lock_timeout = '1s'`;
    await baseline(url, [line('A', { hash: 'h2' }), line('B', { hash: 'h2' }), line('C', { hash: 'h2' })], {
      beforeMerge: async () => {
        const change = { since: 'm0', toSnapshot: 'd1', changed: ['A'], removed: [], nowLive: [] };
        expect(await applyDelta(sql, change)).toMatchObject({ applied: true, marked: 1 });
        await answerAsked(sql, found('B', { 9: 95 }));
      },
    });
    expect(await pricesOf(sql, 'B')).toEqual({ 9: 95 });
    expect(await skuRow(sql, 'A')).toMatchObject({ hash: null });
    expect(await skuRow(sql, 'B')).toMatchObject({ hash: 'h2' });
    // B was requested after the snapshot was generated, so its price is fresh.
    expect(await marks(sql)).toEqual({ A: 'changed', C: 'changed' });
  });
});

describe('while a manifest is merged', () => {
  test('a bulk answer for SKUs that the merge leaves alone is applied', async () => {
    const { sql, url } = store;
    await standing(store, line('moves'), line('stays'));
    let merging: Promise<unknown> = Promise.resolve();
    await sql.begin(async (other) => {
      await other`select from catalog_internal.due where sku = 'moves' for update`;
      merging = baseline(url, [line('moves', { hash: 'h2' }), line('stays')]);
      await untilItWaits(sql);
      await answerAsked(sql, found('stays', { 9: 95 }));
      expect(await pricesOf(sql, 'stays')).toEqual({ 9: 95 });
    });
    await merging;
    expect(await marks(sql)).toEqual({ moves: 'changed' });
  });

  test('a row that an answer updated just before is written in its new version', async () => {
    const { sql, url } = store;
    await standing(store, line('A'), line('gone'));
    const run = await Baseline.open(url);
    try {
      const { at, token } = await run.moment();
      await run.stage([line('A', { hash: 'h2' })], []);
      await run.count();
      let merging: Promise<unknown> = Promise.resolve();
      await sql.begin(async (other) => {
        await other`update catalog.skus set sizes = 7, priced_at = now() where sku in ('A', 'gone')`;
        const seen = { seenClaim: '0', seenAt: new Date(0) };
        const rest = { generatedAt: GENERATED_AT, ...seen, requestedAt: at, tokenAtRequest: token };
        merging = run.merge({ snapshotId: 'm1', lines: 1, livePricedSkuCount: null, ...rest });
        await untilItWaits(sql);
      });
      await merging;
    } finally {
      await run.close();
    }
    expect(await skuRow(sql, 'A')).toMatchObject({ hash: 'h2', sizes: 3 });
    expect(await skuRow(sql, 'gone')).toMatchObject({ hash: null, listed: false });
  });

  test('a SKU that somebody inserts without taking the lock counts as known', async () => {
    const { sql, url } = store;
    await standing(store, line('A'));
    let merging: Promise<unknown> = Promise.resolve();
    await sql.begin(async (other) => {
      await other`insert into catalog.skus (sku, in_manifest) values ('new', false)`;
      merging = baseline(url, [line('A'), line('new')]);
      await untilItWaits(sql);
    });
    await merging;
    expect(await skuRow(sql, 'new')).toMatchObject({ hash: 'h1', listed: true });
    expect(await marks(sql)).toEqual({ new: 'new' });
  });

  test('a ledger row that was left by hand without its SKU is no obstacle', async () => {
    await mark(store.sql, ['A'], 'sweep');
    await store.sql`update catalog_internal.due set due_at = 'infinity', rank = 7`;
    await store.sql`insert into catalog.watchlist (sku, weight) values ('B', 3)`;
    await followWatchlist(store.sql);
    await store.sql`delete from catalog_internal.due where sku = 'B'`;
    await store.sql`delete from catalog.skus where sku = 'B'`;
    await baseline(store.url, [line('A'), line('B'), line('C', { priceSource: 'live' })]);
    expect(await dueNow(store.sql)).toEqual(['A new 1', 'B new 3', 'C new 1']);
  });
});
