import postgres, { type TransactionSql } from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { type Batch, followInto } from '../../src/client/follow.ts';
import { answerAsked, found, knownSkus, useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';

const store = useStore();
const seen = () => store.sql<{ line: string }[]>`select line from shop.seen`;

test("followInto sends statements that are returned in an array but not awaited, like the driver's transactions", async () => {
  const sql = postgres(store.url, { max: 2, onnotice() {} });
  onTestFinished(() => sql.end({ timeout: 1 }));
  await knownSkus(store.sql, ['A']);
  await answerAsked(store.sql, found('A', { 9: 90 }));
  await store.sql`create schema shop`;
  await store.sql`create table shop.seen (line text)`;
  await store.sql`create table shop.follower (name text primary key, position text not null)`;
  await store.sql`insert into shop.follower values ('default', '99999999999999')`;
  await store.sql`insert into shop.seen values ('old')`;
  const stop = new AbortController();
  const following = followInto({
    sql,
    table: 'shop.follower',
    signal: stop.signal,
    // Nothing tells JavaScript programs that it may not be an array.
    apply: ((tx: TransactionSql, { changes }: Batch) =>
      changes.map(({ sku }) => tx`insert into shop.seen values (${sku})`)) as unknown as () => void,
    onLost: ((tx: TransactionSql) => [tx`truncate shop.seen`]) as unknown as () => void,
  });
  await Promise.race([following, eventually(async () => (await seen()).length > 1)]);
  stop.abort();
  await following;
  expect((await seen()).map(({ line }) => line)).not.toContain('old');
});
