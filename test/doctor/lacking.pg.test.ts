import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { examine, ledgerProblem } from '../../src/cli/doctor.ts';
import { type PostgresFacts, readPostgresFacts } from '../../src/cli/doctor/postgres-facts.ts';
import { judgePostgres } from '../../src/cli/doctor/postgres.ts';
import { withMirror } from '../../src/cli/mirror.ts';
import type { Config } from '../../src/config/config.ts';
import { prepareTables } from '../../src/queues/postgres-queues.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/index.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { OWN_TABLES } from '../../src/store/setup/privileges.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { settingsWith } from '../support/settings.ts';
import { some } from '../support/soak.ts';

/*
 * An owner may do everything with what it owns until that is revoked, for example by a script that revokes
 * privileges by name. Doctor has the GRANT that restores it, and reads no more than it may.
 */

const role = `shut_${randomBytes(4).toString('hex')}`;
let database: TestDatabase;
let admin: Sql;
let sql: Sql;
let url: string;
let sandbox: Sandbox;
let config: Config;

beforeAll(async () => {
  database = await createDatabase('empty');
  admin = connect(database.url, { max: 1 });
  const name = new URL(database.url).pathname.slice(1);
  await admin.unsafe(`create role ${role} login password 'x'; grant create on database ${name} to ${role}`);
  const { href } = Object.assign(new URL(database.url), { username: role, password: 'x' });
  await migrateDatabase(href);
  await prepareTables(href);
  url = href;
  sandbox = await startSandbox({ skus: 60, seed: 71 });
  config = settingsWith({
    DATABASE_URL: href,
    PARTNER_BASE_URL: sandbox.url,
    PARTNER_API_KEY: sandbox.apiKey,
    PARTNER_SECRET: sandbox.secret,
  });
  sql = connect(href, { max: 2 });
});
afterAll(async () => {
  await sandbox.close();
  await sql.end({ timeout: 1 });
  await admin.unsafe(`drop owned by ${role} cascade; drop role ${role}`);
  await admin.end({ timeout: 1 });
  await database.drop();
});

const failsOf = (facts: PostgresFacts) =>
  judgePostgres(facts, { url: null, queues: 'redis', poolMax: 1 }).filter(({ level }) => level === 'FAIL');

test.each([
  ['function catalog_internal.missing_rights()', 'EXECUTE', 'function catalog_internal.missing_rights()'],
  ['sequence catalog_internal.claim_numbers', 'USAGE', 'sequence catalog_internal.claim_numbers'],
  ['schema catalog', 'USAGE', 'schema catalog'],
  ['schema catalog_internal', 'USAGE', 'schema catalog_internal'],
])('%s: without %s doctor prints the GRANT', async (what, privilege, named) => {
  await sql.unsafe(`revoke ${privilege} on ${what} from ${role}, public`);
  const facts = await readPostgresFacts(sql, Date.now);
  const [line, ...others] = failsOf(facts);
  expect([line?.check, line?.text, others]).toEqual([
    'rights',
    `the mirror's role lacks ${privilege} on ${named}`,
    [],
  ]);
  expect(ledgerProblem(facts)).toMatch(/lacks the privileges/);
  await sql.unsafe(line?.remedy?.split('; or ')[0] ?? '');
  const again = await readPostgresFacts(sql, Date.now);
  expect([failsOf(again), ledgerProblem(again)]).toEqual([[], null]);
});

test('privileges missing on many objects of a kind are granted together', async () => {
  await sql.unsafe(`revoke all on all functions in schema catalog, catalog_internal from ${role}`);
  const [line] = failsOf(await readPostgresFacts(sql, Date.now));
  expect(line?.text).toMatch(/, and privileges on \d+ more functions$/);
  await sql.unsafe(line?.remedy?.split('; or ')[0] ?? '');
  expect(failsOf(await readPostgresFacts(sql, Date.now))).toEqual([]);
});

test("objects of others in the schema are not counted as the mirror's", async () => {
  await admin.unsafe(`
    create sequence catalog.of_somebody_else;
    create function catalog.of_somebody_else() returns int language sql as 'select 1';
    revoke all on function catalog.of_somebody_else() from public`);
  expect((await readPostgresFacts(sql, Date.now)).lacking).toEqual([]);
});

/**
 * Revokes this privilege, and returns what doctor says in all and what of it fails; grants it again as doctor
 * says.
 */
async function examinedWithout(privilege: string, what: string, most = 0) {
  await sql.unsafe(`revoke ${privilege} on ${what} from ${role}, public`);
  const { findings, requests } = await examine(config, most);
  const fails = findings.filter(({ level }) => level === 'FAIL');
  for (const { remedy } of fails) await sql.unsafe(remedy?.split('; or ')[0] ?? '');
  return { findings, requests, fails: fails.map(({ check, text }) => `${check}: ${text}`) };
}

test.each(some(OWN_TABLES, 10))(
  'without SELECT on %s doctor goes on, and prints the GRANT',
  async (table) => {
    const { findings, fails } = await examinedWithout('select', table);
    expect(fails).toEqual([`rights: the mirror's role lacks SELECT on ${table}`]);
    const checks = findings.map(({ check }) => check);
    for (const check of ['writes', 'connections', 'daemons', 'migrations', 'base url'])
      expect(checks).toContain(check);
    const daemons = findings.find(({ check }) => check === 'daemons');
    const isUnknown = ['catalog_internal.instances', 'catalog_internal.migrations'].includes(table);
    expect(daemons?.level).toBe(isUnknown ? 'WARN' : 'OK');
  },
);

test.each([
  ['select', 'catalog_queue.migration', 'SELECT on catalog_queue.migration'],
  ['usage', 'schema catalog_queue', 'USAGE on schema catalog_queue'],
])('without %s on %s, where the queues are, doctor prints the GRANT', async (privilege, what, lacks) => {
  const { fails } = await examinedWithout(privilege, what);
  expect(fails).toEqual([`rights: the mirror's role lacks ${lacks}`]);
});

test('the partner is asked only if the requests can be counted, whatever else is unreadable', async () => {
  const asked = await examinedWithout('select', 'catalog_internal.learned_names', 1);
  expect(asked.requests).toMatchObject([{ outcome: 'ok' }]);
  for (const table of ['pace_sends', 'account']) {
    const { findings, requests } = await examinedWithout('select', `catalog_internal.${table}`, 1);
    expect(requests).toEqual([]);
    expect(findings.at(-1)).toMatchObject({
      check: 'partner',
      text: expect.stringContaining('lacks the privileges') as string,
    });
  }
});

test('a command that needs a privilege names it, with the GRANT', async () => {
  await sql.unsafe(`revoke select on catalog_internal.sync from ${role}`);
  const reading = withMirror(config, (mirror) => mirror`select from catalog_internal.sync`.execute());
  const error = await reading.catch((failed: unknown) => failed);
  expect(error).toMatchObject({
    kind: 'rights-lacking',
    message: "the mirror's role lacks SELECT on catalog_internal.sync",
    hint: `GRANT SELECT ON catalog_internal.sync TO "${role}"`,
  });
  await sql.unsafe((error as { hint: string }).hint);
  // If a foreign policy or trigger rejects something, no privilege is missing.
  const refused = withMirror(config, (mirror) =>
    mirror.unsafe("do $$ begin raise exception 'no' using errcode = '42501'; end $$"),
  );
  await expect(refused).rejects.toMatchObject({ code: '42501' });
});

test('a start that cannot read which migrations were applied says so, without blaming another application', async () => {
  await sql.unsafe(`revoke select on catalog_internal.migrations from ${role}`);
  await expect(migrateDatabase(url)).rejects.toMatchObject({
    kind: 'ledger-hidden',
    hint: expect.stringContaining('GRANT SELECT ON catalog_internal.migrations') as string,
  });
  await sql.unsafe(`grant select on catalog_internal.migrations to ${role}`);
  await migrateDatabase(url);
});

test('a renamed table is reported together with all other findings', async () => {
  await sql`alter table catalog_internal.settings rename to of_before`;
  const { findings } = await examine(config, 1);
  await sql`alter table catalog_internal.of_before rename to settings`;
  expect(findings.find(({ level }) => level === 'FAIL')).toMatchObject({
    check: 'postgres',
    text: expect.stringContaining('(42P01)') as string,
    remedy: expect.stringContaining('dropped or renamed') as string,
  });
  const checks = findings.map(({ check }) => check);
  for (const check of ['writes', 'connections', 'request share', 'partner']) expect(checks).toContain(check);
});
