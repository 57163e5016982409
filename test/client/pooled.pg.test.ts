import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type patched from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type FollowIntoOptions, followInto } from '../../src/client/follow.ts';
import { answerAsked, found, knownSkus, useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { hasPgBouncer, pgBouncer } from '../support/pgbouncer.ts';

/* A consumer that reaches Postgres through a pooler. */

const published = createRequire(import.meta.url)(
  fileURLToPath(new URL('../../node_modules/postgres/cjs/src/index.js', import.meta.url)),
) as typeof patched;

const store = useStore();

beforeEach(async () => {
  await store.sql`drop schema if exists shop cascade`;
  await store.sql`create schema shop`;
  await store.sql`create table shop.seen (price int)`;
  await knownSkus(store.sql, ['A']);
  await answerAsked(store.sql, found('A', { 9: 1 }));
});

/** Each transaction gets another session than the one before. */
const IN_TURN = { pool_mode: 'transaction', server_round_robin: 1, min_pool_size: 4 };

async function pooled(settings: Readonly<Record<string, string | number>>): Promise<string> {
  const pooler = await pgBouncer(store.url, settings);
  onTestFinished(() => pooler[Symbol.asyncDispose]());
  return pooler.url;
}

/**
 * Follows through it while six prices move. Returns the prices seen, how often `apply` was called, and what was
 * retried.
 */
async function follows(options: Pick<FollowIntoOptions, 'sql' | 'url' | 'apply'>) {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const retries: unknown[] = [];
  let applied = 0;
  const ended = followInto({
    ...(options as FollowIntoOptions),
    table: 'shop.follower',
    position: 'now',
    pollMs: 50,
    signal: stop.signal,
    onRetry: (error) => void retries.push(error),
    apply: async (tx, batch) => {
      applied += 1;
      await options.apply(tx, batch);
    },
  });
  ended.catch(() => {});
  const until = <T>(what: string, is: () => Promise<T>) =>
    Promise.race([ended.then(() => Promise.reject(new Error('ended'))), eventually(is, { what })]);
  await until('a position', async () => {
    const rows = await store.sql`select from shop.follower where position <> 'now'`.catch(() => []);
    return rows.length > 0;
  });
  for (let price = 2; price <= 7; price += 1) {
    await answerAsked(store.sql, found('A', { 9: price }));
    const count = price - 1;
    await until(`${count} prices`, async () => (await store.sql`select from shop.seen`).length === count);
  }
  stop.abort();
  await ended;
  const rows = await store.sql<{ price: number }[]>`select price from shop.seen order by price`;
  return { seen: rows.map(({ price }) => price), applied, retries };
}

const ALL = { seen: [2, 3, 4, 5, 6, 7], applied: 6, retries: [] };

describe.skipIf(!hasPgBouncer())('followInto behind PgBouncer', () => {
  test('prepares nothing, so that each transaction may get another session', async () => {
    const url = await pooled(IN_TURN);
    expect(
      await follows({
        url,
        async apply(tx, { changes }) {
          for (const { new_price: price } of changes) await tx`insert into shop.seen values (${price})`;
        },
      }),
    ).toEqual(ALL);
  });

  test('commits what is applied, even with a client that prepares statements', async () => {
    const sql = published(await pooled(IN_TURN), { max: 2, onnotice() {} });
    onTestFinished(() => sql.end({ timeout: 1 }));
    expect(
      await follows({
        sql,
        async apply(tx, { changes }) {
          for (const { new_price: price } of changes)
            await tx.unsafe('insert into shop.seen values ($1::text::int)', [String(price)]);
        },
      }),
    ).toEqual(ALL);
  });

  test('rejects a pooler in statement mode, and names the modes that work', async () => {
    const url = await pooled({ pool_mode: 'statement' });
    await expect(followInto({ url, table: 'shop.follower', apply() {} })).rejects.toMatchObject({
      kind: 'invalid',
      hint: expect.stringContaining('session or transaction mode') as string,
    });
  });
});
