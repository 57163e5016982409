import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { moveMarket } from '../support/market.ts';
import { hasRedisServer, startRedisServer } from '../support/redis-server.ts';
import { backends, createStack, type Stack } from '../support/stack.ts';
import { expectWhole, get, untilWhole } from './harness.ts';

const FILE = '/run/secrets/url';

/** Creates a stack whose daemons read one variable from a file that the test writes. */
async function withFile(backend: 'postgres' | 'redis', variable: string, env: Record<string, string> = {}) {
  const file = { text: '' };
  const stack = await createStack({
    backend,
    sandbox: { skus: 300, liveShare: 0, latencyMs: 10, seed: 161 },
    env: { DELTA_INTERVAL: '1s', ...env, [variable]: '', [`${variable}_FILE`]: FILE },
    readFile: () => file.text,
  });
  return { stack, file };
}

/** Makes everything due after the market has moved, which uses both drivers and the queues. */
async function worksOn(stack: Stack): Promise<void> {
  moveMarket(stack.sandbox.world, 0);
  await stack.everythingDue();
  await untilWhole(stack.sql, stack.sandbox.world);
  await expectWhole(stack.sql, stack.sandbox.world);
}

describe('a login in DATABASE_URL_FILE that is rotated', () => {
  test.concurrent.each(
    backends().flatMap((backend) => [[backend, 'its password'] as const, [backend, 'its user'] as const]),
  )(
    'with queues in %s, %s: the daemon reports that it is rejected, and continues once the file is updated',
    async (backend, what) => {
      const { stack, file } = await withFile(backend, 'DATABASE_URL');
      await using _stack = stack;
      const { sql } = stack;
      const name = `rotated_${randomBytes(4).toString('hex')}`;
      const urlOf = (user: string, password: string) =>
        Object.assign(new URL(stack.databaseUrl), { username: user, password }).href;
      await sql.unsafe(`create role ${name} superuser login password 'first'`);
      file.text = `${urlOf(name, 'first')}\n`;
      try {
        const app = await stack.start();
        await untilWhole(sql, stack.sandbox.world);
        const user = what === 'its user' ? `${name}_b` : name;
        await sql.unsafe(
          what === 'its user'
            ? `alter role ${name} nologin; create role ${user} superuser login password 'second'`
            : `alter role ${name} password 'second'`,
        );
        await eventually(
          async () => {
            // Repeatedly: a session that had just logged in and was not listed yet would continue.
            await sql`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${name}`;
            expect((await get(app, '/readyz')).text).toContain('Postgres rejects the login (28');
          },
          {
            what: 'that it is said',
          },
        );
        expect((await get(app, '/livez')).status).toBe(200);
        file.text = urlOf(user, 'second');
        await eventually(async () => (await get(app, '/readyz')).status === 200, { what: 'readiness' });
        await worksOn(stack);
        // Manifests have a connection of their own.
        await sql`update catalog_internal.tasks set next_at = now() where task = 'manifest'`;
        await app.wake('manifest');
        const files = stack.sandbox.counts('file');
        await eventually(() => stack.sandbox.counts('file') > files, { what: 'a manifest' });
        expect(JSON.stringify(stack.logs)).not.toMatch(/first|second/);
        await app.stop();
      } finally {
        await sql.unsafe(`drop role if exists ${name}_b`).catch(() => {});
        await sql.unsafe(`drop role if exists ${name}`).catch(() => {});
      }
    },
  );
});

test.skipIf(!hasRedisServer)(
  'a daemon continues after a password rotation once REDIS_URL_FILE is updated',
  async () => {
    await using redis = await startRedisServer();
    const { stack, file } = await withFile('redis', 'REDIS_URL');
    await using _stack = stack;
    const urlOf = (password: string) => Object.assign(new URL(redis.url), { password }).href;
    await redis.command('CONFIG', 'SET', 'requirepass', 'first');
    file.text = urlOf('first');
    const app = await stack.start();
    await untilWhole(stack.sql, stack.sandbox.world);
    const { Redis } = await import('ioredis');
    const admin = new Redis(urlOf('first'));
    await admin.config('SET', 'requirepass', 'second');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    admin.disconnect();
    await eventually(async () => (await get(app, '/readyz')).status === 503, { what: 'that it is said' });
    file.text = urlOf('second');
    await eventually(async () => (await get(app, '/readyz')).status === 200, { what: 'readiness' });
    await worksOn(stack);
  },
);

test('a role without CREATE on the database can start a migrated mirror, with queues in Postgres', async () => {
  await using stack = await createStack({
    backend: 'postgres',
    database: 'empty',
    sandbox: { skus: 60, seed: 162 },
    env: { DELTA_INTERVAL: '1s' },
  });
  const { sql } = stack;
  const url = new URL(stack.databaseUrl);
  const database = url.pathname.slice(1);
  const role = `tenant_${randomBytes(4).toString('hex')}`;
  await sql.unsafe(
    `create role ${role} login password 'tenant'; grant all on database ${database} to ${role}`,
  );
  const env = { DATABASE_URL: Object.assign(url, { username: role, password: 'tenant' }).href };
  try {
    const first = await stack.start(env);
    await untilWhole(sql, stack.sandbox.world);
    await first.stop();
    await sql.unsafe(`revoke create on database ${database} from ${role}`);
    const second = await stack.start(env);
    await worksOn(stack);
    await second.stop();
  } finally {
    await sql.unsafe(`drop owned by ${role} cascade; drop role ${role}`);
  }
});
