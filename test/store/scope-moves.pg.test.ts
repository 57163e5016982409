import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { acceptDoubted, readDoubts } from '../../src/store/answer/seller-doubts.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect } from '../../src/store/connection/db.ts';
import { unscheduleSnapshot, scheduleLive, unscheduledLive } from '../../src/store/live/order.ts';
import { readScope, readScopeState, storeScopeMode } from '../../src/store/sellers/scope.ts';
import { adoptAccount } from '../../src/store/setup/account.ts';
import { registerInstance } from '../../src/store/setup/instance.ts';
import { baseline, line } from './manifest.ts';
import { addRules, askedFor, onlyScope, sortAll, standings } from './scoping.ts';
import { answerAsked, found, knownSkus, mark, REFRESH, useStore } from './support.ts';
import { watchNow } from './watching.ts';

const store = useStore();

/** Makes a mirror of SKUs that are all due for their first price. */
async function known(...skus: readonly string[]): Promise<void> {
  await knownSkus(store.sql, skus);
  await mark(store.sql, skus, 'new');
}

async function delta(changed: readonly string[], more: { nowLive?: string[]; removed?: string[] } = {}) {
  await store.sql`update catalog_internal.sync set snapshot_id = 'token'`;
  const { nowLive = [], removed = [] } = more;
  await applyDelta(store.sql, { since: 'token', toSnapshot: 'token', changed, nowLive, removed });
}

describe('new SKUs', () => {
  test('are checked against the rules as they appear: by manifest, delta and watchlist', async () => {
    const { sql, url } = store;
    await onlyScope(sql, ['prefix', 'A']);
    await baseline(url, [line('A1'), line('B1'), line('A2', { priceSource: 'live' })]);
    await delta(['A3', 'B3'], { nowLive: ['A4', 'B4'] });
    await watchNow(sql, 'A5', 'B5');
    const seen = await standings(sql);
    expect(Object.keys(seen).filter((sku) => seen[sku] !== 'out')).toEqual(['A1', 'A2', 'A3', 'A4', 'A5']);
    expect(await askedFor(sql)).toEqual(['A1', 'A2', 'A3', 'A4', 'A5']);
    await addRules(sql, ['brand', 'Nike']);
    await sortAll(sql);
    await baseline(url, [line('A1'), line('B6'), line('A6')], { token: { snapshotId: 'm2' } });
    expect(await standings(sql)).toMatchObject({ B6: 'asked', A6: 'in new' });
  });
});

describe('neighbours', () => {
  test('who lock or truncate the rules block nobody, and uncommitted changes have no effect', async () => {
    const { sql, url } = store;
    await known('A', 'B');
    await onlyScope(sql, ['sku', 'A']);
    const other = connect(url, { max: 1 });
    try {
      await addRules(sql, ['sku', 'B']);
      await other
        .begin(async (tx) => {
          await tx`truncate catalog.scope`;
          const began = performance.now();
          expect(await readScope(sql, { everything: false, pieces: 10 })).toBe(false);
          expect(performance.now() - began).toBeLessThan(8000);
          await mark(sql, ['A'], 'changed');
          expect(await askedFor(sql)).toEqual(['A']);
          throw new Error('rolled back');
        })
        .catch((error: unknown) => expect(error).toMatchObject({ message: 'rolled back' }));
      await sortAll(sql);
      expect(await askedFor(sql)).toEqual(['A', 'B']);
    } finally {
      await other.end();
    }
  });

  test('who write SKUs are waited for by new rules, and no SKU keeps the place of the old ones', async () => {
    const { sql, url } = store;
    await known('A');
    await onlyScope(sql, ['prefix', 'A']);
    const other = connect(url, { max: 1 });
    try {
      await other.begin(async (tx) => {
        await tx`select catalog_internal.lock_new_skus()`;
        await tx`insert into catalog.skus (sku, in_manifest) values ('B', true)`;
        await tx`select catalog_internal.mark_due(array['B'], 'new')`;
        await addRules(sql, ['sku', 'B']);
        expect(await readScope(sql, { everything: false, pieces: 10 })).toBe(false);
      });
      await sortAll(sql);
      expect(await askedFor(sql)).toEqual(['A', 'B']);
    } finally {
      await other.end();
    }
  });

  test(
    'who write 200,000 rules wait for none of the work, and each rule counts',
    { timeout: 600_000 },
    async () => {
      const { sql } = store;
      await sql`insert into catalog.skus (sku, in_manifest) select 'S' || n, true from generate_series(1, 5000) n`;
      await sql`select catalog_internal.mark_due(array(select sku from catalog.skus), 'new')`;
      await onlyScope(sql);
      await sql`insert into catalog.scope (kind, value) select 'sku', 'S' || n from generate_series(1, 5000) n where n % 2 = 0`;
      await sql`insert into catalog.scope (kind, value) select 'prefix', 'T' || n from generate_series(1, 197500) n`;
      await sortAll(sql);
      const [inside] =
        await sql`select count(*)::int as skus from catalog_internal.due where outside_due_at is null`;
      expect(inside).toEqual({ skus: 2500 });
      await addRules(sql, ['sku', 'S1']);
      await sortAll(sql);
      expect((await standings(sql))['S1']).toBe('in new');
    },
  );
});

describe('scope and other parts of the mirror', () => {
  test('outside SKUs stay outside in incidents, doubts, another account, and when a clock is set back', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B', 'C']);
    await answerAsked(sql, found('A', { 9: 90 }), found('B', { 9: 90 }), found('C', { 9: 90 }));
    await sql`update catalog_internal.due set reason = 'live', live = true, lane = 2 where sku = 'B'`;
    await sql`
      update catalog_internal.due set reason = 'doubted', lane = 1, doubt = 'implausible', due_at = now() where sku = 'C'`;
    await onlyScope(sql, ['sku', 'A']);
    const stays = async () => {
      const rows = await sql`
        select sku, lane, due_at = 'infinity' as never, outside_due_at is not null as kept from catalog_internal.due where sku <> 'A' order by sku`;
      expect([...rows]).toEqual(['B', 'C'].map((sku) => ({ sku, lane: 0, never: true, kept: true })));
    };
    expect((await readDoubts(sql)).implausible).toBe(0);
    await acceptDoubted(sql, null);
    await stays();
    const everything = { after: '', limit: 10, scheduled: true, incident: true };
    expect((await unscheduledLive(sql, everything)).map(({ sku }) => sku)).toEqual(['A']);
    const [row] = await sql<[{ version: string }]>`
      select xmin::text as version from catalog_internal.due where sku = 'B'`;
    await scheduleLive(sql, [{ sku: 'B', ...row, alpha: 1, beta: 1, inMs: 0 }]);
    await stays();
    await unscheduleSnapshot(sql, { after: '', limit: 10, next: REFRESH });
    await stays();
    expect((await standings(sql))['B']).toBe('out');
    await sql`select catalog_internal.redate_due('1 day', '', 10)`;
    await stays();
    await adoptAccount(sql, { baseUrl: 'https://other.example', apiKey: 'other' });
    await stays();
    await addRules(sql, ['prefix', '']);
    await sortAll(sql);
    expect(await askedFor(sql)).toEqual(['A', 'B', 'C']);
  });

  test('daemons with another MIRROR_SCOPE are seen by all', async () => {
    const { sql, url } = store;
    const leave = await registerInstance(url, systemClock, true);
    try {
      expect(await readScopeState(sql)).toMatchObject({ scoped: false, otherwise: 1 });
      expect(await storeScopeMode(sql, true)).toBe(true);
      expect(await storeScopeMode(sql, true)).toBe(false);
      expect(await readScopeState(sql)).toMatchObject({ scoped: true, otherwise: 0 });
    } finally {
      await leave();
    }
  });
});
