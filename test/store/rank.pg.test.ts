import { expect, test } from 'vitest';
import { followWatchlist, knownSkus, mark, passHours, useStore } from './support.ts';

const store = useStore();

const rankOf = async (sku: string) => {
  const [row] = await store.sql`select rank, lane from catalog_internal.due where sku = ${sku}`;
  return row;
};

test('a SKU that is no longer watched ranks like any other from its next mark on', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await mark(sql, ['A'], 'sweep');
  await passHours(sql, -1);
  await sql`update catalog_internal.due set rank = 10`;
  await mark(sql, ['A'], 'changed');
  expect(await rankOf('A')).toEqual({ rank: 1, lane: 1 });
});

test('a SKU whose weight changed while it was not due has its new rank with its next mark', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await sql`insert into catalog.watchlist (sku, weight) values ('A', 5)`;
  await followWatchlist(sql);
  await sql`update catalog_internal.due set lane = 6, due_at = now() + interval '1 hour'`;
  await sql`update catalog.watchlist set weight = 20`;
  await followWatchlist(sql);
  expect(await rankOf('A')).toEqual({ rank: 5, lane: 6 });
  await mark(sql, ['A'], 'changed');
  expect(await rankOf('A')).toEqual({ rank: 20, lane: 1 });
});

test('a SKU that waits for a second answer is due at once if it is marked again', async () => {
  await knownSkus(store.sql, ['A']);
  await mark(store.sql, ['A'], 'doubted');
  await store.sql`
    update catalog_internal.due set doubt = 'implausible', held_until = now() + interval '5 minutes' where sku = 'A'`;
  await mark(store.sql, ['A'], 'changed');
  const [row] = await store.sql`select held_until from catalog_internal.due where sku = 'A'`;
  expect(row).toEqual({ held_until: null });
});
