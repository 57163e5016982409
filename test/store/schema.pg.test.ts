import { describe, expect, test } from 'vitest';
import { PACE_WAITS, type PutOff } from '../../src/pace/permit.ts';
import { paceLimits } from '../../src/pace/policy.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { noteCatalogCheck, noteManifestRefused } from '../../src/store/catalog/sync-state.ts';
import { noteBrokenChain, noteCatalogFault } from '../../src/store/catalog/tokens.ts';
import type { Sql, Tx } from '../../src/store/connection/db.ts';
import { pruneQuarantine, quarantine } from '../../src/store/quarantine.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import { storeSettings } from '../../src/store/setup/sql-settings.ts';
import { settingsWith } from '../support/settings.ts';
import { found, HOUR, knownSkus, answerAsked, mark, passHours, useStore } from './support.ts';

const store = useStore();

/** Runs statements as a seller with one of the roles, and rolls them back. */
async function as<T>(role: 'catalog_reader' | 'catalog_watcher', work: (tx: Tx) => Promise<T>): Promise<T> {
  const undone = new Error('undone');
  let result: T | undefined;
  await store.sql
    .begin(async (tx) => {
      await tx.unsafe(`set local role ${role}`);
      result = await work(tx);
      throw undone;
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error;
    });
  return result as T;
}

describe('the schema', () => {
  test('documents every table, view, column, function and sequence that a seller may see', async () => {
    const silent = await store.sql<{ what: string }[]>`
      select format('%s %s', c.relkind, c.relname) as what from pg_class c
      where c.relnamespace = 'catalog'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and not c.relispartition
        and obj_description(c.oid, 'pg_class') is null
      union all
      select format('%s.%s', c.relname, a.attname) from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = 'catalog'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
        and a.attnum > 0 and not a.attisdropped and col_description(c.oid, a.attnum) is null
      union all
      select p.oid::regprocedure::text from pg_proc p
      where p.pronamespace = 'catalog'::regnamespace and obj_description(p.oid, 'pg_proc') is null
      union all
      select t.typname from pg_type t
      where t.typnamespace = 'catalog'::regnamespace and t.typtype in ('d', 'e', 'r') and obj_description(t.oid, 'pg_type') is null
      order by 1`;
    expect(silent.map(({ what }) => what)).toEqual([]);
  });
});

describe('the role catalog_reader', () => {
  const RELATIONS = [
    'skus',
    'prices',
    'products',
    'price_history',
    'product_history',
    'watchlist',
    'current_prices',
    'sync_status',
  ];

  test.each(RELATIONS)('reads catalog.%s, in any state of the mirror', async (relation) => {
    const { sql } = store;
    const rows = () => as('catalog_reader', (tx) => tx.unsafe(`select * from catalog.${relation}`));
    await rows();
    await knownSkus(sql, ['A']);
    await answerAsked(sql, found('A', { 9: 90 }));
    await answerAsked(sql, found('A', { 9: 91 }, { name: 'N' }));
    await sql`insert into catalog.watchlist (sku) values ('A')`;
    await sql`update catalog_internal.sync set manifest_applied_at = now(), snapshot_generated_at = now()`;
    expect(await rows()).toHaveLength(1);
  });

  test.each([
    "insert into catalog.watchlist (sku) values ('A')",
    'update catalog.skus set state = state',
    'delete from catalog.prices',
    'truncate catalog.price_history',
    'select * from catalog_internal.due',
    'select * from catalog_internal.sync',
    "select catalog_internal.mark_due(array['A'], 'changed')",
  ])('may not: %s', async (statement) => {
    await expect(as('catalog_reader', (tx) => tx.unsafe(statement))).rejects.toThrow('permission denied');
  });
});

describe('the role catalog_watcher', () => {
  test('edits the watchlist, and the daemon marks what it inserted', async () => {
    const marked = await as('catalog_watcher', async (tx) => {
      await tx`insert into catalog.watchlist (sku) values ('A'), ('B')`;
      await tx`update catalog.watchlist set weight = 9 where sku = 'A'`;
      await tx`delete from catalog.watchlist where sku = 'B'`;
      const watched = await tx`select sku, weight from catalog.watchlist`;
      await tx`reset role`;
      await tx`select catalog_internal.read_watchlist(false, 10)`;
      await tx`select catalog_internal.watched_to_ledger(10)`;
      return {
        watched: [...watched],
        due: [...(await tx`select sku, reason from catalog_internal.due order by sku`)],
      };
    });
    expect(marked).toEqual({
      watched: [{ sku: 'A', weight: 9 }],
      due: [{ sku: 'A', reason: 'watched' }],
    });
  });

  test.each([
    "insert into catalog.skus (sku, in_manifest) values ('A', true)",
    'delete from catalog.prices',
    'truncate catalog.watchlist',
    'delete from catalog_internal.due',
    "select catalog_internal.mark_due(array['A'], 'changed')",
  ])('may not: %s', async (statement) => {
    await expect(as('catalog_watcher', (tx) => tx.unsafe(statement))).rejects.toThrow('permission denied');
  });
});

describe('catalog_state', () => {
  async function state(sql: Sql = store.sql): Promise<string> {
    const [row] = await sql<[{ state: string }]>`select catalog_state as state from catalog.sync_status`;
    return row.state;
  }
  /** Makes a mirror on a snapshot that was built some hours ago. */
  async function standing(hoursAgo: number): Promise<void> {
    const at = new Date(Date.now() - hoursAgo * HOUR);
    await store.sql`
      update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now(), snapshot_generated_at = ${at}`;
  }

  test('is none before the first baseline, even if the catalog has a fault', async () => {
    expect(await state()).toBe('none');
    await noteCatalogFault(store.sql, { kind: 'no-snapshot' });
    expect(await state()).toBe('none');
  });

  test.each(['no-snapshot', 'snapshot-stale'])(
    'is stale on %s, until a check or a delta is answered',
    async (kind) => {
      await standing(1);
      expect(await state()).toBe('ok');
      await noteCatalogFault(store.sql, { kind });
      expect(await state()).toBe('stale');
      await noteCatalogCheck(store.sql, { snapshotId: 's1', generatedAt: null, livePricedSkuCount: null });
      expect(await state()).toBe('ok');
    },
  );

  test('is stale while the delta route says so, whatever the manifest route answers', async () => {
    const { sql } = store;
    await standing(1);
    await noteCatalogFault(sql, { kind: 'snapshot-stale' });
    await sql`update catalog_internal.tasks set failures = 1, outcome = 'snapshot-stale' where task = 'delta'`;
    const check = () =>
      noteCatalogCheck(sql, { snapshotId: 's1', generatedAt: new Date(), livePricedSkuCount: 1 });
    await check();
    expect(await state()).toBe('stale');
    for (const putOff of [...PACE_WAITS, 'stopping' satisfies PutOff]) {
      await sql`update catalog_internal.tasks set outcome = ${putOff} where task = 'delta'`;
      await check();
      expect([putOff, await state()]).toEqual([putOff, 'stale']);
    }
    await sql`update catalog_internal.tasks set failures = 2, outcome = 'network' where task = 'delta'`;
    await check();
    expect(await state()).toBe('ok');
    await noteCatalogFault(sql, { kind: 'snapshot-stale' });
    await applyDelta(sql, { since: 's1', toSnapshot: 's1', changed: [], removed: [], nowLive: [] });
    expect(await state()).toBe('ok');
  });

  test('is stale when the snapshot is older than CATALOG_STALE_AFTER', async () => {
    await standing(25);
    expect(await state()).toBe('stale');
    const settings = settingsWith({ CATALOG_STALE_AFTER: '2d' });
    await storeSettings(store.sql, settings, paceLimits(settings));
    expect(await state()).toBe('ok');
  });

  test('counts a moving token as a fresh snapshot, until the next check reveals its age', async () => {
    await standing(25);
    const nothing = { changed: [], removed: [], nowLive: [] };
    await applyDelta(store.sql, { since: 's1', toSnapshot: 's1', ...nothing });
    expect(await state()).toBe('stale');
    await applyDelta(store.sql, { since: 's1', toSnapshot: 's2', ...nothing });
    expect(await state()).toBe('ok');
    await noteCatalogCheck(store.sql, {
      snapshotId: 's1',
      generatedAt: new Date(Date.now() - 25 * HOUR),
      livePricedSkuCount: 1,
    });
    expect(await state()).toBe('stale');
  });

  test('is stale while the chain is broken and the fresh manifest is refused', async () => {
    await standing(1);
    await noteBrokenChain(store.sql, 's1');
    expect(await state()).toBe('ok');
    await noteManifestRefused(store.sql, 'rejected-token');
    expect(await state()).toBe('stale');
  });
});

describe('views and ledger', () => {
  async function status() {
    const [row] =
      await store.sql`select due_skus::int, deferred_skus::int, pending_skus::int, live_skus::int from catalog.sync_status`;
    return row;
  }
  async function stale(): Promise<boolean[]> {
    const rows = await store.sql<{ stale: boolean }[]>`select stale from catalog.current_prices`;
    return rows.map((row) => row.stale);
  }

  test('show a price as stale while a re-price is due, but not while only metadata is', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await answerAsked(sql, found('A', { 9: 90 }));
    expect(await stale()).toEqual([false]);
    await mark(sql, ['A'], 'metadata');
    expect(await stale()).toEqual([false]);
    await mark(sql, ['A'], 'changed');
    expect(await stale()).toEqual([true]);
  });

  test('show an unlisted SKU as fresh or stale, however old its price', async () => {
    const { sql } = store;
    await refreshSkus(sql, ['A']);
    await answerAsked(sql, found('A', { 9: 90 }));
    await passHours(sql, 3);
    expect(await stale()).toEqual([false]);
    await passHours(sql, 30);
    expect(await stale()).toEqual([true]);
  });

  test('show a waiting deferred SKU as deferred, and as due only once its wait is over', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A'], { priceSource: 'live' });
    await mark(sql, ['A'], 'live', true);
    expect(await status()).toEqual({ due_skus: 1, deferred_skus: 0, pending_skus: 1, live_skus: 1 });
    await answerAsked(sql, { sku: 'A', kind: 'deferred', waitMs: HOUR });
    expect(await status()).toMatchObject({ due_skus: 0, deferred_skus: 1 });
    await passHours(sql, 2);
    expect(await status()).toMatchObject({ due_skus: 1, deferred_skus: 1 });
  });
});

test('pruning the quarantine keeps the newest samples', async () => {
  const { sql } = store;
  const record = (n: number) => ({ reason: 'unreadable', sku: null, sample: String(n) });
  await quarantine(sql, 'manifest', [1, 2, 3, 4, 5].map(record));
  await pruneQuarantine(sql, { keep: 2 });
  expect(await sql`select sample from catalog_internal.quarantine order by id`).toEqual([
    { sample: '4' },
    { sample: '5' },
  ]);
  await pruneQuarantine(sql, { keep: 9 });
  expect(await sql`select from catalog_internal.quarantine`).toHaveLength(2);
});
