import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { prepareTables } from '../../src/queues/postgres-queues.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { dropRoles } from '../security/neighbours.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { ALL, applied, laterVersion, versionBefore } from './support.ts';

let empty: TestDatabase;
let database: TestDatabase;
let sql: Sql;
/** Switches to a ready mirror, because migrating one would take seconds. */
async function useMirror(): Promise<void> {
  const [own, other] = [await createDatabase('migrated'), sql];
  [database, sql] = [own, connect(own.url, { max: 2 })];
  onTestFinished(async () => {
    await sql.end({ timeout: 2 });
    [database, sql] = [empty, other];
    await own.drop();
  });
}

beforeAll(async () => {
  empty = await createDatabase('empty');
  [database, sql] = [empty, connect(empty.url, { max: 2 })];
});
afterEach(async () => {
  await sql`drop schema if exists catalog, catalog_internal, catalog_queue, drizzle cascade`;
  await sql`drop table if exists public.skus, public.products`;
});
afterAll(async () => {
  await sql.end({ timeout: 2 });
  await empty.drop();
});

/** Creates a login role with the rights that the mirror's role needs, and its URL. Dropped after the test. */
async function plainRole(
  name = `mirror_${randomBytes(6).toString('hex')}`,
): Promise<{ role: string; url: string }> {
  onTestFinished(async () => {
    await sql.unsafe(`drop owned by ${name} cascade`);
    await dropRoles(name);
  });
  const url = new URL(database.url);
  await sql.unsafe(`
    create role ${name} login password 'p';
    grant create, temporary on database ${url.pathname.slice(1)} to ${name};`);
  url.username = name;
  url.password = 'p';
  return { role: name, url: url.href };
}

/**
 * Returns all that a dump would contain, and more: each object with its identity, owner and rights, and each row
 * of other applications' tables.
 */
async function dump(): Promise<Record<string, unknown>> {
  const of = async (query: string) => (await sql.unsafe(query)).map((row) => JSON.stringify(row));
  const tables = await sql<{ name: string }[]>`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema') order by 1`;
  return {
    schemas: await of(
      "select oid, nspname, nspowner, nspacl::text from pg_namespace where nspname !~ '^pg_(temp|toast_temp)' order by 1",
    ),
    relations: await of(
      "select oid, relname, relnamespace, relowner, relkind, relacl::text, relfilenode from pg_class where relnamespace::regnamespace::text !~ '^pg_(temp|toast_temp)' order by 1",
    ),
    columns: await of(
      'select attrelid, attname, atttypid, attacl::text from pg_attribute where attrelid > 16383 order by 1, attnum',
    ),
    functions: await of(
      'select oid, proname, pronamespace, proowner, proacl::text, prosrc from pg_proc order by 1',
    ),
    types: await of(
      "select oid, typname, typnamespace, typowner, typacl::text from pg_type where typnamespace::regnamespace::text !~ '^pg_(temp|toast_temp)' order by 1",
    ),
    extensions: await of('select oid, extname, extnamespace from pg_extension order by 1'),
    rights: await of(
      'select oid, defaclrole, defaclnamespace, defaclacl::text from pg_default_acl order by 1',
    ),
    rows: await Promise.all(
      tables.map(({ name }) => of(`select '${name}', t::text from ${name} t order by 2`)),
    ),
  };
}

async function refused(url = database.url, folder?: string) {
  const before = await dump();
  const error: unknown = await migrateDatabase(url, folder === undefined ? {} : { folder }).catch(
    (thrown: unknown) => thrown,
  );
  expect(await dump()).toEqual(before);
  expect(error).toMatchObject({ name: 'OccupiedError' });
  return error as Error & { kind: string; hint: string };
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'occupied-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const SHOP_TABLES = `
  create table catalog.products (id int primary key, title text);
  create table catalog.skus (code text primary key);
  insert into catalog.products values (1, 'shirt');`;

describe('objects of another application are named and left unchanged:', () => {
  test.each<[string, string, RegExp]>([
    [
      'tables of other and the same names',
      SHOP_TABLES,
      /schema catalog belongs to \S+ and has table catalog\.products, table catalog\.skus/,
    ],
    [
      'a table of no name of the mirror',
      'create table catalog.orders (id int)',
      /has table catalog\.orders$/m,
    ],
    ['a view', 'create view catalog.current_prices as select 1 as price', /view catalog\.current_prices/],
    [
      'a materialized view',
      'create materialized view catalog.m as select 1 as x',
      /materialized view catalog\.m/,
    ],
    [
      'a function',
      "create function catalog.hint(text, text) returns int language sql as 'select 1'",
      /function catalog\.hint\(/,
    ],
    ['a type', "create type catalog.state as enum ('a')", /type catalog\.state/],
    ['a domain', 'create domain catalog.sku as text', /type catalog\.sku/],
    ['a sequence', 'create sequence catalog.positions', /sequence catalog\.positions/],
    [
      'an operator',
      'create operator catalog.=== (leftarg = int, rightarg = int, function = int4eq)',
      /operator catalog\.===/,
    ],
    [
      'a text search configuration',
      'create text search configuration catalog.thai (copy = pg_catalog.simple)',
      /text search configuration catalog\.thai/,
    ],
  ])('%s in catalog', async (_name, statements, said) => {
    await sql.unsafe(`create schema catalog; ${statements}`);
    const error = await refused();
    expect(error.kind).toBe('schema-of-another');
    expect(error.message).toMatch(said);
    expect(error.hint).toMatch(/database of its own/);
  });

  test('an extension, without what belongs to it', async () => {
    const [found] = await sql<{ name: string }[]>`
      select name from pg_available_extensions where name in ('pg_trgm', 'hstore', 'citext', 'btree_gist') limit 1`;
    if (found === undefined) return;
    await sql.unsafe(`create schema catalog; create extension ${found.name} schema catalog`);
    expect((await refused()).message).toMatch(new RegExp(`has extension ${found.name}$`, 'm'));
  });

  test('many objects, the last of them only as a count', async () => {
    await sql.unsafe(
      `create schema catalog; ${Array.from({ length: 9 }, (_, n) => `create table catalog.t${n} ();`).join('')}`,
    );
    expect((await refused()).message).toMatch(/table catalog\.t5, and 3 more$/m);
  });

  test.each(['catalog_internal', 'catalog_queue'])('tables in %s', async (schema) => {
    await sql.unsafe(`create schema ${schema}; create table ${schema}.migration (name text)`);
    expect((await refused()).message).toContain(`schema ${schema} belongs to`);
  });

  test('an empty schema of another role, for a plain role and for a superuser', async () => {
    const { url } = await plainRole();
    const shop = await plainRole();
    await sql.unsafe(
      `create schema catalog authorization ${shop.role}; grant all on schema catalog to public`,
    );
    for (const at of [url, database.url])
      expect((await refused(at)).message).toContain(`schema catalog belongs to ${shop.role} and is empty`);
  });

  test.each([
    [
      'of another shape',
      "create table catalog_internal.migrations (name text, run_on timestamptz); insert into catalog_internal.migrations values ('1', now())",
    ],
    [
      'of the same tool',
      "create table catalog_internal.migrations (id serial primary key, hash text not null, created_at bigint); insert into catalog_internal.migrations (hash, created_at) values ('x', 9999999999999)",
    ],
    ['of another shape and empty', 'create table catalog_internal.migrations (name text)'],
    [
      'that is a view',
      "create view catalog_internal.migrations as select 1 as id, '' as hash, 2::bigint as created_at",
    ],
  ])('a table catalog_internal.migrations %s', async (_name, statements) => {
    await sql.unsafe(`create schema catalog_internal; ${statements}`);
    expect((await refused()).message).toContain("has none of the mirror's migrations");
  });

  test('something else in the schema of a mirror’s queues', async () => {
    await useMirror();
    await sql.unsafe(
      'drop schema catalog_queue cascade; create schema catalog_queue; create table catalog_queue.migration (name text)',
    );
    expect((await refused()).message).toContain('schema catalog_queue belongs to');
  });

  test('a mirror whose tables were dropped, with or without something else in their place', async () => {
    await useMirror();
    await sql.unsafe('drop schema catalog cascade');
    expect(await refused()).toMatchObject({
      kind: 'mirror-incomplete',
      message: expect.stringContaining('there is no schema catalog') as string,
    });
    await sql.unsafe('create schema catalog; create table catalog.orders ()');
    expect((await refused()).message).toContain('table catalog.orders');
  });

  test('a mirror without its rows, as pg_dump --schema-only leaves it', async () => {
    await useMirror();
    const tables = await sql<{ name: string }[]>`
      select c.oid::regclass::text as name from pg_class c
      where relkind in ('r', 'p') and relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)
        and c.oid <> 'catalog.skus'::regclass`;
    await sql.unsafe(`truncate ${tables.map(({ name }) => name).join(', ')}`);
    expect(await refused()).toMatchObject({
      kind: 'mirror-incomplete',
      message: expect.stringContaining('without its rows') as string,
      hint: expect.stringContaining('drop catalog, catalog_internal and catalog_queue') as string,
    });
  });

  test('a mirror of another role whose ledger cannot be read, without advice to drop it', async () => {
    await useMirror();
    const { url } = await plainRole();
    const error = await refused(url);
    expect(error.message).toContain('schema catalog belongs to');
    expect(error.hint).toMatch(/connect as \S+ or a member of it/);
    expect(error.hint).not.toMatch(/DROP|RENAME/);
  });

  test('a name that an upgrade needs and a seller has taken', async () => {
    await useMirror();
    await sql.unsafe('create table catalog.next_thing ()');
    const folder = laterVersion(temporaryFolder(), 'CREATE TABLE catalog.next_thing ();');
    await expect(migrateDatabase(database.url, { folder })).rejects.toMatchObject({
      kind: 'migration-failed',
      hint: expect.stringContaining('rename or drop that') as string,
    });
    expect(await applied(sql)).toBe(ALL);
  });
});

describe('a migration accepts', () => {
  test('an empty schema that an administrator created for the mirror, which keeps its rights', async () => {
    const { role, url } = await plainRole();
    const reader = await plainRole();
    await sql.unsafe(`
      create schema catalog authorization ${role};
      grant usage on schema catalog to ${reader.role};
      alter default privileges for role ${role} in schema catalog grant select on tables to ${reader.role};`);
    await migrateDatabase(url);
    expect(await applied(sql)).toBe(ALL);
    const [rights] = await sql`
      select has_schema_privilege(${reader.role}, 'catalog', 'usage') and has_table_privilege(${reader.role}, 'catalog.skus', 'select') as kept`;
    expect(rights).toEqual({ kept: true });
    await migrateDatabase(url);
  });

  test('a schema of a role that the mirror’s role is a member of', async () => {
    const { role, url } = await plainRole();
    const team = await plainRole();
    await sql.unsafe(`grant ${team.role} to ${role}; create schema catalog authorization ${team.role}`);
    await migrateDatabase(url);
    expect(await applied(sql)).toBe(ALL);
  });

  test('an earlier version’s schema with objects of sellers in it, and queues', async () => {
    const folder = versionBefore(temporaryFolder(), '0026_pause');
    await migrateDatabase(database.url, { folder });
    await prepareTables(database.url);
    await sql.unsafe('create view catalog.mine as select sku from catalog.skus');
    await migrateDatabase(database.url);
    expect(await applied(sql)).toBe(ALL);
  });

  test('queues that are left from a mirror that was dropped', async () => {
    await useMirror();
    await prepareTables(database.url);
    await sql.unsafe('drop schema catalog, catalog_internal cascade');
    await migrateDatabase(database.url);
    expect(await applied(sql)).toBe(ALL);
  });

  test('the remains of a failed first start, beside another application’s migrations by the same tool', async () => {
    await sql.unsafe(`
      create schema catalog_internal;
      create table catalog_internal.migrations (id serial primary key, hash text not null, created_at bigint);
      create schema drizzle;
      create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint);
      insert into drizzle.__drizzle_migrations (hash, created_at) values ('a', 1), ('b', 9999999999999);
      create table public.skus (id int); create table public.products (id int);`);
    await migrateDatabase(database.url);
    expect(await applied(sql)).toBe(ALL);
    expect(await sql`select created_at::float8 as at from drizzle.__drizzle_migrations order by id`).toEqual([
      { at: 1 },
      { at: 9_999_999_999_999 },
    ]);
  });

  test('a table of applied migrations whose sequence has a number, from daemons that started together', async () => {
    await sql.unsafe(`
      create schema catalog_internal;
      create sequence catalog_internal.migrations_id_seq1 as integer;
      create table catalog_internal.migrations (
        id integer primary key default nextval('catalog_internal.migrations_id_seq1'), hash text not null, created_at bigint
      );
      alter sequence catalog_internal.migrations_id_seq1 owned by catalog_internal.migrations.id`);
    await migrateDatabase(database.url);
    expect(await applied(sql)).toBe(ALL);
    await migrateDatabase(database.url);
  });

  test('several daemons that start at once in a schema that was created for them', async () => {
    await sql`create schema catalog`;
    await Promise.all(Array.from({ length: 6 }, () => migrateDatabase(database.url)));
    expect(await applied(sql)).toBe(ALL);
  });
});
