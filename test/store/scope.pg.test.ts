import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import { readScopeState, storeScopeMode } from '../../src/store/sellers/scope.ts';
import { readCounts } from '../../src/store/status/counts-reader.ts';
import { drawSample } from '../../src/store/trust/verification.ts';
import { baseline, line, standing } from './manifest.ts';
import { addRules, askedFor, claimInScope, onlyScope, sortAll, standings } from './scoping.ts';
import {
  answerAsked,
  claimAll,
  found,
  knownSkus,
  mark,
  movesOf,
  passHours,
  pricesOf,
  REFRESH,
  useStore,
} from './support.ts';
import { watchNow } from './watching.ts';

const store = useStore();
const NIKE = { brand: 'Nike', model: 'Dunk', category: 'shoes' };

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

describe('rules', () => {
  test('price nothing if there are none, and do not apply without MIRROR_SCOPE=scope', async () => {
    const { sql } = store;
    await known('A', 'B');
    await addRules(sql, ['sku', 'A', false]);
    await sortAll(sql);
    expect(await askedFor(sql)).toEqual(['A', 'B']);
    await sql`delete from catalog.scope`;
    await onlyScope(sql);
    expect(await standings(sql)).toEqual({ A: 'out', B: 'out' });
    expect(await askedFor(sql)).toEqual([]);
    expect(await readScopeState(sql)).toMatchObject({ scoped: true, rules: 0, moving: false });
    await storeScopeMode(sql, false);
    await sortAll(sql);
    expect(await askedFor(sql)).toEqual(['A', 'B']);
  });

  test('match SKUs exactly, and prefixes; the empty prefix matches all', async () => {
    const { sql } = store;
    await known('A', 'a', 'A1', 'B1', 'B22', 'ÄÖ', 'Ä');
    await onlyScope(sql, ['sku', 'A'], ['prefix', 'B2'], ['prefix', 'Ä']);
    expect(await askedFor(sql)).toEqual(['A', 'B22', 'Ä', 'ÄÖ'].toSorted());
    await addRules(sql, ['prefix', '']);
    await sortAll(sql);
    expect(await askedFor(sql)).toHaveLength(7);
  });

  test('for brands, models and categories ignore case and surrounding blanks', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B', 'C', 'D']);
    await answerAsked(
      sql,
      found('A', { 9: 1 }, { brand: ' NIKE', model: 'x' }),
      found('B', { 9: 1 }, { brand: 'Adidas', model: 'Dunk Low' }),
      found('C', { 9: 1 }, { brand: 'Adidas', category: 'Kids' }),
      found('D', { 9: 1 }, { model: 'Low' }),
    );
    await onlyScope(sql, ['brand', 'nike '], ['model', 'dunk low'], ['category', 'KIDS']);
    expect(await standings(sql)).toEqual({ A: 'in sweep', B: 'in sweep', C: 'in sweep', D: 'out' });
    await expect(addRules(sql, ['brand', 'Nike'])).rejects.toMatchObject({ code: '23505' });
    for (const [kind, value] of [
      ['brand', ' '],
      ['sku', ''],
      ['size', '9'],
      ['sku', 'x'.repeat(513)],
    ] as const)
      await expect(addRules(sql, [kind, value])).rejects.toMatchObject({ code: '23514' });
  });

  test('that exclude take precedence over those that include, and a rule for the SKU itself over both', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A1', 'A2', 'A3', 'B1']);
    await answerAsked(
      sql,
      found('A1', { 9: 1 }, NIKE),
      found('A2', { 9: 1 }, { ...NIKE, category: 'kids' }),
      found('A3', { 9: 1 }, { ...NIKE, category: 'kids' }),
      found('B1', { 9: 1 }, NIKE),
    );
    await onlyScope(
      sql,
      ['prefix', 'A'],
      ['brand', 'nike'],
      ['category', 'kids', false],
      ['sku', 'A3'],
      ['sku', 'B1', false],
    );
    expect(await standings(sql)).toEqual({ A1: 'in sweep', A2: 'out', A3: 'in sweep', B1: 'out' });
  });
});

describe('a change of the rules', () => {
  test('takes effect at its commit, both ways, and loses nothing', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B']);
    await answerAsked(sql, found('A', { 9: 90 }), found('B', { 9: 90 }));
    await answerAsked(sql, found('A', { 9: 80 }), found('B', { 9: 80 }));
    await onlyScope(sql, ['sku', 'A'], ['sku', 'B']);
    await sql.begin(async (tx) => {
      await tx`delete from catalog.scope where value = 'A'`;
      await sortAll(sql);
      expect(await standings(sql)).toEqual({ A: 'in sweep', B: 'in sweep' });
    });
    await sortAll(sql);
    expect(await standings(sql)).toEqual({ A: 'out', B: 'in sweep' });
    expect(await pricesOf(sql, 'A')).toEqual({ 9: 80 });
    expect(await movesOf(sql, 'A')).toEqual(['9: 90 → 80']);
    await passHours(sql, 30);
    expect(await askedFor(sql)).toEqual(['B']);
    await sql`update catalog.scope set value = 'A' where value = 'B'`;
    await sortAll(sql);
    expect(await standings(sql)).toEqual({ A: 'in sweep', B: 'out' });
    await sql`update catalog.scope set include = false`;
    await sortAll(sql);
    expect(await standings(sql)).toEqual({ A: 'out', B: 'out' });
    await sql`insert into catalog.scope (kind, value) values ('sku', 'B') on conflict (kind, value) do update set include = true`;
    await sql`update catalog.scope set include = true`;
    await sortAll(sql);
    expect(await standings(sql)).toEqual({ A: 'in sweep', B: 'in sweep' });
    await sql`truncate catalog.scope`;
    await sortAll(sql);
    expect(await standings(sql)).toEqual({ A: 'out', B: 'out' });
  });

  test('keeps when a SKU would be due, and makes none later than now', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B']);
    await answerAsked(sql, found('A', { 9: 90 }), found('B', { 9: 90 }));
    await onlyScope(sql, ['sku', 'none']);
    await sql`update catalog_internal.due set outside_due_at = now() - interval '3 days' where sku = 'B'`;
    await addRules(sql, ['prefix', '']);
    await sortAll(sql);
    const due = await sql`
      select sku, round(extract(epoch from due_at - now()) / 3600)::int as hours, lane, outside_due_at from catalog_internal.due order by sku`;
    expect([...due]).toEqual([
      { sku: 'A', hours: 20, lane: 6, outside_due_at: null },
      { sku: 'B', hours: 0, lane: 6, outside_due_at: null },
    ]);
  });

  test('that came without triggers is detected when all rules are compared', async () => {
    const { sql } = store;
    await known('A', 'B');
    await onlyScope(sql, ['sku', 'A']);
    await sql`alter table catalog.scope disable trigger user`;
    await sql`update catalog.scope set value = 'B'`;
    await sql`alter table catalog.scope enable always trigger scope_updated, enable always trigger scope_added, enable always trigger scope_deleted, enable always trigger scope_emptied`;
    await sortAll(sql);
    expect(await askedFor(sql)).toEqual(['A']);
    await sortAll(sql, true);
    expect(await askedFor(sql)).toEqual(['B']);
  });

  test('during a request lets the answer be applied, and the SKU is not requested again', async () => {
    const { sql } = store;
    await known('A', 'B');
    await onlyScope(sql, ['sku', 'A'], ['sku', 'B']);
    const claim = await claimAll(sql);
    await sql`delete from catalog.scope where value = 'A'`;
    await sortAll(sql);
    await applyAnswer(
      sql,
      claim,
      [found('A', { 9: 90 }), { sku: 'B', kind: 'deferred', waitMs: 0 }],
      REFRESH,
    );
    expect(await pricesOf(sql, 'A')).toEqual({ 9: 90 });
    expect(await standings(sql)).toEqual({ A: 'out', B: 'in new' });
    await addRules(sql, ['sku', 'A']);
    await sql`delete from catalog.scope where value = 'B'`;
    await sortAll(sql);
    await sql`update catalog_internal.due set held_until = null`;
    expect(await standings(sql)).toEqual({ A: 'in sweep', B: 'out' });
    expect(await askedFor(sql)).toEqual([]);
  });

  test('that is not sorted yet already applies when SKUs are claimed', async () => {
    const { sql } = store;
    await known('A', 'B');
    await onlyScope(sql, ['prefix', '']);
    await addRules(sql, ['sku', 'A', false]);
    await sql.begin(async (tx) => {
      await tx`select from catalog_internal.scoping for update`;
      await tx`select catalog_internal.read_scope(false)`;
    });
    expect((await readScopeState(sql)).moving).toBe(true);
    expect((await claimInScope(sql))?.skus.map(({ sku }) => sku)).toEqual(['B']);
    expect((await standings(sql))['A']).toBe('out');
  });
});

describe('a SKU out of scope', () => {
  test('keeps cohort, state and manifest up to date, and its price is due once it is in scope again', async () => {
    const { sql, url } = store;
    await standing(store, line('A'), line('B'), line('C'), line('D'));
    await onlyScope(sql, ['sku', 'A']);
    await delta(['B', 'C', 'N'], { nowLive: ['C'], removed: ['D'] });
    await baseline(
      url,
      [line('A'), line('B', { hash: 'h2' }), line('C', { priceSource: 'live' }), line('E')],
      {
        token: { snapshotId: 'm2' },
      },
    );
    const skus = await sql`select sku, state, price_source, in_manifest from catalog.skus order by sku`;
    expect(skus.map((row) => Object.values(row).join(' '))).toEqual([
      'A priced snapshot true',
      'B priced snapshot true',
      'C priced live true',
      'D removed snapshot false',
      'E pending snapshot true',
      'N pending snapshot false',
    ]);
    expect(await askedFor(sql)).toEqual([]);
    expect(await askedFor(sql, 1e6)).toEqual(['A']);
    const trust =
      await sql`select sku, doubt, stale, fresh, actionable, owed from catalog.sku_trust order by sku`;
    expect(trust.map(({ sku, doubt }) => `${sku} ${doubt}`)).toEqual([
      'A null',
      ...['B', 'C', 'D', 'E', 'N'].map((sku) => `${sku} out_of_scope`),
    ]);
    expect(trust.find(({ sku }) => sku === 'B')).toMatchObject({
      stale: true,
      fresh: false,
      actionable: false,
      owed: false,
    });
    await addRules(sql, ['prefix', '']);
    await sortAll(sql);
    expect(await askedFor(sql)).toEqual(['B', 'C', 'D', 'E', 'N']);
    expect((await standings(sql))['B']).toBe('in changed');
  });

  test('is not requested by name, in refreshes of all, or because it is watched', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B']);
    await answerAsked(sql, found('A', { 9: 90 }), found('B', { 9: 90 }));
    await onlyScope(sql, ['sku', 'A']);
    expect(await refreshSkus(sql, ['A', 'B', 'C'])).toMatchObject({ due: 1, added: ['C'], outside: 2 });
    await watchNow(sql, 'B', 'D');
    await refreshAll(sql, 'prices');
    await refreshAll(sql, 'metadata');
    expect(await askedFor(sql)).toEqual(['A']);
    await addRules(sql, ['prefix', '']);
    await sortAll(sql);
    expect(await askedFor(sql)).toEqual(['A', 'B', 'C', 'D']);
  });

  test('is requested by name once, and counted, if a rule needs its metadata', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await answerAsked(sql, found('A', { 9: 90 }, { brand: 'Puma' }));
    await onlyScope(sql, ['brand', 'Nike']);
    const refreshed = await refreshSkus(sql, ['A', 'C']);
    expect(refreshed).toMatchObject({ due: 0, added: ['C'], outside: 1, once: 1 });
    expect(await askedFor(sql)).toEqual(['C']);
  });

  test('is not counted, nor drawn for a verification', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B', 'C']);
    await answerAsked(sql, found('A', { 9: 90 }), found('B', { 9: 90 }));
    await mark(sql, ['C'], 'new');
    await onlyScope(sql, ['sku', 'A']);
    const counts = await readCounts(sql);
    expect(counts).toMatchObject({
      outOfScope: 2,
      skus: [{ state: 'priced', count: 1 }],
      freshSkus: [{ count: 1 }],
      trust: [{ priceSource: 'snapshot' }],
      metadataAge: { count: 1 },
      due: [],
    });
    const fresh = await sql`select sku from catalog.sku_trust where fresh`;
    expect([...fresh]).toEqual([{ sku: 'A' }]);
    expect(await drawSample(sql, { skus: 10, seed: 1 })).toMatchObject({ skus: ['A'], population: 1 });
    const [status] =
      await sql`select skus::int, pending_skus::int, skus_in_scope::int, due_skus::int from catalog.sync_status`;
    expect(status).toEqual({ skus: 3, pending_skus: 0, skus_in_scope: 1, due_skus: 0 });
  });
});
