import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { connect } from '../../src/store/connection/db.ts';
import { LONGEST_LEAD_SECONDS, PROMISED, returnClaim } from '../../src/store/ledger/due.ts';
import { readPromises } from '../../src/store/sellers/promises.ts';
import { readWatchlist } from '../../src/store/sellers/watchlist.ts';
import { promising } from './promising.ts';
import {
  answerAsked,
  callInputs,
  claimAll,
  empty,
  failCall,
  followWatchlist,
  found,
  knownSkus,
  mark,
  REFRESH,
  removeByDelta,
  useStore,
} from './support.ts';

const store = useStore();
const { priced, promise, claimPromised, passSeconds, comesIn, promised, one } = promising(store);

/** Returns the warnings that a statement of a seller gets. */
async function warnings(statement: string): Promise<string[]> {
  const said: string[] = [];
  const seller = connect(store.url, { max: 1, onNotice: ({ message }) => said.push(message ?? '') });
  try {
    await seller.unsafe(statement);
  } finally {
    await seller.end({ timeout: 2 });
  }
  return said;
}

describe('a promise', () => {
  test('puts its SKU before all others, by the earliest deadline, whatever lane it is in', async () => {
    await priced('A', 'B', 'C');
    await promise('10 minutes', 'A', 'B');
    await answerAsked(store.sql, found('A', { 42: 100 }), found('B', { 42: 100 }));
    expect(await comesIn('A')).toBeCloseTo(555, -1);
    expect(await comesIn('C')).toBeNull();
    expect(await claimPromised()).toEqual([]);
    await passSeconds(560);
    await store.sql`update catalog_internal.due set promised_by = promised_by - interval '1 second' where sku = 'B'`;
    await mark(store.sql, ['A']);
    expect((await callInputs(store.sql)).due).toContainEqual({ lane: PROMISED, live: false, count: 2 });
    expect(await claimPromised(1)).toEqual(['B']);
    expect(await claimPromised()).toEqual(['A']);
    expect(await claimPromised()).toEqual([]);
  });

  test('does not begin before its time, though its deadline is near', async () => {
    await priced('A');
    await promise('1 minute', 'A');
    await answerAsked(store.sql, found('A', { 42: 100 }));
    await passSeconds(25);
    expect(await claimPromised()).toEqual([]);
    await passSeconds(25);
    expect(await claimPromised()).toEqual(['A']);
  });

  test('is waited for if nothing else is due sooner', async () => {
    await priced('A');
    await promise('10 minutes', 'A');
    await answerAsked(store.sql, found('A', { 42: 100 }));
    const { nextDueMs, due } = await callInputs(store.sql);
    expect(due).toEqual([]);
    expect(nextDueMs).toBeCloseTo(555_000, -4);
  });

  test('begins at once for a SKU never priced, and survives a delta, an error or a deferral', async () => {
    await knownSkus(store.sql, ['A']);
    await promise('1 minute', 'A');
    expect(await claimPromised()).toEqual(['A']);
    await store.sql`update catalog_internal.due set claim = null, held_until = null`;
    const claim = await claimAll(store.sql);
    await applyAnswer(store.sql, claim, [{ sku: 'A', kind: 'deferred', waitMs: 1000 }], REFRESH);
    expect(await one('A')).toMatchObject({ feasible: true, because: 'not priced yet' });
    await store.sql`update catalog_internal.due set held_until = now() - interval '1 second'`;
    expect((await callInputs(store.sql)).due).toContainEqual({ lane: PROMISED, live: true, count: 1 });
    expect(await claimPromised(100, true)).toEqual(['A']);
  });

  test('ends with its row, its age or its SKU, and is made anew with another age', async () => {
    await priced('A', 'B', 'C', 'D');
    await promise('1 hour', 'A', 'B', 'C', 'D');
    await answerAsked(
      store.sql,
      found('A', { 42: 100 }),
      found('B', { 42: 100 }),
      found('C', { 42: 100 }),
      found('D', { 42: 100 }),
    );
    expect(await store.sql`select from catalog_internal.promise_cases`).toHaveLength(4);
    await store.sql`delete from catalog.watchlist where sku = 'A'`;
    await store.sql`update catalog.watchlist set max_age = null where sku = 'B'`;
    await store.sql`update catalog.watchlist set max_age = '20 minutes' where sku = 'C'`;
    await store.sql`delete from catalog.skus where sku = 'D'`;
    await followWatchlist(store.sql);
    expect(await Promise.all(['A', 'B', 'D'].map(comesIn))).toEqual([null, null, null]);
    expect(await comesIn('C')).toBeCloseTo(1155, -1);
    expect(await store.sql`select sku from catalog_internal.promise_cases`).toEqual([{ sku: 'C' }]);
    expect(await one('D')).toMatchObject({ feasible: false, because: 'not read by the mirror yet' });
    // Changes that fire no trigger are noticed, and so is a SKU that was forgotten.
    await store.sql`alter table catalog.watchlist disable trigger user`;
    await store.sql`update catalog.watchlist set max_age = '30 minutes'`;
    await store.sql`alter table catalog.watchlist enable always trigger watch_updated, enable always trigger watch_added, enable always trigger watch_deleted,
      enable always trigger watch_emptied, enable always trigger warn_of_promises, enable always trigger warn_of_changed_promises`;
    await readWatchlist(store.sql, { most: 100, everything: true });
    expect(await comesIn('C')).toBeCloseTo(1755, -1);
    expect(await claimPromised()).toEqual(['D']);
    await store.sql`truncate catalog.watchlist`;
    await followWatchlist(store.sql);
    expect(await Promise.all(['B', 'C', 'D'].map(comesIn))).toEqual([null, null, null]);
    await readWatchlist(store.sql, { most: 100, everything: true });
    expect(await readPromises(store.sql)).toMatchObject({ promises: 0, feasible: 0 });
  });

  test('holds for a SKU that was deleted from the mirror and reported again before that was noticed', async () => {
    await priced('A');
    await promise('10 minutes', 'A');
    await store.sql`delete from catalog.skus`;
    await knownSkus(store.sql, ['A']);
    await mark(store.sql, ['A'], 'new');
    await readWatchlist(store.sql, { most: 100, everything: true });
    expect(await claimPromised()).toEqual(['A']);
  });

  test.each(['0', '-1 hour', '29.9 seconds', '366 days'])(
    'of %s is refused, and the message says why',
    async (age) => {
      await expect(
        store.sql`insert into catalog.watchlist (sku, max_age) values ('A', ${age}::interval)`,
      ).rejects.toThrow('max_age_is_30_seconds_to_365_days');
    },
  );

  test('is not made for a SKU without a price: not found, removed', async () => {
    await priced('A', 'B', 'C');
    await promise('1 hour', 'A', 'B', 'C', 'unknown');
    await answerAsked(store.sql, { sku: 'A', kind: 'not_found' });
    await removeByDelta(store.sql, 'B');
    await readWatchlist(store.sql, { most: 100, everything: true });
    expect(await promised()).toMatchObject([
      { sku: 'A', feasible: false, because: 'not found' },
      { sku: 'B', feasible: false, because: 'removed' },
      { sku: 'C', feasible: true, because: null },
      { sku: 'unknown', feasible: true, because: 'not priced yet' },
    ]);
    expect(await comesIn('A')).toBeNull();
    await answerAsked(store.sql, found('A', { 42: 100 }));
    await readWatchlist(store.sql, { most: 100, everything: true });
    expect(await one('A')).toMatchObject({ feasible: true, because: null });
    expect(await comesIn('A')).toBeCloseTo(3555, -1);
  });
});

describe('the hindrance of a promise is shown until an answer ends it', () => {
  test.each<[because: string, how: string, hinder: () => Promise<unknown>]>([
    [
      'deferred by the partner',
      'a deferral',
      () => answerAsked(store.sql, { sku: 'A', kind: 'deferred', waitMs: 0 }),
    ],
    [
      'calls with it fail',
      'an error',
      () => answerAsked(store.sql, { sku: 'A', kind: 'error', waitMs: 0, because: 'reported' }),
    ],
    [
      'calls with it fail',
      'a call that failed as a whole',
      async () => {
        await mark(store.sql, ['A']);
        const claim = await claimAll(store.sql);
        await returnClaim(store.sql, claim, ['A'], { largestCall: 1 });
      },
    ],
    [
      'waits for a second answer',
      'a price that is implausible',
      () => answerAsked(store.sql, found('A', { 42: 1000 })),
    ],
  ])('%s: %s', async (because, _how, hinder) => {
    await priced('A');
    await promise('10 minutes', 'A');
    expect(await one('A')).toMatchObject({ feasible: true, because: null });
    await hinder();
    expect(await one('A')).toMatchObject({ feasible: true, because });
    await store.sql`update catalog_internal.due set held_until = null, largest_call = null`;
    await answerAsked(store.sql, found('A', { 42: 100 }));
    expect(await one('A')).toMatchObject({ feasible: true, because: null });
  });

  test('calls are failing: no promise is feasible while all calls are paused', async () => {
    await priced('A');
    await promise('10 minutes', 'A');
    await failCall(store.sql, 60_000, 0);
    expect(await one('A')).toMatchObject({ feasible: false, because: 'calls are failing' });
    await store.sql`update catalog_internal.tasks set next_at = now() where task = 'reprice'`;
    expect(await one('A')).toMatchObject({ feasible: true, because: null });
  });
});

test('a promised SKU comes first a fifth of its age earlier, at least 8 and at most 45 seconds', async () => {
  const rows = await store.sql`
    select catalog_internal.promised_interval(age)::float8 as seconds from unnest('{30,60,225,86400}'::float8[]) as a(age)`;
  expect(rows.map(({ seconds }) => seconds as number)).toEqual([22, 48, 180, 86_355]);
  expect(86_400 - 86_355).toBe(LONGEST_LEAD_SECONDS);
});

describe('infeasible promises', () => {
  /** 0.8 of 118 requests, with 5 live SKUs each. */
  const LIVE = Math.floor(0.8 * 118 * 5);
  const names = (count: number) => Array.from({ length: count }, (_, n) => `L${String(n).padStart(4, '0')}`);
  const liveSkus = async (count: number) => {
    await knownSkus(store.sql, names(count), { priceSource: 'live' });
    await mark(store.sql, names(count), 'live', true);
  };
  const ask = (weight: string) =>
    `insert into catalog.watchlist (sku, max_age, weight) select sku, '1 minute', ${weight} from catalog.skus`;

  test('are warned of at once, with what is missing, and those of the greatest weight are kept', async () => {
    // Requested every 48 seconds: 1.25 a minute each.
    await liveSkus(500);
    expect(await warnings(ask("case when sku < 'L0100' then 1 else 5 end"))).toEqual([
      'these promises need 125 requests a minute, 94 can be had for them: 123 of 500 are not kept',
    ]);
    await followWatchlist(store.sql);
    const feasible = (await promised()).filter((row) => row.feasible).map(({ sku }) => sku);
    expect(feasible).toHaveLength(Math.floor(LIVE / 1.25));
    expect(feasible).toEqual(names(500).slice(100, 477));
    expect(await one('L0000')).toMatchObject({ because: 'the account cannot' });
    expect(await comesIn('L0000')).toBeNull();
    expect(await comesIn('L0476')).toBeLessThan(0);
    const stats = await readPromises(store.sql);
    expect(stats).toMatchObject({ promises: 500, feasible: 377 });
    expect(stats.neededPerMinute).toBeCloseTo(125, 0);
    expect(stats.availablePerMinute).toBeCloseTo(94.4, 0);
    // Longer ages need fewer requests, so that all promises fit.
    expect(await warnings(`update catalog.watchlist set max_age = '2 minutes' where sku < 'L0250'`)).toEqual(
      [],
    );
    await followWatchlist(store.sql);
    expect((await promised()).every((row) => row.feasible)).toBe(true);
  });

  test('depend on other services, a lower rate after a refusal, the live ceiling and the call size', async () => {
    const capacity = async () =>
      (await store.sql`select requests, live, others, hindered from catalog_internal.promise_capacity()`)[0];
    expect(await capacity()).toMatchObject({ live: 0.8 * 118 * 5, others: 0.8 * 118 * 95, hindered: null });
    await store.sql`update catalog_internal.live_ceiling set per_minute = 200`;
    expect(await capacity()).toMatchObject({ live: 160 });
    await store.sql`update catalog_internal.call_size set size = 25`;
    expect(await capacity()).toMatchObject({ others: 0.8 * 118 * 20 });
    await store.sql`
      insert into catalog_internal.pace (ceiling, raised_at, backoff_until, resume_at) values (118, now(), now() + interval '1 minute', 59)`;
    expect(await capacity()).toMatchObject({
      requests: expect.closeTo(0.8 * 59, 5) as number,
      hindered: 'backing off after a refusal',
    });
    expect(await warnings(`insert into catalog.watchlist (sku, max_age) values ('A', '1 hour')`)).toEqual([
      'no promise is kept at present: requests are backing off after a refusal',
    ]);
    await store.sql`update catalog_internal.pace set backoff_until = null, ceiling = 59`;
    expect(await capacity()).toMatchObject({
      requests: expect.closeTo(0.8 * 59, 0) as number,
      hindered: null,
    });
    await store.sql`insert into catalog_internal.pause (since, set_at, until, paused_by) values (now(), now(), 'infinity', 'me')`;
    expect(await capacity()).toMatchObject({ hindered: 'paused' });
    await empty(store.sql);
    for (let n = 0; n < 60; n += 1) await store.sql`select catalog.take_request('other')`;
    expect(await capacity()).toMatchObject({ requests: expect.closeTo(0.8 * 118, 0) as number });
    for (let n = 0; n < 60; n += 1) await store.sql`select catalog.take_request('other')`;
    const { requests } = (await capacity()) as { requests: number };
    expect(requests).toBeLessThan(0.8 * 80);
    expect(requests).toBeGreaterThanOrEqual(0.8 * 40);
  });

  test('cause no warning for a statement that promises nothing', async () => {
    await liveSkus(500);
    await warnings(ask('1'));
    expect(await warnings(`insert into catalog.watchlist (sku) values ('A')`)).toEqual([]);
    expect(await warnings(`delete from catalog.watchlist where sku < 'L0200'`)).toEqual([]);
  });
});
