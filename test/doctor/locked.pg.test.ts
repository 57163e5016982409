import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPostgresFacts } from '../../src/cli/doctor/postgres-facts.ts';
import { judgePostgres } from '../../src/cli/doctor/postgres.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';

let database: TestDatabase;
let sql: Sql;
let shop: Sql;
beforeAll(async () => {
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 1 });
  shop = connect(database.url, { max: 1, name: 'shop' });
});
afterAll(async () => {
  await Promise.all([sql.end({ timeout: 1 }), shop.end({ timeout: 1 })]);
  await database.drop();
});

async function locksLines(): Promise<string[]> {
  const facts = await readPostgresFacts(sql, () => Date.now());
  const lines = judgePostgres(facts, { url: database.url, queues: 'postgres', poolMax: 12 });
  return lines.filter(({ check }) => check === 'locks').map(({ level, text }) => `${level} ${text}`);
}

test.each([
  ['catalog.skus', 'share row exclusive'],
  ['catalog.prices', 'share'],
  ['catalog_internal.due', 'exclusive'],
])('a session that has locked %s (%s) is named although no daemon waits for it', async (table, mode) => {
  expect(await locksLines()).toEqual([]);
  await shop.begin(async (tx) => {
    await tx.unsafe(`lock table ${table} in ${mode} mode`);
    const [{ pid }] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid`;
    await eventually(async () => {
      expect(await locksLines()).toEqual([
        expect.stringMatching(
          `^WARN process ${pid} of Postgres .role \\S+, application shop. holds a lock on ${table}`,
        ),
      ]);
    });
  });
  expect(await locksLines()).toEqual([]);
});
