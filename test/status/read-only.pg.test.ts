import { afterAll, beforeAll, expect, test } from 'vitest';
import { readStatusOf } from '../../src/cli/status.ts';
import { loadConfig } from '../../src/config/config.ts';
import { connect } from '../../src/store/connection/db.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';

const CONFIG = loadConfig({ DATABASE_URL: 'postgres://unused' }, () => '', { need: 'database' });

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase('migrated');
});
afterAll(() => database.drop());

/** Returns what `status` says through this URL. */
async function saidThrough(url: string) {
  const sql = connect(url, { max: 2 });
  try {
    const { health } = await readStatusOf(sql, CONFIG);
    return { state: health.state, isPaused: health.reasons.some(({ code }) => code === 'store-paused') };
  } finally {
    await sql.end({ timeout: 1 });
  }
}

test('status calls a read-only database broken, but not if only its own URL makes it read-only', async () => {
  expect(await saidThrough(database.url)).toMatchObject({ isPaused: false });
  for (const query of ['default_transaction_read_only=on', 'options=-c%20default_transaction_read_only%3Don'])
    expect(await saidThrough(`${database.url}?${query}`)).toMatchObject({ isPaused: false });
  const name = new URL(database.url).pathname.slice(1);
  const setting = async (statement: string) => {
    const admin = connect(`${database.url}?default_transaction_read_only=off`, { max: 1 });
    await admin.unsafe(statement);
    await admin.end({ timeout: 1 });
  };
  await setting(`alter database ${name} set default_transaction_read_only = on`);
  expect(await saidThrough(database.url)).toEqual({ state: 'broken', isPaused: true });
  await setting(`alter database ${name} reset default_transaction_read_only`);
  expect(await saidThrough(database.url)).toMatchObject({ isPaused: false });
});
