import { randomInt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { eventually, pause } from '../support/eventually.ts';
import { moveMarket, randomFrom } from '../support/market.ts';
import { through } from '../support/net.ts';
import { expectCursorNotAhead } from '../support/oracle.ts';
import { atCommit, type CommitCut } from '../support/postgres-wire.ts';
import { type Proxy, proxyTo, type Watcher, when } from '../support/proxy.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { askedSkus, expectWhole, get, untilSql, untilTimely, untilUnready, untilWhole } from './harness.ts';

const SANDBOX = { skus: 400, liveShare: 0.05, latencyMs: 10 };

async function start(stack: Stack, proxy: Proxy) {
  return await stack.start({ DATABASE_URL: through(stack.databaseUrl, proxy) });
}

/** Combines watchers of one connection: the first that does not let a piece pass decides. */
function all(...makers: readonly (() => Watcher)[]): () => Watcher {
  return () => {
    const watchers = makers.map((make) => make());
    return (piece, direction) =>
      watchers.map((watch) => watch(piece, direction)).find((fate) => fate !== 'pass') ?? 'pass';
  };
}

describe('a connection to Postgres that is lost at COMMIT', () => {
  const CUTS: CommitCut[] = [
    'before COMMIT arrives',
    'after COMMIT, before its answer',
    'right behind COMMIT',
  ];
  test.concurrent.each(CUTS)(
    '%s: the outcome is read afterwards, and nothing is lost or done twice',
    async (cut) => {
      // A long lease: SKUs whose answer was lost are asked for again because their claim was given back, not because
      // time passed.
      await using stack = await createStack({
        backend: 'postgres',
        sandbox: { ...SANDBOX, liveShare: 0, seed: 101 },
        env: { DELTA_INTERVAL: '1s', PARTNER_TIMEOUT: '10m' },
      });
      const { sql } = stack;
      const { world } = stack.sandbox;
      await using proxy = await proxyTo(stack.databaseUrl);
      const manifest = atCommit(/manifest_applied_at = now\(\)/, cut);
      const answers = atCommit(/insert into catalog\.prices/, cut, 2);
      const delta = atCommit(/snapshot_moved_at = case when snapshot_id <>/, cut, 2);
      proxy.watch(all(manifest.watcher, answers.watcher, delta.watcher));
      await start(stack, proxy);
      await untilWhole(sql, world);
      await eventually(() => delta.hits() === 2, { what: 'two lost deltas' });
      const fill = askedSkus(stack);
      moveMarket(world, 0);
      await untilWhole(sql, world);
      await expectWhole(sql, world);
      expect([manifest.hits(), answers.hits(), delta.hits()]).toEqual([1, 2, 2]);
      if (cut !== 'right behind COMMIT') {
        const applied = cut === 'after COMMIT, before its answer';
        // A merge that was committed needs no second download, and committed answers are not asked for again.
        expect(stack.sandbox.counts('file')).toBe(applied ? 1 : 2);
        const [{ skus }] = await sql<[{ skus: number }]>`
        select count(*)::int as skus from catalog.skus where first_seen_at < (select max(first_seen_at) from catalog.skus)`;
        if (applied) expect(fill).toBe(skus);
        else expect(fill).toBeGreaterThan(skus);
      }
    },
  );
});

describe('Postgres over a bad connection', () => {
  test.concurrent.each([
    ['late and in slices', (proxy: Proxy) => proxy.set({ latencyMs: 3, sliceBytes: 700 })],
    ['reset', (proxy: Proxy) => void proxy.reset()],
    ['half-closed by the server', (proxy: Proxy) => proxy.halfClose('to-client')],
    ['half-closed towards the server', (proxy: Proxy) => proxy.halfClose('to-server')],
    ['a black hole for a while', (proxy: Proxy) => proxy.set({ blackHole: true })],
    [
      'refused for a while',
      (proxy: Proxy) => {
        proxy.set({ refuse: true });
        proxy.reset();
      },
    ],
  ])('%s: during a fill and a delta, the mirror ends up complete', async (name, disturb) => {
    await using stack = await createStack({
      backend: 'postgres',
      sandbox: { ...SANDBOX, skus: 500, latencyMs: 30, seed: 102 },
      env: { DELTA_INTERVAL: '1s' },
    });
    const { sql } = stack;
    const { world } = stack.sandbox;
    await using proxy = await proxyTo(stack.databaseUrl);
    const app = await start(stack, proxy);
    for (const [round, there] of [
      `(select running_until is not null from catalog_internal.tasks where task = 'manifest')`,
      `exists (select from catalog_internal.due where claim is not null)`,
      `(select count(*) from catalog.skus where state = 'priced') > 250`,
    ].entries()) {
      await untilTimely(sql, `point ${round}`, there);
      disturb(proxy);
      if (name.endsWith('for a while')) {
        await untilUnready(app, 'Postgres does not answer');
        expect((await get(app, '/livez')).status).toBe(200);
        proxy.heal();
      }
      await expectCursorNotAhead(sql, world);
    }
    await untilWhole(sql, world);
    moveMarket(world, 0);
    await untilSql(
      sql,
      'a delta',
      `(select running_until is not null from catalog_internal.tasks where task = 'delta')`,
    );
    disturb(proxy);
    await expectCursorNotAhead(sql, world);
    proxy.heal();
    await untilWhole(sql, world);
    await expectWhole(sql, world);
    await eventually(async () => (await get(app, '/readyz')).status === 200, { what: 'readiness' });
  });

  test.concurrent('lost again while connections are being set up: no promise is rejected without a handler', async () => {
    await using stack = await createStack({ backend: 'postgres', sandbox: { ...SANDBOX, seed: 104 } });
    await using proxy = await proxyTo(stack.databaseUrl);
    await start(stack, proxy);
    await untilWhole(stack.sql, stack.sandbox.world);
    const types = when('to-server', { pattern: 'b.typarray' }, 'cut', Infinity);
    const startup = when('to-client', { bytes: 1 }, 'cut', 6);
    proxy.watch(all(types.watcher, startup.watcher));
    proxy.reset();
    await eventually(() => startup.hits() === 6, { what: 'six cuts' });
    await stack.everythingDue();
    await untilWhole(stack.sql, stack.sandbox.world);
    // Its promise would have no handler: postgres.js must not send this query again.
    expect(types.hits()).toBe(0);
  });

  test.concurrent('terminating backends at random moments under load loses nothing', async () => {
    const seed = randomInt(2 ** 31);
    console.log(`seed ${seed}`);
    const random = randomFrom(seed);
    await using stack = await createStack({
      backend: 'postgres',
      sandbox: { ...SANDBOX, seed: 103 },
      env: { DELTA_INTERVAL: '1s' },
    });
    const { sql } = stack;
    const { world } = stack.sandbox;
    await stack.start();
    let terminated = 0;
    for (let round = 0; round < 24; round += 1) {
      if (round > 9 && round % 5 === 0) moveMarket(world, round / 5 - 2);
      await pause(random() * 250);
      const gone = await sql`
        select pg_terminate_backend(pid) from (
          select pid from pg_stat_activity
          where datname = current_database() and pid <> all(${await ownBackends(stack)})
          order by state <> 'active', hashtext(pid || ${String(random())}) limit 3
        ) victims`;
      terminated += gone.count;
      await expectCursorNotAhead(sql, world);
    }
    expect(terminated).toBeGreaterThan(10);
    await untilWhole(sql, world);
    await expectWhole(sql, world);
  });
});

/** Returns the test's own connections, which existed before the daemon's. */
const own = new WeakMap<Stack, number[]>();
async function ownBackends(stack: Stack): Promise<number[]> {
  const known = own.get(stack) ?? [];
  const [{ pid }] = await stack.sql<[{ pid: number }]>`select pg_backend_pid() as pid`;
  own.set(stack, [...new Set([...known, pid])]);
  return own.get(stack) ?? [];
}
