import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, inject, onTestFinished, test } from 'vitest';
import { createQueueBackend, type QueueBackend } from '../../src/queues/backend.ts';
import { connect, type DatabaseUrl, type Sql } from '../../src/store/connection/db.ts';
import { sqlState } from '../../src/store/connection/sql-errors.ts';
import { createDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { hasRedisServer, startRedisServer } from '../support/redis-server.ts';
import { certificate, tlsProxyTo } from './tls-proxy.ts';

/* TLS files that are rotated, or missing for a moment, while the daemon runs. */

const UNKNOWN_CA = 'SELF_SIGNED_CERT_IN_CHAIN';
let folder: string;
const file = (name: string) => join(folder, name);
const put = (from: string, as: string) => copyFileSync(certificate(from), file(as));

const unhandled: unknown[] = [];
const note = (reason: unknown) => void unhandled.push(reason);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rotated-'));
  unhandled.length = 0;
  process.on('unhandledRejection', note).on('uncaughtException', note);
});
afterEach(() => {
  process.off('unhandledRejection', note).off('uncaughtException', note);
  rmSync(folder, { recursive: true, force: true });
  if (unhandled.length > 0) throw new AggregateError(unhandled, 'nobody has heard these errors');
});

async function postgresByTls(real = inject('postgresUrl')) {
  const proxy = await tlsProxyTo(real, { protocol: 'postgres' });
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const url = Object.assign(new URL(real), { hostname: 'localhost', port: String(proxy.port) });
  url.searchParams.set('sslmode', 'verify-full');
  url.searchParams.set('sslrootcert', file('ca.pem'));
  put('ca.pem', 'ca.pem');
  return { proxy, url };
}

function openPool(url: DatabaseUrl): Sql {
  const sql = connect(url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 1 }));
  return sql;
}

/** Runs a statement on a new connection; returns 'done' or the error's code. */
async function anew(sql: Sql): Promise<string> {
  await sql`select pg_terminate_backend(pg_backend_pid())`.catch(() => {});
  return await sql`select 1`.then(
    () => 'done',
    (error: unknown) => sqlState(error) ?? String(error),
  );
}

test('the pool uses the authority that the file contains when it connects', async () => {
  const { url } = await postgresByTls();
  const sql = openPool(() => url.href);
  expect(await anew(sql)).toBe('done');
  put('other-ca.pem', 'ca.pem');
  expect(await anew(sql)).toBe(UNKNOWN_CA);
  put('ca.pem', 'ca.pem');
  expect(await anew(sql)).toBe('done');
});

test('a certificate without its new key, or files that are missing, leave the last complete set in use', async () => {
  const { proxy, url } = await postgresByTls();
  put('client.pem', 'client.pem');
  put('client.key', 'client.key');
  url.searchParams.set('sslcert', file('client.pem'));
  url.searchParams.set('sslkey', file('client.key'));
  const sql = openPool(() => url.href);
  expect(await anew(sql)).toBe('done');
  put('localhost.pem', 'client.pem');
  expect(await anew(sql)).toBe('done');
  put('localhost.key', 'client.key');
  expect(await anew(sql)).toBe('done');
  rmSync(file('ca.pem'));
  rmSync(file('client.key'));
  expect(await anew(sql)).toBe('done');
  expect(new Set(proxy.clients.slice(-2))).toEqual(new Set(['localhost']));
  expect(proxy.clients[0]).toBe('client');
});

function openBackend(redisUrl: string | null, databaseUrl: string, errors: Error[]): QueueBackend {
  const backend = createQueueBackend({
    redisUrl: redisUrl === null ? null : () => redisUrl,
    databaseUrl: () => databaseUrl,
    connections: 1,
    answerWithinMs: 10_000,
    prefix: 'test-rotated',
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => backend.close());
  return backend;
}

test('queues in Postgres continue while a file is missing', async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const { url } = await postgresByTls(database.url);
  const backend = openBackend(null, url.href, []);
  await backend.ping(10_000);
  rmSync(file('ca.pem'));
  const admin = openPool(database.url);
  await eventually(
    async () => {
      const ended = await admin`
        select pg_terminate_backend(pid) from pg_stat_activity 
        where application_name = 'catalog-mirror queues' and datname = current_database()`;
      return ended.length === 0;
    },
    { what: 'the connection is closed' },
  );
  await eventually(async () => (await backend.ping(10_000).catch(() => false)) !== false, {
    what: 'an answer',
  });
});

test.skipIf(!hasRedisServer)(
  'Redis uses the authority in the file, and the last one while the file is missing',
  async () => {
    await using redis = await startRedisServer();
    const redisUrl = redis.url;
    await using proxy = await tlsProxyTo(redisUrl, { protocol: 'redis' });
    put('ca.pem', 'ca.pem');
    const url = Object.assign(new URL(redisUrl), { hostname: 'localhost', port: String(proxy.port) });
    url.searchParams.set('sslrootcert', file('ca.pem'));
    const errors: Error[] = [];
    const backend = openBackend(url.href.replace(/^redis:/, 'rediss:'), '', errors);
    await backend.ping(10_000);
    const admin = new Redis(redisUrl);
    onTestFinished(() => admin.disconnect());
    const cut = () => admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    put('other-ca.pem', 'ca.pem');
    await cut();
    await eventually(() => errors.some((error) => sqlState(error) === UNKNOWN_CA), {
      what: 'that it is refused',
    });
    put('ca.pem', 'ca.pem');
    await backend.ping(10_000);
    rmSync(file('ca.pem'));
    const before = proxy.secured;
    await cut();
    await eventually(() => proxy.secured > before, { what: 'a new connection' });
    await backend.ping(10_000);
  },
);
