import { Redis } from 'ioredis';
import { describe, inject, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { eventually, pause } from '../support/eventually.ts';
import { gateTo, through } from '../support/net.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { expectStopped, FILLED, holds, runProgram, startProgram } from '../support/process.ts';
import { backends, createStack } from '../support/stack.ts';

const redisUrl = inject('redisUrl');

describe.concurrent.each(backends())('with queues in %s,', (backend) => {
  test('a daemon whose Postgres connections are all cut repeatedly continues and loses nothing', async ({
    expect,
  }) => {
    await using stack = await createStack({
      backend,
      sandbox: { skus: 600, liveShare: 0.05, seed: 81, latencyMs: 30 },
      env: { DELTA_INTERVAL: '1s' },
    });
    const { world } = stack.sandbox;
    const sql = connect(stack.databaseUrl, { max: 1, name: 'test' });
    // After a cut it may take a moment until anybody is connected again.
    const cutOthers = () =>
      eventually(
        async () => {
          const cut = await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name <> 'test'`;
          return cut.count > 0;
        },
        { what: 'somebody to cut' },
      );
    await using daemon = startProgram(['run'], stack.env);
    await daemon.until('app.started');
    // A claim whose own statement was cut is known to nobody: it would end only with its lease, which is longer than
    // any request. And a task that met a cut connection is retried only after a minute.
    const meanwhile = async (condition: string) => {
      await sql`update catalog_internal.tasks set next_at = now() where failures > 0 and next_at > now()`;
      await sql`
        update catalog_internal.due set held_until = now()
        where claim is not null and held_until < now() + interval '58 seconds'`;
      return await holds(sql, condition);
    };
    for (const priced of [50, 200, 400]) {
      const there = `(select count(*) from catalog.skus where state = 'priced') >= ${priced}`;
      await eventually(() => meanwhile(there), { what: `${priced} priced SKUs` });
      await cutOthers();
    }
    const filled = () => meanwhile(FILLED);
    await sql`update catalog_internal.tasks set running_until = now() where running_until is not null`;
    await eventually(filled, { what: 'the fill' });
    const listed = [...world.truth().values()].filter(({ priceSource }) => priceSource === 'snapshot');
    for (const { sku } of listed.slice(0, 20)) world.withdraw(sku);
    const applied = `(select snapshot_id = '${world.buildSnapshot()}' from catalog_internal.sync) and ${FILLED}`;
    await cutOthers();
    // What failed in the cut would be retried after a minute, or when its task's lease ends.
    await sql`update catalog_internal.tasks set next_at = now(), running_until = null where task = 'delta'`;
    await eventually(async () => (await filled()) && (await holds(sql, applied)), { what: 'the delta' });
    await expectMirrorIsTrue(sql, world);
    await eventually(async () => (await daemon.get('/readyz')).status === 200, { what: 'readiness' });
    expect(daemon.stderr).toEqual([]);
    expectStopped(await daemon.end('SIGTERM'), expect);
    await sql.end();
  });
});

const withRedis = redisUrl === null ? describe.skip : describe.concurrent;
withRedis('a Redis', () => {
  test('that loses everything gets its schedules back within half a minute, without a restart', async ({
    expect,
  }) => {
    await using stack = await createStack({
      backend: 'redis',
      sandbox: { skus: 60, liveShare: 0, seed: 82 },
      env: { DELTA_INTERVAL: '1s' },
    });
    await using daemon = startProgram(['run'], stack.env);
    await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
    // Like FLUSHALL, but only for our prefix: others share this Redis.
    const redis = new Redis(redisUrl ?? '');
    const keys = await redis.keys(`${stack.env['QUEUE_PREFIX']}:*`);
    expect(keys.length).toBeGreaterThan(5);
    await redis.unlink(keys);
    await redis.quit();
    const deltas = stack.sandbox.counts('delta');
    const sku = [...stack.sandbox.world.truth().values()].find(({ listed }) => listed)?.sku ?? '';
    stack.sandbox.world.withdraw(sku);
    stack.sandbox.world.buildSnapshot();
    await eventually(() => stack.sandbox.counts('delta') >= deltas + 2, { what: 'two more deltas' });
    await eventually(() => holds(stack.sql, FILLED), { what: 'their work' });
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
    expectStopped(await daemon.end('SIGTERM'), expect);
  });

  test('that is down at the start is retried without haste, and the daemon reports it until it is back', async ({
    expect,
  }) => {
    await using gate = await gateTo(redisUrl ?? '');
    await using stack = await createStack({ backend: 'redis', sandbox: { skus: 60, seed: 83 } });
    await using daemon = startProgram(['run'], { ...stack.env, REDIS_URL: through(redisUrl ?? '', gate) });
    await daemon.until('app.started');
    const ready = await daemon.get('/readyz');
    expect({ ...ready, body: JSON.parse(ready.body) }).toMatchObject({
      status: 503,
      body: {
        ok: false,
        reason:
          'the queues (redis) do not answer; this daemon runs what is due by itself; ' +
          'check the server that REDIS_URL (or else DATABASE_URL) names',
      },
    });
    expect((await daemon.get('/livez')).status).toBe(200);
    const [attempts, since] = [gate.connections, performance.now()];
    await pause(3000);
    // Five workers, a client each and one more: a handful of attempts a second, not thousands.
    expect((gate.connections - attempts) / ((performance.now() - since) / 1000)).toBeLessThan(20);
    const said = daemon.logged('queues.error').filter(({ level }) => level === 'warn');
    expect(said.map(({ err }) => err)).toHaveLength(1);

    gate.open();
    await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
    expect((await daemon.get('/readyz')).status).toBe(200);
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
    expectStopped(await daemon.end('SIGTERM'), expect);
    expect(daemon.stderr).toEqual([]);
  });

  test('that never answers does not keep a daemon from stopping', async ({ expect }) => {
    await using gate = await gateTo(redisUrl ?? '');
    await using stack = await createStack({ backend: 'redis', sandbox: { skus: 60 } });
    await using daemon = startProgram(['run'], { ...stack.env, REDIS_URL: through(redisUrl ?? '', gate) });
    await eventually(() => gate.connections > 0, { what: 'an attempt' });
    expectStopped(await daemon.end('SIGTERM'), expect);
    expect(daemon.stderr).toEqual([]);

    await using another = startProgram(['run'], { ...stack.env, REDIS_URL: through(redisUrl ?? '', gate) });
    await another.until('app.started');
    expectStopped(await another.end('SIGTERM'), expect);
    expect(another.stderr).toEqual([]);
  });
});

describe.concurrent('a Postgres', () => {
  test('that drops a daemon while it writes an answer has the SKUs asked for again at once, not after their lease', async ({
    expect,
  }) => {
    await using stack = await createStack({
      sandbox: { skus: 60, liveShare: 0, seed: 85 },
      env: { PARTNER_TIMEOUT: '10m' },
    });
    const { sql, sandbox } = stack;
    sandbox.faults.add({ route: 'bulk', delayMs: 500 });
    await using daemon = startProgram(['run'], stack.env);
    await eventually(() => sandbox.counts('bulk') > 0, { what: 'a call' });
    await sql.begin(async (tx) => {
      await tx`lock table catalog.prices in access exclusive mode`;
      // Copies of one template share their tables' oids, so locks of other tests' databases must be left out.
      const waiters = `
        from pg_locks where relation = 'catalog.prices'::regclass and not granted
        and database = (select oid from pg_database where datname = current_database())`;
      await eventually(() => holds(sql, `exists (select ${waiters})`), {
        what: 'an answer that waits to be written',
      });
      await sql.unsafe(`select pg_terminate_backend(pid) ${waiters}`);
    });
    await eventually(() => holds(sql, FILLED), { what: 'the fill' });
    expect(sandbox.counts('bulk')).toBe(2);
    await expectMirrorIsTrue(sql, sandbox.world);
    expect(daemon.stderr).toEqual([]);
    expectStopped(await daemon.end('SIGTERM'), expect);
  });

  test('that is down at the start is waited for', async ({ expect }) => {
    await using stack = await createStack({ database: 'empty', sandbox: { skus: 60, seed: 84 } });
    await using gate = await gateTo(stack.databaseUrl);
    await using daemon = startProgram(['run'], {
      ...stack.env,
      DATABASE_URL: through(stack.databaseUrl, gate),
    });
    await eventually(() => gate.connections > 3, { what: 'some attempts' });
    expect(await daemon.until('database.waiting')).toMatchObject({ level: 'warn' });
    gate.open();
    await daemon.until('database.answers');
    // Logged at once, and not again for twenty seconds.
    const [first = 0, ...later] = daemon
      .logged('database.waiting')
      .map(({ waitedSeconds }) => Number(waitedSeconds));
    expect(first).toBeLessThan(20);
    for (const [n, seconds] of later.entries()) expect(seconds).toBeGreaterThanOrEqual(first + 20 * (n + 1));
    await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
    expectStopped(await daemon.end('SIGTERM'), expect);
  });

  test('that stays down ends a command with a clear message and a non-zero code', async ({ expect }) => {
    const ran = await runProgram(['status'], { DATABASE_URL: 'postgres://x:y@127.0.0.1:1/x' });
    expect(ran.code).toBe(2);
    const remedy = 'check that it runs and that DATABASE_URL reaches it';
    expect(ran.stdout).toBe(`broken: Postgres does not answer; ${remedy}`);
    expect(ran.stderr).toBe(
      `Postgres does not answer\n  because: connect ECONNREFUSED 127.0.0.1:1\n  what to do: ${remedy}`,
    );
  });

  test('that lacks the database is not reported as one that does not answer', async ({ expect }) => {
    await using stack = await createStack();
    const url = new URL(stack.databaseUrl);
    url.pathname = '/no_such_database';
    for (const [command, code] of [
      ['run', 1],
      ['status', 2],
    ] as const) {
      const ran = await runProgram([command], { ...stack.env, DATABASE_URL: url.href });
      expect({ command, code: ran.code }).toEqual({ command, code });
      expect(ran.stderr).toMatch(
        /^Postgres answers, and does not have this database\n {2}because: .*no_such_database.*\n {2}what to do: correct its name/,
      );
    }
  });

  test('that rejects the password ends the daemon at once, with a clear message that does not contain it', async ({
    expect,
  }) => {
    await using stack = await createStack();
    const url = new URL(stack.databaseUrl);
    url.password = 'canary-of-a-password';
    const { code, stdout, stderr } = await runProgram(['run'], { ...stack.env, DATABASE_URL: url.href });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^Postgres rejects the login\n {2}because: password authentication failed.*\n {2}what to do: check user and password in DATABASE_URL$/,
    );
    expect(stdout + stderr).not.toContain('canary');
  });
});
