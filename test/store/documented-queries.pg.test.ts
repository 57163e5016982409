import fc from 'fast-check';
import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { codeBlocks, read, spokenQueries } from '../docs/markdown.ts';
import { doubting, MOVED, POISON, USUAL } from './doubting.ts';
import { answerAsked, found, knownSkus, mark, useStore } from './support.ts';

/* The answers of queries in the documents. Other tests check that all of them run. */

const store = useStore();

/** Returns the first block of SQL after a text of a page. */
function queryAfter(page: string, text: string): string {
  const [, rest = ''] = read(page).split(text);
  return /```sql\n(.*?)```/s.exec(rest)?.[1] ?? '';
}

test('sizes no longer offered: each that went, once, but none that is back or means something else', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A', 'B', 'C']);
  const us = { size_map_size_type: 'US' };
  const answer = async (sku: string, sizes: Record<string, number>, meta = us) => {
    await mark(sql, [sku]);
    await answerAsked(sql, found(sku, sizes, meta));
  };
  await answer('A', { 8: 80, 9: 90 });
  await answer('A', { 8: 80 });
  await answer('A', { 8: 80, 9: 95 });
  await answer('A', { 9: 95 });
  await answer('B', { 8: 80, 9: 90 });
  await answer('B', { 9: 90 });
  await answer('B', { 8: 70, 9: 90 });
  await answer('B', { 9: 90 });
  await answer('C', { 8: 80, 9: 90 });
  await answer('C', { 41: 80, 42: 90 }, { size_map_size_type: 'EU' });
  const rows = await sql.unsafe(queryAfter('docs/queries.md', '## Which sizes are no longer offered?'));
  expect(rows.map(({ sku, size, old_price: price }) => `${sku} ${size} ${price}`)).toEqual([
    'A 8 80',
    'B 8 70',
  ]);
});

/** Returns the statements in the documents that leave out prices by how far they can be trusted. */
function boundQueries(): { readonly at: string; readonly text: string }[] {
  return [...codeBlocks('sql'), ...spokenQueries()].flatMap(({ page, line, text }) =>
    text
      .split(/;[^\n]*\n|;$/)
      .filter((each) => /\bcatalog\.(current_prices|lowest_prices)\b/.test(each))
      .filter((each) => /\b(WHERE|AND)\b[^;]*(\bactionable\b|\bp_right\s*>)|lowest_prices\(/i.test(each))
      .map((each) => ({ at: `${page}:${line}`, text: each })),
  );
}

test('no query of the documents offers a doubted price or a size without one, whatever its bound', async () => {
  const { sql } = store;
  const { answer, priced } = doubting(store);
  const sizes = (price: number) => ({ ...USUAL, 8: null, 9: price });
  await priced('DD1391-100', 'FV5029-141');
  const us = { brand: 'Nike', model: 'Dunk', size_map_size_type: 'US' };
  await answer([found('DD1391-100', sizes(4800), us), found('FV5029-141', sizes(4800), us)]);
  await answer([found('DD1391-100', sizes(48), us)]);
  await sql`
    update catalog_internal.due set doubt = 'implausible', oddity = 'unit-of-many', due_at = now() + interval '5 minutes' where sku = 'DD1391-100'`;
  const [held] = await sql`
    select doubt, p_right from catalog.current_prices where sku = 'DD1391-100' and size = '9'`;
  expect(held?.['doubt']).toBe('implausible');
  expect(Number(held?.['p_right'])).toBeGreaterThan(0.9);
  const queries = boundQueries();
  expect(queries.length).toBeGreaterThan(5);
  const session = await sql.reserve();
  try {
    await session`create temporary table my_offers (sku text, size text, size_type text, ask integer)`;
    await session`insert into my_offers values ('DD1391-100', '9', 'US', 9000), ('FV5029-141', '9', 'US', 9000)`;
    const offered = new Set<unknown>();
    const wrong: unknown[] = [];
    for (const { at, text } of queries) {
      const rows = await session.unsafe(text);
      for (const row of rows) {
        if (row['sku'] === 'DD1391-100' || row['price'] === null) wrong.push([at, row]);
        if ('sku' in row) offered.add(row['sku']);
      }
    }
    expect(wrong).toEqual([]);
    expect([...offered]).toEqual(['FV5029-141']);
    const costs = await session.unsafe(queryAfter('docs/trust.md', 'A higher bound costs coverage:'));
    expect(Math.max(...costs.map(({ prices }) => Number(prices)))).toBe(5);
  } finally {
    await session`drop table if exists my_offers`;
    session.release();
  }
});

test('offers undercut by others: compares only sizes with the same meaning, even after a correction', async () => {
  const { sql } = store;
  const { answer, priced } = doubting(store);
  const [make = '', , compare = ''] = queryAfter('docs/queries.md', '## Where do others undercut me?').split(
    /(?<=;)\n/,
  );
  await priced('A', 'B', 'C');
  const typed = (sku: string, size_map_size_type: string | null) =>
    found(sku, { ...USUAL, 41: 4150 }, { size_map_size_type });
  await answer([typed('A', 'US'), typed('B', 'US'), typed('C', null)]);
  const session = await sql.reserve();
  const undercut = async () => (await session.unsafe(compare)).map(({ sku, above }) => `${sku} ${above}`);
  try {
    await session.unsafe(make);
    await session`
      insert into my_offers (sku, size, size_type, ask) values ('A', '41', 'US', 4250), ('B', '41', 'US', 4230), ('C', '41', null, 4200)`;
    expect(await undercut()).toEqual(['A 100', 'B 80', 'C 50']);
    await answer([typed('B', 'EU'), typed('C', 'EU')]);
    const [held] =
      await session`select bool_and(actionable) as actionable from catalog.current_prices where size = '41'`;
    expect(held).toEqual({ actionable: true });
    expect(await undercut()).toEqual(['A 100']);
  } finally {
    await session`drop table if exists my_offers`;
    session.release();
  }
});

test('the cheapest of each model: SKUs of an unknown brand or model do not form a model', async () => {
  const { sql } = store;
  const { answer, priced } = doubting(store);
  await priced('A', 'B', 'C', 'D');
  const of = (sku: string, price: number, brand: string | null, model: string | null) =>
    found(sku, { ...USUAL, 9: price }, { brand, model, size_map_size_type: 'US' });
  await answer([
    of('A', 4300, 'Nike', 'Dunk'),
    of('B', 4200, 'Nike', 'Dunk'),
    of('C', 4100, null, null),
    of('D', 4000, 'Nike', null),
  ]);
  const [, cheapest = ''] = queryAfter('docs/queries.md', '## Who offers this size cheapest?').split(
    '-- The cheapest',
  );
  const rows = await sql.unsafe(`-- ${cheapest}`);
  expect(rows.map(({ sku, price }) => `${sku} ${price}`)).toEqual(['B 4200']);
});

test('a table declared as in the documents is found by its key when joined from the mirror', async () => {
  const { sql } = store;
  await knownSkus(sql, ['S1', 'S2']);
  const [, column = ''] = /sku (text[^,]*), size text/.exec(read('docs/queries.md')) ?? [];
  const scanned = async (type: string) => {
    await sql.unsafe(`
      create table public.mine (sku ${type}, size ${type}, ask integer, primary key (sku, size));
      insert into public.mine select 'S' || n, '9', n from generate_series(1, 20000) n; analyze public.mine`);
    const plan = await sql`
      explain select m.ask from catalog.current_prices c join public.mine m using (sku, size) where c.sku = 'S1' and c.size = '9'`;
    await sql`drop table public.mine`;
    return plan.some((line) => String(line['QUERY PLAN']).includes('Seq Scan on mine'));
  };
  expect([await scanned('text'), await scanned(column)]).toEqual([true, false]);
});

test('falls to act on: neither a doubted fall, however large, nor a price that is back', async () => {
  const { answer, passMinutes, priced } = doubting(store);
  const [, falls = ''] = queryAfter('docs/queries.md', '## Which prices changed?').split('\n\n');
  const fell = async () => {
    const rows = await store.sql.unsafe<{ sku: string; size: string; new_price: number }[]>(falls);
    return rows.map(({ sku, size, new_price: price }) => `${sku} ${size} ${price}`);
  };
  await priced('A', 'B', 'C');
  await answer([
    found('A', { ...USUAL, 41: 1300 }),
    found('B', { ...USUAL, 41: 3900 }),
    found('C', { ...USUAL, 41: 3900 }),
  ]);
  await answer([found('C', USUAL)]);
  expect(await fell()).toEqual(['B 41 3900']);
  await passMinutes(6);
  await answer([found('A', { ...USUAL, 41: 1300 })]);
  expect(await fell()).toEqual(['A 41 1300', 'B 41 3900']);
});

test("a repricer's waiting list: yields actionable SKUs, and a doubted one once its doubt has ended", async () => {
  const { sql } = store;
  const { answer, passMinutes, priced } = doubting(store);
  const [make = '', insert = '', take = ''] = queryAfter('docs/steering.md', 'become actionable:').split(
    /(?<=;).*\n/,
  );
  const session = await sql.reserve();
  const taken = async () => {
    const rows =
      await session.unsafe<
        { sku: string; size: string | null; size_type: string | null; price: number | null }[]
      >(take);
    return rows.filter(({ size }) => size === '41' || size === null).map(Object.values);
  };
  try {
    await priced('A', 'B', 'C');
    await session.unsafe(make);
    const us = { size_map_size_type: 'US' };
    await answer([found('A', POISON, us), found('B', MOVED, us), { sku: 'C', kind: 'not_found' }]);
    await session.unsafe(insert);
    expect(await taken()).toEqual([
      ['B', '41', 'US', 4150],
      ['C', null, null, null],
    ]);
    expect(await taken()).toEqual([]);
    await passMinutes(6);
    await answer([found('A', POISON)]);
    expect(await taken()).toEqual([['A', '41', 'US', 41_000]]);
    expect(await session`select from waiting`).toHaveLength(0);
  } finally {
    await session`drop table if exists waiting`;
    session.release();
  }
});

/** Zones whose clocks change at midnight at some time of the year, and others. */
const ZONES = [
  'UTC',
  'America/Santiago',
  'Africa/Cairo',
  'Asia/Beirut',
  'America/Havana',
  'Asia/Kolkata',
  'Pacific/Apia',
];
const month = fc.record({
  year: fc.integer({ min: 2010, max: 2030 }),
  month: fc.integer({ min: 0, max: 11 }),
});

test('each day of a month appears once, in whichever zone the session is', async () => {
  const { sql } = store;
  await knownSkus(sql, ['DD1391-100']);
  await mark(sql, ['DD1391-100']);
  await answerAsked(sql, found('DD1391-100', { 9: 90 }));
  const query = queryAfter('docs/history.md', 'Each day of a month, for a SKU that');
  const session = connect(store.url, { max: 1 });
  const days = async (zone: string, begin: string, end: string) => {
    await session`select set_config('TimeZone', ${zone}, false)`;
    const text = query.replace('2026-01-01', begin).replace('2026-01-31', end);
    const rows = await session.unsafe<{ day: string; close: number }[]>(
      `select day::text, close from (${text.replace(/;\s*$/, '')}) q`,
    );
    expect(rows.filter(({ close }) => close !== 90)).toEqual([]);
    return rows.map(({ day }) => day);
  };
  try {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...ZONES), month, async (zone, drawn) => {
        const last = new Date(Date.UTC(drawn.year, drawn.month + 1, 0)).getUTCDate();
        const named = (day: number) =>
          new Date(Date.UTC(drawn.year, drawn.month, day)).toISOString().slice(0, 10);
        const all = Array.from({ length: last }, (_, n) => named(n + 1));
        expect(await days(zone, named(1), named(last))).toEqual(all);
      }),
      {
        numRuns: 30,
        examples: [
          ['America/Santiago', { year: 2026, month: 8 }],
          ['Africa/Cairo', { year: 2026, month: 3 }],
          ['Asia/Beirut', { year: 2026, month: 2 }],
        ],
      },
    );
  } finally {
    await session.end();
  }
});
