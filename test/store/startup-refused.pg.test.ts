import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { waitForDatabase } from '../../src/store/connection/startup.ts';
import { tlsProxyTo } from '../security/tls-proxy.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { refusingSettings, through } from '../support/net.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

const PATIENCE_MS = 20_000;

const ending = (sql: Sql) => Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) });

/** Returns what becomes of the wait for a database at this URL: 'answers', or the kind of the error that ends it. */
async function waited(url: string, patienceMs = PATIENCE_MS): Promise<unknown> {
  const sql = connect(url, { max: 1 });
  try {
    await waitForDatabase(sql, systemClock, patienceMs);
    return 'answers';
  } catch (error) {
    return error instanceof Error && 'kind' in error ? error.kind : error;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Does the same through a proxy that rejects sessions with settings. */
async function waitedThrough(code: string, times: number, patienceMs?: number): Promise<unknown> {
  await using refusing = await refusingSettings(database.url, { S: 'ERROR', C: code, M: 'no' }, times);
  return await waited(through(database.url, refusing), patienceMs);
}

test.each(['08P01', '0A000', '22023', '58000', 'XX000'])(
  'settings rejected with %s each time, but nothing else, are reported before the patience is over',
  async (code) => {
    expect(await waitedThrough(code, Infinity)).toBe('pooler-startup');
  },
);

test.each(['58000', 'XX000'])('%s that passes, as of a server that wakes up, is waited for', async (code) => {
  expect(await waitedThrough(code, 2)).toBe('answers');
});

test.each(['57P03', '53300'])(
  '%s does not count as a rejection of settings, however often it comes',
  async (code) => {
    expect(await waitedThrough(code, Infinity, 2000)).toBe('database-away');
  },
);

test.each(['?channel_binding=require', '?schema=public', '?options=-c%20no_such_setting%3D1'])(
  'a URL parameter that is no setting of Postgres, %s, is reported at once',
  async (query) => {
    expect(await waited(`${database.url}${query}`)).toBe('unknown-setting');
  },
);

test.each(['?work_mem=lots', '?options=bogus', '?replication=maybe'])(
  'a URL parameter whose value Postgres rejects, %s, is not blamed on a pooler',
  async (query) => {
    expect(await waited(`${database.url}${query}`)).toBe('refused-setting');
  },
);

test('a parameter that the role may not set is not reported as a missing right to connect', async () => {
  const role = `limited_${randomBytes(4).toString('hex')}`;
  await using admin = ending(connect(database.url, { max: 1 }));
  await admin.unsafe(`create role ${role} login password '${role}'`);
  const url = new URL(database.url);
  Object.assign(url, { username: role, password: role });
  try {
    for (const query of ['?log_statement=all', '?options=-c%20log_statement%3Dall', '?role=postgres'])
      expect(await waited(`${url.href}${query}`)).toBe('refused-setting');
  } finally {
    await admin.unsafe(`drop role ${role}`);
  }
});

test.each(['any', 'read-write', 'primary', 'prefer-standby'])(
  'target_session_attrs=%s has no effect with one host: a read-only database is reached',
  async (value) => {
    const name = new URL(database.url).pathname.slice(1);
    await using admin = ending(connect(database.url, { max: 1 }));
    await admin.unsafe(`alter database ${name} set default_transaction_read_only = on`);
    try {
      expect(await waited(`${database.url}?target_session_attrs=${value}`)).toBe('answers');
    } finally {
      await admin.unsafe(
        `set transaction_read_only = off; alter database ${name} reset default_transaction_read_only`,
      );
    }
  },
);

test('a server without TLS is distinguished from one that is away if the URL asks for TLS', async () => {
  await using without = await tlsProxyTo(database.url, { protocol: 'postgres', refuses: true });
  const sql = connect(`${through(database.url, without)}?sslmode=require`, { max: 1 });
  try {
    await expect(waitForDatabase(sql, systemClock, 2000)).rejects.toMatchObject({
      kind: 'database-away',
      message: expect.stringContaining('begins no TLS') as unknown,
      hint: expect.stringContaining('sslmode') as unknown,
    });
  } finally {
    await sql.end({ timeout: 1 });
  }
});

test('a database setting that ends each session at its start is not reported as a server that is away', async () => {
  const name = new URL(database.url).pathname.slice(1);
  await using admin = ending(connect(database.url, { max: 1 }));
  await admin.unsafe(`alter database ${name} set local_preload_libraries = 'no_such_library'`);
  const sql = connect(database.url, { max: 1 });
  try {
    await expect(waitForDatabase(sql, systemClock, 1500)).rejects.toMatchObject({
      kind: 'database-away',
      message: 'Postgres answers, and lets no session begin',
      hint: expect.stringContaining('drds') as unknown,
      cause: { code: '58P01' },
    });
  } finally {
    await sql.end({ timeout: 1 });
    await admin.unsafe(`alter database ${name} reset local_preload_libraries`);
  }
});
