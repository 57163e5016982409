import postgres, { type Sql } from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Batch, follow, followInto } from '../../src/client/follow.ts';
import { openSource } from '../../src/client/source.ts';
import { answerAsked, found, knownSkus, useStore } from '../store/support.ts';
import { eventually, pause } from '../support/eventually.ts';
import { hasPgBouncer, pgBouncer } from '../support/pgbouncer.ts';
import { type Proxy, proxyTo } from '../support/proxy.ts';

/* A server that stops answering, a slow statement, and a position that another process holds. */

const store = useStore();
/** How long an answer may take here. */
const WITHIN_MS = 600;

beforeEach(async () => {
  await store.sql`drop schema if exists shop cascade`;
  await store.sql`create schema shop`;
  await store.sql`create table shop.seen (line text)`;
  await knownSkus(store.sql, ['A']);
  await answerAsked(store.sql, found('A', { 9: 90 }));
});

const seen = async () =>
  (await store.sql<{ line: string }[]>`select line from shop.seen`).map(({ line }) => line);

/** Opens the package's own client, as for a URL. */
function opened(url: string): Sql {
  const { sql, close } = openSource({ url }, WITHIN_MS);
  onTestFinished(close);
  return sql;
}

async function proxied(): Promise<{ readonly proxy: Proxy; readonly url: string }> {
  const proxy = await proxyTo(store.url);
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  return { proxy, url: Object.assign(new URL(store.url), { port: String(proxy.port) }).href };
}

/**
 * Applies the next change; the first transaction also runs `first`. Records the codes of the errors that were
 * retried.
 */
function applies(sql: Sql, first: (tx: postgres.TransactionSql) => Promise<unknown>) {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const retries: unknown[] = [];
  let times = 0;
  const ended = followInto({
    sql,
    table: 'shop.follower',
    position: 'now',
    signal: stop.signal,
    // A pooler does not forward notifications.
    pollMs: 1000,
    onRetry: (error) => void retries.push((error as { code?: unknown }).code),
    async apply(tx, { changes }: Batch) {
      times += 1;
      for (const { kind, new_price } of changes)
        await tx`insert into shop.seen values (${`${kind} ${new_price}`})`;
      if (times === 1) await first(tx);
    },
  });
  ended.catch(() => {});
  return { stop, retries, ended, times: () => times };
}

const begun = () =>
  eventually(
    async () =>
      (await store.sql`select from shop.follower where position <> 'now'`.catch(() => [])).length > 0,
    { what: 'a position' },
  );

/** Returns the number of the package's sessions that are in a transaction or waiting. */
const atWork = async () =>
  (
    await store.sql`select from pg_stat_activity
      where application_name = 'catalog-mirror-follow' and datname = current_database() and state <> 'idle'`
  ).length;

describe('followInto', () => {
  test('recovers when its server stops answering, and leaves no session that holds the position', async () => {
    const { proxy, url } = await proxied();
    const { stop, retries, ended, times } = applies(opened(url), async (tx) => {
      proxy.silence();
      await tx`select 1`;
    });
    await begun();
    await answerAsked(store.sql, found('A', { 9: 91 }));
    await eventually(async () => (await seen()).length > 0, { what: 'the change', within: 15_000 });
    expect({ seen: await seen(), retries, times: times() }).toEqual({
      seen: ['price 91'],
      retries: ['ANSWER_TIMEOUT'],
      times: 2,
    });
    stop.abort();
    await ended;
  });

  test.each(['', ...(hasPgBouncer() ? [', behind PgBouncer'] : [])])(
    'waits for a server that is working%s',
    async (way) => {
      await using pooler = way === '' ? null : await pgBouncer(store.url, { pool_mode: 'transaction' });
      const sql = opened(pooler?.url ?? store.url);
      const { stop, retries, ended, times } = applies(
        sql,
        (tx) => tx`select pg_sleep(${(WITHIN_MS * 3) / 1000})`,
      );
      await begun();
      await answerAsked(store.sql, found('A', { 9: 91 }));
      await eventually(async () => (await seen()).length > 0, { what: 'the change' });
      expect({ seen: await seen(), retries, times: times() }).toEqual({
        seen: ['price 91'],
        retries: [],
        times: 1,
      });
      stop.abort();
      await ended;
    },
  );

  test('waits as long as another process holds the position, and ends at once when told to', async () => {
    const own = postgres(store.url, { max: 1, onnotice() {}, connection: { application_name: 'shop' } });
    onTestFinished(() => own.end({ timeout: 1 }));
    const two = [applies(opened(store.url), async () => {}), applies(own, async () => {})];
    await begun();
    const other = await store.sql.reserve();
    await other`begin`;
    await other`select from shop.follower for update`;
    await answerAsked(store.sql, found('A', { 9: 91 }));
    const waiting = async () =>
      (
        await store.sql`select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%for update%'`
      ).length;
    await eventually(async () => (await waiting()) === 2, { what: 'two that wait' });
    await pause(WITHIN_MS * 3);
    expect([await waiting(), two.map(({ retries }) => retries)]).toEqual([2, [[], []]]);
    for (const { stop } of two) stop.abort();
    await Promise.all(two.map(({ ended }) => ended));
    expect(await seen()).toEqual([]);
    // Nothing stays in flight for which its owner would have to wait.
    await own.end();
    await eventually(async () => (await waiting()) === 0, { what: 'nobody who waits' });
    await other`rollback`;
    other.release();
  });

  test('finishes the batch that is being applied when it is told to end', async () => {
    const applying = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const { stop, ended } = applies(opened(store.url), async () => {
      applying.resolve();
      await goOn.promise;
    });
    await begun();
    await answerAsked(store.sql, found('A', { 9: 91 }));
    await applying.promise;
    stop.abort();
    goOn.resolve();
    await ended;
    expect(await seen()).toEqual(['price 91']);
  });

  test('asks the server to release the position soon if it can no longer reach this host', async () => {
    let idle: unknown;
    const { stop, ended } = applies(opened(store.url), async (tx) => {
      [idle] = await tx`select current_setting('tcp_keepalives_idle') as idle,
        current_setting('idle_in_transaction_session_timeout') as timeout`;
    });
    await begun();
    await answerAsked(store.sql, found('A', { 9: 91 }));
    await eventually(() => idle !== undefined);
    expect(idle).toEqual({ idle: '30', timeout: '0' });
    stop.abort();
    await ended;
  });
});

test('a read that waits for a lock is one session, however long it waits', async () => {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const retries: unknown[] = [];
  const other = await store.sql.reserve();
  const taken: string[] = [];
  const options = { sql: opened(store.url), position: 'now', pollMs: 50, signal: stop.signal };
  const following = (async () => {
    for await (const { changes } of follow({ ...options, onRetry: (error) => void retries.push(error) }))
      taken.push(...changes.map(({ sku }) => sku));
  })();
  await other`begin`;
  await other`lock table catalog.price_history in access exclusive mode`;
  await eventually(async () => (await atWork()) === 1, { what: 'who waits' });
  await pause(WITHIN_MS * 4);
  // The session that checks whether it is working is active for a moment, too.
  await eventually(async () => (await atWork()) === 1, { what: 'one session alone' });
  expect(retries).toEqual([]);
  await other`rollback`;
  other.release();
  await answerAsked(store.sql, found('A', { 9: 91 }));
  await eventually(() => taken.includes('A'), { what: 'the change' });
  stop.abort();
  await following;
});
