import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ledgerProblem } from '../../src/cli/doctor.ts';
import { type PostgresFacts, readPostgresFacts } from '../../src/cli/doctor/postgres-facts.ts';
import { judgePostgres } from '../../src/cli/doctor/postgres.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';

/*
 * Whoever owns something may do everything with it, until it is taken from him, as a script does that revokes rights by
 * name. Doctor has the GRANT that gives it back, and reads no further than it may.
 */

const role = `shut_${randomBytes(4).toString('hex')}`;
let database: TestDatabase;
let admin: Sql;
let sql: Sql;

beforeAll(async () => {
  database = await createDatabase('empty');
  admin = connect(database.url, { max: 1 });
  const name = new URL(database.url).pathname.slice(1);
  await admin.unsafe(`create role ${role} login password 'x'; grant create on database ${name} to ${role}`);
  const { href } = Object.assign(new URL(database.url), { username: role, password: 'x' });
  await migrateDatabase(href);
  sql = connect(href, { max: 2 });
});
afterAll(async () => {
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
])('%s: without %s doctor has the GRANT', async (what, privilege, named) => {
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

test('what many of a kind lack is given back in one', async () => {
  await sql.unsafe(`revoke all on all functions in schema catalog, catalog_internal from ${role}`);
  const [line] = failsOf(await readPostgresFacts(sql, Date.now));
  expect(line?.text).toMatch(/, and privileges on \d+ more functions$/);
  await sql.unsafe(line?.remedy?.split('; or ')[0] ?? '');
  expect(failsOf(await readPostgresFacts(sql, Date.now))).toEqual([]);
});

test('what somebody else has made beside it is none of the mirror', async () => {
  await admin.unsafe(`
    create sequence catalog.of_somebody_else;
    create function catalog.of_somebody_else() returns int language sql as 'select 1';
    revoke all on function catalog.of_somebody_else() from public`);
  expect((await readPostgresFacts(sql, Date.now)).lacking).toEqual([]);
});
