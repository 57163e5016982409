import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

let database: TestDatabase;
let sql: Sql;
beforeAll(async () => {
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 1 });
});
afterAll(async () => {
  await sql.end({ timeout: 2 });
  await database.drop();
});

/** Runs a command with one output that nobody reads from the start; returns its exit code. */
async function unread(output: 'stdout' | 'stderr', words: string, url = database.url): Promise<unknown> {
  const child = spawn(process.execPath, ['--', MAIN, ...words.split(' ')], {
    env: { PATH: process.env['PATH'], DATABASE_URL: url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child[output].destroy();
  child[output === 'stdout' ? 'stderr' : 'stdout'].resume();
  const [code] = (await once(child, 'close')) as unknown[];
  return code;
}

test('a command whose reader is gone still does all that it was told to', async () => {
  await sql`update catalog_internal.tasks set next_at = now() + interval '1 hour'`;
  expect(await unread('stdout', 'refresh A --manifest')).toBe(0);
  const [row] = await sql`
    select next_at <= now() as due, exists (select from catalog.skus where sku = 'A') as known
    from catalog_internal.tasks where task = 'manifest'`;
  expect(row).toEqual({ due: true, known: true });
});

test('a command whose reader is gone keeps its exit code', async () => {
  expect(await unread('stdout', 'status')).toBe(2);
  expect(await unread('stderr', 'status', 'postgres://127.0.0.1:1/none')).toBe(2);
});

test('a command that only prints ends with its reader', async () => {
  expect(await unread('stdout', 'status --watch')).toBe(0);
  expect(await unread('stdout', 'sql --json select/**/generate_series(1,1e9)')).toBe(0);
});
