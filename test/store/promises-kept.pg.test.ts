import { describe, expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { pauseRequests, resumeRequests } from '../../src/store/sellers/pause.ts';
import { readPromises } from '../../src/store/sellers/promises.ts';
import { readWatchlist } from '../../src/store/sellers/watchlist.ts';
import { promising } from './promising.ts';
import { answerAsked, claimAll, found, mark, REFRESH, useStore } from './support.ts';

const store = useStore();
const { priced, promise, passSeconds, comesIn, one } = promising(store);

describe('the record of a promise', () => {
  test('counts each answer, late ones once for each max_age, and by what hindered them', async () => {
    await priced('A');
    await promise('1 minute', 'A');
    const answer = async () => {
      await mark(store.sql, ['A']);
      const claim = await claimAll(store.sql);
      return (await applyAnswer(store.sql, claim, [found('A', { 42: 100 })], REFRESH)).promises;
    };
    await answer();
    await passSeconds(50);
    expect(await answer()).toEqual({ kept: 1, hindered: 0, broken: 0 });
    expect(await one('A')).toMatchObject({ kept_share: 1 });
    await passSeconds(190);
    expect(await one('A')).toMatchObject({ kept_share: expect.closeTo(2 / 5, 3) as number, because: 'late' });
    expect(await answer()).toEqual({ kept: 0, hindered: 0, broken: 3 });
    expect(await one('A')).toMatchObject({ kept_share: expect.closeTo(2 / 5, 3) as number, because: null });
    for (const hindrance of [
      `insert into catalog_internal.pace (ceiling, raised_at) values (100, now())`,
      `insert into catalog_internal.pause (since, set_at, until, paused_by) values (now(), now(), now(), 'me')`,
      `update catalog_internal.promising set hindered_at = now()`,
      `update catalog_internal.due set deferrals = 1`,
      `update catalog_internal.due set failures = 1`,
    ]) {
      await passSeconds(70);
      await store.sql.unsafe(hindrance);
      expect(await answer()).toEqual({ kept: 0, hindered: 1, broken: 0 });
      await store.sql`delete from catalog_internal.pace`;
      await store.sql`delete from catalog_internal.pause`;
      await store.sql`update catalog_internal.promising set hindered_at = null`;
      await passSeconds(1);
    }
    await readWatchlist(store.sql, { most: 100, everything: true });
    expect(await readPromises(store.sql)).toMatchObject({ cases: 10, kept: 2 });
  });

  test('counts the pause as hindrance if the promise was made while all requests were paused', async () => {
    await priced('A');
    await pauseRequests(store.sql, { forMs: null, by: 'me' });
    await store.sql`
      update catalog_internal.pause set since = since - interval '200 seconds', set_at = set_at - interval '200 seconds'`;
    await promise('1 minute', 'A');
    await mark(store.sql, ['A']);
    await passSeconds(190);
    await resumeRequests(store.sql, 'me');
    const claim = await claimAll(store.sql);
    const { promises } = await applyAnswer(store.sql, claim, [found('A', { 42: 100 })], REFRESH);
    expect(promises).toEqual({ kept: 0, hindered: 3, broken: 0 });
  });

  test('starts with the promise, even if the price was older', async () => {
    await priced('A');
    await passSeconds(600);
    await promise('1 minute', 'A');
    await mark(store.sql, ['A']);
    const claim = await claimAll(store.sql);
    const { promises } = await applyAnswer(store.sql, claim, [found('A', { 42: 100 })], REFRESH);
    expect(promises).toEqual({ kept: 1, hindered: 0, broken: 0 });
  });

  test('is kept for a day, hour by hour', async () => {
    const day = async (hours: number) =>
      (
        await store.sql`select catalog_internal.last_day('{3,0,5}', now() - make_interval(hours => ${hours}))::int as sum`
      )[0];
    expect([await day(0), await day(22), await day(23), await day(24)]).toEqual([
      { sum: 8 },
      { sum: 3 },
      { sum: 3 },
      { sum: 0 },
    ]);
    const counted = async (hours: number) =>
      (await store.sql`select catalog_internal.counted('{3,4}', ${hours}, 2) as ring`)[0]?.[
        'ring'
      ] as number[];
    expect(await counted(0)).toEqual([5, 4]);
    expect(await counted(-3)).toEqual([5, 4]);
    expect(await counted(1)).toEqual([2, 3, 4]);
    expect(await counted(23)).toHaveLength(24);
    expect(await counted(1000)).toEqual([2, ...Array.from({ length: 23 }, () => 0)]);
  });

  test('survives a clock that was ahead, which delays no promise', async () => {
    await priced('A');
    await promise('10 minutes', 'A');
    await answerAsked(store.sql, found('A', { 42: 100 }));
    const ahead = store.sql`interval '3 days'`;
    await store.sql`update catalog_internal.due set promised_at = promised_at + ${ahead}, promised_by = promised_by + ${ahead}`;
    await store.sql`update catalog_internal.promise_cases set hour = hour + ${ahead}`;
    await store.sql`update catalog_internal.watched set promised_since = promised_since + ${ahead}`;
    await store.sql`update catalog_internal.promising set hindered_at = now() + ${ahead}`;
    await store.sql`update catalog_internal.clock set high_water = clock_timestamp() + ${ahead}`;
    await store.sql`select catalog_internal.set_back_clock()`;
    await store.sql`select catalog_internal.redate_due(${ahead}, '', 100)`;
    expect(await comesIn('A')).toBeCloseTo(555, -1);
    const [{ late }] = await store.sql<[{ late: boolean }]>`
      select greatest((select max(hour) from catalog_internal.promise_cases), (select max(promised_since) from catalog_internal.watched),
        (select hindered_at from catalog_internal.promising)) > clock_timestamp() as late`;
    expect(late).toBe(false);
  });
});
