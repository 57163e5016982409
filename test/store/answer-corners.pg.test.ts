import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import {
  answerAsked,
  claimAll,
  found,
  knownSkus,
  mark,
  movesOf,
  pricesOf,
  REFRESH,
  useStore,
} from './support.ts';

const store = useStore();

test('an answer is applied, and its moves kept, even if the clock was ahead at the previous answer', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await answerAsked(sql, found('A', { 9: 100 }));
  await mark(sql, ['A']);
  const claim = await claimAll(sql);
  await sql`update catalog.skus set asked_at = clock_timestamp() + interval '1 hour'`;
  expect(await applyAnswer(sql, claim, [found('A', { 9: 200 })], REFRESH)).toMatchObject({ accepted: 1 });
  expect(await pricesOf(sql, 'A')).toEqual({ 9: 200 });
  expect(await movesOf(sql, 'A')).toHaveLength(1);
});

test('an answer does not settle a SKU removed while it was requested: it stays due as it was marked', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B']);
  await answerAsked(sql, found('A', { 9: 100 }), found('B', { 9: 100 }));
  await mark(sql, ['A', 'B']);
  const claim = await claimAll(sql);
  const removed = { since: 's1', toSnapshot: 's2', changed: [], removed: ['A'], nowLive: [] };
  await sql`update catalog_internal.sync set snapshot_id = 's1'`;
  await applyDelta(sql, removed);
  // As if a clock had been set back between the removal and the claim.
  await sql`update catalog.skus set removed_at = now() - interval '1 hour' where sku = 'A'`;
  const answer = [found('A', { 9: 200 }), found('B', { 9: 200 })];
  expect(await applyAnswer(sql, claim, answer, REFRESH)).toMatchObject({ accepted: 1 });
  expect(await pricesOf(sql, 'A')).toEqual({});
  expect(await pricesOf(sql, 'B')).toEqual({ 9: 200 });
  expect((await claimAll(sql)).skus.map(({ sku }) => sku)).toEqual(['A']);
});

test('the time at which a SKU was first priced is set only once', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  const first = async () => {
    const [row] = await sql<[{ at: Date | null; priced: Date }]>`
      select first_priced_at as at, priced_at as priced from catalog.skus`;
    return row;
  };
  await answerAsked(sql, found('A', { 9: 100 }));
  const before = await first();
  expect(before.at).toEqual(before.priced);
  await sql`update catalog.skus set first_priced_at = first_priced_at - interval '1 day'`;
  await answerAsked(sql, found('A', { 9: 100 }));
  const after = await first();
  expect(before.priced.getTime() - (after.at?.getTime() ?? 0)).toBe(86_400_000);
});

test('a size without a price has not moved if only its entry changes', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  const entry = (text: string) => found('A', [{ size: '9', price: null, entry: text }]);
  const changedAt = async () => {
    const [row] = await sql<
      [{ at: Date; entry: unknown }]
    >`select changed_at as at, entry from catalog.prices`;
    return row;
  };
  await answerAsked(sql, entry('{"stock": 1}'));
  const before = await changedAt();
  await answerAsked(sql, entry('{"stock": 2}'));
  expect(await changedAt()).toEqual({ at: before.at, entry: { stock: 2 } });
  expect(await movesOf(sql, 'A')).toEqual([]);
});

test('a field with a column of its own counts as one change, although the product contains it too', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  const named = (name: string) => found('A', {}, { name, product: JSON.stringify({ name }) });
  await answerAsked(sql, named('old'));
  await answerAsked(sql, named('new'));
  expect([...(await sql`select field, old_value, new_value from catalog.product_history`)]).toEqual([
    { field: 'name', old_value: 'old', new_value: 'new' },
  ]);
});

test('sizes that V8 confuses as JSON keys keep their prices with their own SKU', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B']);
  await answerAsked(sql, found('A', { '\\': 100 }), found('B', { '"': 100 }));
  // V8 expects the key that it met before.
  for (let look = 0; look < 3; look += 1) await answerAsked(sql, found('A', { '\\': 100 }));
  await answerAsked(sql, found('B', { '"': 100 }));
  expect(await movesOf(sql, 'B')).toEqual([]);
  await answerAsked(sql, { sku: 'B', kind: 'not_found' });
  expect(await pricesOf(sql, 'B')).toEqual({});
});

test('sizes that V8 confuses as JSON keys are told apart in objects that Postgres returns', async () => {
  const { sql } = store;
  const read = async (object: string) => {
    const [row] = await sql<
      [{ json: object; jsonb: object }]
    >`select ${object}::text::json, ${object}::text::jsonb`;
    return [row.json, row.jsonb].map((each) => Object.keys(each));
  };
  await read(String.raw`{"§": 1, "7\\": 1}`);
  const [json, jsonb] = await read(String.raw`{"§": 1, "7\"": 1}`);
  // jsonb is in Postgres's order: § has two bytes, too.
  expect([json, jsonb]).toEqual([
    ['§', '7"'],
    ['7"', '§'],
  ]);
});
