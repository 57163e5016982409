import { describe, expect, test } from 'vitest';
import { eachColumn, METADATA_COLUMNS } from '../../src/declared/metadata.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { endWaits } from '../../src/store/ledger/due.ts';
import {
  claimAll,
  everything,
  found,
  HOUR,
  knownSkus,
  ledger,
  REFRESH,
  mark,
  movesOf,
  passHours,
  pricesOf,
  useStore,
  answerAsked,
  stateOf,
  removeByDelta,
} from './support.ts';

const store = useStore();

async function metadataMoves(sku: string): Promise<string[]> {
  const rows = await store.sql<{ field: string; old: string | null; new: string | null }[]>`
    select field, old_value as old, new_value as new from catalog.product_history where sku = ${sku} order by id`;
  return rows.map((row) => `${row.field}: ${row.old} → ${row.new}`);
}

describe('metadata', () => {
  const METADATA = {
    name: 'N',
    model: 'M',
    brand: 'B',
    gender_size: 'men',
    size_type: 'US',
    category: 'shoes',
    size_map_size_type: 'US',
    product: '{"name":"N","extra":1}',
  };

  test('that changes is recorded in the history by field, named after the column', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, found('A', {}, METADATA));
    expect(await metadataMoves('A')).toEqual([]);
    await answerAsked(
      store.sql,
      found('A', {}, { ...METADATA, name: 'N2', gender_size: 'women', category: 'boots' }),
    );
    expect(await metadataMoves('A')).toEqual([
      'category: shoes → boots',
      'gender_size: men → women',
      'name: N → N2',
    ]);
  });

  test.each(METADATA_COLUMNS)(
    'in %s is stored, its change is history under this name, and its absence is no change',
    async (column) => {
      const { sql } = store;
      await knownSkus(sql, ['A', 'B']);
      const held = async () =>
        (await sql`select * from catalog.products where sku = 'A'`)[0]?.[column] as unknown;
      const metadata = { ...METADATA, ...eachColumn((name) => `old ${name}`) };
      await answerAsked(sql, found('A', {}, metadata), found('B', {}, metadata));
      expect(await held()).toBe(`old ${column}`);
      await answerAsked(sql, found('A', {}, { ...metadata, [column]: 'new' }), found('B', {}, metadata));
      expect(await held()).toBe('new');
      await answerAsked(sql, found('A', {}, { ...metadata, [column]: null }));
      expect(await held()).toBe('new');
      expect(await metadataMoves('A')).toEqual([`${column}: old ${column} → new`]);
      expect(await metadataMoves('B')).toEqual([]);
    },
  );

  test('outside the documented members is recorded as a history of the members that moved', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, found('A', {}, METADATA));
    await answerAsked(store.sql, found('A', {}, { ...METADATA, product: '{"name":"N","extra":2}' }));
    expect(await metadataMoves('A')).toEqual(['product: {"extra":1} → {"extra":2}']);
  });

  test('with its members in another order is the same metadata', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, found('A', {}, METADATA));
    await answerAsked(store.sql, found('A', {}, { ...METADATA, product: '{"extra":1,"name":"N"}' }));
    expect(await metadataMoves('A')).toEqual([]);
  });

  test('that is unchanged moves refreshed_at and leaves changed_at', async () => {
    await knownSkus(store.sql, ['A']);
    const first = await answerAsked(store.sql, found('A', {}, METADATA));
    const second = await answerAsked(store.sql, found('A', {}, METADATA));
    const rows = await store.sql`select refreshed_at, changed_at from catalog.products`;
    expect(rows).toEqual([{ refreshed_at: second.askedAt, changed_at: first.askedAt }]);
  });

  test('with a corrected size_type of the size_map is reported, because the sizes now mean something else', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B']);
    await answerAsked(store.sql, found('A', { 9: 90 }, METADATA), found('B', { 9: 90 }, METADATA));
    await mark(sql, ['A', 'B']);
    const results = [
      found('A', { 9: 90 }, { ...METADATA, size_map_size_type: 'EU' }),
      found('B', { 9: 90 }, METADATA),
    ];
    const applied = await applyAnswer(sql, await claimAll(sql), results, REFRESH);
    expect(applied).toMatchObject({ priceChanges: 0, metadataChanges: 1, sizeTypeChanges: ['A'] });
    expect(await metadataMoves('A')).toEqual(['size_map_size_type: US → EU']);
    const shown = await sql`select sku, size_type from catalog.current_prices order by sku`;
    expect(shown).toEqual([
      { sku: 'A', size_type: 'EU' },
      { sku: 'B', size_type: 'US' },
    ]);
  });
});

describe('an answer that comes too late', () => {
  test('and is applied again changes nothing at all', async () => {
    await knownSkus(store.sql, ['A', 'B', 'C']);
    const results: SkuResult[] = [
      found('A', { 9: 90 }, { name: 'N' }),
      { sku: 'B', kind: 'not_found' },
      { sku: 'C', kind: 'error', waitMs: HOUR },
    ];
    const claim = await answerAsked(store.sql, ...results);
    const before = await everything(store.sql);
    const again = await applyAnswer(store.sql, claim, results, REFRESH);
    expect(again).toMatchObject({ accepted: 0, priceChanges: 0, metadataChanges: 0 });
    expect(await everything(store.sql)).toEqual(before);
  });

  test('because another worker holds the SKU changes nothing, before and after that worker is done', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await mark(sql, ['A']);
    const old = await claimAll(sql);
    await passHours(sql, 3);
    await endWaits(sql, 9);
    const newer = await claimAll(sql);
    await applyAnswer(sql, old, [found('A', { 9: 1 })], REFRESH);
    await applyAnswer(sql, newer, [found('A', { 9: 2 })], REFRESH);
    await applyAnswer(sql, old, [found('A', { 9: 3 })], REFRESH);
    expect(await pricesOf(sql, 'A')).toEqual({ 9: 2 });
    expect(await movesOf(sql, 'A')).toEqual([]);
  });

  test('for a SKU that a delta removed meanwhile does not restore it; the SKU stays due', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await answerAsked(store.sql, found('A', { 9: 90 }));
    await mark(sql, ['A']);
    const claim = await claimAll(sql);
    // A removal in the same millisecond as the request counts as before it.
    await sql`select pg_sleep(0.002)`;
    await removeByDelta(store.sql, 'A');
    await applyAnswer(sql, claim, [found('A', { 9: 95 })], REFRESH);
    expect(await stateOf(store.sql, 'A')).toMatchObject({ state: 'removed', removed: true });
    expect(await pricesOf(sql, 'A')).toEqual({});
    expect((await claimAll(sql)).skus).toMatchObject([{ sku: 'A' }]);
  });
});

describe('a SKU that the partner answers with 0009', () => {
  const notFound = { sku: 'A', kind: 'not_found' } as const;
  const dueIn = async () => (await ledger(store.sql)).get('A')?.dueIn;
  const askAgain = async (reason = 'metadata') => {
    await mark(store.sql, ['A'], reason);
    await applyAnswer(store.sql, await claimAll(store.sql), [notFound], REFRESH);
  };

  test('after it was priced, if listed, is due again soon, then after as long as it has had no price', async () => {
    await knownSkus(store.sql, ['A'], { hash: 'h' });
    await answerAsked(store.sql, found('A', { 9: 90 }));
    await askAgain();
    expect(await stateOf(store.sql, 'A')).toMatchObject({ state: 'not_found' });
    expect(await dueIn()).toBeCloseTo(REFRESH.lostMs / HOUR, 1);
    for (const [hours, then] of [
      [0.1, REFRESH.lostMs / HOUR],
      [7, 7],
      [20, 20],
      [1000, REFRESH.notFoundMs / HOUR],
    ] as const) {
      await store.sql`update catalog.price_history set observed_at = now() - make_interval(secs => ${hours * 3600})`;
      await askAgain();
      expect(await dueIn()).toBeCloseTo(then, 1);
    }
  });

  test('without ever having a price is due again soon, then each time after twice the last interval', async () => {
    await knownSkus(store.sql, ['A'], { hash: 'h' });
    await askAgain();
    expect(await dueIn()).toBeCloseTo(REFRESH.lostMs / HOUR, 1);
    for (const [hours, then] of [
      [0.1, REFRESH.lostMs / HOUR],
      [5, 10],
      [1000, REFRESH.notFoundMs / HOUR],
    ] as const) {
      await store.sql`update catalog.skus set asked_at = now() - make_interval(secs => ${hours * 3600})`;
      await askAgain();
      expect(await dueIn()).toBeCloseTo(then, 1);
    }
  });

  test('after a new report is due again soon, then each time after the age of the report', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A'], { hash: 'h' });
    await answerAsked(sql, found('A', { 9: 90 }));
    await askAgain();
    await sql`update catalog.price_history set observed_at = now() - interval '1000 hours'`;
    // A manifest with another hash marks the SKU, but does not date a report.
    await askAgain('changed');
    expect(await dueIn()).toBeCloseTo(REFRESH.lostMs / HOUR, 1);
    for (const [hours, then] of [
      [0.1, REFRESH.lostMs / HOUR],
      [7, 7],
      [1000, REFRESH.notFoundMs / HOUR],
    ] as const) {
      await sql`update catalog.skus set reported_at = now() - make_interval(secs => ${hours * 3600})`;
      await askAgain();
      expect(await dueIn()).toBeCloseTo(then, 1);
    }
    // A removal does not suggest that the SKU comes back.
    await sql`update catalog.skus set reported_at = now() - interval '7 hours', removed_at = now() - interval '7 hours'`;
    await askAgain();
    expect(await dueIn()).toBeCloseTo(REFRESH.notFoundMs / HOUR, 1);
  });

  test('after a removal is due again soon if a delta lists it anew', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A'], { hash: 'h' });
    await answerAsked(sql, found('A', { 9: 90 }));
    await removeByDelta(sql, 'A');
    await askAgain('removed');
    expect(await dueIn()).toBe(Infinity);
    await sql`update catalog.price_history set observed_at = now() - interval '1000 hours'`;
    await sql`update catalog.skus set removed_at = now() - interval '1000 hours'`;
    await sql`update catalog_internal.sync set snapshot_id = 'token'`;
    await applyDelta(sql, { since: 'token', toSnapshot: 'next', removed: [], changed: ['A'], nowLive: [] });
    await applyAnswer(sql, await claimAll(sql), [notFound], REFRESH);
    expect(await stateOf(sql, 'A')).toMatchObject({ state: 'removed' });
    expect(await dueIn()).toBeCloseTo(REFRESH.lostMs / HOUR, 1);
  });

  test('is not due again soon if no list contains it', async () => {
    await knownSkus(store.sql, ['A'], { hash: 'h' });
    await store.sql`update catalog.skus set in_manifest = false`;
    await mark(store.sql, ['A']);
    await answerAsked(store.sql, found('A', { 9: 90 }));
    await askAgain();
    expect(await dueIn()).toBeCloseTo(REFRESH.notFoundMs / HOUR, 1);
  });
});

describe('a removed SKU', () => {
  test('that is answered with 0009 stays removed and is left alone until it is reported again', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await removeByDelta(store.sql, 'A');
    await applyAnswer(sql, await claimAll(sql), [{ sku: 'A', kind: 'not_found' }], REFRESH);
    expect(await stateOf(store.sql, 'A')).toEqual({ state: 'removed', answered: true, removed: true });
    expect((await ledger(sql)).get('A')?.dueIn).toBe(Infinity);
  });

  test('that is listed again but still 0009 is due again soon, in either cohort', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B']);
    for (const sku of ['A', 'B']) await removeByDelta(sql, sku);
    await answerAsked(sql, { sku: 'A', kind: 'not_found' }, { sku: 'B', kind: 'not_found' });
    await sql`update catalog.skus set in_manifest = true, price_source = case sku when 'A' then 'live' else 'snapshot' end`;
    await mark(sql, ['A', 'B']);
    await answerAsked(sql, { sku: 'A', kind: 'not_found' }, { sku: 'B', kind: 'not_found' });
    const due = await ledger(sql);
    for (const sku of ['A', 'B']) {
      expect(await stateOf(sql, sku)).toMatchObject({ state: 'removed' });
      expect(due.get(sku)?.dueIn).toBeCloseTo(REFRESH.lostMs / HOUR, 1);
    }
  });

  test('that is requested within the millisecond of its removal is answered like any other', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await removeByDelta(sql, 'A');
    const claim = await claimAll(sql);
    await sql`update catalog.skus set removed_at = ${claim.askedAt}::timestamptz + interval '900 microseconds'`;
    await applyAnswer(sql, claim, [found('A', { 9: 90 })], REFRESH);
    expect(await stateOf(sql, 'A')).toMatchObject({ state: 'priced', removed: false });
  });

  test('that has a record after all is priced again, and its sizes appear', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await answerAsked(store.sql, found('A', { 9: 90 }));
    await removeByDelta(store.sql, 'A');
    await applyAnswer(sql, await claimAll(sql), [found('A', { 9: 91 })], REFRESH);
    expect(await stateOf(store.sql, 'A')).toEqual({ state: 'priced', answered: true, removed: false });
    expect(await movesOf(sql, 'A')).toEqual(['9: 90 → null', '9: null → 91']);
  });
});
