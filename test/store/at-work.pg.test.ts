import { once } from 'node:events';
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { atWorkText, mayWaitOn } from '../../src/store/connection/at-work.ts';
import { connect, type ConnectOptions, type Sql, statementsAtWork } from '../../src/store/connection/db.ts';
import { actingLogins } from '../support/acting-login.ts';
import { eventually } from '../support/eventually.ts';
import { through } from '../support/net.ts';
import { proxyTo, when } from '../support/proxy.ts';
import { useStore } from './support.ts';

const store = useStore();

const WITHIN_MS = 1500;
const SLOW_SECONDS = (2 * WITHIN_MS) / 1000;

interface Line {
  readonly sql: Sql;
  readonly proxy: Awaited<ReturnType<typeof proxyTo>>;
}

/** Opens a pool through a proxy that can disturb it, with all of its connections open. */
async function openLine(options: ConnectOptions = {}, url = store.url): Promise<Line> {
  const { max = 1 } = options;
  const proxy = await proxyTo(url);
  const sql = connect(through(url, proxy), { max, answerWithinMs: WITHIN_MS, ...options });
  onTestFinished(async () => {
    await sql.end({ timeout: 0 });
    await proxy[Symbol.asyncDispose]();
  });
  await Promise.all(Array.from({ length: max }, () => sql`select pg_sleep(0.05)`));
  return { sql, proxy };
}

const codeOf = async (work: PromiseLike<unknown>): Promise<unknown> => {
  try {
    await work;
    return 'none';
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
};

/** Attaches a slow seller's trigger to the table that `INSERT` writes. */
async function slowTrigger(): Promise<void> {
  await store.sql.unsafe(`
    create function public.slow() returns trigger language plpgsql as $$ begin perform pg_catalog.pg_sleep(${SLOW_SECONDS}); return new; end $$;
    create trigger sellers_slow before insert on catalog.skus for each row execute function public.slow()`);
  onTestFinished(async () => {
    await store.sql.unsafe('drop function public.slow() cascade');
  });
}

const INSERT = `insert into catalog.skus (sku, in_manifest) values ('A', true)`;

test("a statement that is slow in a seller's trigger is waited for, in a transaction and by itself", async () => {
  await slowTrigger();
  const { sql, proxy } = await openLine();
  await sql.begin(async (tx) => {
    await tx.unsafe(INSERT);
    await tx`delete from catalog.skus`;
  });
  await sql.unsafe(INSERT);
  expect(await store.sql`select sku from catalog.skus`).toHaveLength(1);
  // The first connection was not replaced; those opened to ask about it are gone before the next one.
  expect(await sql`select pg_sleep(0.01)`).toHaveLength(1);
  expect(proxy.connections).toBeGreaterThan(1);
});

test('a statement at work is reported, with what others have attached to the tables that it writes', async () => {
  await slowTrigger();
  await store.sql.unsafe(
    `create trigger elsewhere before insert on catalog.products for each row execute function public.slow()`,
  );
  const { sql } = await openLine();
  expect(statementsAtWork(sql)).toEqual([]);
  const slow = sql.unsafe(INSERT).execute();
  const [statement] = await eventually(() => {
    const found = statementsAtWork(sql);
    expect(found).toHaveLength(1);
    return found;
  });
  expect(statement).toMatchObject({
    waitsFor: 'Timeout: PgSleep',
    attached: ['trigger sellers_slow on catalog.skus'],
  });
  expect(atWorkText(statement as NonNullable<typeof statement>)).toBe(
    'what it writes has trigger sellers_slow on catalog.skus',
  );
  await slow;
});

test('nothing is asked, and no connection made, while answers arrive in time', async () => {
  // The statements take long, but none comes near the time after which it would ask, even on a busy machine.
  const { sql, proxy } = await openLine({ answerWithinMs: 6 * WITHIN_MS });
  for (let n = 0; n < 5; n += 1) await sql`select pg_sleep(${WITHIN_MS / 1000})`;
  expect(proxy.connections).toBe(1);
});

test('a connection that falls silent while Postgres is at work is lost when Postgres is done', async () => {
  const { sql, proxy } = await openLine();
  const lost = codeOf(sql`select pg_sleep(${SLOW_SECONDS})`);
  await store.sql`select pg_sleep(0.1)`;
  proxy.silence();
  const startedAt = performance.now();
  expect(await lost).toBe('ANSWER_TIMEOUT');
  expect(performance.now() - startedAt).toBeLessThan(SLOW_SECONDS * 1000 + 4 * WITHIN_MS);
});

/** Starts a proxy to Postgres that, once told to stall, no longer reads what Postgres sends on its first connection. */
async function stallingWay(): Promise<{ readonly url: string; stall(): void }> {
  const { hostname, port } = new URL(store.url);
  let made = 0;
  let stalled = false;
  const sockets: Socket[] = [];
  const listener = createServer((client) => {
    made += 1;
    const isFirst = made === 1;
    const server = connectTo(Number(port), hostname);
    sockets.push(client, server);
    for (const socket of [client, server]) socket.on('error', () => {});
    client.pipe(server);
    server.on('data', (piece) => {
      if (isFirst && stalled) server.pause();
      else client.write(piece);
    });
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  const url = new URL(store.url);
  url.port = String((listener.address() as AddressInfo).port);
  return { url: url.href, stall: () => void (stalled = true) };
}

test('a connection whose answer nobody reads is lost: Postgres is only waiting to send it', async () => {
  const way = await stallingWay();
  const sql = connect(way.url, { max: 1, answerWithinMs: WITHIN_MS });
  onTestFinished(() => sql.end({ timeout: 0 }));
  await sql`select 1`;
  way.stall();
  expect(await codeOf(sql`select repeat('x', 50000000) as long`)).toBe('ANSWER_TIMEOUT');
});

test("a statement that waits for a lock is waited for, and the lock's holder is named", async () => {
  const { sql } = await openLine();
  let waiting: Promise<unknown> = Promise.resolve();
  await store.sql.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`;
    await tx`lock table catalog.skus in access exclusive mode`;
    waiting = sql`select count(*) from catalog.skus`.execute();
    const [statement] = await eventually(() => {
      const found = statementsAtWork(sql);
      expect(found).toHaveLength(1);
      return found;
    });
    const [{ pid }] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid`;
    expect(statement?.blockers).toEqual([expect.stringContaining(`process ${pid} of Postgres (role`)]);
  });
  await waiting;
});

test('a statement that Postgres works on goes on while another connection of its pool falls silent', async () => {
  const { sql, proxy } = await openLine({ max: 2 });
  const slow = codeOf(sql`select pg_sleep(${SLOW_SECONDS})`);
  const silence = when('to-server', { pattern: 'the silent one' }, 'pass');
  let silent = false;
  proxy.watch(() => {
    const watch = silence.watcher();
    return (piece, direction) => {
      const hits = silence.hits();
      watch(piece, direction);
      if (silence.hits() > hits) silent = true;
      // Cuts only this connection; this watcher does not see the other one.
      return silent && piece.includes('the silent one') ? 'cut' : 'pass';
    };
  });
  expect(await codeOf(sql`select 'the silent one'`)).not.toBe('none');
  expect(await slow).toBe('none');
});

test.each(['the same login', 'another login, as after a rotation,'])(
  'a statement is waited for if it acts as another role and is asked about by %s',
  async (who) => {
    await using acting = await actingLogins(store.sql, store.url);
    const first = await acting.login();
    const second = who === 'the same login' ? first : await acting.login();
    let present = first;
    const sql = connect(() => present, { max: 1, answerWithinMs: WITHIN_MS });
    onTestFinished(() => sql.end({ timeout: 0 }));
    await sql`select 1`;
    present = second;
    expect(await codeOf(sql`select pg_sleep(${SLOW_SECONDS})`)).toBe('none');
  },
);

test('a statement may wait on only if its next interval ends within the total time', () => {
  expect(mayWaitOn(25_000, 30_000, 1_800_000)).toBe(true);
  expect(mayWaitOn(1_770_000, 30_000, 1_800_000)).toBe(true);
  expect(mayWaitOn(1_771_000, 30_000, 1_800_000)).toBe(false);
});

test('a statement is lost when its total time is over', async () => {
  const { sql } = await openLine({ workWithinMs: 2 * WITHIN_MS });
  expect(await codeOf(sql`select pg_sleep(60)`)).toBe('ANSWER_TIMEOUT');
});

test('if Postgres has no connection left, it is asked through the pool', async () => {
  const role = `few_${Date.now()}`;
  await store.sql.unsafe(`create role ${role} login password 'x' connection limit 2`);
  const url = new URL(store.url);
  url.username = role;
  url.password = 'x';
  const sql = connect(url.href, { max: 2, answerWithinMs: WITHIN_MS });
  onTestFinished(async () => {
    await sql.end({ timeout: 1 });
    await store.sql.unsafe(`drop role ${role}`);
  });
  await Promise.all([sql`select pg_sleep(0.05)`, sql`select pg_sleep(0.05)`]);
  expect(await codeOf(sql`select pg_sleep(${SLOW_SECONDS})`)).toBe('none');
});
