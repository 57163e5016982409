import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import type { Queryable } from '../../src/store/connection/db.ts';
import { endWaits } from '../../src/store/ledger/due.ts';
import { refreshAll, refreshSkus } from '../../src/store/sellers/refresh.ts';
import { addRules, askedFor, onlyScope, sortAll, standings } from './scoping.ts';
import {
  answerAsked,
  claimAll,
  found,
  knownSkus,
  mark,
  passHours,
  pricesOf,
  REFRESH,
  useStore,
} from './support.ts';

const store = useStore();
const NIKE = { brand: 'Nike', model: 'Dunk', category: 'shoes' };

/** Makes a mirror of SKUs that are all due for their first price. */
async function known(...skus: readonly string[]): Promise<void> {
  await knownSkus(store.sql, skus);
  await mark(store.sql, skus, 'new');
}

/** Returns the hours, rounded, until each SKU can be claimed. */
async function hoursToAsk(sql: Queryable): Promise<Record<string, number>> {
  const rows = await sql<{ sku: string; hours: number }[]>`
    select sku, round(extract(epoch from greatest(due_at, held_until) - now()) / 3600)::int as hours from catalog_internal.due`;
  return Object.fromEntries(rows.map(({ sku, hours }) => [sku, Math.max(0, hours)]));
}

async function delta(changed: readonly string[], more: { nowLive?: string[]; removed?: string[] } = {}) {
  await store.sql`update catalog_internal.sync set snapshot_id = 'token'`;
  const { nowLive = [], removed = [] } = more;
  await applyDelta(store.sql, { since: 'token', toSnapshot: 'token', changed, nowLive, removed });
}

describe('metadata', () => {
  test('is requested once, and only if a rule that includes SKUs needs it', async () => {
    const { sql } = store;
    await known('A', 'B', 'C', 'X');
    await onlyScope(sql, ['sku', 'A'], ['prefix', 'B'], ['brand', 'Nike', false]);
    expect(await askedFor(sql)).toEqual(['A', 'B']);
    await addRules(sql, ['brand', 'Puma'], ['prefix', 'X', false]);
    await sortAll(sql);
    expect(await standings(sql)).toEqual({ A: 'in new', B: 'in new', C: 'asked', X: 'out' });
    const claim = await claimAll(sql);
    expect(claim.skus.map(({ sku }) => sku)).toEqual(['A', 'B', 'C']);
    await applyAnswer(
      sql,
      claim,
      [found('A', { 9: 1 }, NIKE), found('B', { 9: 1 }, NIKE), found('C', { 9: 1 }, { brand: 'puma' })],
      REFRESH,
    );
    expect(await standings(sql)).toEqual({ A: 'in sweep', B: 'out', C: 'in sweep', X: 'out' });
  });

  test('of a SKU that is not found is requested after the same wait as in scope, and at once after a report', async () => {
    const { sql } = store;
    await known('A');
    await onlyScope(sql, ['brand', 'Nike']);
    for (const hours of [5, 40]) {
      await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'not_found' }], REFRESH);
      expect(await standings(sql)).toEqual({ A: 'asked' });
      expect(await hoursToAsk(sql)).toEqual({ A: hours });
      await addRules(sql, ['model', `of ${hours} hours`]);
      await sortAll(sql);
      expect(await askedFor(sql, 1e6)).toEqual([]);
      await passHours(sql, hours);
      await endWaits(sql, 100);
      await sql`update catalog.skus set asked_at = asked_at - make_interval(hours => 30), first_seen_at = first_seen_at - make_interval(hours => 30)`;
      expect(await askedFor(sql)).toEqual(['A']);
    }
    await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'not_found' }], REFRESH);
    expect(await askedFor(sql)).toEqual([]);
    await delta(['A']);
    await applyAnswer(sql, await claimAll(sql), [found('A', { 9: 1 }, NIKE)], REFRESH);
    expect(await standings(sql)).toEqual({ A: 'in again' });
  });

  test('missing from a record is requested after an hour, then after doubling waits up to METADATA_INTERVAL', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await knownSkus(sql, ['L'], { priceSource: 'live' });
    await mark(sql, ['A', 'L'], 'new');
    await onlyScope(sql, ['brand', 'Nike']);
    const bare = [found('A', { 9: 1 }), found('L', { 9: 1 }, { size_type: 'EU' })];
    for (const hours of [1, 1, 2, 4]) {
      await applyAnswer(sql, await claimAll(sql), bare, REFRESH);
      expect(await standings(sql)).toEqual({ A: 'asked', L: 'asked' });
      expect(await hoursToAsk(sql)).toEqual({ A: hours, L: hours });
      // No spare slot takes them before.
      expect(await askedFor(sql, 1e6)).toEqual([]);
      // The time that the test itself takes counts too.
      await passHours(sql, hours + 0.02);
      await endWaits(sql, 100);
      await sql`update catalog.skus set asked_at = asked_at - make_interval(hours => ${hours})`;
      await sql`update catalog.products set changed_at = changed_at - make_interval(hours => ${hours})`;
      expect(await askedFor(sql)).toEqual(['A', 'L']);
    }
    await sql`update catalog.products set changed_at = now() - interval '1 year'`;
    await applyAnswer(sql, await claimAll(sql), bare, REFRESH);
    expect(await hoursToAsk(sql)).toEqual({ A: 168, L: 168 });
    await delta(['A']);
    expect(await refreshSkus(sql, ['L'])).toMatchObject({ once: 1 });
    expect(await askedFor(sql)).toEqual(['A', 'L']);
    await applyAnswer(
      sql,
      await claimAll(sql),
      [found('A', { 9: 1 }, NIKE), found('L', { 9: 1 }, { brand: 'x' })],
      REFRESH,
    );
    expect(await standings(sql)).toEqual({ A: expect.stringContaining('in '), L: 'out' });
  });

  test('that is waited for: a SKU that comes into scope is due as usual for its state', async () => {
    const { sql } = store;
    await known('A', 'B', 'C', 'D');
    await onlyScope(sql, ['brand', 'Nike']);
    const bare = ['A', 'B', 'C'].map((sku) => found(sku, { 9: 1 }));
    await applyAnswer(sql, await claimAll(sql), [...bare, { sku: 'D', kind: 'not_found' }], REFRESH);
    await sql`update catalog_internal.due set held_until = due_at + interval '1 hour' where sku = 'A'`;
    await delta(['B']);
    await addRules(sql, ['prefix', '']);
    await sortAll(sql);
    expect(await standings(sql)).toEqual({ A: 'in sweep', B: 'in changed', C: 'in sweep', D: 'in metadata' });
    expect(await hoursToAsk(sql)).toEqual({ A: 20, B: 0, C: 20, D: 5 });
    expect(await askedFor(sql, 1e6)).toEqual(['A', 'B', 'C', 'D']);
    await sql`delete from catalog.scope where kind = 'prefix'`;
    await sortAll(sql);
    expect(await hoursToAsk(sql)).toEqual({ A: 1, B: 0, C: 1, D: 5 });
    expect(await askedFor(sql, 1e6)).toEqual(['B']);
    await refreshAll(sql, 'metadata');
    expect(await standings(sql)).toEqual({ A: 'asked', B: 'asked', C: 'asked', D: 'asked' });
    expect(await askedFor(sql)).toEqual(['A', 'B', 'C', 'D']);
  });

  test('that is known is not requested again outside the scope, nor that of a removed SKU', async () => {
    const { sql } = store;
    await known('A', 'B');
    await onlyScope(sql, ['brand', 'Nike']);
    const answers = [found('A', { 9: 1 }, { brand: 'Puma' }), found('B', { 9: 1 })];
    await applyAnswer(sql, await claimAll(sql), answers, REFRESH);
    await delta([], { removed: ['B'] });
    await applyAnswer(sql, await claimAll(sql), [{ sku: 'B', kind: 'not_found' }], REFRESH);
    expect(await standings(sql)).toEqual({ A: 'out', B: 'out' });
    await delta(['A', 'B']);
    expect(await askedFor(sql)).toEqual(['B']);
  });

  test('that changes moves a SKU in and out', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await answerAsked(sql, found('A', { 9: 1 }, NIKE));
    await onlyScope(sql, ['brand', 'nike']);
    await answerAsked(sql, found('A', { 9: 2 }, { ...NIKE, brand: 'Jordan' }));
    expect(await standings(sql)).toEqual({ A: 'out' });
    expect(await pricesOf(sql, 'A')).toEqual({ 9: 2 });
  });

  test('that fails to arrive is requested again after the usual wait of the SKU', async () => {
    const { sql } = store;
    await known('A', 'B');
    await onlyScope(sql, ['brand', 'Nike']);
    await applyAnswer(
      sql,
      await claimAll(sql),
      [
        { sku: 'A', kind: 'error', waitMs: 1 },
        { sku: 'B', kind: 'deferred', waitMs: 1 },
      ],
      REFRESH,
    );
    expect(await standings(sql)).toEqual({ A: 'asked', B: 'asked' });
    await passHours(sql, 1);
    await sql`update catalog_internal.due set held_until = null`;
    expect(await askedFor(sql)).toEqual(['A', 'B']);
    await sql`delete from catalog.scope`;
    await sortAll(sql);
    expect(await askedFor(sql)).toEqual([]);
    await addRules(sql, ['prefix', 'A']);
    await sortAll(sql);
    expect(await standings(sql)).toEqual({ A: 'in new', B: 'out' });
    expect(await askedFor(sql)).toEqual(['A']);
  });
});
