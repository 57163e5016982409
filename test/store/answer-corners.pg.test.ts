import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
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

test('an answer to a request that was sent before the one answered last changes no price', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await answerAsked(sql, found('A', { 9: 100 }));
  await mark(sql, ['A']);
  const claim = await claimAll(sql);
  await sql`update catalog.skus set asked_at = clock_timestamp() + interval '1 hour'`;
  await applyAnswer(sql, claim, [found('A', { 9: 200 })], REFRESH);
  expect(await pricesOf(sql, 'A')).toEqual({ 9: 100 });
  expect(await movesOf(sql, 'A')).toEqual([]);
});

test('a SKU was first priced once', async () => {
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

test('a size without a price has not moved when only its entry changes', async () => {
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

test('a field that has a column of its own is one change, although the product has it, too', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  const named = (name: string) => found('A', {}, { name, product: JSON.stringify({ name }) });
  await answerAsked(sql, named('old'));
  await answerAsked(sql, named('new'));
  expect([...(await sql`select field, old_value, new_value from catalog.product_history`)]).toEqual([
    { field: 'name', old_value: 'old', new_value: 'new' },
  ]);
});
