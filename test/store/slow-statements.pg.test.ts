import { expect, onTestFinished, test } from 'vitest';
import { readSlowStatements } from '../../src/store/connection/at-work.ts';
import { connect } from '../../src/store/connection/db.ts';
import { readNeighbours } from '../../src/store/connection/neighbours.ts';
import { actingLogins } from '../support/acting-login.ts';
import { eventually } from '../support/eventually.ts';
import { useStore } from './support.ts';

const store = useStore();

/** Makes something of a seller's until the end of the test. */
async function sellers(make: string, drop: string): Promise<void> {
  await store.sql.unsafe(make);
  onTestFinished(async () => void (await store.sql.unsafe(drop)));
}

const SLOW = `
  create function public.slow() returns trigger language plpgsql as $$ begin perform pg_catalog.pg_sleep(60); return new; end $$`;
const DROP_SLOW = 'drop function public.slow() cascade';
const INSERT = `insert into catalog.skus (sku, in_manifest) values ('A', true)`;

/** Runs a statement of a mirror until the end of the test. */
function running(statement: string, url = store.url): void {
  const sql = connect(url, { max: 1 });
  const ended = sql.unsafe(statement).catch(() => {});
  onTestFinished(async () => {
    await store.sql`select pg_terminate_backend(pid) from pg_stat_activity where query = ${statement} and pid <> pg_backend_pid()`;
    await ended;
    await sql.end({ timeout: 0 });
  });
}

const found = () =>
  eventually(async () => {
    const statements = await readSlowStatements(store.sql, 0.1);
    expect(statements).toHaveLength(1);
    return statements[0];
  });

test("a statement of the mirror that is slow in a seller's trigger is named, with the trigger", async () => {
  await sellers(
    `${SLOW}; create trigger sellers_slow before insert on catalog.skus for each row execute function public.slow()`,
    DROP_SLOW,
  );
  running(INSERT);
  expect(await found()).toMatchObject({
    blockers: [],
    tables: [],
    attached: ['trigger sellers_slow on catalog.skus'],
  });
  expect(await readSlowStatements(store.sql)).toEqual([]);
});

test('a slow statement is named even if the login acts as another role', async () => {
  await using acting = await actingLogins(store.sql, store.url);
  await sellers(
    `${SLOW}; create trigger sellers_slow before insert on catalog.skus for each row execute function public.slow()`,
    DROP_SLOW,
  );
  const url = await acting.login();
  running(INSERT, url);
  const sql = connect(url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 1 }));
  await eventually(async () => expect(await readSlowStatements(sql, 0.1)).toHaveLength(1));
});

test("a statement that reads a seller's table for a foreign key is named, with the table and the key", async () => {
  await sellers(
    `create table public.orders (sku text references catalog.skus);
     create function public.slow_row() returns boolean language plpgsql as $$ begin perform pg_catalog.pg_sleep(60); return true; end $$;
     insert into catalog.skus (sku, in_manifest) values ('A', true);
     insert into public.orders values ('A');
     alter table public.orders enable row level security, force row level security;
     create policy slow on public.orders using (public.slow_row())`,
    'drop table public.orders cascade; drop function public.slow_row()',
  );
  await using acting = await actingLogins(store.sql, store.url);
  const url = await acting.login();
  await store.sql.unsafe('grant all on public.orders to public');
  running(
    `with gone as (delete from catalog.skus where sku = 'B') select from public.orders for update`,
    url,
  );
  expect(await found()).toMatchObject({
    tables: ['public.orders'],
    attached: [
      'foreign key orders_sku_fkey of public.orders to catalog.skus, without an index on its columns',
    ],
  });
});

test('a statement that is slow by itself, or only reads, is not named', async () => {
  await sellers('create table public.orders (sku text references catalog.skus)', 'drop table public.orders');
  running(`select pg_sleep(60), count(*) from public.orders`);
  running(`with gone as (delete from catalog.products where false) select pg_sleep(59)`);
  await eventually(async () => {
    const [{ n }] = await store.sql<[{ n: number }]>`
      select count(*)::int as n from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`;
    expect(n).toBe(2);
  });
  await store.sql`select pg_sleep(0.2)`;
  expect(await readSlowStatements(store.sql, 0.1)).toEqual([]);
});

test.each([
  ['no index', '', false],
  ['an index on both', 'create index on public.listing (sku, size)', true],
  ['an index on both, the other way round', 'create index on public.listing (size, sku)', true],
  ['an index on the SKU alone', 'create index on public.listing (sku)', true],
  ['a hash of it', 'create index on public.listing using hash (sku)', true],
  ['an index on the size alone', 'create index on public.listing (size)', false],
  ['an index that begins with something else', 'create index on public.listing (note, sku, size)', false],
  ['an index of some rows', `create index on public.listing (sku) where note = 'x'`, false],
  ['an index of those that refer to one', 'create index on public.listing (sku) where sku is not null', true],
])('foreign keys of others are found, with whether they are indexed: %s', async (_, make, indexed) => {
  await sellers(
    `create table public.listing (note text, size text, sku text, foreign key (size, sku) references catalog.prices (size, sku)); ${make}`,
    'drop table public.listing',
  );
  expect(await readNeighbours(store.sql)).toEqual([
    {
      kind: 'foreign-key',
      name: 'listing_size_sku_fkey',
      table: 'catalog.prices',
      by: 'public.listing',
      indexed,
    },
  ]);
});

test("others' triggers on the mirror's tables are found once per table, if they are enabled", async () => {
  await sellers(
    `${SLOW};
     create trigger mine after insert on catalog.price_history for each row execute function public.slow();
     create trigger off before insert on catalog.skus for each row execute function public.slow();
     alter table catalog.skus disable trigger off;
     create trigger theirs before insert on catalog.watchlist for each row execute function public.slow();
     create table public.parts (sku text references catalog.skus) partition by list (sku);
     create table public.part partition of public.parts for values in ('A');
     create index on public.parts (sku)`,
    `${DROP_SLOW}; drop table public.parts`,
  );
  expect(await readNeighbours(store.sql)).toEqual([
    { kind: 'foreign-key', name: 'parts_sku_fkey', table: 'catalog.skus', by: 'public.parts', indexed: true },
    { kind: 'trigger', name: 'mine', table: 'catalog.price_history', by: 'public.slow', indexed: null },
  ]);
});
