import fc from 'fast-check';
import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { read } from '../docs/markdown.ts';
import { doubting, MOVED, POISON, USUAL } from './doubting.ts';
import { answerAsked, found, knownSkus, mark, useStore } from './support.ts';

/* What queries of the documents answer: that they run is tested of all of them. */

const store = useStore();

/** The first block of SQL after a text of a page. */
function queryAfter(page: string, text: string): string {
  const [, rest = ''] = read(page).split(text);
  return /```sql\n(.*?)```/s.exec(rest)?.[1] ?? '';
}

test('which sizes are no longer offered: those that went, once each, and neither what is back nor what means something else', async () => {
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

test('what fell, and may be acted on: neither a doubted fall, however large, nor what is back', async () => {
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

test('what a repricer waits with: the prices of SKUs that are actionable, and of a doubted one once its doubt has ended', async () => {
  const { sql } = store;
  const { answer, passMinutes, priced } = doubting(store);
  const [make = '', insert = '', take = ''] = queryAfter('docs/steering.md', 'by now:').split(/(?<=;).*\n/);
  const session = await sql.reserve();
  const taken = async () => {
    const rows = await session.unsafe<{ sku: string; size: string | null; price: number | null }[]>(take);
    return rows.filter(({ size }) => size === '41' || size === null).map(Object.values);
  };
  try {
    await priced('A', 'B', 'C');
    await session.unsafe(make);
    await answer([found('A', POISON), found('B', MOVED), { sku: 'C', kind: 'not_found' }]);
    await session.unsafe(insert);
    expect(await taken()).toEqual([
      ['B', '41', 4150],
      ['C', null, null],
    ]);
    expect(await taken()).toEqual([]);
    await passMinutes(6);
    await answer([found('A', POISON)]);
    expect(await taken()).toEqual([['A', '41', 41_000]]);
    expect(await session`select from waiting`).toHaveLength(0);
  } finally {
    await session`drop table if exists waiting`;
    session.release();
  }
});

/** Zones whose clocks are set at midnight at some time of the year, and others. */
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

test('each day of a month is there once, in whichever zone the session is', async () => {
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
