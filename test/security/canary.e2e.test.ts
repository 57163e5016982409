import { randomBytes } from 'node:crypto';
import { describe, type ExpectStatic, inject, test } from 'vitest';
import type { Fault } from '../../src/sandbox/faults.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { connect } from '../../src/store/connection/db.ts';
import { eventually } from '../support/eventually.ts';
import { deafPort } from '../support/net.ts';
import { FILLED, holds, type Program, runProgram, startProgram } from '../support/process.ts';
import { type Backend, backends, createStack, type Stack } from '../support/stack.ts';
import { type Canary, canary, findings } from './canaries.ts';
import { allKeys, allRows } from './sinks.ts';

const CRASH = new URL('../support/crash-on-signal.ts', import.meta.url).href;

/** Returns every secret that a mirror has, each in a value that must be escaped wherever it is written. */
function secretsOfARun() {
  const [apiKey, secret] = [canary('the api_key'), canary('the secret')];
  const [postgres, redis] = [canary('the password of Postgres'), canary('the password of Redis')];
  const signature = canary('the presigned signature');
  return {
    apiKey: apiKey.around('key/', '=é'),
    secret: secret.around('sec/ret+Ünï"\\', '%40?&#<'),
    postgres: postgres.around('pg/', '+ä@'),
    redis: redis.around('re:dis/', '+ä'),
    signature: signature.around('si/g+', '=='),
    canaries: [apiKey, secret, postgres, redis, signature],
  };
}
type Secrets = ReturnType<typeof secretsOfARun>;

/** Returns faults of every kind, so that all sorts of errors appear in messages, causes and stacks. */
function failure({ apiKey, secret, signature }: Secrets, elsewhere: number): Fault[] {
  const basic = `Basic ${Buffer.from(`${apiKey}:${secret}`).toString('base64')}`;
  const echo = { headers: { authorization: basic }, user: apiKey, password: secret };
  const xml = `<Error><Code>SignatureDoesNotMatch</Code><StringToSign>GET /files?X-Amz-Signature=${encodeURIComponent(signature)}</StringToSign><Signature>${signature}</Signature></Error>\n`;
  const urlTo = (change: (url: string) => string): Fault['mutate'] => {
    return (json) => ({ ...json, url: change(signed(String(json['url']), signature)) });
  };
  return [
    { route: 'manifest', status: 500, body: { errorMessage: 'Internal Server Error', ...echo } },
    { route: 'manifest', body: `<html>${JSON.stringify(echo)}` },
    {
      route: 'manifest',
      status: 302,
      headers: { Location: `http://127.0.0.1:${elsewhere}/?k=${secret.slice(0, 3)}` },
    },
    { route: 'manifest', mutate: urlTo((url) => url.replace('http://', 'https://[bad')) },
    { route: 'manifest', mutate: urlTo((url) => url.replace('http:', 'gopher:')) },
    { route: 'manifest', mutate: urlTo((url) => url.replace('127.0.0.1', '10.0.0.1')) },
    { route: 'manifest', mutate: urlTo((url) => url.replace(/:\d+\//, ':1/')) },
    { route: 'manifest', mutate: urlTo((url) => url.replace('http:', 'https:')) },
    { route: 'manifest', mutate: urlTo((url) => url.replace('http://', 'http://u:p@')) },
    { route: 'file', status: 403, body: xml },
    { route: 'file', status: 500, body: xml },
    {
      route: 'file',
      status: 302,
      headers: { Location: `http://127.0.0.1:${elsewhere}/x?X-Amz-Signature=1` },
    },
    { route: 'file', body: xml.repeat(12) },
    { route: 'file', reset: true },
    { route: 'file', headers: { 'Content-Encoding': `br, ${encodeURIComponent(signature)}` } },
    { route: 'file', truncateAt: 300 },
    { route: 'file', file: (body) => Buffer.from(body).fill('x', 20, 60) },
    { route: 'bulk', reset: true },
    { route: 'bulk', hang: true },
    { route: 'bulk', status: 403, body: { message: 'Forbidden', ...echo } },
    { route: 'bulk', status: 500, body: { message: 'Internal Server Error' } },
    { route: 'bulk', status: 401, body: { message: `Unauthorized: ${secret}` } },
    { route: 'bulk', body: { results: [secret], [secret]: basic, not_found: [{ [apiKey]: secret }] } },
    { route: 'bulk', body: `{"results": {"${basic}": ` },
    { route: 'delta', body: `not JSON: ${JSON.stringify(echo)}` },
    { route: 'delta', status: 400, body: { message: JSON.stringify(echo), code: '0010' } },
  ];
}

/** Adds one more parameter to the URL, like an object store's session token. */
function signed(url: string, signature: string): string {
  const changed = new URL(url);
  changed.searchParams.set('X-Amz-Security-Token', signature);
  return changed.href;
}

/** Makes the sandbox sign its URLs with the canary from here on. The returned set collects its own signatures. */
function signWith(sandbox: Sandbox, signature: string): Set<string> {
  const own = new Set<string>();
  sandbox.faults.add({
    route: 'manifest',
    times: Infinity,
    mutate(json) {
      own.add(new URL(String(json['url'])).searchParams.get('X-Signature') ?? '');
      return { ...json, url: signed(String(json['url']), signature) };
    },
  });
  return own;
}

/** Creates a role for the daemon with the canary as its password, and drops it after the test. */
async function roleWith(password: string) {
  const name = `canary_${randomBytes(6).toString('hex')}`;
  const admin = connect(inject('postgresUrl'), { max: 1 });
  await admin.unsafe(`create role ${name} login password '${password.replaceAll("'", "''")}'`);
  return {
    name,
    async [Symbol.asyncDispose]() {
      await admin.unsafe(`drop role ${name}`);
      await admin.end();
    },
  };
}

function withPassword(url: string, user: string, password: string): string {
  const changed = new URL(url);
  changed.username = user;
  changed.password = encodeURIComponent(password);
  return changed.href;
}

async function environment(stack: Stack, role: string, secrets: Secrets) {
  await stack.sql.unsafe(`alter database ${new URL(stack.databaseUrl).pathname.slice(1)} owner to ${role}`);
  const redis = stack.env['REDIS_URL'];
  return {
    ...stack.env,
    DATABASE_URL: withPassword(stack.databaseUrl, role, secrets.postgres),
    // A Redis whose default user has no password accepts any password.
    ...(redis === undefined ? {} : { REDIS_URL: withPassword(redis, 'default', secrets.redis) }),
  };
}

/** Collects everything that the program has left behind, wherever it is. */
async function leftBehind(backend: Backend, stack: Stack, daemon: Program) {
  const [metrics, ready, live, page, status] = await Promise.all(
    ['/metrics', '/readyz', '/livez', '/', '/status.json'].map(async (path) => (await daemon.get(path)).body),
  );
  return {
    metrics: metrics ?? '',
    http: [ready, live].join('\n'),
    page: `${page ?? ''}\n${status ?? ''}`,
    tables: await allRows(stack.sql),
    redis:
      backend === 'redis' ? await allKeys(inject('redisUrl') ?? '', stack.env['QUEUE_PREFIX'] ?? '') : '',
  };
}

const text = ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout}\n${stderr}`;

describe.concurrent('canaries', () => {
  test.for(backends())(
    'reach the requests and nothing else, whatever fails: queues in %s',
    async (backend, { expect }) => {
      const secrets = secretsOfARun();
      await using elsewhere = await deafPort();
      await using role = await roleWith(secrets.postgres);
      await using stack = await createStack({
        backend,
        // The role must own what it creates.
        database: 'empty',
        sandbox: { skus: 300, seed: 91, apiKey: secrets.apiKey, secret: secrets.secret },
        env: {
          LOG_LEVEL: 'trace',
          PARTNER_TIMEOUT: '500ms',
          PARTNER_BACKOFF: '200ms',
          PARTNER_RATE_WINDOW: '1s',
          DELTA_INTERVAL: '500ms',
        },
      });
      const { sandbox, sql } = stack;
      const env = await environment(stack, role.name, secrets);
      const hits = failure(secrets, elsewhere.port).map((fault) => sandbox.faults.add(fault));
      const signatures = signWith(sandbox, secrets.signature);
      await using daemon = startProgram(
        ['run'],
        { ...env, CRASH_TEXT: crashText(secrets) },
        { preload: CRASH },
      );
      await daemon.until('app.started');
      await eventually(
        async () => {
          // Failed tasks are tried again at once, not after a minute.
          await sql`update catalog_internal.tasks set next_at = least(next_at, now()), failures = 0 where outcome <> 'done'`;
          await sql`update catalog_internal.tasks set next_at = now() where task = 'manifest' and outcome = 'done'`;
          return hits.every((count) => count() > 0);
        },
        { what: 'every error', within: 120_000 },
      );
      await eventually(() => holds(sql, FILLED), { what: 'the fill' });
      // SKUs are counted only now and then: a page from before the first count shows none.
      const filled = String(sandbox.world.newestSnapshot());
      await eventually(async () => (await daemon.get('/')).body.includes(filled), {
        what: 'a page that is full',
      });
      const left = await leftBehind(backend, stack, daemon);
      const status = await runProgram(['status'], env);
      const asJson = await runProgram(['status', '--json'], env);
      const doctor = await runProgram(['doctor'], env);
      daemon.signal('SIGUSR2');
      expect((await daemon.exited).code).toBe(1);
      const places = {
        ...left,
        stdout: daemon.stdout.join('\n'),
        stderr: daemon.stderr.join('\n'),
        status: text(status),
        'status --json': text(asJson),
        doctor: text(doctor),
      };
      expectFull(expect, backend, places, sandbox);
      expect(signatures.size).toBeGreaterThan(0);
      const own = [...signatures].map((core): Canary => ({ name: 'the sandbox’s signature', core }));
      expect(findings(places, [...secrets.canaries, ...own])).toEqual([]);
      // Redirects were answered, but never followed.
      expect(elsewhere.connections).toBe(0);
    },
  );

  test('are not printed by a program that ends with an unhandled rejection', async ({ expect }) => {
    const secrets = secretsOfARun();
    await using stack = await createStack({
      sandbox: { skus: 20, apiKey: secrets.apiKey, secret: secrets.secret },
    });
    await using daemon = startProgram(
      ['run'],
      { ...stack.env, CRASH_TEXT: crashText(secrets) },
      { preload: CRASH },
    );
    await daemon.until('app.started');
    daemon.signal('SIGURG');
    expect((await daemon.exited).code).toBe(1);
    const said = { stdout: daemon.stdout.join('\n'), stderr: daemon.stderr.join('\n') };
    expect(daemon.logged('app.crashed')).toMatchObject([
      { level: 'fatal', err: { message: expect.stringContaining('broken: ') } },
    ]);
    expect(
      findings(
        said,
        secrets.canaries.filter(({ name }) => !name.includes('password')),
      ),
    ).toEqual([]);
  });

  test('are not printed by doctor when answers echo them', async ({ expect }) => {
    const { apiKey, secret, canaries } = secretsOfARun();
    await using stack = await createStack({ sandbox: { skus: 20, apiKey, secret } });
    stack.sandbox.faults.add({ route: 'manifest', body: { [secret]: 1, [apiKey]: 2, stranger: 3 } });
    const doctor = await runProgram(['doctor'], stack.env);
    expect(doctor.stdout).toContain('not found among the fields [redacted]');
    expect(doctor.stdout).toContain('stranger');
    expect(findings({ doctor: text(doctor) }, canaries)).toEqual([]);
  });

  test('are not printed for a configuration that cannot work', async ({ expect }) => {
    const one = canary('a password');
    await using stack = await createStack({ sandbox: { skus: 20 } });
    const { port } = new URL(stack.databaseUrl);
    const wrong: Record<string, string>[] = [
      { DATABASE_URL: `postgres://postgres:${one.core}@127.0.0.1:${port}/postgres` },
      { DATABASE_URL: `postgres://u:${one.core}@[bad/db` },
      { DATABASE_URL: `postgres://u:${one.core}@127.0.0.1:port/db` },
      { DATABASE_URL: `postgres://u:${one.core}%zz@127.0.0.1:${port}/db` },
      { DATABASE_URL: `postgre://u:${one.core}@127.0.0.1/db` },
      { DATABASE_URL: `postgres://u:${one.core} @127.0.0.1/db` },
      { DATABASE_URL: `postgres://u@127.0.0.1:${port}/db?password=${one.core}` },
      { DATABASE_URL_FILE: `/run/${one.core}` },
      { REDIS_URL: `redis://u:${one.core}@127.0.0.1:1` },
      { REDIS_URL: `redis://u:${one.core}@127.0.0.1:port` },
      { REDIS_URL: `redis://u:${one.core}@[bad` },
      { REDIS_URL: `http://u:${one.core}@127.0.0.1` },
      { PARTNER_BASE_URL: `https://u:${one.core}@127.0.0.1` },
      { PARTNER_BASE_URL: `https://127.0.0.1/?key=${one.core}` },
      { PARTNER_API_KEY: `key:${one.core}` },
      { PARTNER_SECRET_FILE: one.core, PARTNER_SECRET: '' },
    ];
    const runs = wrong.map((env) => async () => {
      const { DATABASE_URL, ...rest } = stack.env;
      const base = 'DATABASE_URL_FILE' in env ? rest : { ...rest, DATABASE_URL };
      const ran = await runProgram(['doctor'], { ...base, ...env });
      expect({ env, failed: ran.code === 1 || ran.code === 78, said: text(ran).length > 10 }).toEqual({
        env,
        failed: true,
        said: true,
      });
      return [JSON.stringify(env), text(ran)] as const;
    });
    const said = await twoAtATime(runs);
    expect(findings(Object.fromEntries(said), [one])).toEqual([]);
  });
});

function crashText({ apiKey, secret, signature }: Secrets): string {
  const pair = Buffer.from(`${apiKey}:${secret}`).toString('base64');
  return `${secret} ${apiKey} Basic ${pair} https://files.example.com/m.gz?X-Amz-Signature=${encodeURIComponent(signature)}`;
}

/** Proves that the search would find something: each place contains what it should. */
function expectFull(
  expect: ExpectStatic,
  backend: Backend,
  places: Record<string, string>,
  sandbox: Sandbox,
): void {
  expect(places['stdout']).toContain('bulk.failed');
  expect(places['stdout']).toContain('app.crashed');
  expect(places['tables']).toContain(sandbox.world.newestSnapshot());
  expect(places['tables']).toContain('SignatureDoesNotMatch');
  if (backend === 'redis') expect(places['redis']).toContain('reprice');
  else expect(places['tables']).toContain('catalog_queue');
  expect(places['metrics']).toContain('catalog_mirror_partner_requests_total');
  expect(places['http']).toContain('"ok":true');
  expect(places['page']).toContain(sandbox.world.newestSnapshot());
  expect(places['page']).toContain('bulk.failed');
  expect(places['status']).toContain(sandbox.world.newestSnapshot());
  expect(places['status --json']).toContain(sandbox.world.newestSnapshot());
  expect(places['doctor']).toContain('OK   manifest file');
}

async function twoAtATime<T>(work: readonly (() => Promise<T>)[]): Promise<T[]> {
  const waiting = [...work.entries()];
  const results: T[] = [];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
      results[next[0]] = await next[1]();
  };
  await Promise.all([worker(), worker()]);
  return results;
}
