import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, inject, test } from 'vitest';
import { createQueueBackend } from '../../src/queues/backend.ts';
import { Baseline } from '../../src/store/catalog/baseline.ts';
import { connect } from '../../src/store/connection/db.ts';
import { sqlState } from '../../src/store/connection/sql-errors.ts';
import { registerInstance } from '../../src/store/setup/instance.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { createDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram, temporaryFolder } from '../support/process.ts';
import { backends, createStack } from '../support/stack.ts';
import { certificate, type TlsProxy, tlsProxyTo, type TlsProxyOptions } from './tls-proxy.ts';

const CA = certificate('ca.pem');
const OTHER_CA = certificate('other-ca.pem');

/** Returns the URL through the proxy, with these TLS parameters. */
function through(url: string, proxy: TlsProxy, host: string, parameters: Record<string, string>): string {
  const changed = new URL(url);
  changed.hostname = host;
  changed.port = String(proxy.port);
  for (const [name, value] of Object.entries(parameters)) changed.searchParams.set(name, value);
  return changed.href;
}

/** Uses a connection once; returns 'done', or the code of the error that ends it. */
async function outcome(use: () => Promise<unknown>): Promise<string> {
  return await use().then(
    () => 'done',
    (error: unknown) => sqlState(error) ?? String(error),
  );
}

/** Everything that connects to Postgres. */
const POSTGRES: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  'the pool of the store': async (url) => {
    const sql = connect(url, { max: 1 });
    try {
      await sql`select 1`;
    } finally {
      await sql.end({ timeout: 0 });
    }
  },
  'the connection of a manifest': async (url) => (await Baseline.open(url)).close(),
  'the connection of instance': async (url) => (await registerInstance(url))(),
  'the queues': async (url) => {
    const errors: Error[] = [];
    const backend = createQueueBackend({
      redisUrl: null,
      databaseUrl: url,
      connections: 1,
      answerWithinMs: 10_000,
      prefix: 'test',
      onError: (error) => errors.push(error),
    });
    try {
      await backend.prepare();
      const queue = await backend.openQueue('reprice');
      await queue.add('wake', {}, {});
      await queue.close();
      if (errors[0] !== undefined) throw errors[0];
    } finally {
      await backend.close();
    }
  },
  'the migrations': migrateDatabase,
};

const NAME_WRONG = 'ERR_TLS_CERT_ALTNAME_INVALID';
const UNKNOWN_CA = 'SELF_SIGNED_CERT_IN_CHAIN';
type Case = [
  what: string,
  given: { sslmode?: string; sslrootcert?: string },
  host: string,
  shows: TlsProxyOptions['shows'],
  outcome: string,
];

/** sslmode with the meaning that libpq gives it. */
const CASES: readonly Case[] = [
  [
    'verify-full, right authority and name',
    { sslmode: 'verify-full', sslrootcert: CA },
    'localhost',
    'localhost',
    'done',
  ],
  [
    'verify-full, right authority and address',
    { sslmode: 'verify-full', sslrootcert: CA },
    '127.0.0.1',
    'address',
    'done',
  ],
  [
    'verify-full, another authority',
    { sslmode: 'verify-full', sslrootcert: OTHER_CA },
    'localhost',
    'localhost',
    UNKNOWN_CA,
  ],
  ['verify-full, public authorities', { sslmode: 'verify-full' }, 'localhost', 'localhost', UNKNOWN_CA],
  [
    'verify-full, system authorities',
    { sslmode: 'verify-full', sslrootcert: 'system' },
    'localhost',
    'localhost',
    UNKNOWN_CA,
  ],
  [
    'verify-full, another name',
    { sslmode: 'verify-full', sslrootcert: CA },
    'localhost',
    'elsewhere',
    NAME_WRONG,
  ],
  [
    'verify-full, a name for an address',
    { sslmode: 'verify-full', sslrootcert: CA },
    '127.0.0.1',
    'localhost',
    NAME_WRONG,
  ],
  [
    'verify-full, an address for a name',
    { sslmode: 'verify-full', sslrootcert: CA },
    'localhost',
    'address',
    NAME_WRONG,
  ],
  ['an authority and no mode', { sslrootcert: CA }, 'localhost', 'elsewhere', NAME_WRONG],
  ['verify-ca, another name', { sslmode: 'verify-ca', sslrootcert: CA }, 'localhost', 'elsewhere', 'done'],
  [
    'verify-ca, another authority',
    { sslmode: 'verify-ca', sslrootcert: OTHER_CA },
    'localhost',
    'localhost',
    UNKNOWN_CA,
  ],
  [
    'require with an authority, another name',
    { sslmode: 'require', sslrootcert: CA },
    'localhost',
    'elsewhere',
    'done',
  ],
  [
    'require with another authority',
    { sslmode: 'require', sslrootcert: OTHER_CA },
    'localhost',
    'localhost',
    UNKNOWN_CA,
  ],
  ['require alone', { sslmode: 'require' }, 'localhost', 'elsewhere', 'done'],
];

describe.concurrent('Postgres over TLS', () => {
  test.for(CASES)('%s', async ([, given, host, shows, expected], { expect }) => {
    const database = await createDatabase();
    await migrateDatabase(database.url);
    await using proxy = await tlsProxyTo(database.url, {
      protocol: 'postgres',
      ...(shows !== undefined && { shows }),
    });
    const url = through(database.url, proxy, host, given);
    const outcomes: Record<string, string> = {};
    for (const [who, use] of Object.entries(POSTGRES)) outcomes[who] = await outcome(() => use(url));
    expect(outcomes).toEqual(Object.fromEntries(Object.keys(POSTGRES).map((who) => [who, expected])));
    expect(proxy.clear).toBe('');
    // A server that is refused receives nothing: no password, no statement.
    if (expected !== 'done') expect(proxy.passed).toBe(0);
    else expect(proxy.secured).toBeGreaterThanOrEqual(Object.keys(POSTGRES).length);
    await database.drop();
  });

  test.for(['require', 'verify-full'])(
    'a server, or somebody in between, that claims to have no TLS receives nothing more: %s',
    async (sslmode, { expect }) => {
      const real = inject('postgresUrl');
      await using proxy = await tlsProxyTo(real, { protocol: 'postgres', refuses: true });
      const url = through(real, proxy, 'localhost', { sslmode });
      for (const use of Object.values(POSTGRES)) expect(await outcome(() => use(url))).not.toBe('done');
      expect([proxy.clear, proxy.passed]).toEqual(['', 0]);
    },
  );

  test('a client presents its certificate', async ({ expect }) => {
    const real = inject('postgresUrl');
    await using proxy = await tlsProxyTo(real, { protocol: 'postgres' });
    const files = { sslrootcert: CA, sslcert: certificate('client.pem'), sslkey: certificate('client.key') };
    const url = through(real, proxy, 'localhost', files);
    expect(await outcome(() => POSTGRES['the pool of the store']?.(url) ?? Promise.reject())).toBe('done');
    expect([proxy.secured, proxy.clients]).toEqual([1, ['client']]);
  });
});

const REDIS_CASES: readonly Case[] = [
  ['right authority and name', { sslrootcert: CA }, 'localhost', 'localhost', 'done'],
  ['right authority and address', { sslrootcert: CA }, '127.0.0.1', 'address', 'done'],
  ['another authority', { sslrootcert: OTHER_CA }, 'localhost', 'localhost', UNKNOWN_CA],
  ['public authorities', {}, 'localhost', 'localhost', UNKNOWN_CA],
  ['another name', { sslrootcert: CA }, 'localhost', 'elsewhere', NAME_WRONG],
  ['a name for an address', { sslrootcert: CA }, '127.0.0.1', 'localhost', NAME_WRONG],
  ['verify-ca, another name', { sslmode: 'verify-ca', sslrootcert: CA }, 'localhost', 'elsewhere', 'done'],
  ['require, another name', { sslmode: 'require' }, 'localhost', 'elsewhere', 'done'],
];

const withRedis = inject('redisUrl') === null ? describe.skip : describe.concurrent;
withRedis('Redis by TLS', () => {
  test.for(REDIS_CASES)('%s', async ([, given, host, shows, expected], { expect }) => {
    const real = inject('redisUrl') ?? '';
    await using proxy = await tlsProxyTo(real, { protocol: 'redis', ...(shows !== undefined && { shows }) });
    // The scheme is in capitals, because schemes are case-insensitive.
    const url = through(real, proxy, host, given).replace(/^redis:/, 'REDISS:');
    const errors: Error[] = [];
    const onError = (error: Error) => errors.push(error);
    const backend = createQueueBackend({
      redisUrl: () => url,
      databaseUrl: '',
      connections: 0,
      answerWithinMs: 10_000,
      prefix: 'test-tls',
      onError,
    });
    const answered = backend.ping(20_000).then(
      () => 'done',
      () => 'no answer',
    );
    await eventually(
      async () => {
        return errors.length > 0 || (await Promise.race([answered, Promise.resolve(null)])) !== null;
      },
      { what: 'an answer or an error' },
    );
    expect(errors.length > 0 ? sqlState(errors[0]) : await answered).toBe(expected);
    expect(proxy.clear).toBe('');
    if (expected !== 'done') expect(proxy.passed).toBe(0);
    await backend.close();
  });
});

describe.concurrent('a mirror over TLS', () => {
  test.for(backends())(
    'is filled, and sends everything over TLS: queues in %s',
    async (backend, { expect }) => {
      await using stack = await createStack({ backend, sandbox: { skus: 60, seed: 17 } });
      await using postgres = await tlsProxyTo(stack.databaseUrl, { protocol: 'postgres' });
      const redisUrl = stack.env['REDIS_URL'];
      await using redis = await tlsProxyTo(redisUrl ?? stack.databaseUrl, { protocol: 'redis' });
      const files = { sslrootcert: CA };
      const env = {
        ...stack.env,
        DATABASE_URL: through(stack.databaseUrl, postgres, 'localhost', { ...files, sslmode: 'verify-full' }),
        ...(redisUrl !== undefined && {
          REDIS_URL: through(redisUrl, redis, 'localhost', files).replace('redis:', 'rediss:'),
        }),
      };
      const ran = await runProgram(['run', '--once', '--timeout', '2m'], env, { timeoutMs: 150_000 });
      expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: '' });
      await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
      const doctor = await runProgram(['doctor'], env);
      expect(doctor.stdout).not.toMatch(/^FAIL/m);
      for (const proxy of backend === 'redis' ? [postgres, redis] : [postgres]) {
        expect(proxy.secured).toBeGreaterThan(3);
        expect([proxy.clear, proxy.connections - proxy.secured]).toEqual(['', 0]);
      }
    },
  );

  test('exits at once and says why if it does not trust the server’s authority; doctor does too', async ({
    expect,
  }) => {
    await using stack = await createStack({ sandbox: { skus: 20 } });
    await using proxy = await tlsProxyTo(stack.databaseUrl, { protocol: 'postgres' });
    const parameters = { sslmode: 'verify-full', sslrootcert: OTHER_CA };
    const env = { ...stack.env, DATABASE_URL: through(stack.databaseUrl, proxy, 'localhost', parameters) };
    const run = await runProgram(['run'], env, { timeoutMs: 20_000 });
    expect({ code: run.code, signal: run.signal }).toEqual({ code: 1, signal: null });
    expect(run.stderr).toContain('the certificate of Postgres is not trusted');
    const doctor = await runProgram(['doctor'], env);
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toMatch(
      /^FAIL postgres .*the certificate of Postgres is not trusted.*\(SELF_SIGNED/m,
    );
    expect(proxy.passed).toBe(0);
  });

  test('uses NODE_EXTRA_CA_CERTS, also from an env file, if the URL names no authority', async ({
    expect,
    onTestFinished,
  }) => {
    await using stack = await createStack({ sandbox: { skus: 20 } });
    await using proxy = await tlsProxyTo(stack.databaseUrl, { protocol: 'postgres' });
    const url = through(stack.databaseUrl, proxy, 'localhost', { sslmode: 'verify-full' });
    const env = { ...stack.env, DATABASE_URL: url };
    const migrated = await runProgram(['migrate'], { ...env, NODE_EXTRA_CA_CERTS: CA });
    expect({ code: migrated.code, stderr: migrated.stderr }).toEqual({ code: 0, stderr: '' });
    expect([proxy.secured > 0, proxy.clear]).toEqual([true, '']);
    const file = join(await temporaryFolder(onTestFinished), 'mirror.env');
    await writeFile(file, `NODE_EXTRA_CA_CERTS=${CA}\n`);
    expect(await runProgram(['status', '--env-file', file], env)).toMatchObject({ stderr: '' });
  });
});
