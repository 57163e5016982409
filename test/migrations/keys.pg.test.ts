import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { createDatabase, serverMajor } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/process.ts';
import { versionBefore } from './support.ts';

const HERE = '0016_strange_databases';

async function emptyDatabase(): Promise<{ url: string; sql: Sql }> {
  const database = await createDatabase('empty');
  const sql = connect(database.url, { max: 3 });
  onTestFinished(async () => {
    await sql.end({ timeout: 2 });
    await database.drop();
  });
  return { url: database.url, sql };
}

/** Creates a database of the previous version with a few priced SKUs. */
async function before(): Promise<{ url: string; sql: Sql }> {
  const { url, sql } = await emptyDatabase();
  await migrateDatabase(url, { folder: versionBefore(await temporaryFolder(onTestFinished), HERE) });
  await sql`insert into catalog.skus (sku, in_manifest) select 'S-' || n, true from generate_series(1, 50) n`;
  await sql`insert into catalog.prices (sku, size, price, changed_at) select sku, '9', 1, now() from catalog.skus`;
  await sql`insert into catalog_internal.due (sku, lane, reason, due_at) select sku, 6, 'sweep', now() from catalog.skus`;
  return { url, sql };
}

const filesOf = async (sql: Sql) =>
  await sql`
    select relname, pg_relation_filenode(oid) as file from pg_class
    where relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace) and relkind = 'r' and reltuples >= -1
      and relname in ('skus', 'prices', 'products', 'due', 'product_history', 'price_history_0', 'live_rates') order by 1`;

test('no index has a sort order that an upgrade of the operating system may change', async () => {
  const { url, sql } = await emptyDatabase();
  await migrateDatabase(url);
  const sorted = await sql`
    select i.indexrelid::regclass::text as index, c.collname as by
    from pg_index i join pg_class t on t.oid = i.indrelid, unnest(i.indcollation) as k(number) join pg_collation c on c.oid = k.number
    where t.relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace) and c.collname <> 'C'`;
  expect([...sorted]).toEqual([]);
});

test("the migration changes the keys' collation without rewriting a table, and keeps what was granted to others", async () => {
  const { url, sql } = await before();
  const seller = `seller_${randomBytes(4).toString('hex')}`;
  await sql.unsafe(`create role ${seller}`);
  onTestFinished(async () => {
    const admin = connect(url, { max: 1 });
    await admin.unsafe(`drop owned by ${seller}; drop role ${seller}`);
    await admin.end({ timeout: 2 });
  });
  await sql.unsafe(
    `grant select on catalog.current_prices to ${seller}; grant execute on function catalog.movers to ${seller}`,
  );
  const files = await filesOf(sql);
  expect(files).toHaveLength(7);
  await migrateDatabase(url);
  expect(await filesOf(sql)).toEqual(files);
  const [kept] = await sql`
    select has_table_privilege(${seller}, 'catalog.current_prices', 'SELECT') as view,
      has_function_privilege(${seller}, 'catalog.movers(interval, integer)', 'EXECUTE') as function,
      has_table_privilege(${seller}, 'catalog.sku_trust', 'SELECT') as other, (select count(*)::int from catalog.prices) as prices`;
  expect(kept).toEqual({ view: true, function: true, other: false, prices: 50 });
});

test("a seller's view that depends on the keys is named, and everything stays unchanged", async () => {
  const { url, sql } = await before();
  await sql`create schema shop`;
  await sql`create view shop.mine as select sku, price from catalog.current_prices`;
  await expect(migrateDatabase(url)).rejects.toMatchObject({
    kind: 'migration-failed',
    cause: { message: expect.stringContaining('shop.mine') },
  });
  expect(await sql`select to_regclass('catalog_internal.account') as there`).toMatchObject([{ there: null }]);
  await sql`drop view shop.mine`;
  await migrateDatabase(url);
});

test('rows of SKUs that were deleted by hand before are gone after the upgrade', async () => {
  const { url, sql } = await before();
  await sql`delete from catalog.skus where sku <> 'S-1'`;
  await migrateDatabase(url);
  const [left] = await sql`
    select (select array_agg(sku) from catalog.prices) as prices, (select array_agg(sku) from catalog_internal.due) as due`;
  expect(left).toEqual({ prices: ['S-1'], due: ['S-1'] });
});

const LOCKING: Readonly<Record<string, (sql: Sql) => Promise<unknown>>> = {
  'a mark': async (sql) => await sql`select catalog_internal.mark_due(array['a', 'Z'], 'changed')`,
  // In more than one chunk.
  'a delta': (sql) =>
    applyDelta(sql, {
      since: 's1',
      toSnapshot: 's2',
      changed: ['a', 'Z', ...Array.from({ length: 6000 }, (_, n) => `new-${n}`)],
      nowLive: [],
      removed: [],
    }),
};

test.skipIf((await serverMajor()) < 15).each(Object.entries(LOCKING))(
  'in a database with a natural-language collation, %s locks rows in byte order, like everything else',
  async (_, lock) => {
    const { url } = await emptyDatabase();
    const name = `people_${randomBytes(4).toString('hex')}`;
    const admin = connect(url, { max: 1 });
    await admin.unsafe(`create database ${name} template template0 locale_provider icu icu_locale 'en'`);
    const people = new URL(url);
    people.pathname = `/${name}`;
    const sql = connect(people.href, { max: 4 });
    onTestFinished(async () => {
      await sql.end({ timeout: 2 });
      await admin.unsafe(`drop database ${name} with (force)`);
      await admin.end({ timeout: 2 });
    });
    await migrateDatabase(people.href);
    expect(await sql`select 'a' < 'Z' as people, 'a' < 'Z' collate "C" as bytes`).toEqual([
      { people: true, bytes: false },
    ]);
    await sql`insert into catalog_internal.due (sku, lane, reason, due_at) values ('a', 6, 'sweep', now()), ('Z', 6, 'sweep', now())`;
    await sql`update catalog_internal.sync set snapshot_id = 's1', manifest_applied_at = now()`;
    await sql.begin(async (tx) => {
      await tx`select from catalog_internal.due where sku = 'Z' for update`;
      const locking = lock(sql);
      void locking.catch(() => undefined);
      await eventually(async () => {
        const [row] = await sql`
          select count(*)::int as waiting from pg_locks join pg_stat_activity using (pid)
          where not granted and datname = current_database()`;
        expect(row?.['waiting']).toBeGreaterThan(0);
      });
      await tx`select from catalog_internal.due where sku = 'a' for update nowait`;
    });
  },
);
