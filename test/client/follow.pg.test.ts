import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Batch, type Change, follow, followInto, productAfter } from '../../src/client/follow.ts';
import { keepPosition } from '../../src/client/position.ts';
import { readBatch } from '../../src/client/read-batch.ts';
import { connect } from '../../src/store/connection/db.ts';
import { answerAsked, found, knownSkus, removeByDelta, useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';

const store = useStore();

beforeEach(async () => {
  await store.sql`drop schema if exists shop cascade`;
  await store.sql`create schema shop`;
  await knownSkus(store.sql, ['A', 'B', 'C']);
  await answerAsked(store.sql, found('A', { 8: 80, 9: 90 }, { name: 'N' }), found('B', { 9: 70 }));
});

/** Returns the mirror's prices as lines. */
const pricesOf = async () =>
  (
    await store.sql`select concat_ws(' ', sku, size, price) as line from catalog.prices where price is not null order by 1`
  ).map(({ line }) => String(line));

class Copy {
  readonly prices = new Map<string, number>();

  take(change: Change): void {
    if (change.kind === 'price') {
      const at = `${change.sku} ${change.size}`;
      if (change.new_price === null) this.prices.delete(at);
      else this.prices.set(at, change.new_price);
    }
  }

  lines = () => [...this.prices].map(([at, price]) => `${at} ${price}`).toSorted();
}

/** Opens a client that is ended after the test. */
function client() {
  const sql = connect(store.url, { max: 3 });
  onTestFinished(() => sql.end({ timeout: 1 }));
  return sql;
}

describe('follow', () => {
  test('copies the mirror in pieces, then reads changes, and resumes from any position', async () => {
    const copy = new Copy();
    const seen: Batch[] = [];
    const stop = new AbortController();
    let from = 'start';
    // Every batch is the last of its process.
    const once = async () => {
      for await (const batch of follow({ url: store.url, position: from, batch: 10, signal: stop.signal })) {
        batch.changes.forEach((change) => copy.take(change));
        seen.push(batch);
        from = batch.position;
        break;
      }
    };
    for (let piece = 0; piece < 3; piece += 1) await once();
    expect(seen.map(({ isCopy }) => isCopy)).toEqual([true, true, true]);
    expect(copy.lines()).toEqual(await pricesOf());
    await answerAsked(store.sql, found('A', { 8: 85 }, { name: 'M' }), found('C', { 5: 50 }));
    while (copy.lines().join() !== (await pricesOf()).join()) await once();
    expect(seen.at(-1)?.isCopy).toBe(false);
  });

  test("starts at 'now' with a position before the first change, from which a restart misses none", async () => {
    const begun = follow({ url: store.url, position: 'now' });
    const { value: first } = await begun.next();
    expect(first).toMatchObject({ changes: [], isCopy: false });
    await begun.return();
    await answerAsked(store.sql, found('B', { 9: 75 }));
    const resumed = follow({ url: store.url, position: first?.position ?? '' });
    const { value: batch } = await resumed.next();
    await resumed.return();
    expect(batch?.changes.map(({ sku }) => sku)).toContain('B');
  });

  test('is notified of changes, even after its connections were lost, and ends by its signal', async () => {
    const stop = new AbortController();
    const taken: string[] = [];
    const retries: unknown[] = [];
    const following = (async () => {
      const options = {
        url: store.url,
        position: 'now',
        signal: stop.signal,
        onRetry: (error: unknown) => retries.push(error),
      };
      for await (const { changes } of follow(options)) taken.push(...changes.map(({ sku }) => sku));
    })();
    const sessions = () => store.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'catalog-mirror-follow' and query like 'listen %'`;
    const listens = () => store.sql<[{ n: number }]>`
      select count(*)::int as n from pg_stat_activity
      where datname = current_database() and application_name = 'catalog-mirror-follow' and query like 'listen %'`;
    await eventually(async () => (await listens())[0].n === 1, { what: 'it listens' });
    await answerAsked(store.sql, found('B', { 9: 71 }));
    await eventually(() => taken.includes('B'), { what: 'the first change' });
    await sessions();
    await answerAsked(store.sql, found('C', { 9: 71 }));
    await eventually(() => taken.includes('C'), { what: 'the change after the connection was lost' });
    stop.abort();
    await following;
  });

  test("reads the times of changes correctly, whatever the session's formats of numbers and times are", async () => {
    const seen = async (settings: Readonly<Record<string, string>>) => {
      const sql = postgres(store.url, { max: 1, connection: settings });
      onTestFinished(() => sql.end({ timeout: 1 }));
      const { changes } = await readBatch(sql, '0', 100);
      return changes.map(({ observed_at }) => observed_at);
    };
    const [at] = await store.sql<[{ ms: number }]>`
      select (extract(epoch from max(observed_at)) * 1000)::float8 as ms from catalog.changes(0)`;
    const times = await seen({});
    expect(times.at(-1)?.getTime()).toBe(Math.floor(at.ms));
    const others = {
      extra_float_digits: '-12',
      DateStyle: 'German',
      IntervalStyle: 'iso_8601',
      TimeZone: 'Asia/Kabul',
    };
    expect(await seen(others)).toEqual(times);
  });

  test('throws errors whose kind says what is wrong', async () => {
    const kindOf = async (position: string, url = store.url) => {
      try {
        for await (const _ of follow({ url, position })) return 'no error';
      } catch (error) {
        return (error as { kind?: string }).kind;
      }
      return 'ended';
    };
    const elsewhere = new URL(store.url);
    elsewhere.pathname = '/postgres';
    expect([
      await kindOf('99999999999999'),
      await kindOf('here'),
      await kindOf('now', elsewhere.href),
    ]).toEqual(['position-lost', 'invalid', 'no-mirror']);
  });
});

describe('followInto', () => {
  const seen = () => store.sql<{ line: string }[]>`select line from shop.seen`;
  const write = async (
    tx: { unsafe(text: string, values: string[]): PromiseLike<unknown> },
    { changes }: Batch,
  ) => {
    for (const { kind, sku, size, field } of changes)
      await tx.unsafe('insert into shop.seen values ($1)', [`${kind} ${sku} ${size ?? field}`]);
  };

  test('applies each change once, despite failures, cut connections and two processes of one name', async () => {
    const { sql } = store;
    await sql`create table shop.seen (line text)`;
    const stop = new AbortController();
    let turns = 0;
    const options = () => ({
      sql: client(),
      table: 'shop.follower',
      position: 'now',
      batch: 1,
      signal: stop.signal,
      async apply(tx: Parameters<Parameters<typeof followInto>[0]['apply']>[0], batch: Batch) {
        await write(tx, batch);
        turns += 1;
        // Its changes and the position are rolled back together.
        if (turns % 3 === 0) await tx`select pg_terminate_backend(pg_backend_pid())`;
      },
    });
    const both = [followInto(options()), followInto(options())];
    await eventually(
      async () => (await sql`select from shop.follower where position <> 'now'`.catch(() => [])).length > 0,
      {
        what: 'a position',
      },
    );
    for (let price = 100; price < 110; price += 1) await answerAsked(sql, found('B', { 9: price }));
    await eventually(async () => (await seen()).length >= 10, { what: 'all changes' });
    stop.abort();
    await Promise.all(both);
    expect((await seen()).map(({ line }) => line)).toEqual(Array.from({ length: 10 }, () => 'price B 9'));
  });

  test.each(['23505', '42710', '42P07'])(
    'accepts a table that another process creates at the same moment: SQLSTATE %s',
    async (code) => {
      const sql = client();
      const racing = Object.assign(Object.create(sql) as typeof sql, {
        unsafe: (query: string, parameters?: string[]) => {
          const pending = sql.unsafe(query, parameters);
          if (!query.startsWith('create table')) return pending;
          return Promise.resolve(pending).then(() => {
            throw Object.assign(new Error('it exists'), { code });
          });
        },
      });
      await keepPosition.prepare(racing, { table: 'shop.follower', name: 'default' }, 'now');
      expect([...(await sql`select name, position from shop.follower`)]).toEqual([
        { name: 'default', position: 'now' },
      ]);
    },
  );

  // With the second one no statement may take longer, even on a busy machine.
  test.each([
    ['lock_timeout', 50],
    ['statement_timeout', 2000],
  ])('waits for another process of its name longer than its own %s', async (timeout, ms) => {
    const { sql } = store;
    await sql`create table shop.follower (name text primary key, position text not null)`;
    await sql`insert into shop.follower values ('default', 'start')`;
    const impatient = postgres(store.url, { max: 3, connection: { [timeout]: ms } });
    onTestFinished(() => impatient.end({ timeout: 1 }));
    const [waited, applied] = [Promise.withResolvers<unknown>(), Promise.withResolvers<void>()];
    const stop = new AbortController();
    let following = Promise.resolve();
    await sql.begin(async (tx) => {
      await tx`select from shop.follower for update`;
      following = followInto({
        sql: impatient,
        table: 'shop.follower',
        signal: stop.signal,
        onRetry: (error) => waited.resolve(error),
        apply: () => applied.resolve(),
      });
      await Promise.race([waited.promise, following]);
    });
    await Promise.race([applied.promise, following]);
    stop.abort();
    await following;
  });

  test('waits for a locked table of the feed longer than its own lock_timeout', async () => {
    const { sql } = store;
    const impatient = postgres(store.url, { max: 3, connection: { lock_timeout: 50 } });
    onTestFinished(() => impatient.end({ timeout: 1 }));
    const [waited, applied] = [Promise.withResolvers<unknown>(), Promise.withResolvers<void>()];
    const stop = new AbortController();
    let following = Promise.resolve();
    await sql.begin(async (tx) => {
      await tx`lock table catalog.price_history in access exclusive mode`;
      following = followInto({
        sql: impatient,
        table: 'shop.follower',
        signal: stop.signal,
        onRetry: (error) => waited.resolve(error),
        apply: () => applied.resolve(),
      });
      await Promise.race([waited.promise, following]);
    });
    await Promise.race([applied.promise, following]);
    stop.abort();
    await following;
  });

  test('rejects with what apply throws, even if the error looks temporary', async () => {
    const own = Object.assign(new Error('my service'), { code: 'ECONNREFUSED' });
    const options = { sql: client(), table: 'shop.follower' };
    await expect(followInto({ ...options, apply: () => Promise.reject(own) })).rejects.toBe(own);
    expect([...(await store.sql`select position from shop.follower`)]).toEqual([{ position: 'start' }]);
  });

  test('starts a new copy if its position is lost and onLost empties the old one', async () => {
    await store.sql`create table shop.seen (line text)`;
    await store.sql`create table shop.follower (name text primary key, position text not null)`;
    await store.sql`insert into shop.follower values ('default', '99999999999999')`;
    const options = { sql: client(), table: 'shop.follower', apply: write };
    await expect(followInto(options)).rejects.toMatchObject({ kind: 'position-lost' });
    await store.sql`insert into shop.seen values ('old')`;
    const stop = new AbortController();
    const following = followInto({
      ...options,
      signal: stop.signal,
      onLost: async (tx) => void (await tx`truncate shop.seen`),
    });
    await eventually(async () => (await seen()).some(({ line }) => line === 'price B 9'), {
      what: 'the copy',
    });
    stop.abort();
    await following;
    const lines = (await seen()).map(({ line }) => line);
    expect([lines.includes('old'), lines.filter((line) => line.startsWith('price')).length]).toEqual([
      false,
      3,
    ]);
  });
});

test('productAfter returns the same product as SQL', async () => {
  const { sql } = store;
  await answerAsked(sql, found('A', { 8: 80 }, { name: 'M', brand: 'B' }));
  await removeByDelta(sql, 'B');
  const rows = await sql<Change[]>`select * from catalog.changes(catalog.changes_oldest(), 1000)`;
  let ours: Record<string, unknown> | null = null;
  let theirs: Record<string, unknown> | null = null;
  for (const change of rows.filter(({ sku, kind }) => sku === 'A' && kind === 'product')) {
    ours = productAfter(ours, change);
    const held: string | null = theirs === null ? null : JSON.stringify(theirs);
    const made: readonly { product: Record<string, unknown> | null }[] = await sql<
      [{ product: Record<string, unknown> | null }]
    >`
      select catalog.product_after(${held}::text::jsonb, ${change.field}, ${change.old_value}, ${change.new_value}) as product`;
    theirs = made[0]?.product ?? null;
    expect(ours).toEqual(theirs);
  }
  expect(ours).not.toBe(null);
});
