import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { readWatchlist } from '../../src/store/sellers/watchlist.ts';
import {
  answerAsked,
  claimAll,
  found,
  knownSkus,
  ledger,
  mark,
  movesOf,
  REFRESH,
  useStore,
} from './support.ts';

const store = useStore();

const TABLES = [
  'catalog.skus',
  'catalog.prices',
  'catalog.products',
  'catalog_internal.due',
  'catalog_internal.live_rates',
  'catalog_internal.random_looks',
  'catalog_internal.live_backlog',
  'catalog_internal.hints',
  'catalog_internal.waiting_hints',
  'catalog_internal.refresh_requests',
  'catalog_internal.unreported_moves',
  'catalog_internal.promise_cases',
];

/**
 * Histories, the sellers' own list and its copy, SKUs that a changed rule concerns, lines that could not be read,
 * and an hour's implausible moves, which show a fault of the partner whichever SKUs have them.
 */
const KEPT = [
  'catalog.daily_prices',
  'catalog.price_history',
  'catalog.product_history',
  'catalog.watchlist',
  'catalog_internal.watched',
  'catalog_internal.scope_pending',
  'catalog_internal.odd_moves',
  'catalog_internal.quarantine',
  'catalog_internal.unread_lines',
];

/** Returns the SKUs in each of the tables. */
async function known(): Promise<Record<string, string[]>> {
  const rows = await Promise.all(
    TABLES.map((table) =>
      store.sql.unsafe<{ sku: string }[]>(`select distinct sku from ${table} order by sku`),
    ),
  );
  return Object.fromEntries(TABLES.map((table, n) => [table, (rows[n] ?? []).map(({ sku }) => sku)]));
}

const everywhere = (skus: readonly string[]) => Object.fromEntries(TABLES.map((table) => [table, skus]));

async function priced(...skus: string[]): Promise<void> {
  const { sql } = store;
  await knownSkus(sql, skus);
  await answerAsked(sql, ...skus.map((sku) => found(sku, { 8: 80, 9: null }, { name: sku })));
  await sql`insert into catalog_internal.live_rates (sku, alpha, beta) select sku, 1, 1 from catalog.skus`;
  await sql`insert into catalog_internal.promise_cases (sku, hour, cases, kept) select sku, now(), '{1}', '{1}' from catalog.skus`;
  await sql`insert into catalog_internal.random_looks (sku, look_at) select sku, now() from catalog.skus`;
  await sql`insert into catalog_internal.live_backlog (sku, place, listed_at) select sku, 1, now() from catalog.skus`;
  await sql`insert into catalog_internal.hints (sku, source, hinted_at) select sku, 'orders', now() from catalog.skus`;
  await sql`insert into catalog_internal.waiting_hints (sku, source, hinted_at, hazard) select sku, 'orders', now(), 1 from catalog.skus`;
  await sql`insert into catalog_internal.refresh_requests (sku) select sku from catalog.skus`;
  await sql`insert into catalog_internal.unreported_moves (sku, seen_at) select sku, now() from catalog.skus`;
}

test('each table that names SKUs loses them with catalog.skus, or keeps them for a reason', async () => {
  const tables = await store.sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'sku'
    where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)`;
  expect(tables.map(({ name }) => name).toSorted()).toEqual([...TABLES, ...KEPT].toSorted());
});

describe('SKUs that somebody deletes from catalog.skus', () => {
  test('are gone from every table, and readers of changes learn that their prices and they are gone', async () => {
    const { sql } = store;
    await priced('A', 'B', 'C');
    const [{ position }] = await sql<[{ position: string }]>`select catalog.changes_position() as position`;
    await sql`delete from catalog.skus where sku <> 'B'`;
    expect(await known()).toEqual(everywhere(['B']));
    expect(await movesOf(sql, 'A')).toEqual(['8: 80 → null']);
    const changes = await sql<{ what: string }[]>`
      select concat_ws(' ', kind, sku, field, old_value, old_price) as what from catalog.changes(${position})`;
    const told = ['price A 80', 'price C 80', 'sku A state priced', 'sku C state priced'];
    expect(changes.map(({ what }) => what)).toEqual(told);
  });

  test('are gone even if a session deletes in replica mode, or truncates the table', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`delete from catalog.skus where sku = 'A'`;
    });
    expect(await known()).toEqual(everywhere(['B']));
    await sql`truncate catalog.skus`;
    expect(await known()).toEqual(everywhere([]));
  });

  test('are not restored by an answer that was under way', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await mark(sql, ['A', 'B']);
    const claim = await claimAll(sql);
    await sql`delete from catalog.skus where sku = 'A'`;
    await applyAnswer(sql, claim, [found('A', { 8: 81 }), found('B', { 8: 81 })], REFRESH);
    expect(new Set(Object.values(await known()).flat())).toEqual(new Set(['B']));
  });

  test('are mirrored again if they are on the watchlist', async () => {
    const { sql } = store;
    await priced('A');
    await sql`insert into catalog.watchlist (sku) values ('A')`;
    await ledger(sql);
    await sql`delete from catalog.skus where sku = 'A'`;
    await readWatchlist(sql, { most: 100, everything: true });
    expect((await ledger(sql)).get('A')).toMatchObject({ reason: 'watched', lane: 1 });
    expect((await known())['catalog.skus']).toEqual(['A']);
  });
});
