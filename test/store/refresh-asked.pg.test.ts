import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { stillDue } from '../../src/store/catalog/sync-state.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { REFRESHES_CAME, takeRefreshes } from '../../src/store/sellers/refresh.ts';
import { askedFor, requested } from './refreshing.ts';
import {
  answerAsked,
  claimAll,
  failCall,
  found,
  HOUR,
  knownSkus,
  LEASE_MS,
  ledger,
  mark,
  REFRESH,
  useStore,
} from './support.ts';

const store = useStore();
const came = async () => {
  const [row] = await store.sql.unsafe<[{ came: boolean }]>(`select ${REFRESHES_CAME} as came`);
  return row.came;
};
/** Prices SKUs that are then not due for a long time. */
async function priced(...skus: string[]): Promise<void> {
  await knownSkus(store.sql, skus);
  await answerAsked(store.sql, ...skus.map((sku) => found(sku, { 8: 80 })));
}

describe('catalog.refresh', () => {
  test('counts each known SKU once, and none for an empty or missing array', async () => {
    const { sql } = store;
    await priced('A', 'B');
    expect(await askedFor(sql, ['B', 'A', null, 'B', 'unknown', ''])).toBe(2);
    expect(await requested(sql)).toEqual(['A', 'B']);
    expect(await askedFor(sql, [])).toBe(0);
    expect(await askedFor(sql, null)).toBe(0);
    expect(await askedFor(sql, ['unknown'])).toBe(0);
    // Longer than an index takes; names are only looked up.
    for (const name of ['x'.repeat(10_000), 'A ', ' B']) {
      expect(await askedFor(sql, [name])).toBe(0);
      expect(await sql`select catalog.hint(${name}, 'test') as taken`).toEqual([{ taken: false }]);
    }
    expect(await requested(sql)).toEqual(['A', 'B']);
  });

  test('puts SKUs before everything else, however heavy or old, until they are answered', async () => {
    const { sql } = store;
    await priced('A', 'heavy', 'old');
    await mark(sql, ['heavy', 'old']);
    await sql`insert into catalog.watchlist (sku, weight) values ('heavy', 1e30)`;
    await ledger(sql);
    await sql`update catalog_internal.due set due_at = now() - interval '1 year' where sku = 'old'`;
    await askedFor(sql, ['A']);
    expect(await takeRefreshes(sql)).toBe(1);
    // A mark, a deferral and another weight leave it first.
    await mark(sql, ['A']);
    await sql`insert into catalog.watchlist (sku, weight) values ('A', 2)`;
    const first = async () =>
      (await claimDue(
        sql,
        { quotas: [{ lane: 'urgent', live: false, count: 1, earlySeconds: 0 }] },
        LEASE_MS,
      ))!;
    await ledger(sql);
    const claim = await first();
    expect(claim.skus.map(({ sku }) => sku)).toEqual(['A']);
    await applyAnswer(sql, claim, [found('A', { 8: 81 })], REFRESH);
    const [{ rank }] = await sql<[{ rank: number }]>`select rank from catalog_internal.due where sku = 'A'`;
    expect(rank).toBe(2);
    expect((await first()).skus.map(({ sku }) => sku)).toEqual(['heavy']);
  });

  test('ends waits after errors and deferrals, and the pause of failing calls, but no endless pause', async () => {
    const { sql } = store;
    await knownSkus(sql, ['D', 'E']);
    await mark(sql, ['D', 'E']);
    const results = [
      { sku: 'D', kind: 'deferred', waitMs: HOUR },
      { sku: 'E', kind: 'error', waitMs: HOUR },
    ] as const;
    await applyAnswer(sql, await claimAll(sql), results, REFRESH);
    await failCall(sql, HOUR, 0);
    await askedFor(sql, ['D', 'E']);
    expect(await takeRefreshes(sql)).toBe(2);
    const next = async () => {
      const [row] = await sql<[{ due: boolean }]>`
        select next_at <= clock_timestamp() as due from catalog_internal.tasks where task = 'reprice'`;
      return row.due;
    };
    expect(await next()).toBe(true);
    expect((await claimAll(sql)).skus.map(({ sku }) => sku).toSorted()).toEqual(['D', 'E']);
    await sql`update catalog_internal.tasks set next_at = 'infinity' where task = 'reprice'`;
    await sql`update catalog_internal.due set claim = null, held_until = now() + interval '1 hour'`;
    await askedFor(sql, ['D']);
    expect(await takeRefreshes(sql)).toBe(1);
    expect(await next()).toBe(false);
  });

  test('locks nothing that the mirror needs while the transaction is open, and is rolled back with it', async () => {
    const { sql } = store;
    await priced('A', 'B');
    const undone = new Error('undone');
    const open = sql.begin(async (tx) => {
      await tx`select catalog.refresh(array['A', 'B'])`;
      await sql`set lock_timeout = '2s'`;
      await mark(sql, ['A', 'B']);
      await applyAnswer(sql, await claimAll(sql), [found('A'), found('B')], REFRESH);
      expect(await askedFor(sql, ['A'])).toBe(1);
      expect(await takeRefreshes(sql)).toBe(1);
      throw undone;
    });
    await expect(open).rejects.toBe(undone);
    expect([await came(), await requested(sql)]).toEqual([false, []]);
  });

  test('blocks nothing if the requests, or a SKU, are locked', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await askedFor(sql, ['A', 'B']);
    await sql.begin(async (tx) => {
      await tx`lock table catalog_internal.refresh_requests`;
      expect([await came(), await takeRefreshes(sql)]).toEqual([false, 0]);
      await expect(askedFor(sql, ['A'])).rejects.toMatchObject({ code: '55P03' });
    });
    await sql.begin(async (tx) => {
      await tx`select from catalog_internal.due where sku = 'A' for update`;
      expect(await takeRefreshes(sql)).toBe(1);
    });
    expect(await requested(sql)).toEqual(['A']);
    expect(await takeRefreshes(sql)).toBe(1);
  });

  test('drops a request for a SKU that is forgotten meanwhile', async () => {
    const { sql } = store;
    await priced('A', 'B');
    await askedFor(sql, ['A', 'B']);
    await sql`delete from catalog.skus where sku = 'A'`;
    await sql`insert into catalog_internal.refresh_requests (sku) values ('A')`;
    expect(await takeRefreshes(sql)).toBe(1);
    expect(await requested(sql)).toEqual([]);
    expect((await ledger(sql)).has('A')).toBe(false);
  });
});

test('a request that is not marked yet still counts as due for who waits until nothing is', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await answerAsked(sql, found('A', { 9: 90 }));
  const due = async () => (await stillDue(sql, new Date(0))).due;
  expect(await due()).toEqual([]);
  await sql`select catalog.refresh(array['A'])`;
  expect(await due()).toEqual([{ reason: 'refresh', count: 1 }]);
  await takeRefreshes(sql);
  expect(await due()).toEqual([{ reason: 'refresh', count: 1 }]);
});
