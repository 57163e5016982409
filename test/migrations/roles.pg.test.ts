import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { migrateMirror } from '../../src/daemon/database.ts';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { connect, type Sql, wayOf } from '../../src/store/connection/db.ts';
import { closedDatabase, sqlState } from '../../src/store/connection/sql-errors.ts';
import { repairSequences, repairSequencesAtStart } from '../../src/store/history/changes.ts';
import { countDaemons, registerInstance } from '../../src/store/setup/instance.ts';
import { migrateDatabase, readRights } from '../../src/store/setup/migrations.ts';
import { readRoles } from '../../src/store/setup/occupied.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { FAST_SETTINGS } from '../postgres/server.ts';
import { runProgram } from '../support/process.ts';
import { roomForFiles } from '../support/room.ts';
import { settingsWith } from '../support/settings.ts';
import { laterVersion } from './support.ts';

/*
 * Roles belong to the cluster, and no dump of schemas contains them. These tests have a server of their own,
 * because every database of the run's shared one uses them.
 */

let server: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
let folder: string;
let admin: Sql;

beforeAll(async () => {
  folder = await mkdtemp(join(roomForFiles(), 'catalog-mirror-roles-'));
  await chmod(folder, 0o711);
  server = await startEmbeddedPostgres({ dataDir: join(folder, 'pg'), settings: FAST_SETTINGS });
  admin = connect(server.url, { max: 1 });
});

afterAll(async () => {
  await admin.end({ timeout: 2 });
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * Creates a database owned by a role with the rights of the image's role, and with `createRole`, the right to
 * create roles.
 */
async function ownDatabase(
  name: string,
  createRole: boolean,
  role = name,
): Promise<{ url: string; sql: Sql }> {
  await admin.unsafe(`create role ${quoted(role)} login password 'own' ${createRole ? 'createrole' : ''}`);
  await admin.unsafe(`create database ${name} owner ${quoted(role)}`);
  const url = new URL(server.url);
  Object.assign(url, { pathname: `/${name}`, username: encodeURIComponent(role), password: 'own' });
  return { url: url.href, sql: connect(url.href, { max: 1 }) };
}

/** Returns all rights of the two roles and of PUBLIC. */
async function rights(sql: Sql): Promise<string[]> {
  const rows = await sql<{ is: string }[]>`
    select format('%s %s %s', case a.grantee when 0 then 'PUBLIC' else a.grantee::regrole::text end, a.privilege_type, what) as is from (
      select 'schema ' || nspname as what, nspacl as acl from pg_namespace where nspname like 'catalog%'
      union all select oid::regclass::text, relacl from pg_class where relnamespace::regnamespace::text like 'catalog%'
      union all select oid::regprocedure::text, coalesce(proacl, acldefault('f', proowner)) from pg_proc where pronamespace::regnamespace::text like 'catalog%'
      union all select 'tables to come', defaclacl from pg_default_acl
    ) o, aclexplode(acl) a where a.grantee = 0 or a.grantee::regrole::text in ('catalog_reader', 'catalog_watcher') order by 1`;
  return rows.map(({ is }) => is);
}

/** Leaves the cluster as if a dump of the schemas had been loaded into it: each GRANT to a missing role has failed. */
async function withoutRoles(sql: Sql): Promise<void> {
  const name = (await sql`select current_database() as name`)[0]?.['name'] as string;
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  const there = connect(url.href, { max: 1 });
  await there`drop owned by catalog_reader, catalog_watcher`;
  await there`drop role catalog_reader, catalog_watcher`;
  // The GRANT to one role also revokes from all others, and fails as a whole.
  await there`grant execute on function catalog.take_request, catalog.changes to public`;
  await there.end({ timeout: 2 });
}

test('migrating again restores roles and their rights in a cluster that had none of them', async () => {
  const { url, sql } = await ownDatabase('may_create', true);
  await migrateDatabase(url);
  const before = await rights(sql);
  expect(before.length).toBeGreaterThan(15);
  await withoutRoles(sql);
  expect(await migrateDatabase(url)).toEqual({ rolesMissing: [], notGranted: null });
  expect(await rights(sql)).toEqual(before);
  await sql`revoke execute on function catalog.changes(bigint, integer) from catalog_reader`;
  await sql`revoke insert on catalog.watchlist from catalog_watcher`;
  await migrateDatabase(url);
  expect(await rights(sql)).toEqual(before);
  // Functions that views call as their reader: in a hardened cluster nobody has these rights by default.
  expect(await readRights(sql)).toMatchObject({ whole: true });
  await sql`revoke execute on all functions in schema catalog_internal from public`;
  expect(await readRights(sql)).toMatchObject({ whole: false });
  await migrateDatabase(url);
  expect(await rights(sql)).toEqual(before);
  await withoutRoles(sql);
  await sql.end({ timeout: 2 });
});

/** Connects as a superuser, like anybody who may create objects in another role's database. */
async function asAdmin(database: string): Promise<Sql> {
  const there = connect(Object.assign(new URL(server.url), { pathname: `/${database}` }).href, { max: 1 });
  onTestFinished(() => there.end({ timeout: 2 }));
  return there;
}

test("objects of others in the mirror's schema prevent neither a start nor repairs, and are left alone", async () => {
  const { url, sql } = await ownDatabase('shared_schema', true);
  await migrateDatabase(url);
  const there = await asAdmin('shared_schema');
  await there.unsafe(`
    create table catalog.margins (id bigint generated always as identity, sku text);
    create view catalog.of_margins as select * from catalog.margins;
    create function catalog.margin() returns int language sql as 'select 1';
    create table catalog_internal.of_admin (id bigint generated always as identity);
    insert into catalog.margins (id, sku) overriding system value values (70, 'A')`);
  // One of a program that uses the mirror's own role.
  await sql.unsafe(
    'create table catalog.orders (id bigserial, sku text); insert into catalog.orders (id) values (70)',
  );
  await repairSequences(sql);
  await repairSequencesAtStart(sql);
  const [next] = await there`
    select nextval('catalog.margins_id_seq')::int as margins, nextval('catalog.orders_id_seq')::int as orders`;
  expect(next).toEqual({ margins: 1, orders: 1 });
  expect(await migrateDatabase(url)).toEqual({ rolesMissing: [], notGranted: null });
  expect(await readRights(sql)).toMatchObject({ whole: true });
  await withoutRoles(sql);
  await sql.end({ timeout: 2 });
});

test('a start continues and warns if the rights that the roles lack cannot be granted', async () => {
  const { url, sql } = await ownDatabase('no_grants', true);
  await migrateDatabase(url);
  await sql`revoke insert on catalog.watchlist from catalog_watcher`;
  const there = await asAdmin('no_grants');
  await there.unsafe(`
    create function refuse() returns event_trigger language plpgsql as $$ begin raise 'nothing is granted here'; end $$;
    create event trigger no_grants on ddl_command_start when tag in ('GRANT') execute function refuse()`);
  expect(await migrateDatabase(url)).toMatchObject({
    notGranted: { message: expect.stringContaining('nothing is granted here') as string },
  });
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    secrets: () => [],
    destination: { write: (line: string) => lines.push(line) },
  });
  const leaving: (() => Promise<unknown>)[] = [];
  await migrateMirror(settingsWith(), sql, () => url, { log, onStop: (leave) => leaving.push(leave) });
  for (const leave of leaving) await leave();
  expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
    expect.objectContaining({ level: 'warn', event: 'rights.not-granted' }),
  );
  const migrated = await runProgram(['migrate'], {
    DATABASE_URL: url,
    PARTNER_BASE_URL: 'http://127.0.0.1:9',
    PARTNER_API_KEY: 'key',
    PARTNER_SECRET: 'secret',
  });
  expect(migrated).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing is granted here') });
  await there`drop event trigger no_grants`;
  await withoutRoles(sql);
  await sql.end({ timeout: 2 });
});

test('without the right to create roles, migrate and doctor say what to run, and then grant what is missing', async () => {
  const { url, sql } = await ownDatabase('may_not_create', false);
  const env = {
    DATABASE_URL: url,
    PARTNER_BASE_URL: 'http://127.0.0.1:9',
    PARTNER_API_KEY: 'key',
    PARTNER_SECRET: 'secret',
  };
  const create = 'CREATE ROLE catalog_reader; CREATE ROLE catalog_watcher';
  const migrated = await runProgram(['migrate'], env);
  expect(migrated).toMatchObject({ code: 0, stdout: expect.stringContaining(create) });
  const doctor = await runProgram(['doctor', '--requests', '0'], env);
  expect(doctor.stdout).toMatch(new RegExp(`WARN +roles[^]*${create}; then run \`catalog-mirror migrate\``));
  // The right to create schemas is needed only for the first migration.
  await admin.unsafe('alter database may_not_create owner to postgres');
  expect(await migrateDatabase(url)).toMatchObject({ rolesMissing: ['catalog_reader', 'catalog_watcher'] });
  await admin.unsafe('alter database may_not_create owner to may_not_create');
  await admin.unsafe(create);
  const granting = await runProgram(['migrate'], env);
  expect(granting.stdout).not.toContain('CREATE ROLE');
  expect(await rights(sql)).toContain('catalog_reader SELECT catalog.prices');
  await withoutRoles(sql);
  await sql.end({ timeout: 2 });
});

test.each([
  { role: 'MyApp', createRole: true },
  { role: "Seller's App@x.iam", createRole: true },
  { role: 'a.b "c" $d-e', createRole: false },
])('a role may have any name: $role', async ({ role, createRole }) => {
  const { url, sql } = await ownDatabase('of_any_name', createRole, role);
  const env = {
    DATABASE_URL: url,
    PARTNER_BASE_URL: 'http://127.0.0.1:9',
    PARTNER_API_KEY: 'key',
    PARTNER_SECRET: 'secret',
  };
  // Before the first migration doctor checks the owner of the roles, too.
  const before = await runProgram(['doctor', '--requests', '0'], env);
  expect(before.stdout).toMatch(/^OK +rights/m);
  expect(await runProgram(['migrate'], env)).toMatchObject({ code: 0, stderr: '' });
  const doctor = await runProgram(['doctor', '--requests', '0'], env);
  expect(doctor.stdout).toContain(`${role} has the privileges the mirror needs`);
  expect(doctor.stdout).toMatch(createRole ? /^OK +roles/m : /^WARN +roles/m);
  // The creator of a role is a member of it, but is not reported as one.
  const members = (await readRoles(sql)).map((found) => found.members);
  expect(members).toEqual(createRole ? [[], []] : []);
  const leave = await registerInstance(url);
  expect(await countDaemons(sql)).toBe(1);
  await leave();
  if (createRole) await withoutRoles(sql);
  await sql.end({ timeout: 2 });
  await admin`drop database of_any_name with (force)`;
  await admin.unsafe(`drop role ${quoted(role)}`);
});

test('an upgrade does not need the right to create schemas, which already exist', async () => {
  const { url, sql } = await ownDatabase('revoked', true);
  await migrateDatabase(url);
  await admin`revoke create on database revoked from revoked, public`;
  const later = laterVersion(join(folder, 'later'), 'create table catalog_internal.made_later ()');
  await migrateDatabase(url, { folder: later });
  expect(await sql`select from catalog_internal.made_later`).toEqual([]);
  await sql.end({ timeout: 2 });
});

test.each([
  { how: 'CONNECT was revoked', statement: 'revoke connect on database shut from shut, public', is: '42501' },
  { how: 'it takes no connections', statement: 'alter database shut allow_connections false', is: '55000' },
])('a user who may not connect to the database is told so: $how', async ({ statement, is }) => {
  const { sql } = await ownDatabase('shut', false);
  await admin.unsafe(statement);
  const error: unknown = await sql`select 1`.catch((e: unknown) => e);
  expect([sqlState(error), closedDatabase(error, wayOf(sql))?.hint]).toEqual([is, expect.any(String)]);
  await sql.end({ timeout: 2 });
  await admin`drop database shut`;
  await admin`drop role shut`;
});

test('a role that may not create in its database is told which command names the missing right', async () => {
  const { url, sql } = await ownDatabase('lent', false);
  await admin`alter database lent owner to current_user`;
  try {
    await expect(migrateDatabase(url)).rejects.toMatchObject({
      kind: 'migration-failed',
      hint: expect.stringMatching(/`catalog-mirror doctor` .* GRANT/) as string,
    });
    const { stdout } = await runProgram(['doctor', '--requests', '0'], {
      PARTNER_BASE_URL: 'http://127.0.0.1:9',
      PARTNER_API_KEY: 'k',
      PARTNER_SECRET: 's',
      DATABASE_URL: url,
    });
    expect(stdout).toContain('GRANT CREATE ON DATABASE "lent" TO "lent"');
  } finally {
    await sql.end({ timeout: 1 });
  }
});
