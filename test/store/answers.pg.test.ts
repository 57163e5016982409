import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import type { SkuResult } from '../../src/store/answer/types.ts';
import { endWaits } from '../../src/store/ledger/due.ts';
import {
  everything,
  found,
  HOUR,
  knownSkus,
  ledger,
  REFRESH,
  movesOf,
  passHours,
  pricesOf,
  useStore,
  answerAsked,
  stateOf,
} from './support.ts';

const store = useStore();
const HOSTILE = [
  "'",
  '"',
  '\\',
  '\\N',
  'NULL',
  'null',
  '{}',
  '{NULL}',
  'a,b',
  '',
  ' ',
  '\t',
  '\n',
  "'; drop table catalog.prices; --",
  '__proto__',
  'constructor',
  'é€😀',
  'e\u0301',
  '\uFFFD',
  '$1',
  '%s',
  'x'.repeat(512),
];

describe('prices', () => {
  test('of a first observation are stored without history', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, found('A', { 9: 100, 10: null }));
    expect(await pricesOf(store.sql, 'A')).toEqual({ 9: 100, 10: null });
    expect(await movesOf(store.sql, 'A')).toEqual([]);
    expect(await stateOf(store.sql, 'A')).toEqual({ state: 'priced', answered: true, removed: false });
  });

  test('that move, appear or vanish are each recorded once; prices that stay are not touched', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await answerAsked(store.sql, found('A', { 7: 70, 8: 80, 9: 90 }));
    const places = () => sql<{ at: string }[]>`select ctid::text as at from catalog.prices where size = '7'`;
    const before = await places();
    await answerAsked(store.sql, found('A', { 7: 70, 8: 88, 10: 100 }));
    expect(await pricesOf(sql, 'A')).toEqual({ 7: 70, 8: 88, 10: 100 });
    expect(await movesOf(sql, 'A')).toEqual(['10: null → 100', '8: 80 → 88', '9: 90 → null']);
    expect(await places()).toEqual(before);
  });

  test('that become unreadable and readable again move to null and back', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, found('A', { 9: 90 }));
    await answerAsked(store.sql, found('A', { 9: null }));
    await answerAsked(store.sql, found('A', { 9: 95 }));
    expect(await movesOf(store.sql, 'A')).toEqual(['9: 90 → null', '9: null → 95']);
  });

  test('that are all gone in an empty size_map leave a priced SKU without prices', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, found('A', { 9: 90 }));
    await answerAsked(store.sql, found('A', {}));
    expect(await pricesOf(store.sql, 'A')).toEqual({});
    expect(await movesOf(store.sql, 'A')).toEqual(['9: 90 → null']);
    expect(await stateOf(store.sql, 'A')).toMatchObject({ state: 'priced' });
  });

  test('keep their entry unaltered; an entry that moves without its price is stored, but no price change', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    const entry = (count: number) => [
      { size: '9', price: 90, entry: JSON.stringify({ price: 90, count, "o'": '\\"' }) },
    ];
    await answerAsked(store.sql, found('A', entry(1)));
    const [first] = await sql`select changed_at from catalog.prices`;
    await answerAsked(store.sql, found('A', entry(2)));
    const [second] = await sql`select entry, changed_at from catalog.prices`;
    expect(second).toEqual({
      entry: { price: 90, count: 2, "o'": '\\"' },
      changed_at: first?.['changed_at'],
    });
    expect(await movesOf(sql, 'A')).toEqual([]);
    await answerAsked(store.sql, found('A', { 9: 90 }));
    expect(await sql`select entry from catalog.prices`).toEqual([{ entry: null }]);
  });

  test('are dated by the refresh that saw them change', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A']);
    await answerAsked(store.sql, found('A', { 8: 80, 9: 90 }));
    const { askedAt } = await answerAsked(store.sql, found('A', { 8: 80, 9: 91 }));
    const rows = await sql`select size, changed_at = ${askedAt} as now from catalog.prices order by size`;
    expect(rows).toMatchObject([{ now: false }, { now: true }]);
    expect(await sql`select observed_at from catalog.price_history`).toEqual([{ observed_at: askedAt }]);
  });
});

describe('a SKU that the price routes do not know', () => {
  test('becomes not_found and loses its prices, with history; its sizes appear when it is back', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, found('A', { 9: 90 }));
    await answerAsked(store.sql, { sku: 'A', kind: 'not_found' });
    expect(await stateOf(store.sql, 'A')).toMatchObject({ state: 'not_found', answered: true });
    expect(await pricesOf(store.sql, 'A')).toEqual({});
    await answerAsked(store.sql, found('A', { 9: 90 }));
    expect(await stateOf(store.sql, 'A')).toMatchObject({ state: 'priced' });
    expect(await movesOf(store.sql, 'A')).toEqual(['9: 90 → null', '9: null → 90']);
  });

  test('from the start has its first observation later, without history', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, { sku: 'A', kind: 'not_found' });
    await answerAsked(store.sql, found('A', { 9: 90 }));
    expect(await movesOf(store.sql, 'A')).toEqual([]);
  });

  test('keeps its metadata', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, found('A', {}, { name: 'N' }));
    await answerAsked(store.sql, { sku: 'A', kind: 'not_found' });
    expect(await store.sql`select name from catalog.products`).toEqual([{ name: 'N' }]);
  });
});

describe('deferrals and errors', () => {
  test.each(['deferred', 'error'] as const)(
    '(%s) leave prices, state and metadata as they were',
    async (kind) => {
      await knownSkus(store.sql, ['A', 'P']);
      await answerAsked(store.sql, found('A', { 9: 90 }, { name: 'N' }));
      const shown = () =>
        store.sql`select s, p, m from catalog.skus s left join catalog.prices p using (sku) left join catalog.products m using (sku) order by s.sku`;
      const before = await shown();
      await answerAsked(store.sql, { sku: 'A', kind, waitMs: HOUR }, { sku: 'P', kind, waitMs: HOUR });
      expect(await shown()).toEqual(before);
    },
  );

  test('are counted, and an answer resets both counts', async () => {
    await knownSkus(store.sql, ['A']);
    const counts = async () => {
      const { deferrals, failures } = (await ledger(store.sql)).get('A')!;
      return { deferrals, failures };
    };
    for (const kind of ['error', 'error', 'deferred'] as const) {
      await answerAsked(store.sql, { sku: 'A', kind, waitMs: HOUR });
      await passHours(store.sql, 2);
      await endWaits(store.sql, 9);
    }
    expect(await counts()).toEqual({ deferrals: 1, failures: 2 });
    await answerAsked(store.sql, found('A'));
    expect(await counts()).toEqual({ deferrals: 0, failures: 0 });
  });
});

test('make a SKU not listed as live count against the live budget for one answer, then two, then four', async () => {
  await knownSkus(store.sql, ['A']);
  const countsAfter = async (...kinds: readonly ('deferred' | 'record')[]) => {
    const counts: boolean[] = [];
    for (const kind of kinds) {
      await answerAsked(store.sql, kind === 'record' ? found('A') : { sku: 'A', kind, waitMs: HOUR });
      counts.push((await ledger(store.sql)).get('A')?.live === true);
      await passHours(store.sql, 2);
      await endWaits(store.sql, 9);
    }
    return counts;
  };
  expect(await countsAfter('deferred', 'record')).toEqual([true, false]);
  expect(await countsAfter('deferred', 'deferred', 'record', 'record')).toEqual([true, true, true, false]);
  expect(await countsAfter('deferred', ...Array<'record'>(4).fill('record'))).toEqual([
    true,
    true,
    true,
    true,
    false,
  ]);
  // Each answer without a deferral, requested as what it is listed as, takes back one of them.
  await countsAfter(...Array<'record'>(3).fill('record'));
  expect(await countsAfter('deferred', 'record')).toEqual([true, false]);
  await store.sql`update catalog.skus set price_source = 'live'`;
  expect(await countsAfter('deferred', 'record', 'record')).toEqual([true, true, true]);
});

test('give a SKU the schedule of a live one while it counts as live', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  const after = async (result: SkuResult) => {
    await answerAsked(sql, result);
    const { live, reason, dueIn } = (await ledger(sql)).get('A')!;
    await passHours(sql, 100);
    await endWaits(sql, 9);
    return { live, reason, dueIn: Math.round(dueIn) };
  };
  const hours = (ms: number) => ms / HOUR;
  const swept = { live: false, reason: 'sweep', dueIn: hours(REFRESH.snapshotMs) };
  const deferred: SkuResult = { sku: 'A', kind: 'deferred', waitMs: HOUR };
  await after(deferred);
  expect(await after(found('A', { '9': 100 }))).toEqual(swept);
  await after(deferred);
  expect(await after(found('A', { '9': 200 }))).toEqual({
    live: true,
    reason: 'live',
    dueIn: hours(REFRESH.liveMs),
  });
  expect(await after(found('A', { '9': 300 }))).toEqual(swept);
});

describe('hostile text', () => {
  test('in SKUs, sizes, entries and metadata is stored and read back unchanged', async () => {
    const { sql } = store;
    const skus = HOSTILE.filter((text) => text !== '');
    await knownSkus(sql, skus);
    const prices = HOSTILE.map((size, i) => ({
      size,
      price: 1000 + i,
      entry: JSON.stringify({ [size]: size }),
    }));
    const results = skus.map((sku) =>
      found(sku, prices, { name: sku, product: JSON.stringify({ [sku]: [sku] }) }),
    );
    await answerAsked(store.sql, ...results);
    const before = await everything(sql);
    for (const sku of skus) {
      const rows = await sql`select size, price, entry from catalog.prices where sku = ${sku} order by price`;
      const wanted = HOSTILE.map((size, i) => ({
        size,
        price: 1000 + i,
        entry: JSON.parse(prices[i]!.entry) as unknown,
      }));
      expect(JSON.stringify(rows)).toBe(JSON.stringify(wanted));
      expect(await sql`select name from catalog.products where sku = ${sku}`).toEqual([{ name: sku }]);
    }
    await answerAsked(store.sql, ...results);
    expect((await everything(sql))['catalog.prices']).toEqual(before['catalog.prices']);
    expect(await sql`select from catalog.price_history`).toHaveLength(0);
    expect(await sql`select from catalog.product_history`).toHaveLength(0);
  });

  test('an answer to a claim without SKUs is applied without harm', async () => {
    await knownSkus(store.sql, ['A']);
    await answerAsked(store.sql, { sku: 'A', kind: 'deferred', waitMs: HOUR });
    const none = { number: '0', askedAt: new Date(), skus: [] };
    expect(await applyAnswer(store.sql, none, [], REFRESH)).toMatchObject({ accepted: 0 });
  });
});
