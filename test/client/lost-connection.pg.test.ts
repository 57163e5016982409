import { createRequire } from 'node:module';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import patched, { type Sql, type TransactionSql } from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { followInto } from '../../src/client/follow.ts';
import { answerAsked, found, knownSkus, useStore } from '../store/support.ts';
import { eventually, pause } from '../support/eventually.ts';

/* Programs of others use the published driver. Its CommonJS code is not patched. */
const published = createRequire(import.meta.url)(
  fileURLToPath(new URL('../../node_modules/postgres/cjs/src/index.js', import.meta.url)),
) as typeof patched;

const store = useStore();

beforeEach(async () => {
  await store.sql`drop schema if exists shop cascade`;
  await store.sql`create schema shop`;
  await store.sql`create table shop.seen (line text)`;
  await knownSkus(store.sql, ['A']);
  await answerAsked(store.sql, found('A', { 9: 90 }));
});

const seen = async () =>
  (await store.sql<{ line: string }[]>`select line from shop.seen`).map(({ line }) => line);

/** Ends a session, and waits until Postgres has none with its process id. */
async function endSession(pid: number): Promise<void> {
  await store.sql`select pg_terminate_backend(${pid})`;
  await eventually(
    async () => (await store.sql`select from pg_stat_activity where pid = ${pid}`).length === 0,
  );
}

const pidOf = async (tx: TransactionSql) => {
  const [row] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid`;
  return row.pid;
};

describe.each([
  ['as the package brings it', patched],
  ['as it is published', published],
])('followInto with the driver %s', (_, postgres) => {
  /** Follows with one connection until a second batch is applied. `first` is what the first apply does. */
  async function follows(first: (tx: TransactionSql, closed: Promise<void>) => Promise<void>, idleMs = 0) {
    const stop = new AbortController();
    const closed = Promise.withResolvers<void>();
    const sql: Sql = postgres(store.url, {
      max: 1,
      onnotice() {},
      onclose: () => closed.resolve(),
      connection: { idle_in_transaction_session_timeout: idleMs },
    });
    onTestFinished(() => sql.end({ timeout: 1 }));
    let applying = 0;
    let most = 0;
    let times = 0;
    const following = followInto({
      sql,
      table: 'shop.follower',
      position: 'now',
      signal: stop.signal,
      async apply(tx, { changes }) {
        applying += 1;
        times += 1;
        most = Math.max(most, applying);
        try {
          if (times === 1) await first(tx, closed.promise);
          for (const { kind, size, new_price } of changes)
            await tx`insert into shop.seen values (${`${kind} ${size} ${new_price}`})`;
        } finally {
          applying -= 1;
        }
      },
    });
    following.catch(() => {});
    await eventually(
      async () =>
        (await store.sql`select from shop.follower where position <> 'now'`.catch(() => [])).length > 0,
      { what: 'a position' },
    );
    await answerAsked(store.sql, found('A', { 9: 91 }));
    await eventually(async () => (await seen()).includes('price 9 91'), { what: 'the change' });
    await answerAsked(store.sql, found('A', { 9: 92 }));
    await eventually(async () => (await seen()).includes('price 9 92'), { what: 'the change after it' });
    stop.abort();
    await following;
    return { most, times };
  }

  test('sends no statement of a lost transaction into the next one, which waits for its end', async () => {
    const result = Promise.withResolvers<PromiseSettledResult<unknown>>();
    const { most, times } = await follows(async (tx, closed) => {
      await endSession(await pidOf(tx));
      await closed;
      // So that the next one could start.
      await pause(500);
      const [late] = await Promise.allSettled([tx`insert into shop.seen values ('late')`]);
      result.resolve(late);
    });
    expect((await result.promise).status).toBe('rejected');
    expect(await seen()).toEqual(['price 9 91', 'price 9 92']);
    expect([most, times]).toEqual([1, 3]);
  });

  test('neither commits nor rolls back the next transaction for a lost one whose apply succeeds', async () => {
    const { most } = await follows(async (tx, closed) => {
      await endSession(await pidOf(tx));
      await closed;
      // The driver has now told those who wait for the transaction.
      await setImmediate();
      await tx
        .savepoint(async (inner) => void (await inner`insert into shop.seen values ('late')`))
        .catch(() => {});
    });
    expect(await seen()).toEqual(['price 9 91', 'price 9 92']);
    expect(most).toBe(1);
  });

  test('settles the statements that were sent when the connection was lost', async () => {
    const { most } = await follows(async (tx) => {
      const pid = await pidOf(tx);
      const sent = Array.from({ length: 200 }, () => tx`select pg_sleep(60)`.execute());
      for (const statement of sent) statement.catch(() => {});
      await eventually(
        async () =>
          (await store.sql`select from pg_stat_activity where pid = ${pid} and query like '%pg_sleep%'`)
            .length > 0,
      );
      await endSession(pid);
      const settled = await Promise.allSettled(sent);
      expect(new Set(settled.map(({ status }) => status))).toEqual(new Set(['rejected']));
    });
    expect(await seen()).toEqual(['price 9 91', 'price 9 92']);
    expect(most).toBe(1);
  });

  test('is not cut off by a server that ends idle transactions', async () => {
    const { times } = await follows(async () => await pause(400), 50);
    expect([await seen(), times]).toEqual([['price 9 91', 'price 9 92'], 2]);
  });
});
