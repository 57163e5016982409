import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { moveMarket } from '../support/market.ts';
import { through } from '../support/net.ts';
import { expectCursorNotAhead } from '../support/oracle.ts';
import { type Proxy, proxyTo } from '../support/proxy.ts';
import { hasRedisServer, type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { createStack } from '../support/stack.ts';
import { expectWhole, get, untilLogged, untilTimely, untilUnready, untilWhole } from './harness.ts';

const SANDBOX = { skus: 500, liveShare: 0.05, latencyMs: 30 };
const POINTS = [
  `(select running_until is not null from catalog_internal.tasks where task = 'manifest')`,
  `exists (select from catalog_internal.due where claim is not null)`,
  `(select count(*) from catalog.skus where state = 'priced') > 250`,
];

interface Line {
  readonly redis: RedisServer;
  readonly proxy: Proxy;
}

const DISTURBANCES: [string, (line: Line) => Promise<unknown>][] = [
  ['restarted without persistence', ({ redis }) => redis.restart()],
  ['emptied by FLUSHALL', ({ redis }) => redis.command('FLUSHALL')],
  ['reset', async ({ proxy }) => proxy.reset()],
  ['half-closed by the server', async ({ proxy }) => proxy.halfClose('to-client')],
  ['half-closed towards the server', async ({ proxy }) => proxy.halfClose('to-server')],
  ['late and in slices', async ({ proxy }) => proxy.set({ latencyMs: 5, sliceBytes: 200 })],
  ['a black hole for a while', async ({ proxy }) => proxy.set({ blackHole: true })],
  [
    'refused for a while',
    async ({ proxy }) => {
      proxy.set({ refuse: true });
      proxy.reset();
    },
  ],
];

const withRedisServer = hasRedisServer ? describe.concurrent : describe.skip;

withRedisServer('a Redis that is', () => {
  test.each(DISTURBANCES)(
    '%s: during a fill and a delta, the mirror ends up complete',
    async (name, disturb) => {
      await using redis = await startRedisServer();
      await using proxy = await proxyTo(redis.url);
      await using stack = await createStack({
        backend: 'redis',
        sandbox: { ...SANDBOX, seed: 121 },
        env: { DELTA_INTERVAL: '1s', REDIS_URL: through(redis.url, proxy) },
      });
      const { sql } = stack;
      const { world } = stack.sandbox;
      const app = await stack.start();
      const strike = async () => {
        await disturb({ redis, proxy });
        if (!name.endsWith('for a while')) return;
        await untilUnready(app, 'the queues (redis) do not answer');
        expect((await get(app, '/livez')).status).toBe(200);
        proxy.heal();
      };
      for (const [index, point] of POINTS.entries()) {
        await untilTimely(sql, `point ${index}`, point);
        await strike();
        await expectCursorNotAhead(sql, world);
      }
      await untilWhole(sql, world);
      moveMarket(world, 0);
      await strike();
      await expectCursorNotAhead(sql, world);
      await untilWhole(sql, world);
      await expectWhole(sql, world);
      await eventually(async () => (await get(app, '/readyz')).status === 200, { what: 'readiness' });
    },
  );

  test('made a replica but stays up: the daemon moves to the new primary', async () => {
    await using old = await startRedisServer();
    await using next = await startRedisServer();
    await using proxy = await proxyTo(old.url);
    await using stack = await createStack({
      backend: 'redis',
      sandbox: { ...SANDBOX, seed: 123 },
      env: { DELTA_INTERVAL: '1s', REDIS_URL: through(old.url, proxy) },
    });
    const { sql } = stack;
    const { world } = stack.sandbox;
    const app = await stack.start();
    await untilTimely(sql, 'half a fill', POINTS[2] ?? '');
    const { hostname, port } = new URL(next.url);
    const [living, before] = [proxy.living, proxy.connections];
    const since = performance.now();
    await old.command('REPLICAOF', hostname, port);
    await untilUnready(app, 'the queues (redis) accept no jobs: it is a read-only replica (READONLY)');
    // Meanwhile each connection is replaced once a second, not with each refused command.
    await eventually(() => proxy.connections >= before + 2 * living, { what: 'connections made anew' });
    expect(performance.now() - since).toBeGreaterThan(500);
    // Nothing cuts the existing connections.
    proxy.aim(next.url);
    await eventually(async () => (await get(app, '/readyz')).status === 200, { what: 'readiness' });
    moveMarket(world, 0);
    await untilWhole(sql, world);
    await expectWhole(sql, world);
    expect(await next.command('DBSIZE')).toBeGreaterThan(0);
  });

  test('out of memory: that is reported, and the mirror continues once there is room again', async () => {
    await using redis = await startRedisServer();
    await using stack = await createStack({
      backend: 'redis',
      sandbox: { ...SANDBOX, seed: 122 },
      env: { DELTA_INTERVAL: '1s', REDIS_URL: redis.url },
    });
    const { sql } = stack;
    const { world } = stack.sandbox;
    const app = await stack.start();
    await untilTimely(sql, 'half a fill', POINTS[2] ?? '');
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    await untilUnready(app, 'the queues (redis) accept no jobs: out of memory (OOM)');
    moveMarket(world, 0);
    await untilLogged(stack, 'queues.error');
    await redis.command('CONFIG', 'SET', 'maxmemory', '0');
    await untilWhole(sql, world);
    await expectWhole(sql, world);
    await eventually(async () => (await get(app, '/readyz')).status === 200, { what: 'readiness' });
    // Meanwhile a line now and then, not one for each refused command.
    const said = stack.logs.filter(({ event, level }) => event === 'queues.error' && level === 'warn');
    expect(said.length).toBeLessThan(5);
  });
});
