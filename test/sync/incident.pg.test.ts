import { beforeEach, describe, expect, test } from 'vitest';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { storeLesson } from '../../src/store/call/call-lesson.ts';
import { type LivePlan, readLivePlan } from '../../src/store/live/live.ts';
import { refreshSkus } from '../../src/store/sellers/refresh.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { learn } from '../../src/sync/live/learn.ts';
import { planLive } from '../../src/sync/live/plan-live.ts';
import { weighCounts, weighDeferrals } from '../../src/sync/live/weigh-incident.ts';
import { syncMetadata } from '../../src/sync/maintenance.ts';
import { useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const store = useStore();
let events: SyncEvent[];

beforeEach(() => {
  events = [];
});

/** Ten calls of five live SKUs a minute, for a thousand SKUs that should be refreshed every half hour. */
function context(): SyncContext {
  return {
    sql: store.sql,
    settings: settingsWith({ LIVE_INTERVAL: '10m', PARTNER_RATE_LIMIT: '12', PARTNER_RATE_SHARE: '1' }),
    emit: (event: SyncEvent) => events.push(event),
    random: () => 0.5,
    tracer: NO_TRACER,
  } as unknown as SyncContext;
}

/** Inserts a thousand snapshot-priced SKUs S000 … S999, priced 50 minutes ago and due for their sweep in a day. */
async function thousand(): Promise<void> {
  await store.sql`
    insert into catalog.skus (sku, state, price_source, hash, in_manifest, asked_at, priced_at, first_priced_at)
    select 'S' || lpad(n::text, 3, '0'), 'priced', 'snapshot', 'h' || n, true, now() - interval '50 minutes',
      now() - interval '50 minutes', now() - interval '2 days' from generate_series(0, 999) n`;
  await store.sql`select catalog_internal.mark_due((select array_agg(sku) from catalog.skus), 'sweep', false)`;
  await store.sql`update catalog_internal.due set due_at = now() + interval '1 day'`;
}

/** `minutes` is the time from its last answer to its due time. */
const due = (sku: string) =>
  store.sql`
  select reason, lane, d.live, round(extract(epoch from due_at - asked_at) / 60)::int as minutes
  from catalog_internal.due d join catalog.skus using (sku) where sku = ${sku}`.then(([row]) => row);

const status = () =>
  store.sql`select incident_since from catalog.sync_status`.then(([row]) => row?.['incident_since']);

async function begin(): Promise<SyncContext> {
  const ctx = context();
  await weighCounts(ctx, { livePricedSkuCount: 1000, skuCount: 1000 });
  return ctx;
}

describe('when everything is live-priced', () => {
  test('the catalog’s own counts start an incident once, visible in SQL, and request a plan and a delta', async () => {
    await store.sql`update catalog_internal.tasks set next_at = now() + interval '1 hour'`;
    const ctx = await begin();
    await weighCounts(ctx, { livePricedSkuCount: 999, skuCount: 1000 });
    expect(events).toEqual([
      { event: 'incident.began', because: 'live-count', minutes: 0, kind: 'count', live: 1000, skus: 1000 },
    ]);
    expect(await status()).toBeInstanceOf(Date);
    const asked =
      await store.sql`select task from catalog_internal.tasks where next_at <= clock_timestamp() order by task`;
    expect(asked.map(({ task }) => task)).toEqual(['delta', 'live-plan']);
  });

  test('every priced SKU is scheduled like a live one by its past changes, without a cap of three rounds', async () => {
    await thousand();
    await store.sql`
      insert into catalog.price_history (sku, size, old_price, new_price, observed_at)
      select 'S001', '40', 1, 2, now() - make_interval(mins => n * 20) from generate_series(1, 100) n`;
    const ctx = await begin();
    expect(await planLive(ctx)).toMatchObject({
      counts: { incident: 'live-count', scheduled: 1000, scarce: 1 },
    });
    const plan = await readLivePlan(store.sql);
    expect(plan).toMatchObject({ unsolved: false, maxIntervalMinutes: 10_080 });
    const [often, seldom] = [await due('S001'), await due('S002')];
    expect(often).toMatchObject({ reason: 'live', lane: 2, live: true });
    expect(seldom).toMatchObject({ reason: 'live', lane: 2, live: true });
    expect(often?.['minutes']).toBeLessThan(seldom?.['minutes']);
    // No more refreshes are scheduled than the rate allows.
    const [{ early }] = await store.sql<[{ early: number }]>`
      select count(*)::int as early from catalog_internal.due where due_at < now() + interval '10 minutes'`;
    expect(early).toBeLessThanOrEqual(1000);
  });

  test('weights count, and what was learned of a SKU before is kept', async () => {
    await thousand();
    await store.sql`insert into catalog_internal.live_rates values ('S003', 15, 60)`;
    await store.sql`insert into catalog_internal.watched (sku, weight) values ('S004', 200)`;
    await planLive(await begin());
    const [plain, fast, heavy] = [await due('S002'), await due('S003'), await due('S004')];
    expect(fast?.['minutes']).toBeLessThan(plain?.['minutes']);
    expect(heavy?.['minutes']).toBeLessThan(plain?.['minutes']);
    const [rate] = await store.sql`select alpha, beta from catalog_internal.live_rates where sku = 'S003'`;
    expect(rate).toEqual({ alpha: 15, beta: 60 });
  });

  test('marked, failing, waiting and unpriced SKUs keep their places, except reports of crossed SKUs', async () => {
    await thousand();
    await store.sql`select catalog_internal.mark_due(array['S010', 'S011'], 'changed', false)`;
    await store.sql`update catalog.skus set price_source = 'live' where sku = 'S011'`;
    await store.sql`select catalog_internal.mark_due(array['S012'], 'watched')`;
    await store.sql`update catalog.skus set state = 'pending' where sku = 'S013'`;
    await store.sql`update catalog_internal.due set deferrals = 1, held_until = now() + interval '5 minutes' where sku = 'S014'`;
    await store.sql`update catalog_internal.due set failures = 1, held_until = now() + interval '5 minutes' where sku = 'S015'`;
    await store.sql`update catalog_internal.due set claim = 7, held_until = now() + interval '5 minutes' where sku = 'S016'`;
    await store.sql`select catalog_internal.mark_due(array['S017'], 'changed', true)`;
    await refreshSkus(store.sql, ['S017', 'S018']);
    await store.sql`select catalog_internal.mark_due(array['S018'], 'changed', true)`;
    await store.sql`update catalog.skus set price_source = 'live' where sku in ('S017', 'S018')`;
    await planLive(await begin());
    for (const sku of ['S017', 'S018']) expect(await due(sku)).toMatchObject({ reason: 'changed', lane: 1 });
    expect(await due('S010')).toMatchObject({ reason: 'changed', lane: 1 });
    expect(await due('S011')).toMatchObject({ reason: 'live', lane: 2 });
    expect(await due('S012')).toMatchObject({ reason: 'watched', lane: 1 });
    for (const sku of ['S013', 'S014', 'S015', 'S016'])
      expect(await due(sku)).toMatchObject({ reason: 'sweep', live: false });
  });

  test('a price older than LIVE_INTERVAL is stale, even if its next refresh is far off', async () => {
    await thousand();
    await store.sql`insert into catalog.prices (sku, size, price, changed_at) values ('S001', '40', 100, now())`;
    const stale = () => store.sql`select stale from catalog.current_prices`.then(([row]) => row?.['stale']);
    expect(await stale()).toBe(false);
    await planLive(await begin());
    await store.sql`update catalog_internal.due set due_at = now() + interval '1 day'`;
    expect(await stale()).toBe(true);
    await store.sql`update catalog.skus set priced_at = now()`;
    expect(await stale()).toBe(false);
  });

  test('repeated counts do not delay the trial call', async () => {
    const ctx = await begin();
    await store.sql`update catalog_internal.live_plan set incident_tried_at = now() - interval '3 hours'`;
    for (const livePricedSkuCount of [null, 1000])
      await weighCounts(ctx, { livePricedSkuCount, skuCount: 1000 });
    const { now, incident } = await readLivePlan(store.sql);
    expect(Math.round((now - (incident?.triedAt ?? 0)) / 3_600_000)).toBe(3);
  });

  test('counts that the last file has contradicted start no incident, and end one', async () => {
    const ctx = context();
    const said = { livePricedSkuCount: 1000, skuCount: 1000 };
    await weighCounts(ctx, said, { miscount: 950 });
    expect(events).toEqual([]);
    await weighCounts(ctx, said);
    await weighCounts(ctx, said, { miscount: 950 });
    expect(events.map(({ event }) => event)).toEqual(['incident.began', 'incident.ended']);
  });

  test('the metadata task is postponed', async () => {
    const ctx = await begin();
    expect(await syncMetadata(ctx)).toMatchObject({ kind: 'postponed', because: 'incident' });
  });

  test('unlisted SKUs are included, and return to their own schedule', async () => {
    await thousand();
    await store.sql`update catalog.skus set in_manifest = false, price_source = case when sku < 'S005' then null else 'snapshot' end where sku < 'S010'`;
    await store.sql`update catalog_internal.due set reason = 'unlisted', lane = 2 where sku < 'S010'`;
    const ctx = await begin();
    expect(await planLive(ctx)).toMatchObject({ counts: { scheduled: 1000 } });
    for (const sku of ['S001', 'S006']) expect(await due(sku)).toMatchObject({ reason: 'live', live: true });
    await weighCounts(ctx, { livePricedSkuCount: 100, skuCount: 1000 });
    await planLive(ctx);
    for (const sku of ['S001', 'S006'])
      expect(await due(sku)).toMatchObject({ reason: 'unlisted', lane: 2, live: false, minutes: 10 });
  });

  test('when the counts fall again, snapshot-priced SKUs return to the sweep, live SKUs to their schedule', async () => {
    await thousand();
    await store.sql`update catalog.skus set price_source = 'live' where sku < 'S100'`;
    await store.sql`update catalog_internal.due set live = true, lane = 2, reason = 'live' where sku < 'S100'`;
    const ctx = await begin();
    await planLive(ctx);
    await weighCounts(ctx, { livePricedSkuCount: 100, skuCount: 1000 });
    expect(events.at(-1)).toMatchObject({ event: 'incident.ended', because: 'live-count' });
    expect(await status()).toBeNull();
    await planLive(ctx);
    expect(await due('S500')).toMatchObject({ reason: 'sweep', lane: 6, live: false, minutes: 1440 });
    expect(await due('S050')).toMatchObject({ reason: 'live', lane: 2, live: true, minutes: 10 });
    expect(await readLivePlan(store.sql)).toMatchObject({
      refreshThreshold: null,
      unsolved: false,
      incident: null,
    });
  });
});

describe('without a count from the catalog', () => {
  /**
   * Makes a call under `plan` that asks for SKUs as snapshot-priced: `answered` are answered, all others deferred.
   */
  async function call(plan: LivePlan, asked: number, answered: number, trial = false): Promise<void> {
    const { sql, settings, emit } = context();
    const shown = {
      live: { asked: 0, answered: 0, deferred: 0 },
      snapshot: { asked, answered, deferred: asked - answered },
      tried: { asked, answered, deferred: asked - answered },
      askedAt: plan.now,
      answeredAt: plan.now,
    };
    const taught = learn({ plan, budget: 5, callSkus: 100, trial }, shown, settings);
    const stored = await storeLesson(sql, taught.lesson, { failures: 0, callSize: null, cleared: null });
    if (stored.turned && taught.incidentEvent !== null) emit(taught.incidentEvent);
    if (!trial) await weighDeferrals({ sql, emit } as SyncContext, plan.incident, stored.deferrals);
  }
  const next = async (...shown: [asked: number, answered: number, trial?: boolean]) =>
    await call(await readLivePlan(store.sql), ...shown);

  test('a pattern of deferrals starts an incident, and an answered trial call ends it', async () => {
    await next(100, 5);
    await next(100, 5);
    expect(events).toEqual([]);
    await store.sql`update catalog_internal.tasks set next_at = now() + interval '1 hour', failures = 3`;
    await next(100, 5);
    expect(events).toMatchObject([
      { event: 'incident.began', because: 'deferrals', minutes: 0, asked: 300, deferred: 285 },
    ]);
    const woken =
      await store.sql`select task, failures from catalog_internal.tasks where next_at <= clock_timestamp() order by task`;
    expect(woken).toEqual([
      { task: 'delta', failures: 0 },
      { task: 'live-plan', failures: 0 },
    ]);
    await store.sql`
      update catalog_internal.live_plan set incident_since = now() - interval '30 minutes',
        incident_tried_at = now() - interval '20 minutes', solved_at = now()`;
    await next(20, 5, true);
    expect(await status()).toBeInstanceOf(Date);
    const [{ tried }] = await store.sql<[{ tried: boolean }]>`
      select incident_tried_at > now() - interval '1 minute' and solved_at is not null as tried from catalog_internal.live_plan`;
    expect(tried).toBe(true);
    await next(20, 20, true);
    expect(events.at(-1)).toMatchObject({ event: 'incident.ended', because: 'deferrals', minutes: 30 });
    expect(await status()).toBeNull();
    expect(await readLivePlan(store.sql)).toMatchObject({ incident: null, unsolved: true });
  });

  test('calls that were all under way when it began are weighed together as they come in', async () => {
    const plan = await readLivePlan(store.sql);
    for (let n = 0; n < 3; n += 1) await call(plan, 90, 5);
    expect(events).toEqual([]);
    for (let n = 0; n < 20; n += 1) await call(plan, 90, 5);
    expect(events).toMatchObject([{ event: 'incident.began', asked: 360, deferred: 340 }]);
  });

  test('calls without deferrals and calls of more than five minutes ago do not count', async () => {
    for (let n = 0; n < 2; n += 1) await next(100, 5);
    await store.sql`update catalog_internal.live_calls set called_at = now() - interval '6 minutes'`;
    for (let n = 0; n < 10; n += 1) await next(100, 100);
    await next(100, 5);
    await next(100, 5);
    expect(events).toEqual([]);
    await next(100, 5);
    expect(events).toMatchObject([{ asked: 300, deferred: 285 }]);
  });

  test('two replicas with the same evidence report the incident once', async () => {
    for (let n = 0; n < 3; n += 1) await next(90, 5);
    const plan = await readLivePlan(store.sql);
    await Promise.all([call(plan, 100, 5), call(plan, 100, 5)]);
    expect(events).toHaveLength(1);
    await next(100, 5);
    expect(events).toHaveLength(1);
  });

  test('an answered trial call ends an incident by counts, and only counts that were low since start another', async () => {
    const said = async (live: number, more = {}) =>
      await weighCounts(context(), { livePricedSkuCount: live, skuCount: 1000 }, more);
    const turns = () => events.splice(0).map(({ event }) => event);
    await said(1000);
    // No more than any call computes live, so it proves nothing.
    await next(5, 5, true);
    expect(turns()).toEqual(['incident.began']);
    await next(20, 20, true);
    expect(turns()).toEqual(['incident.ended']);
    for (const live of [1000, 1000, 860, 1000]) await said(live);
    expect(turns()).toEqual([]);
    await said(850);
    await said(1000);
    expect(turns()).toEqual(['incident.began']);
    await said(850);
    await said(1000);
    expect(turns()).toEqual(['incident.ended', 'incident.began']);
    await next(20, 20, true);
    await said(1000, { ofFile: true });
    expect(turns()).toEqual(['incident.ended', 'incident.began']);
  });

  test('an incident that was ended meanwhile is not ended again by another trial call', async () => {
    for (let n = 0; n < 4; n += 1) await next(100, 5);
    const plan = await readLivePlan(store.sql);
    await Promise.all([call(plan, 20, 20, true), call(plan, 20, 20, true)]);
    expect(events.map(({ event }) => event)).toEqual(['incident.began', 'incident.ended']);
  });
});
