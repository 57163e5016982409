import { join } from 'node:path';
import { describe, expect, type onTestFinished, test } from 'vitest';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { connect, connectAlone, type Sql } from '../../src/store/connection/db.ts';
import { MAX_UNDER_WAY } from '../../src/sync/reprice/slice.ts';
import { PATIENCE_MS, eventually } from '../support/eventually.ts';
import { moveMarket } from '../support/market.ts';
import { through } from '../support/net.ts';
import { temporaryFolder } from '../support/process.ts';
import { proxyTo } from '../support/proxy.ts';
import { hasRedisServer, startRedisServer } from '../support/redis-server.ts';
import { createStack } from '../support/stack.ts';
import {
  askedSkus,
  expectWhole,
  get,
  untilLogged,
  untilSql,
  untilTimely,
  untilUnready,
  untilWhole,
} from './harness.ts';

const SANDBOX = { skus: 300, liveShare: 0, latencyMs: 20 };

/**
 * Makes inserts into catalog.prices fail with this SQLSTATE: `times` times, or until the returned function is
 * called.
 */
async function failWrites(sql: Sql, state: string, times = Infinity): Promise<() => Promise<void>> {
  await sql.unsafe(`
    create sequence public.refused;
    create function public.refuse() returns trigger language plpgsql as $$ begin
      if nextval('public.refused') <= ${times === Infinity ? 1_000_000 : times} then
        raise exception 'refused on purpose' using errcode = '${state}';
      end if;
      return null;
    end $$;
    create trigger refuse before insert on catalog.prices for each statement execute function public.refuse()`);
  return async () => {
    await sql`drop function public.refuse cascade`;
  };
}

/** Starts a mirror on its own Postgres with a small queue of notifications. */
async function openSmallQueue(
  onEnd: typeof onTestFinished,
  seed: number,
  env: Readonly<Record<string, string>> = {},
) {
  const closing = new AsyncDisposableStack();
  const folder = await temporaryFolder(onEnd);
  const settings = { fsync: 'off', max_notify_queue_pages: '64' };
  const postgres = closing.use(await startEmbeddedPostgres({ dataDir: join(folder, 'pg'), settings }));
  const sql = connect(postgres.url, { max: 2, name: 'test' });
  closing.defer(() => sql.end({ timeout: 2 }));
  const stack = closing.use(
    await createStack({
      backend: 'postgres',
      sandbox: { ...SANDBOX, seed },
      env: { PARTNER_TIMEOUT: '10m', DATABASE_URL: postgres.url, ...env },
    }),
  );
  return {
    stack,
    sql,
    /** Fills the queue. It stays full until the session that is returned ends. */
    async fill() {
      const listener = await connectAlone(postgres.url, { application_name: 'a stranger' });
      await listener.query('listen strange');
      await listener.query('begin');
      await listener.query('set local idle_in_transaction_session_timeout = 0');
      const sent = sql`select pg_notify('strange', n || repeat('x', 7900)) from generate_series(1, 100) n`;
      await expect(sent.execute()).rejects.toMatchObject({ code: '54000' });
      return listener;
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

const refusals = `(select last_value from public.refused where is_called)`;
const someKnown = `(select count(*) from catalog.skus) > 0`;

describe('Postgres', () => {
  test.concurrent.each([
    ['a serialization failure', '40001'],
    ['a deadlock', '40P01'],
  ])(
    'may end a transaction with %s (%s): it is repeated as a whole, without asking the partner again',
    async (_, state) => {
      await using stack = await createStack({
        backend: 'postgres',
        sandbox: { ...SANDBOX, seed: 111 },
        env: { DELTA_INTERVAL: '1s' },
      });
      const { sql, sandbox } = stack;
      await stack.once(PATIENCE_MS);
      const asked = askedSkus(stack);
      const drop = await failWrites(sql, state, 3);
      await stack.everythingDue();
      const [{ due }] = await sql<[{ due: number }]>`
      select count(*)::int as due from catalog_internal.due where due_at <= now()`;
      moveMarket(sandbox.world, 0);
      sandbox.world.buildSnapshot();
      const from = stack.logs.length;
      await stack.start();
      await untilSql(sql, 'three refusals', `${refusals} > 3`);
      await untilWhole(sql, sandbox.world);
      await drop();
      await expectWhole(sql, sandbox.world);
      expect(askedSkus(stack) - asked).toBeLessThanOrEqual(due + 100);
      expect(stack.logs.slice(from).filter(({ event }) => event === 'queues.error')).toEqual([]);
    },
  );

  test.concurrent('may abort an answer’s transaction in a deadlock with another session: it is applied again as a whole', async () => {
    await using stack = await createStack({
      backend: 'postgres',
      sandbox: { ...SANDBOX, skus: 80, seed: 112 },
      env: { PARTNER_TIMEOUT: '10m' },
    });
    const { sql, sandbox } = stack;
    sandbox.faults.add({ route: 'bulk', delayMs: 1500 });
    // A session that waits checks for a deadlock once, after this time. By then there must be one, even on a busy
    // machine.
    await sql.unsafe(
      `alter database ${new URL(stack.databaseUrl).pathname.slice(1)} set deadlock_timeout = '5s'`,
    );
    await stack.start();
    await untilSql(sql, 'a call', 'exists (select from catalog_internal.due where claim is not null)');
    await sql.begin(async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await tx`set local deadlock_timeout = '60s'`;
      await tx`select from catalog_internal.due order by sku for update`;
      const waits = `exists (select from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and query like '%as answerable%')`;
      await untilSql(sql, 'an answer that waits for the ledger', waits);
      // The opposite order: granted only once the answer's transaction was aborted.
      await tx`select from catalog.skus order by sku for update`;
    });
    await untilSql(sql, 'the answers', `not exists (select from catalog.skus where state = 'pending')`);
    await untilWhole(sql, sandbox.world);
    await expectWhole(sql, sandbox.world);
    expect(sandbox.counts('bulk')).toBe(1);
    expect(stack.logs.filter(({ event }) => event === 'queues.error')).toEqual([]);
  });

  test.concurrent('may have a full disk: the mirror pauses, says so, stops its calls to the partner, and resumes by itself', async () => {
    await using stack = await createStack({
      backend: 'postgres',
      sandbox: { ...SANDBOX, skus: 600, seed: 113 },
      env: { PARTNER_TIMEOUT: '10m' },
    });
    const { sql, sandbox } = stack;
    sandbox.faults.add({ route: 'bulk', delayMs: 200, times: Infinity });
    const app = await stack.start();
    await untilSql(sql, 'lines', someKnown);
    const free = await failWrites(sql, '53100');
    await untilLogged(stack, 'store.paused', ({ retryInMs }) => Number(retryInMs) >= 2000);
    const asked = sandbox.counts('bulk');
    const paused = await untilLogged(stack, 'store.paused', ({ retryInMs }) => Number(retryInMs) >= 4000);
    const tried = sandbox.counts('bulk') - asked;
    expect(paused).toMatchObject({ kind: 'disk-full', job: 'reprice' });
    const { status, text } = await get(app, '/readyz');
    expect({ status, body: JSON.parse(text) as unknown }).toMatchObject({
      status: 200,
      body: { state: 'broken' },
    });
    expect(text).toContain('Postgres rejects writes (disk-full); sync is paused and retries by itself; ');
    expect((await get(app, '/metrics')).text).toMatch(/jobs_total\{queue="reprice",outcome="paused"\} [1-9]/);
    // Calls that were in flight with the first, and one after each pause.
    expect(asked).toBeLessThanOrEqual(MAX_UNDER_WAY + 2);
    expect(tried).toBeLessThanOrEqual(2);
    // Each attempt claims SKUs, and gives them back.
    await untilSql(
      sql,
      'claims given back',
      'not exists (select from catalog_internal.due where claim is not null)',
    );
    await free();
    await untilLogged(stack, 'store.resumed');
    await untilSql(sql, 'the fill', `not exists (select from catalog_internal.due where due_at <= now())`);
    expect((await get(app, '/readyz')).text).not.toContain('disk-full');
    await expectWhole(sql, sandbox.world);
  });

  describe.concurrent('while a listening session keeps the notification queue full', () => {
    test('a fill blames no SKU, and the mirror resumes once that session has ended', async ({
      onTestFinished,
    }) => {
      await using line = await openSmallQueue(onTestFinished, 115);
      const { stack, sql } = line;
      const { world, faults } = stack.sandbox;
      faults.add({ route: 'bulk', delayMs: 1000, times: Infinity });
      const app = await stack.start();
      await untilSql(sql, 'lines', someKnown);
      const listener = await line.fill();
      const paused = await untilLogged(stack, 'store.paused', ({ job }) => job === 'reprice');
      expect(paused).toMatchObject({ kind: 'notify-queue-full' });
      expect((await get(app, '/readyz')).text).toContain('end the session that has run LISTEN');
      await untilLogged(stack, 'store.paused', ({ retryInMs }) => Number(retryInMs) >= 4000);
      await listener.end();
      await untilLogged(stack, 'store.resumed');
      await untilWhole(sql, world);
      await expectWhole(sql, world);
      expect([...(await sql`select * from catalog_internal.quarantine`)]).toEqual([]);
      const blamed = stack.logs.filter(({ event }) => event === 'bulk.failed' || event === 'bulk.set-aside');
      expect(blamed).toEqual([]);
    });

    // With queues in Postgres, BullMQ's own notifications would make room, too.
    test.skipIf(!hasRedisServer)(
      'the first manifest fails, and is applied once that session has ended',
      async ({ onTestFinished }) => {
        await using redis = await startRedisServer();
        await using line = await openSmallQueue(onTestFinished, 116, { REDIS_URL: redis.url });
        const { stack, sql } = line;
        const listener = await line.fill();
        await stack.start();
        await untilLogged(stack, 'manifest.failed', ({ because }) => because === 'notify-queue-full');
        await listener.end();
        await untilWhole(sql, stack.sandbox.world);
      },
    );
  });

  test.concurrent('may restart during a fill and a delta: the daemon recovers by itself', async ({
    onTestFinished,
  }) => {
    const folder = await temporaryFolder(onTestFinished);
    const boot = () => startEmbeddedPostgres({ dataDir: join(folder, 'pg'), settings: { fsync: 'off' } });
    let postgres = await boot();
    await using stack = await createStack({
      backend: 'postgres',
      sandbox: { ...SANDBOX, skus: 600, latencyMs: 40, seed: 114 },
      env: { DELTA_INTERVAL: '1s' },
    });
    await using proxy = await proxyTo(postgres.url);
    const url = through(postgres.url, proxy);
    const { world } = stack.sandbox;
    const sql = connect(url, { max: 2, name: 'test' });
    const app = await stack.start({ DATABASE_URL: url });
    const restart = async () => {
      await postgres.stop();
      await untilUnready(app, 'Postgres does not answer');
      postgres = await boot();
      proxy.aim(postgres.url);
      await eventually(
        () =>
          sql`select 1`.then(
            () => true,
            () => false,
          ),
        { what: 'an answer' },
      );
    };
    try {
      await untilSql(sql, 'half a fill', `(select count(*) from catalog.skus where state = 'priced') > 100`);
      await restart();
      await untilWhole(sql, world);
      moveMarket(world, 0);
      await restart();
      await untilWhole(sql, world);
      await expectWhole(sql, world);
      await eventually(async () => (await get(app, '/readyz')).status === 200, { what: 'readiness' });
      await untilLogged(stack, 'store.lost');
      await untilLogged(stack, 'store.back');
      await untilTimely(
        sql,
        'no claims',
        `not exists (select from catalog_internal.due where claim is not null)`,
      );
    } finally {
      await app.stop();
      await sql.end({ timeout: 2 });
      await postgres.stop();
    }
  });
});
