import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { baseline, line, standing } from './manifest.ts';
import { found, knownSkus, answerAsked, mark, useStore } from './support.ts';

const store = useStore();

describe('named queries', () => {
  const meta = (brand: string, model: string, size_map_size_type: string) => ({
    brand,
    model,
    size_map_size_type,
    name: model,
  });

  async function shelf(): Promise<void> {
    await baseline(
      store.url,
      ['A', 'B', 'C', 'D'].map((sku) => line(sku)),
    );
    await store.sql`update catalog_internal.sync set snapshot_generated_at = now()`;
    await answerAsked(
      store.sql,
      found('A', { 42: 300, 43: 100 }, meta('Nike', 'Dunk', 'EU')),
      found('B', { 42: 200 }, meta('Nike', 'Dunk', 'EU')),
      found('C', { 42: 250 }, meta('Nike', 'Jordan 1', 'US')),
      found('D', { 42: null, 44: 50 }, meta('Adidas', 'Samba', 'EU')),
    );
  }
  const cheapest = async (query: string) => {
    const rows = await store.sql.unsafe(`select sku, price, actionable from catalog.lowest_prices(${query})`);
    return rows.map((row) => `${row['sku']} ${row['price']}${row['actionable'] === true ? '' : '?'}`);
  };

  test.each([
    ["'42'", ['B 200', 'C 250', 'A 300']],
    ["'42', 'Nike'", ['B 200', 'C 250', 'A 300']],
    ["'42', 'Nike', 'Dunk'", ['B 200', 'A 300']],
    ["'42', of_size_type => 'US'", ['C 250']],
    ["'42', of_model => 'Jordan 1'", ['C 250']],
    ["'42', most => 1", ['B 200']],
    ["'44', 'Adidas'", ['D 50']],
    ["'42', 'nike'", []],
  ])('lowest_prices(%s) returns the matching prices, lowest first', async (query, rows) => {
    await shelf();
    expect(await cheapest(query)).toEqual(rows);
  });

  test('lowest_prices leaves out what may not be acted on, unless asked for it', async () => {
    await shelf();
    await mark(store.sql, ['B']);
    expect(await cheapest("'42', 'Nike', 'Dunk'")).toEqual(['A 300']);
    expect(await cheapest("'42', 'Nike', 'Dunk', only_actionable => false")).toEqual(['B 200?', 'A 300']);
  });

  test('lowest_prices distinguishes brands and models too long for an index by all of their letters', async () => {
    await knownSkus(store.sql, ['A', 'B']);
    const long = (end: string) => 'ยาว'.repeat(2000) + end;
    await answerAsked(
      store.sql,
      found('A', { 42: 1 }, meta(long('x'), long('x'), 'EU')),
      found('B', { 42: 2 }, meta(long('y'), long('x'), 'EU')),
    );
    const rows =
      await store.sql`select sku from catalog.lowest_prices('42', ${long('y')}, only_actionable => false)`;
    expect([...rows]).toEqual([{ sku: 'B' }]);
  });

  test('movers shows the first and newest prices, largest change first, and no sizes with another meaning', async () => {
    const { sql } = store;
    await knownSkus(sql, ['A', 'B', 'C']);
    const looks = [
      [
        found('A', { 42: 100, 43: 100 }),
        found('B', { 42: 100 }),
        found('C', { 42: 100 }, { size_map_size_type: 'EU' }),
      ],
      [
        found('A', { 42: 130, 44: 9 }),
        found('B', { 42: 90 }),
        found('C', { 42: 500 }, { size_map_size_type: 'US' }),
      ],
      [
        found('A', { 42: 110, 44: 9 }),
        found('B', { 42: 50 }),
        found('C', { 42: 510 }, { size_map_size_type: 'US' }),
      ],
    ];
    for (const fates of looks) await answerAsked(sql, ...fates);
    const movers = async (args = '') => {
      const rows = await sql.unsafe(
        `select sku, size, old_price, new_price, change, moves from catalog.movers(${args})`,
      );
      return rows.map((row) => Object.values(row).join(' '));
    };
    expect(await movers()).toEqual(['B 42 100 50 -50 2', 'A 42 100 110 10 2', 'C 42 500 510 10 1']);
    expect(await movers("'1 day', 1")).toEqual(['B 42 100 50 -50 2']);
    await sql`update catalog.price_history set observed_at = observed_at - interval '2 hours'`;
    expect(await movers()).toEqual([]);
  });

  test('skus_past_target returns the oldest first', async () => {
    await standing(store, line('A'), line('B'), line('L', { priceSource: 'live' }));
    await store.sql`update catalog.skus set priced_at = now() - interval '26 hours' where sku = 'B'`;
    const past = await store.sql`select sku, past_target, doubt from catalog.skus_past_target()`;
    expect([...past]).toEqual([
      { sku: 'B', past_target: true, doubt: 'past_target' },
      { sku: 'L', past_target: true, doubt: 'past_target' },
    ]);
    expect(await store.sql`select from catalog.skus_past_target(1)`).toHaveLength(1);
  });
});

test('the README names parameters as they can be given by name', async () => {
  const table = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| `catalog.'));
  const named = table.flatMap((line) =>
    [...line.matchAll(/catalog\.(\w+)\(([^)]+)\)/g)].map(([, routine = '', names = '']) => ({
      routine,
      names: names.split(', '),
    })),
  );
  const rows = await store.sql<{ routine: string; names: string[] }[]>`
    select proname as routine, proargnames as names from pg_proc where pronamespace = 'catalog'::regnamespace`;
  const are = new Map(rows.map(({ routine, names }) => [routine, names]));
  for (const { routine, names } of named) {
    const all = are.get(routine) ?? [];
    const exact = names.at(-1) !== '…';
    const given = exact ? names : names.slice(0, -1);
    expect([routine, given]).toEqual([routine, all.slice(0, given.length)]);
  }
  expect(named.length).toBeGreaterThan(8);
});
