import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { refreshAll } from '../../src/store/sellers/refresh.ts';
import { readWatchlist } from '../../src/store/sellers/watchlist.ts';
import { baseline, line, standing } from './manifest.ts';
import {
  allDue,
  claimAll,
  followWatchlist,
  found,
  knownSkus,
  LEASE_MS,
  ledger,
  answerAsked,
  REFRESH,
  mark,
  pricesOf,
  useStore,
} from './support.ts';
import { dueNow, watch } from './watching.ts';

const store = useStore();

describe('changes of the list', () => {
  test('a new weight applies at once to what is urgent, and asks for no refresh', async () => {
    const { sql } = store;
    await knownSkus(sql, ['later']);
    await mark(sql, ['later'], 'sweep');
    await answerAsked(sql, found('later'));
    await sql`insert into catalog.watchlist (sku, weight) values ('A', 5), ('B', 9), ('later', 1)`;
    await answerAsked(sql, found('later'));
    await sql`update catalog.watchlist set weight = 20 where sku in ('A', 'later')`;
    expect(await dueNow(store.sql)).toEqual(['A watched 20', 'B watched 9']);
    await mark(sql, ['later']);
    expect(await dueNow(store.sql)).toEqual(['A watched 20', 'B watched 9', 'later changed 20']);
  });

  test('an upsert marks what is new and weighs what exists', async () => {
    const { sql } = store;
    await watch(store.sql, 'A');
    await answerAsked(sql, found('A'));
    await sql`
      insert into catalog.watchlist (sku, weight) values ('A', 4), ('B', 6)
      on conflict (sku) do update set weight = excluded.weight`;
    expect(await dueNow(store.sql)).toEqual(['B watched 6']);
    await mark(sql, ['A']);
    expect(await dueNow(store.sql)).toEqual(['A changed 4', 'B watched 6']);
  });

  test('a row whose SKU is replaced watches the new SKU, and no longer the former', async () => {
    const { sql } = store;
    await sql`insert into catalog.watchlist (sku, weight) values ('A', 4)`;
    expect(await dueNow(store.sql)).toEqual(['A watched 4']);
    await sql`update catalog.watchlist set sku = 'B'`;
    expect(await dueNow(store.sql)).toEqual(['A watched 1', 'B watched 4']);
  });

  test.each(['delete from catalog.watchlist', 'truncate catalog.watchlist'])(
    '%s: the SKUs become ordinary, stay mirrored, and are marked again when inserted again',
    async (statement) => {
      const { sql } = store;
      await sql`insert into catalog.watchlist (sku, weight) values ('A', 4), ('B', 6)`;
      await answerAsked(sql, found('A', { 9: 90 }));
      await sql.unsafe(statement);
      expect(await dueNow(store.sql)).toEqual(['B watched 1']);
      expect(await pricesOf(sql, 'A')).toEqual({ 9: 90 });
      await sql`insert into catalog.watchlist (sku, weight) values ('A', 7)`;
      expect(await dueNow(store.sql)).toEqual(['A watched 7', 'B watched 1']);
      await sql.begin(async (tx) => {
        await tx.unsafe(statement);
        await tx`insert into catalog.watchlist (sku, weight) values ('A', 8)`;
      });
      expect(await dueNow(store.sql)).toEqual(['A watched 8', 'B watched 1']);
    },
  );

  test('changes that are rolled back, or gone before the commit, mark nothing', async () => {
    const { sql } = store;
    await sql.begin(async (tx) => {
      await tx`insert into catalog.watchlist (sku) values ('gone'), ('kept')`;
      await tx
        .savepoint((inner) => inner`insert into catalog.watchlist (sku) values ('undone'), ('kept')`)
        .catch(() => {});
      await tx`delete from catalog.watchlist where sku = 'gone'`;
    });
    expect(await dueNow(store.sql)).toEqual(['kept watched 1']);
    expect(await sql`select sku from catalog.skus`).toEqual([{ sku: 'kept' }]);
    await sql
      .begin((tx) =>
        tx`insert into catalog.watchlist (sku) values ('rolled back')`.then(() => tx`select 1 / 0`),
      )
      .catch(() => {});
    expect(await dueNow(store.sql)).toEqual(['kept watched 1']);
  });
});

describe('a seller’s open transaction', () => {
  /** Does `work` beside the open transaction, with a lock timeout so that its statements fail rather than wait. */
  async function beside(
    open: (tx: Sql) => Promise<unknown>,
    work: (impatient: Sql) => Promise<void>,
  ): Promise<void> {
    const seller = connect(store.url, { max: 1 });
    const impatient = connect(store.url, { max: 2 });
    const database = new URL(store.url).pathname.slice(1);
    try {
      await seller`set idle_in_transaction_session_timeout = 0`;
      await seller`begin`;
      await open(seller);
      await impatient.unsafe(`alter database ${database} set lock_timeout = '2s'`);
      await work(impatient);
      await seller`commit`;
    } finally {
      await store.sql.unsafe(`alter database ${database} reset lock_timeout`);
      await Promise.all([seller.end({ timeout: 2 }), impatient.end({ timeout: 2 })]);
    }
  }

  test('blocks no answer, delta, baseline or refresh, and takes effect at its commit', async () => {
    const { sql } = store;
    await standing(store, line('A'), line('B'), line('C'));
    await sql`insert into catalog.watchlist (sku, weight) values ('B', 2), ('C', 5)`;
    await answerAsked(sql, found('B', { 9: 90 }), found('C', { 9: 90 }));
    await mark(sql, ['A', 'B', 'C']);
    await beside(
      async (tx) => {
        await tx`insert into catalog.watchlist (sku) values ('A'), ('new')`;
        await tx`update catalog.watchlist set weight = 9 where sku = 'B'`;
        await tx`delete from catalog.watchlist where sku = 'C'`;
      },
      async (other) => {
        const claim = await claimAll(other);
        const results = ['A', 'B', 'C'].map((sku) => found(sku, { 9: 91 }));
        await applyAnswer(other, claim, results, REFRESH);
        await other`update catalog_internal.sync set snapshot_id = 's'`;
        const report = { changed: ['A', 'B', 'C', 'new'], removed: [], nowLive: [] };
        expect(await applyDelta(other, { since: 's', toSnapshot: 't', ...report })).toMatchObject({
          applied: true,
        });
        await baseline(store.url, [line('A', { hash: 'h2' }), line('B'), line('D')], {
          token: { snapshotId: 'm9', tokenAtRequest: 't' },
        });
        await refreshAll(other, 'prices');
        expect(await dueNow(store.sql)).toEqual([
          'A changed 1',
          'B changed 2',
          'C changed 5',
          'D new 1',
          'new new 1',
        ]);
      },
    );
    expect(await dueNow(store.sql)).toEqual([
      'A changed 1',
      'B changed 9',
      'C changed 1',
      'D new 1',
      'new watched 1',
    ]);
    expect((await ledger(sql)).get('A')?.generation).toBeGreaterThan(3);
  });
});

test('many sellers beside deltas, answers and two daemons that read the list cause no deadlock', async () => {
  const { sql } = store;
  const names = Array.from({ length: 30 }, (_, n) => `S${n}`);
  await standing(store, ...names.slice(0, 15).map((sku) => line(sku)));
  const seed = Math.trunc(Math.random() * 2 ** 31);
  const some = fc.shuffledSubarray(names, { minLength: 4, maxLength: 20 });
  const drawn = fc.sample(some, { seed, numRuns: 160 });
  const next = () => drawn.pop() ?? names;
  const errors: unknown[] = [];
  const sellers = [1, 2, 3].map(async () => {
    for (let turn = 0; turn < 10; turn += 1)
      await sql
        .begin(async (tx) => {
          const list = await tx`select pg_advisory_xact_lock(1), ${next()}::text[] as skus`;
          await tx`delete from catalog.watchlist where sku = any(${list[0]?.['skus'] as string[]})`;
          for (const part of [next(), next()])
            await tx`insert into catalog.watchlist (sku, weight) select unnest(${part}::text[]), 2 on conflict (sku) do update set weight = 3`;
        })
        .catch((error: unknown) => errors.push(error));
  });
  const mirror = [1, 2].map(async () => {
    for (let turn = 0; turn < 12; turn += 1) {
      await sql`select catalog_internal.mark_due(array['S0'], 'changed')`;
      await readWatchlist(sql, { most: 1000, everything: turn % 3 === 0 });
      const claim = await claimDue(sql, { quotas: allDue(20) }, LEASE_MS);
      if (claim !== null)
        await applyAnswer(
          sql,
          claim,
          claim.skus.map(({ sku }) => found(sku, { 9: turn })),
          REFRESH,
        );
      const [{ since }] = await sql<
        [{ since: string }]
      >`select snapshot_id as since from catalog_internal.sync`;
      await applyDelta(sql, { since, toSnapshot: `d${turn}`, changed: next(), removed: [], nowLive: [] });
    }
  });
  await Promise.all([...sellers, ...mirror]);
  expect(errors.map(String), `seed ${seed}`).toEqual([]);
  await followWatchlist(sql);
  const wrong = await sql`
    select sku from catalog.watchlist w left join catalog_internal.due d using (sku)
    where d.sku is null or d.lane = 1 and d.rank <> w.weight`;
  expect([...wrong], `seed ${seed}`).toEqual([]);
});
