import { expect, test } from 'vitest';
import { transaction, type Tx } from '../../src/store/connection/db.ts';
import { forgetOldHints, storeHints, takeHints, withHints } from '../../src/store/sellers/hints.ts';
import { knownSkus, mark, useStore } from './support.ts';

/*
 * What Postgres believes about a table's size must not matter. Some tables were analyzed while they were empty;
 * others have a few rows on many pages, as VACUUM or ANALYZE between a DELETE and an INSERT leaves them. For the
 * latter an index seems to cost more than the whole table, for each of thousands of SKUs. The test counts rows, so
 * that no clock decides.
 */

const store = useStore();
const SKUS = Array.from({ length: 1000 }, (_, n) => `S${String(n).padStart(5, '0')}`);

const BELIEFS = {
  'were empty': 'reltuples = 0, relpages = 1',
  'have two rows on all their pages': 'reltuples = 2, relpages = greatest(1, pg_relation_size(oid) / 8192)',
};

async function believe(sizes: string): Promise<void> {
  const { sql } = store;
  await sql`
    delete from pg_statistic where starelid in (
      select oid from pg_class where relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace))`;
  await sql.unsafe(`update pg_class set ${sizes}
    where relkind = 'r' and relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)`);
}

async function priced(): Promise<void> {
  const { sql } = store;
  await sql`update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now()`;
  await knownSkus(sql, SKUS, { priceSource: 'live' });
  await sql`update catalog.skus set state = 'priced', asked_at = now() - interval '1 hour', priced_at = now() - interval '1 hour'`;
  await sql`
    insert into catalog.products (sku, model, product, refreshed_at, changed_at) select sku, right(sku, 1), '{}', now(), now() from catalog.skus`;
  await mark(sql, SKUS, 'live', true);
}

const watchAll = (tx: Tx | typeof store.sql) => tx`
  insert into catalog.watchlist (sku, weight, max_age)
  select sku, 2, case when right(sku, 1) = '7' then interval '1 day' end from unnest(${SKUS}::text[]) sku`;

async function readList(tx: Tx | typeof store.sql, everything = false): Promise<void> {
  await tx`select catalog_internal.read_watchlist(${everything}::boolean, 100000)`;
  await tx`select catalog_internal.watched_to_ledger(2000)`;
}

async function watched(): Promise<void> {
  await priced();
  await watchAll(store.sql);
  await readList(store.sql);
}

async function sortAll(tx: Tx): Promise<void> {
  await tx`select catalog_internal.read_scope(false)`;
  for (let more = true; more;) {
    const [row] = await tx<[{ more: boolean }]>`select catalog_internal.follow_scope(1000) as more`;
    ({ more } = row);
  }
}

const ruled = (kind: string) => async () => {
  const { sql } = store;
  await priced();
  await sql`insert into catalog.scope (kind, value) select distinct ${kind}, case ${kind} when 'sku' then sku else left(sku, 5) end from catalog.skus`;
  await sql`select catalog_internal.set_scope(true)`;
};

async function hinted(): Promise<void> {
  await priced();
  await store.sql`insert into catalog_internal.hints (sku, source, hinted_at) select sku, 'me', now() from catalog.skus`;
}

async function readHints(tx: Tx): Promise<void> {
  const { hints, skus } = await takeHints(tx, 1000);
  expect(hints).toHaveLength(1000);
  await storeHints(tx, {
    waiting: skus.map(({ sku }) => ({
      sku,
      source: 'me',
      hintedAt: hints[0]?.hintedAt ?? '',
      hazard: 1,
      undone: 0,
    })),
    skus: skus.map(({ sku }) => ({ sku, hazard: 1, inMinutes: 1 })),
    sources: [],
    early: 0,
    earlyAt: 0,
  });
}

interface Work {
  readonly prepare: () => Promise<unknown>;
  readonly work: (tx: Tx) => Promise<unknown>;
  /** Begins the transaction as the daemon does for this work. */
  readonly begin?: typeof withHints;
}

const WORKS: Readonly<Record<string, Work>> = {
  'a new watchlist': {
    prepare: priced,
    work: async (tx) => {
      await watchAll(tx);
      await readList(tx);
    },
  },
  'other weights and ages': {
    prepare: watched,
    work: async (tx) => {
      await tx`update catalog.watchlist set weight = 3, max_age = interval '2 days'`;
      await readList(tx);
    },
  },
  'a watchlist that is compared as a whole': { prepare: watched, work: (tx) => readList(tx, true) },
  'a watchlist that is emptied': {
    prepare: watched,
    work: async (tx) => {
      await tx`delete from catalog.watchlist`;
      await readList(tx);
    },
  },
  'a rule for each SKU': { prepare: ruled('sku'), work: sortAll },
  'rules for prefixes': { prepare: ruled('prefix'), work: sortAll },
  'rules that are deleted': {
    prepare: async () => {
      await ruled('sku')();
      await store.sql.begin(sortAll);
    },
    work: async (tx) => {
      await tx`delete from catalog.scope where right(value, 1) < '5'`;
      await sortAll(tx);
    },
  },
  'requests of sellers': {
    prepare: watched,
    work: async (tx) => {
      await tx`insert into catalog_internal.refresh_requests (sku) select sku from unnest(${SKUS}::text[]) sku`;
      // In two statements, because the first does not see its own request.
      await tx`select catalog_internal.ask_refresh(${SKUS}::text[], true)`;
      await tx`select catalog_internal.take_refreshes(1000)`;
    },
  },
  hints: { prepare: hinted, work: readHints, begin: withHints },
  'hints that wait': {
    prepare: async () => {
      await hinted();
      await withHints(store.sql, readHints);
    },
    work: (tx) => forgetOldHints(tx),
    begin: withHints,
  },
};

/** Returns the rows read by this session, including those of earlier transactions that it has not reported yet. */
async function rowsRead(tx: Tx): Promise<number> {
  const [{ read }] = await tx<[{ read: number }]>`
    select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read from pg_stat_xact_user_tables`;
  return read;
}

test.each(
  Object.keys(WORKS).flatMap((name) =>
    Object.entries(BELIEFS).map(([belief, sizes]) => [name, belief, sizes] as const),
  ),
)('%s: each row is read only a few times if tables %s', async (name, _, sizes) => {
  const { prepare, work, begin = transaction } = WORKS[name] as Work;
  await prepare();
  await believe(sizes);
  const read = await begin(store.sql, async (tx) => {
    const before = await rowsRead(tx);
    await work(tx);
    return (await rowsRead(tx)) - before;
  });
  // If each is compared with each, one statement reads a million rows.
  expect(read).toBeLessThan(100 * SKUS.length);
});
