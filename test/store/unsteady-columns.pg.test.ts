import { beforeEach, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { MemberWatch, type MutedChange, readUnsteadyColumns } from '../../src/store/answer/members.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import type { ProductRow } from '../../src/store/answer/types.ts';
import { pruneMemberHistory } from '../../src/store/history/retention.ts';
import { claimAll, found, knownSkus, mark, REFRESH, useStore } from './support.ts';

/* A metadata column for which the partner has one value in one answer, and another in the next. */

const store = useStore();
const SKUS = Array.from({ length: 30 }, (_, i) => `S${String(i).padStart(2, '0')}`);
const COLUMNS = [
  'name',
  'brand',
  'model',
  'gender_size',
  'category',
  'size_type',
  'size_map_size_type',
] as const;
let watch: MemberWatch;

beforeEach(async () => {
  watch = new MemberWatch();
  await knownSkus(store.sql, SKUS);
});

/** Refreshes all SKUs with what the partner says about each. */
async function refresh(says: (sku: string) => Partial<ProductRow>, by = watch): Promise<MutedChange> {
  await mark(store.sql, SKUS, 'changed');
  const claim = await claimAll(store.sql);
  const results = claim.skus.map(({ sku }) => {
    const product = JSON.stringify({ size_type: says(sku).size_type ?? 'US' });
    return found(sku, { 40: 1000 }, { ...says(sku), product });
  });
  const observers = { ...NO_OBSERVERS, members: by };
  return (await applyAnswer(store.sql, claim, results, REFRESH, { observers })).members;
}
const historyOf = async (field: string) => {
  const [{ rows }] = await store.sql<[{ rows: number }]>`
    select count(*)::int as rows from catalog.product_history where field = ${field}`;
  return rows;
};
const swings = (column: string, n: number) => ({ [column]: n % 2 === 0 ? 'US' : 'EU' });
const column = (name: string) => ({ part: 'column', path: JSON.stringify([name]) });

test.each(COLUMNS)(
  '%s: is reported once, keeps all of its history, and is reported as steady once it rests',
  async (name) => {
    const turned: MutedChange[] = [];
    for (let n = 0; n < 8; n += 1) turned.push(await refresh(() => swings(name, n)));
    expect(turned.flatMap(({ muted }) => muted)).toEqual([column(name)]);
    expect(await readUnsteadyColumns(store.sql)).toEqual([name]);
    expect(await historyOf(name)).toBe(7 * SKUS.length);
    expect(await historyOf('product')).toBe(0);

    const rested: MutedChange[] = [];
    for (let n = 0; n < 12; n += 1) rested.push(await refresh(() => swings(name, 1)));
    expect(rested.flatMap(({ unmuted }) => unmuted)).toEqual([column(name)]);
    expect(await readUnsteadyColumns(store.sql)).toEqual([]);
  },
);

test('a column that is corrected for every SKU, or alternates for a single one, is not unsteady', async () => {
  const turned: MutedChange[] = [];
  for (let n = 0; n < 20; n += 1)
    turned.push(await refresh((sku) => swings('brand', sku === 'S00' ? n : Math.min(1, Math.floor(n / 10)))));
  expect(turned.flatMap(({ muted }) => muted)).toEqual([]);
});

test('an unsteady column is no longer reported if nobody has found it moving for two days', async () => {
  for (let n = 0; n < 8; n += 1) await refresh(() => swings('brand', n));
  await store.sql`insert into catalog_internal.muted_members (part, path) values ('product', '["views"]')`;
  expect(await readUnsteadyColumns(store.sql)).toEqual(['brand']);
  await store.sql`update catalog_internal.muted_members set since = since - interval '49 hours'`;
  expect(await readUnsteadyColumns(store.sql)).toEqual([]);
});

test('its history is dropped with that of members, except for the meaning of size keys', async () => {
  const all = (n: number) =>
    Object.assign({}, ...COLUMNS.map((name) => swings(name, n))) as Partial<ProductRow>;
  for (let n = 0; n < 4; n += 1) await refresh(() => all(n));
  const kept = ['size_map_size_type', 'size_type'];
  await store.sql`
    select setval('catalog_internal.dropped_positions', (select max(id) from catalog.product_history))`;
  const unsteady = await readUnsteadyColumns(store.sql);
  expect(unsteady).toEqual([...COLUMNS].toSorted());
  await pruneMemberHistory(store.sql, { unsteady: ['brand'], limit: 10_000 });
  expect(await historyOf('brand')).toBe(0);
  expect(await historyOf('name')).toBe(3 * SKUS.length);
  await pruneMemberHistory(store.sql, { unsteady, limit: 10_000 });
  for (const name of COLUMNS)
    expect([name, await historyOf(name)]).toEqual([name, kept.includes(name) ? 3 * SKUS.length : 0]);
  await store.sql`select setval('catalog_internal.dropped_positions', 1, false)`;
});
