import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import type { Fault } from '../../src/sandbox/faults.ts';
import type { Sql } from '../../src/store/db.ts';
import { FILLED, holds, runProgram, startProgram, until } from '../support/process.ts';
import { backends, createStack } from '../support/stack.ts';

const SECRET = 'canary/secret+Ünï"cørn';
const API_KEY = 'canary-of-an-api-key';

/** What can go wrong with a request, so that errors of every make come up in messages, causes and stacks. */
const TROUBLE: Fault[] = [
  { route: 'manifest', status: 500, body: { errorMessage: 'Internal Server Error' } },
  { route: 'manifest', body: '<html>not JSON' },
  { route: 'manifest', mutate: (json) => ({ ...json, url: `https://[bad${String(json['url'])}` }) },
  {
    route: 'manifest',
    mutate: (json) => ({ ...json, url: String(json['url']).replace('http:', 'gopher:') }),
  },
  { route: 'file', status: 403, body: '<Error/>' },
  { route: 'file', reset: true },
  { route: 'file', truncateAt: 300 },
  { route: 'file', file: (body) => Buffer.from(body).fill('x', 20, 60) },
  { route: 'bulk', reset: true },
  { route: 'bulk', hang: true },
  { route: 'bulk', status: 403, body: { message: 'Forbidden' } },
  { route: 'bulk', status: 500, body: { message: 'Internal Server Error' } },
  { route: 'bulk', status: 401, body: { message: `Unauthorized: ${SECRET}` } },
  { route: 'bulk', body: { results: [SECRET] } },
  { route: 'delta', status: 400, body: { message: SECRET, code: '0010' } },
];

/** Every row of every table of the database, as text. */
async function allRows(sql: Sql): Promise<string> {
  const tables = await sql<{ name: string }[]>`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema')`;
  const rows = await Promise.all(tables.map(({ name }) => sql.unsafe(`select t::text from ${name} t`)));
  return JSON.stringify(rows);
}

/** Every value of every Redis key with this prefix, as text. */
async function allKeys(url: string, prefix: string): Promise<string> {
  const redis = new Redis(url);
  const read: Record<string, (key: string) => Promise<unknown>> = {
    string: (key) => redis.get(key),
    hash: (key) => redis.hgetall(key),
    list: (key) => redis.lrange(key, 0, -1),
    set: (key) => redis.smembers(key),
    zset: (key) => redis.zrange(key, '0', '-1'),
    stream: (key) => redis.xrange(key, '-', '+'),
  };
  const keys = await redis.keys(`${prefix}:*`);
  const values = await Promise.all(keys.map(async (key) => [key, await read[await redis.type(key)]?.(key)]));
  await redis.quit();
  return JSON.stringify(values);
}

/** A secret as it may turn up: as it is, and in the encodings it travels in. */
function forms(secret: string): string[] {
  const pair = Buffer.from(`${API_KEY}:${secret}`).toString('base64');
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), pair, pair.slice(8, 40)];
}

test.each(backends())(
  'through every trouble, no secret gets anywhere but into requests: queues in %s',
  async (backend) => {
    await using stack = await createStack({
      backend,
      sandbox: { skus: 300, seed: 91, apiKey: API_KEY, secret: SECRET },
      env: {
        LOG_LEVEL: 'trace',
        PARTNER_TIMEOUT: '500ms',
        PARTNER_BACKOFF: '200ms',
        PARTNER_RATE_WINDOW: '1s',
        DELTA_INTERVAL: '500ms',
      },
    });
    const { sandbox, sql } = stack;
    const signatures = new Set<string>();
    const hits = TROUBLE.map((fault) => sandbox.faults.add(fault));
    sandbox.faults.add({
      route: 'manifest',
      times: Infinity,
      mutate(json) {
        signatures.add(new URL(String(json['url'])).searchParams.get('X-Signature') ?? '');
        return json;
      },
    });
    await using daemon = startProgram(['run'], stack.env);
    await daemon.until('app.started');
    await until('every trouble', async () => {
      // What failed is tried again at once, not after its minute.
      await sql`update catalog_internal.tasks set next_at = least(next_at, now()), failures = 0 where outcome <> 'done'`;
      await sql`update catalog_internal.tasks set next_at = now() where task = 'manifest' and outcome = 'done'`;
      return hits.every((count) => count() > 0);
    });
    await until('the fill', () => holds(sql, FILLED));
    const metrics = (await daemon.get('/metrics')).body;
    const ready = (await daemon.get('/readyz')).body;
    const status = await runProgram(['status'], stack.env);
    const doctor = await runProgram(['doctor'], stack.env);
    await daemon.end('SIGTERM');

    const redis = inject('redisUrl');
    const places = {
      stdout: daemon.stdout.join('\n'),
      stderr: daemon.stderr.join('\n'),
      tables: await allRows(sql),
      redis: backend === 'redis' ? await allKeys(redis ?? '', stack.env['QUEUE_PREFIX'] ?? '') : '',
      metrics,
      ready,
      status: status.stdout + status.stderr,
      doctor: doctor.stdout + doctor.stderr,
    };
    // The search would find something: each place holds what it should.
    expect(places.stdout).toContain('bulk.failed');
    expect(places.tables).toContain(sandbox.world.newestSnapshot());
    if (backend === 'redis') expect(places.redis).toContain('reprice');
    expect(places.metrics).toContain('catalog_mirror_partner_requests_total');
    expect(signatures.size).toBeGreaterThan(0);

    const password = new URL(stack.databaseUrl).password;
    const secrets = [...forms(SECRET), API_KEY, password, ...signatures];
    const found = Object.entries(places).flatMap(([place, text]) =>
      secrets.filter((secret) => text.includes(secret)).map((secret) => `${secret} in ${place}`),
    );
    expect(found).toEqual([]);
  },
);
