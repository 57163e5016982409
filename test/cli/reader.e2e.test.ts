import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { runProgram } from '../support/process.ts';

const role = `reader_${randomBytes(4).toString('hex')}`;
let database: TestDatabase;
let sql: Sql;
let env: { readonly DATABASE_URL: string };
beforeAll(async () => {
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 1 });
  await sql.unsafe(`create role ${role} login password 'pw' in role catalog_reader`);
  await sql`insert into catalog.skus (sku, in_manifest) values ('A1', true)`;
  env = { DATABASE_URL: Object.assign(new URL(database.url), { username: role, password: 'pw' }).href };
});
afterAll(async () => {
  await sql.unsafe(`drop owned by ${role} cascade; drop role ${role}`);
  await sql.end({ timeout: 2 });
  await database.drop();
});

describe('a role with the rights of catalog_reader', () => {
  test.each([
    [['show', 'A1']],
    [['sql', 'select sku from catalog.skus']],
    [['follow', '--from', 'oldest', '--once']],
  ])('is enough for %j', async (args) => {
    expect(await runProgram(args, env)).toMatchObject({ code: 0 });
  });

  test.each([
    [['status']],
    [['status', '--json']],
    [['status', '--watch']],
    [['plan']],
    [['verify']],
    [['refresh', 'A1']],
    [['pause']],
    [['resume']],
    [['follow', '--name', 'a', '--once']],
    [['follow', '--list']],
  ])('is not enough for %j, which says so without calling the mirror broken', async (args) => {
    const { code, stdout, stderr } = await runProgram(args, env);
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toMatch(
      /^the role of DATABASE_URL may not do this\n {2}because: .*permission denied[^]*\n {2}what to do: use the DATABASE_URL of the daemon/,
    );
  });
});
