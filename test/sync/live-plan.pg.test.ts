import { beforeEach, describe, expect, test } from 'vitest';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { storeLesson } from '../../src/store/call/call-lesson.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { liveCredit } from '../../src/sync/live/ceiling.ts';
import { chooseForQuota, earlyLiveSeconds } from '../../src/sync/live/choose.ts';
import { learnRefresh } from '../../src/sync/live/learn-refresh.ts';
import { learn } from '../../src/sync/live/learn.ts';
import { planLive, unscheduleSnapshots, scheduleAll } from '../../src/sync/live/plan-live.ts';
import { callInputs, useStore } from '../store/support.ts';
import { type SettingsEnv, settingsWith } from '../support/settings.ts';

const store = useStore();
let events: SyncEvent[];

beforeEach(() => {
  events = [];
});

/**
 * Inserts a hundred live SKUs S00 … S99, all refreshed half an hour ago and due since. Ten calls of five live SKUs
 * a minute.
 */
async function hundred(): Promise<void> {
  await store.sql`
    insert into catalog.skus (sku, price_source, in_manifest, asked_at)
    select 'S' || lpad(n::text, 2, '0'), 'live', true, now() - interval '30 minutes' from generate_series(0, 99) n`;
  await store.sql`select catalog_internal.mark_due((select array_agg(sku) from catalog.skus), 'live', true)`;
}

function context(settings: SettingsEnv = {}): SyncContext {
  return {
    sql: store.sql,
    random: () => 0.5,
    settings: settingsWith({
      LIVE_INTERVAL: '1m',
      // Ten calls a minute.
      PARTNER_RATE_LIMIT: '12',
      PARTNER_RATE_SHARE: '1',
      ...settings,
    }),
    emit: (event: SyncEvent) => events.push(event),
    tracer: NO_TRACER,
  } as unknown as SyncContext;
}

describe('the plan of live refreshes', () => {
  test('has a threshold if refreshes do not suffice for LIVE_INTERVAL, and lets no SKU wait three rounds', async () => {
    await hundred();
    expect(await planLive(context())).toMatchObject({
      counts: { liveSkus: 100, refreshesPerMinute: 50, scarce: 1 },
    });
    const plan = await readLivePlan(store.sql);
    expect(plan.refreshThreshold).toBeGreaterThan(0);
    expect(plan.maxIntervalMinutes).toBeCloseTo(6);
    expect(earlyLiveSeconds(plan)).toBeGreaterThan(0);
  });

  test('gives every SKU its interval if refreshes suffice, or if round robin is configured', async () => {
    await hundred();
    for (const ctx of [context({ LIVE_INTERVAL: '30m' }), context({ LIVE_POLICY: 'round-robin' })]) {
      await planLive(ctx);
      const { livePlan: plan, candidates } = await callInputs(store.sql);
      expect(plan).toMatchObject({ refreshThreshold: null, maxIntervalMinutes: null });
      expect(candidates).toEqual([]);
      expect(chooseForQuota(plan, candidates, 2)).toBeNull();
      const look = { sku: 'S00', weight: 1, alpha: null, beta: null, minutes: 5, moved: true };
      expect(learnRefresh(plan, ctx.settings)(look).nextMs).toBe(ctx.settings.intervals.liveMs);
    }
  });

  test('chooses by weight and by how often a SKU moves', async () => {
    await hundred();
    await store.sql`update catalog_internal.due set due_at = now() - interval '1 minute' where sku in ('S41', 'S42', 'S43')`;
    await store.sql`insert into catalog_internal.watched (sku, weight) values ('S42', 50)`;
    await store.sql`insert into catalog_internal.live_rates values ('S43', 10, 60)`;
    const ctx = context({ LIVE_INTERVAL: '1s' });
    await planLive(ctx);
    await store.sql`update catalog_internal.live_plan set max_interval_minutes = 1000, overdue_minutes = 1000`;
    const { livePlan: plan, candidates } = await callInputs(store.sql);
    expect(chooseForQuota(plan, candidates, 2)).toEqual(['S42', 'S43']);
  });

  test('refreshes a SKU sooner if it moves more often or weighs more', async () => {
    await hundred();
    const ctx = context();
    await planLive(ctx);
    const ahead = learnRefresh(
      { ...(await readLivePlan(store.sql)), maxIntervalMinutes: 1000 },
      ctx.settings,
    );
    const look = { sku: 'S00', weight: 1, alpha: 1, beta: 500, minutes: 10, moved: false };
    const wait = ahead(look).nextMs;
    expect(ahead({ ...look, weight: 20 }).nextMs).toBeLessThan(wait);
    expect(ahead({ ...look, moved: true }).nextMs).toBeLessThan(wait);
    expect(ahead({ ...look, beta: 5000 }).nextMs).toBeGreaterThan(wait);
  });
});

test('each of more SKUs than are read at a time is scheduled, and returns to the sweep after an incident', async () => {
  const COUNT = 10_001;
  await store.sql`
    insert into catalog.skus (sku, state, price_source, in_manifest, asked_at, priced_at, first_priced_at)
    select 'S' || n, 'priced', 'snapshot', true, now(), now(), now() from generate_series(1, ${COUNT}::int) n`;
  await store.sql`select catalog_internal.mark_due((select array_agg(sku) from catalog.skus), 'sweep', false)`;
  const ctx = context();
  const places = async () =>
    await store.sql`select reason, live, count(*)::int as count from catalog_internal.due group by 1, 2`;
  expect(await scheduleAll(ctx, () => 60, { all: true, incident: true })).toBe(COUNT);
  expect([...(await places())]).toEqual([{ reason: 'live', live: true, count: COUNT }]);
  // As after the answer to a call that was under way when all were made live: scheduled like live SKUs, but not
  // counted as live.
  await store.sql`update catalog_internal.due set live = false where sku in ('S1', 'S2')`;
  await unscheduleSnapshots(ctx);
  expect([...(await places())]).toEqual([{ reason: 'sweep', live: false, count: COUNT }]);
});

test('SKUs put off while few live prices were computed are brought forward once there is capacity', async () => {
  const { sql } = store;
  const ctx = context({ LIVE_INTERVAL: '30m' });
  await hundred();
  await planLive(ctx);
  // Half of them were computed an hour ago, at one a minute.
  await sql`
    update catalog.skus set state = 'priced', asked_at = now() - case when sku < 'S50' then interval '1 hour' else interval '10 minutes' end`;
  await sql`
    update catalog_internal.due set due_at = now() + case when sku < 'S50' then interval '4 hours' else interval '40 minutes' end`;
  // SKUs that wait for other reasons, or belong to something else, stay.
  await sql`update catalog_internal.due set due_at = 'infinity' where sku = 'S00'`;
  await sql`update catalog_internal.due set deferrals = 1 where sku = 'S01'`;
  await sql`update catalog_internal.due set failures = 1 where sku = 'S02'`;
  await sql`update catalog_internal.due set claim = 7, held_until = now() + interval '1 hour' where sku = 'S03'`;
  await sql`update catalog_internal.due set outside_due_at = due_at where sku = 'S04'`;
  await sql`update catalog_internal.due set reason = 'missed' where sku = 'S05'`;
  await sql`update catalog_internal.due set live = false where sku = 'S06'`;
  // Dated by a clock that was ahead.
  await sql`update catalog.skus set asked_at = now() + interval '2 hours' where sku = 'S99'`;
  await sql`update catalog_internal.due set due_at = now() + interval '3 hours' where sku = 'S99'`;
  // Tries beyond a ceiling that nothing has confirmed bring nothing forward.
  await sql`
    update catalog_internal.live_ceiling set per_minute = 1, since = now() - interval '20 minutes', cycle_from = now() - interval '20 minutes'`;
  await planLive(ctx);
  expect([
    ...(await sql`select from catalog_internal.due where due_at < now() + interval '39 minutes'`),
  ]).toEqual([]);
  await sql`update catalog_internal.live_ceiling set per_minute = null`;
  await planLive(ctx);
  const brought = await sql<{ sku: string; inMinutes: number }[]>`
    select sku, round(extract(epoch from due_at - now()) / 60)::int as "inMinutes" from catalog_internal.due
    where due_at < now() + interval '30 minutes' order by sku`;
  expect(brought).toHaveLength(44);
  expect(brought[0]).toEqual({ sku: 'S07', inMinutes: -30 });
  expect(brought[43]).toEqual({ sku: 'S99', inMinutes: 30 });
  // Here SKUs wait by value, for at most three rounds, which are six minutes.
  await planLive(context({ LIVE_INTERVAL: '1m' }));
  const [left] = await sql`
    select count(*)::int as count from catalog_internal.due where due_at > now() + interval '6 minutes'`;
  expect(left).toEqual({ count: 7 });
});

test('a hidden ceiling is learned from calls whose live SKUs were all deferred, and then kept to', async () => {
  const { settings } = context();
  const none = { asked: 0, answered: 0, deferred: 0 };
  const call = async (asked: number, answered: number) => {
    const plan = await readLivePlan(store.sql);
    const live = { asked, answered, deferred: asked - answered };
    const shown = { live, snapshot: none, askedAt: plan.now, answeredAt: plan.now };
    const taught = learn({ plan, budget: 5, callSkus: 100, trial: false }, shown, settings);
    await storeLesson(store.sql, taught.lesson, { failures: 0, callSize: null, cleared: null });
  };
  const credit = async () => liveCredit(await readLivePlan(store.sql), settings.callsPerMinute);
  for (let n = 0; n < 4; n += 1) await call(5, 5);
  await call(5, 0);
  expect((await credit()).skus).toBe(Infinity);
  await call(5, 0);
  expect(await credit()).toMatchObject({ skus: 0 });
  await store.sql`
    update catalog_internal.live_ceiling set blocked_at = now() - interval '10 seconds', failed_at = now() - interval '9 seconds',
      cycle_from = now() - interval '15 seconds', credit_from = now() - interval '9 seconds'`;
  expect(await credit()).toMatchObject({ skus: 1 });
  await call(1, 1);
  const { ceiling } = await readLivePlan(store.sql);
  expect(ceiling).toMatchObject({ blockedAt: null, alike: 0 });
  expect(ceiling.perMinute).toBeLessThan(settings.callsPerMinute * 5);
});

test('claiming live SKUs takes their cost from the credit, other SKUs cost nothing', async () => {
  await hundred();
  await store.sql`update catalog_internal.due set due_at = now()`;
  const creditFrom = async () => {
    const plan = await readLivePlan(store.sql);
    return plan.creditFrom - plan.now;
  };
  const three = (live: boolean) => ({ quotas: [{ lane: 'live' as const, live, count: 3, earlySeconds: 0 }] });
  await store.sql`update catalog_internal.live_ceiling set credit_from = now() - interval '1 hour'`;
  await claimDue(store.sql, three(true), 60_000);
  expect(await creditFrom()).toBeLessThan(-3_599_000);
  await claimDue(store.sql, three(true), 60_000, { skuMs: 1000, mostMs: 10_000 });
  expect(await creditFrom()).toBeGreaterThan(-7001 - 2000);
  expect(await creditFrom()).toBeLessThan(-6000);
  await claimDue(store.sql, three(false), 60_000, {
    skuMs: 1e6,
    mostMs: 0,
  });
  expect(await creditFrom()).toBeLessThan(-6000);
});

test('lagging prices are reported when they begin, and when repeated refreshes find no more of them', async () => {
  const found = (looks: number, moved: number) =>
    store.sql`update catalog_internal.beliefs set again_new_looks = ${looks}, again_new_found = ${moved}`;
  for (const [looks, moved] of [
    [20, 10],
    [20, 10],
    [300, 0],
    [300, 0],
  ] as const) {
    await found(looks, moved);
    await planLive(context());
  }
  expect(events.filter(({ event }) => event.startsWith('late-prices.'))).toEqual([
    { event: 'late-prices.began', looks: 17, found: 9 },
    { event: 'late-prices.ended', minutes: 0 },
  ]);
});
