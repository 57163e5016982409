import { beforeEach, describe, expect, test } from 'vitest';
import type { HealthReader } from '../../src/daemon/health.ts';
import { createSampler } from '../../src/daemon/watches.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { quantile, sampleOf } from '../../src/status/sample.ts';
import { type NewSample, readSamples, writeSample } from '../../src/store/status/samples.ts';
import { maintain } from '../../src/sync/maintenance.ts';
import { useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';
import { settingsWith } from '../support/settings.ts';
import { CASES, healthOf, mirrorWith, NOW } from './cases.ts';

const store = useStore();
const DAY_MS = 86_400_000;
const SAMPLE = sampleOf(CASES.healthy, 'healthy', NOW);

const put = (more: Partial<NewSample> = {}) => writeSample(store.sql, { ...SAMPLE, ...more });
/** Waits until a minute has just begun: one that ended within a test would count as two. */
beforeEach(async () => {
  await eventually(
    async () => {
      const [{ second }] = await store.sql<[{ second: number }]>`
        select extract(second from clock_timestamp())::float8 as second`;
      return second < 50;
    },
    { what: 'a new minute' },
  );
});

const kept = () => readSamples(store.sql, DAY_MS);
/** Makes all samples that many minutes older. */
const pass = (minutes: number) =>
  store.sql`update catalog_internal.samples set minute = minute - make_interval(mins => ${minutes})`;
const change = (changes: number) => store.sql`
  insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
  select 'A', n::text, 100, 200, now() from generate_series(1, ${changes}) n`;
const reader = (status = CASES.healthy): Pick<HealthReader, 'read'> & { readonly reads: () => number } => {
  let reads = 0;
  return {
    reads: () => reads,
    async read() {
      reads += 1;
      return { status, health: healthOf(status), now: NOW };
    },
  };
};

describe('samples in Postgres', () => {
  test('keep one sample a minute, whichever daemon writes it, and return it unchanged', async () => {
    await Promise.all([put(), put({ requests: 1 }), put({ requests: 2 })]);
    await put({ requests: 3 });
    const rows = await kept();
    expect(rows).toHaveLength(1);
    const [{ minute, priceChanges, requests, ...row } = { requests: 0, minute: NOW, priceChanges: 0 }] = rows;
    const { requests: _, ...sample } = SAMPLE;
    expect(row).toEqual(sample);
    expect([SAMPLE.requests, 1, 2]).toContain(requests);
    expect([minute.getUTCSeconds(), minute.getUTCMilliseconds(), priceChanges]).toEqual([0, 0, null]);
  });

  test('count price changes per minute since the previous sample, none of them twice', async () => {
    await change(5);
    await put();
    await pass(2);
    await change(6);
    await put();
    await pass(1);
    await put();
    expect((await kept()).map(({ priceChanges }) => priceChanges)).toEqual([null, 3, 0]);
  });

  test('give no count of price changes after a gap', async () => {
    await put();
    await pass(10);
    await change(1000);
    await put();
    expect((await kept()).map(({ priceChanges }) => priceChanges)).toEqual([null, null]);
  });

  test('from the future are hidden after the clock was set back, and deleted with the next one', async () => {
    await put();
    await pass(-60);
    expect(await kept()).toEqual([]);
    await put({ requests: 7 });
    expect((await kept()).map(({ requests }) => requests)).toEqual([7]);
    const [{ n }] = await store.sql<[{ n: number }]>`select count(*)::int as n from catalog_internal.samples`;
    expect(n).toBe(1);
  });

  test('are kept for a little over a day, and not deleted while the clock cannot be trusted', async () => {
    const ctx = {
      sql: store.sql,
      clock: systemClock,
      settings: settingsWith(),
    } as unknown as Parameters<typeof maintain>[0];
    const all = async () =>
      (await store.sql<[{ n: number }]>`select count(*)::int as n from catalog_internal.samples`)[0].n;
    await put();
    await pass(25 * 60);
    await put();
    await pass(2 * 60);
    await maintain(ctx, { windowMs: 60_000, historyMs: 0, dailyMs: 0 });
    expect(await all()).toBe(2);
    await store.sql`update catalog_internal.clock set steady_since = now() - interval '2 hours', high_water = now()`;
    await maintain(ctx, { windowMs: 60_000, historyMs: 0, dailyMs: 0 });
    expect(await all()).toBe(1);
  });
});

describe('the sampler', () => {
  test('reads the status once a minute, however often it is called and however many samplers run', async () => {
    const readers = [reader(), reader()];
    const samplers = readers.map((one) => createSampler(store.sql, one));
    for (let n = 0; n < 5; n += 1) for (const take of samplers) await take();
    const rows = await kept();
    expect(readers.map((one) => one.reads())).toEqual([1, 0]);
    expect(rows).toHaveLength(1);
  });

  test('records a back-off between two samples', async () => {
    const take = createSampler(store.sql, reader());
    await take();
    await store.sql`
      insert into catalog_internal.pace (ceiling, raised_at, refusal) values (1, now(), 'throttled-or-forbidden')
      on conflict (id) do update set refusal = excluded.refusal`;
    await take();
    await store.sql`update catalog_internal.pace set refusal = null`;
    await pass(1);
    await take();
    await pass(1);
    await take();
    expect((await kept()).map(({ backingOff }) => backingOff)).toEqual([false, true, false]);
  });

  test('takes no sample of a mirror that cannot be read', async () => {
    const none = { read: async () => ({ status: null, health: healthOf(CASES.healthy), now: NOW }) };
    await createSampler(store.sql, none)();
    expect(await kept()).toEqual([]);
  });
});

describe('a sample of a status', () => {
  test('contains SKUs, due SKUs, cohorts and requests per window', () => {
    expect(SAMPLE).toMatchObject({
      state: 'healthy',
      requests: 64,
      ceiling: 118,
      requestLimit: 200,
      skus: 20_000,
      pending: 0,
      due: 70,
      snapshot: { priced: 18_900, fresh: 18_850 },
      live: { priced: 1000, fresh: 980 },
    });
    expect(SAMPLE.live.p50).toBeGreaterThan(300);
    expect(SAMPLE.live.p95).toBeLessThanOrEqual(1900);
  });

  test('gives a ceiling below the share in requests per window, whatever the window', () => {
    const { pace } = CASES['backing off'].stats;
    const slow = mirrorWith({
      stats: { pace: { ...pace, ceilingPerMinute: 6 } },
      fullPerMinute: 12,
      mostInWindow: 2,
    });
    expect(sampleOf(slow, 'degraded', NOW)).toMatchObject({ ceiling: 1, backingOff: true });
  });

  test('leaves out counts that are overdue', () => {
    const counted = (seconds: number, ms: number) =>
      sampleOf(
        mirrorWith({ stats: { countedAt: new Date(NOW.getTime() - seconds * 1000), countedInMs: ms } }),
        'healthy',
        NOW,
      );
    expect(counted(119, 10).due).toBe(70);
    expect(counted(3600, 10)).toMatchObject({
      skus: null,
      due: null,
      requests: 64,
      live: { priced: null, p50: null },
    });
    // With 14 million SKUs, counting takes ten seconds and happens every three minutes.
    expect(counted(240, 10_000).due).toBe(70);
  });

  test.each([
    [[], 0, 0.5, null],
    [[[60, 10]], 10, 0.5, 30],
    [
      [
        [60, 0],
        [300, 10],
      ],
      10,
      0.95,
      288,
    ],
    [
      [
        [60, 0],
        [300, 0],
      ],
      10,
      0.5,
      500,
    ],
    [
      [
        [60, 10],
        [300, 10],
      ],
      10,
      1,
      60,
    ],
  ] as const)('reads from %j with %i in all the quantile %f as %f', (buckets, count, q, seconds) => {
    const ages = { buckets: buckets.map(([le, n]) => ({ le, count: n })), count, sumSeconds: 0 };
    expect(quantile(ages, q, 500)).toBe(seconds);
  });
});
