import { describe, expect, test } from 'vitest';
import { promisesLine } from '../../src/status/format.ts';
import { connect } from '../../src/store/connection/db.ts';
import { PROMISED } from '../../src/store/ledger/due.ts';
import { NO_CEILING } from '../../src/store/live/limits.ts';
import { readPromises } from '../../src/store/sellers/promises.ts';
import { deferralLead, liveInterval, liveRate, shortestPromise } from '../sync/promised.ts';
import { promising } from './promising.ts';
import { answerAsked, callInputs, followWatchlist, found, knownSkus, mark, useStore } from './support.ts';

/* Promises and estimates of the next refresh for live SKUs while the partner computes few. */

const store = useStore();
const { priced, promise, claimPromised, passSeconds, comesIn, one } = promising(store);

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

/** Sets how many live prices the partner computes a minute; `blockedMinutes`: for how long it has computed none. */
async function computes(perMinute: number | null, blockedMinutes: number | null = null): Promise<void> {
  const ago = store.sql`clock_timestamp() - make_interval(secs => ${(blockedMinutes ?? 0) * 60}::float8)`;
  const blocked = blockedMinutes === null ? store.sql`null` : ago;
  await store.sql`
    update catalog_internal.live_ceiling set per_minute = ${perMinute}::float8, blocked_at = ${blocked}, failed_at = ${blocked},
      credit_from = now() - interval '2 hours'`;
}

async function live(...skus: string[]): Promise<void> {
  await knownSkus(store.sql, skus, { priceSource: 'live' });
  await mark(store.sql, skus, 'live', true);
  await answerAsked(store.sql, ...skus.map((sku) => found(sku, { 42: 100 })));
}

test('SQL agrees with the model of a scarce partner, at every rate and age', async () => {
  const rates = [null, 0.1, 1, 3.9, 4, 5, 31, 32, 60, 200, 900];
  const ages = [30, 60, 300, 824, 825, 2144, 2145, 3600, 86_400];
  const rows = await store.sql<
    { rate: number | null; age: number; interval: number; lead: number | null; shortest: number }[]
  >`
    select rate, age, catalog_internal.live_promised_interval(age, rate)::float8 as interval,
      catalog_internal.deferral_lead(rate)::float8 as lead, catalog_internal.shortest_promise(rate)::float8 as shortest
    from unnest(${rates}::float8[]) as r(rate), unnest(${ages}::float8[]) as a(age)`;
  expect(rows).toHaveLength(rates.length * ages.length);
  for (const { rate, age, interval, lead, shortest } of rows) {
    expect([rate, age, interval]).toEqual([rate, age, expect.closeTo(liveInterval(age, rate), 6)]);
    expect([rate, lead ?? 0, shortest]).toEqual([
      rate,
      deferralLead(rate),
      expect.closeTo(shortestPromise(rate), 6),
    ]);
  }
});

test.each([
  [null, null],
  [null, 90],
  [200, null],
  [200, 2],
  [200, 10],
  [1, 0.5],
  [1, 90],
])(
  'the usable rate at %s a minute, if none was computed for %s minutes, agrees with the model',
  async (rate, blocked) => {
    await computes(rate, blocked);
    const now = Date.now();
    const blockedAt = blocked === null ? null : now - blocked * 60_000;
    const expected = liveRate({ ...NO_CEILING, perMinute: rate, blockedAt }, now);
    const [row] = await store.sql<[{ rate: number | null; live: number }]>`
    select catalog_internal.live_rate()::float8 as rate, live from catalog_internal.promise_capacity()`;
    expect(row.rate).toEqual(expected === null ? null : expect.closeTo(expected, 2));
    expect(row.live).toBeCloseTo(0.8 * Math.min(118 * 5, expected ?? Infinity), 1);
  },
);

test('without a known ceiling, no promise counts as too short, and requests are what is missing', async () => {
  await live('L');
  await computes(null);
  await store.sql`update catalog_internal.settings set rate_limit = 5, rate_share = 3, rate_floor = 1`;
  await store.sql`insert into catalog_internal.pace (ceiling, raised_at) values (2, now()) on conflict (id) do update set ceiling = 2`;
  await store.sql`update catalog_internal.sync set live_budget = 1`;
  const [said, ...more] = await warnings(
    `insert into catalog.watchlist (sku, max_age) values ('L', '30 seconds')`,
  );
  expect(more).toEqual([]);
  expect(said).toContain('requests a minute, 0 can be had for them: 1 of 1 are not kept');
  await followWatchlist(store.sql);
  expect(promisesLine(await readPromises(store.sql))).toContain(
    'the account cannot keep 1: they need 3 requests',
  );
});

test('a SKU that is not found or out of scope does not count as infeasible for the account', async () => {
  await live('L', 'N', 'O');
  await promise('1 hour', 'L', 'N', 'O');
  await answerAsked(store.sql, { sku: 'N', kind: 'not_found' });
  await store.sql`update catalog_internal.due set outside_due_at = due_at, due_at = 'infinity' where sku = 'O'`;
  await promise('2 hours', 'L');
  const stats = await readPromises(store.sql);
  expect(stats).toMatchObject({ promises: 3, feasible: 1, leftOut: 0 });
  expect(promisesLine(stats)).toContain('they need 1 of');
});

describe('at one live price a minute', () => {
  test('an age that a deferral would use up is not promised, with a warning', async () => {
    await live('L');
    await computes(1);
    const short = `insert into catalog.watchlist (sku, max_age) values ('L', '10 minutes')`;
    expect(await warnings(short)).toEqual([
      'the partner computes 1.0 live prices a minute: 1 of 1 promises are shorter than 00:35:45 and not kept',
    ]);
    await followWatchlist(store.sql);
    expect(await one('L')).toMatchObject({ feasible: false, because: 'the account cannot' });
    expect(promisesLine(await readPromises(store.sql))).toContain(
      'the partner computes too few live prices to keep 1',
    );
    expect(await warnings(`update catalog.watchlist set max_age = '1 hour'`)).toEqual([]);
    await followWatchlist(store.sql);
    expect(await one('L')).toMatchObject({ feasible: true });
  });

  test('a promise that is too short needs no requests, because more of them would not help', async () => {
    await live('L', 'M');
    await computes(1);
    await promise('30 seconds', 'L');
    await promise('1 hour', 'M');
    const stats = await readPromises(store.sql);
    expect(stats).toMatchObject({ promises: 2, feasible: 1, leftOut: 1 });
    expect(stats.neededPerMinute).toBeLessThan(stats.availablePerMinute);
    expect(promisesLine(stats)).toContain('the partner computes too few live prices to keep 1');
  });

  test('a promise that is too short takes nothing from others, nor from snapshot-priced SKUs', async () => {
    await live('L', 'M');
    await knownSkus(store.sql, ['S']);
    await computes(1);
    await warnings(`
      insert into catalog.watchlist (sku, max_age, weight) values ('L', '30 seconds', 9), ('M', '1 hour', 1), ('S', '1 minute', 1)`);
    await followWatchlist(store.sql);
    const feasible = await store.sql`select sku from catalog.promises where feasible order by sku`;
    expect(feasible.map(({ sku }) => sku as string)).toEqual(['M', 'S']);
  });

  test('a too short promise is warned of even within ten seconds of another one', async () => {
    await live('L', 'M');
    await computes(1);
    const seller = connect(store.url, { max: 1, onNotice: ({ message }) => said.push(message ?? '') });
    const said: string[] = [];
    try {
      await seller`insert into catalog.watchlist (sku, max_age) values ('L', '1 hour')`;
      expect(said).toEqual([]);
      await seller`insert into catalog.watchlist (sku, max_age) values ('M', '30 minutes')`;
    } finally {
      await seller.end({ timeout: 2 });
    }
    expect(said).toHaveLength(1);
  });

  test('a live SKU comes first early enough for two deferrals, and others do not', async () => {
    await live('L');
    await priced('S');
    await computes(1);
    await promise('1 hour', 'L', 'S');
    expect([await comesIn('L'), await comesIn('S')]).toEqual([
      expect.closeTo(3600 - 45 - 1050, -1),
      expect.closeTo(3600 - 45, -1),
    ]);
    await answerAsked(store.sql, found('L', { 42: 100 }), found('S', { 42: 100 }));
    expect(await comesIn('L')).toBeCloseTo(3600 - 45 - 1050, -1);
    expect(await comesIn('S')).toBeCloseTo(3600 - 45, -1);
    await passSeconds(3600 - 1000);
    expect((await callInputs(store.sql)).due).toContainEqual({ lane: PROMISED, live: true, count: 1 });
    expect(await claimPromised(100, true)).toEqual(['L']);
  });

  test('once the ceiling is no longer known, a live SKU comes first as late as others', async () => {
    await live('L');
    await computes(1);
    await promise('1 hour', 'L');
    await answerAsked(store.sql, found('L', { 42: 100 }));
    await store.sql`update catalog_internal.due set due_at = now() + interval '2 days'`;
    await passSeconds(3600 - 1000);
    await computes(null);
    expect(await claimPromised(100, true)).toEqual([]);
    expect(((await callInputs(store.sql)).nextDueMs ?? 0) / 1000).toBeCloseTo(1000 - 45, -1);
    await passSeconds(960);
    expect(await claimPromised(100, true)).toEqual(['L']);
  });
});

test('at the ceiling no promised SKU is tried if another can be, unless it is urgent', async () => {
  await live('L', 'M');
  await computes(20);
  await promise('1 hour', 'L');
  await store.sql`update catalog_internal.due set held_until = null, lane = 2, reason = 'live', due_at = now() - interval '1 minute'`;
  await store.sql`update catalog_internal.due set due_at = now() - interval '1 hour' where sku = 'L'`;
  await computes(20, 1);
  expect((await callInputs(store.sql)).untried).toBe('M');
  await store.sql`update catalog_internal.due set lane = 3, reason = 'new' where sku = 'M'`;
  expect((await callInputs(store.sql)).untried).toBe('M');
  await store.sql`update catalog_internal.due set lane = 1, reason = 'refresh' where sku = 'L'`;
  expect((await callInputs(store.sql)).untried).toBe('L');
  await store.sql`delete from catalog_internal.due where sku = 'M'`;
  expect((await callInputs(store.sql)).untried).toBe('L');
});

describe('the estimate of the next refresh of a live SKU', () => {
  /** Counts `counted` live SKUs as due. */
  async function atWork(counted: number | null): Promise<void> {
    const { sql } = store;
    await sql`update catalog_internal.tasks set finished_at = now() where task = 'maintenance'`;
    await sql`insert into catalog_internal.pace (ceiling, raised_at) values (118, now())`;
    if (counted === null) return;
    const due = [{ reason: 'live', count: counted, oldestAgeSeconds: 1 }];
    await sql`
      insert into catalog_internal.catalog_counts (counted_at, counted_in_ms, counts) values (now(), 1, ${sql.json({ due })})`;
  }
  async function minutes(sku = 'L'): Promise<number | null> {
    const [row] = await store.sql<[{ minutes: number | null }]>`
      select (extract(epoch from next_look_at - now()) / 60)::float8 as minutes from catalog.sku_trust where sku = ${sku}`;
    return row.minutes;
  }
  const held = async (for_: string) =>
    await store.sql`update catalog_internal.due set due_at = now() - interval '1 minute', held_until = now() + ${for_}::interval`;

  test('is its turn if that comes after the end of its wait', async () => {
    await live('L');
    await atWork(360);
    await held('5 minutes');
    expect(await minutes()).toBeCloseTo(5, 1);
    await computes(1);
    expect(await minutes()).toBeCloseTo(360, 0);
    await held('7 hours');
    expect(await minutes()).toBeCloseTo(420, 0);
  });

  test('is its turn after it comes due, or the time of its promise', async () => {
    await live('L');
    await atWork(30);
    await store.sql`update catalog_internal.due set due_at = now() + interval '20 minutes', held_until = null`;
    expect(await minutes()).toBeCloseTo(20, 1);
    await computes(1);
    expect(await minutes()).toBeCloseTo(50, 1);
    await store.sql`update catalog_internal.due set promised_at = now() + interval '10 minutes', promised_by = now() + interval '1 hour'`;
    expect(await minutes()).toBeCloseTo(10, 1);
  });

  test.each([
    ['none was computed for half an hour', () => computes(1, 31), 20],
    [
      'its live source fails',
      () => store.sql`update catalog_internal.live_plan set outage_since = now()`,
      20,
    ],
    ['the ceiling is known, but not what is due', () => computes(1), null],
  ])('is unknown if %s', async (_what, happens, counted) => {
    await live('L');
    await priced('S');
    await atWork(counted);
    await store.sql`update catalog_internal.due set due_at = now() + interval '20 minutes', held_until = null`;
    await happens();
    expect(await minutes('L')).toBeNull();
    expect(await minutes('S')).toBeCloseTo(20, 1);
    await held('5 minutes');
    expect([await minutes('L'), await minutes('S')]).toEqual([null, expect.closeTo(5, 1)]);
    await store.sql`update catalog_internal.due set held_until = null`;
    expect(await minutes('L')).toBeNull();
  });
});
