import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import { listBacklog } from '../../src/store/live/order.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { chooseForQuota } from '../../src/sync/live/choose.ts';
import { planLive } from '../../src/sync/live/plan-live.ts';
import { chooseLive, PRIOR } from '../../src/sync/live/policy.ts';
import { callInputs, LEASE_MS, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';
import { runs } from '../support/soak.ts';

const store = useStore();

/** Ten calls of five live SKUs a minute. */
const context = (): SyncContext =>
  ({
    sql: store.sql,
    random: () => 0.5,
    settings: settingsWith({ LIVE_INTERVAL: '1m', PARTNER_RATE_LIMIT: '12', PARTNER_RATE_SHARE: '1' }),
    emit: () => {},
    tracer: NO_TRACER,
  }) as unknown as SyncContext;

/** Inserts live SKUs S000 … that were refreshed `minutes` ago and are due since, the first for longest. */
async function due(count: number, minutes = 10): Promise<void> {
  await store.sql`
    insert into catalog.skus (sku, state, price_source, in_manifest, asked_at, priced_at, first_priced_at)
    select 'S' || lpad(n::text, 3, '0'), 'priced', 'live', true, t, t, t
    from generate_series(0, ${count - 1}::int) n cross join lateral (select now() - make_interval(mins => ${minutes}) as t) asked`;
  await store.sql`select catalog_internal.mark_due((select array_agg(sku) from catalog.skus), 'live', true)`;
  await store.sql`update catalog_internal.live_plan set solved_at = now()`;
  await store.sql`
    update catalog_internal.due set due_at = now() - interval '9 minutes' + make_interval(secs => right(sku, 3)::int)`;
}

/** Refreshes were counted in the hour that began so many hours ago. */
const knownFor = (hours: number) => store.sql`
  insert into catalog_internal.calibration_hours (hour, cohort, bin, looks, "right", claimed, minutes, missed)
  values (now() - make_interval(hours => ${hours}), 'live', 10, 1, 1, 1, 1, 0)`;

const listed = async () =>
  (await store.sql<{ sku: string }[]>`select sku from catalog_internal.live_backlog order by place`).map(
    ({ sku }) => sku,
  );

/**
 * Makes SKUs change every ten minutes or so, each a little less often than the one before. Others may change every
 * two hours.
 */
const lively = (...skus: readonly string[]) =>
  store.sql`insert into catalog_internal.live_rates ${store.sql(skus.map((sku, n) => ({ sku, alpha: 10, beta: 100 + n })))}`;

describe('while more is due than can be refreshed', () => {
  test('the most valuable SKUs are refreshed first for two minutes, however late they are due; then by due time', async () => {
    await due(300);
    await lively('S250', 'S280');
    expect(await planLive(context())).toMatchObject({ nextInMs: 60_000, counts: { backlog: 300 } });
    expect(await listed()).toHaveLength(100);
    expect((await listed()).slice(0, 2)).toEqual(['S250', 'S280']);
    const { livePlan, candidates } = await callInputs(store.sql);
    expect(chooseForQuota(livePlan, candidates, 2)).toEqual(['S250', 'S280']);
    await store.sql`delete from catalog_internal.live_backlog`;
    const { candidates: oldest } = await callInputs(store.sql);
    expect(oldest.slice(0, 3).map(({ sku }) => sku)).toEqual(['S000', 'S001', 'S002']);
  });

  test('no SKU is chosen twice from the list: claimed ones leave it, and those asked since are skipped', async () => {
    await due(300);
    await lively('S250', 'S280', 'S290');
    await planLive(context());
    await claimDue(store.sql, { named: ['S250'] }, LEASE_MS);
    expect(await listed()).not.toContain('S250');
    await store.sql`update catalog.skus set asked_at = now() + interval '1 second' where sku = 'S280'`;
    const { candidates } = await callInputs(store.sql);
    expect(candidates[0]?.sku).toBe('S290');
  });

  test('a claim does not wait for another one that is removing the same SKU from the list', async () => {
    await due(300);
    await planLive(context());
    const [first = ''] = await listed();
    await store.sql.begin(async (tx) => {
      await tx`select from catalog_internal.live_backlog where sku = ${first} for update`;
      expect(await claimDue(store.sql, { named: [first] }, LEASE_MS)).toMatchObject({
        skus: [{ sku: first }],
      });
    });
  });

  test('the list is rebuilt each minute, and is empty once the backlog is gone', async () => {
    await due(300);
    await planLive(context());
    const before = await listed();
    await store.sql`update catalog.skus set asked_at = now() where sku = any(${before})`;
    await store.sql`update catalog_internal.due set due_at = now() + interval '1 hour' where sku = any(${before})`;
    await planLive(context());
    const after = await listed();
    expect(after.filter((sku) => before.includes(sku))).toEqual([]);
    expect(after).toHaveLength(100);
    await store.sql`update catalog_internal.due set due_at = now() + interval '1 hour' where sku > 'S010'`;
    await knownFor(3);
    expect(await planLive(context())).toMatchObject({ nextInMs: 600_000, counts: { backlog: 0 } });
    expect(await listed()).toEqual([]);
  });

  test.each([
    ['of a new mirror', [], 60_000],
    ['of its first two hours', [0, 1], 60_000],
    ['after a night without a refresh', [9, 200], 60_000],
    ['once it is known for two hours', [0, 3], 600_000],
  ])('the market %s (counts of %j hours ago) is learned again after %d ms', async (_, hours, nextInMs) => {
    await due(300);
    await store.sql`update catalog_internal.due set due_at = now() + interval '1 hour'`;
    for (const each of hours) await knownFor(each);
    expect(await planLive(context())).toMatchObject({ nextInMs });
  });

  test('entries that a clock ahead has dated are ignored once it is right', async () => {
    await due(300);
    await planLive(context());
    await store.sql`update catalog_internal.live_backlog set listed_at = now() + interval '8 days' where place > 50`;
    await store.sql`update catalog_internal.live_plan set refreshed_at = now() + interval '8 days'`;
    await store.sql`update catalog_internal.due set due_at = now() + interval '1 hour' where sku > 'S200'`;
    await planLive(context());
    expect(await listed()).toHaveLength(100);
    const [row] = await store.sql`
      select (select count(*)::int from catalog_internal.live_backlog where listed_at > now()) as ahead, refreshed_at from catalog_internal.live_plan`;
    expect(row).toEqual({ ahead: 0, refreshed_at: null });
  });

  test('SKUs that waited because nothing could be refreshed come first only after twice as long', async () => {
    await due(300, 125);
    await store.sql`update catalog_internal.due set due_at = due_at - interval '2 hours'`;
    await store.sql`update catalog_internal.live_plan set refreshed_at = now() - interval '2 hours', solved_at = now() - interval '2 hours'`;
    await planLive(context());
    const [plan] = await store.sql`
      select idle_minutes::int as idle, (overdue_minutes - max_interval_minutes)::int as more from catalog_internal.live_plan`;
    expect(plan).toEqual({ idle: 0, more: 240 });
    // The first refresh after it.
    await store.sql`
      insert into catalog_internal.live_calls (called_at, computed, deferred, snapshot_asked, snapshot_deferred)
      values (now() - interval '5 seconds', 5, 0, 0, 0), (now(), 0, 5, 0, 0)`;
    await planLive(context());
    expect(
      await store.sql`
        select idle_minutes::int as idle, extract(epoch from now() - refreshed_at)::int as seconds, (overdue_minutes - max_interval_minutes)::int as more
        from catalog_internal.live_plan`,
    ).toEqual([{ idle: 120, seconds: expect.closeTo(5, -1) as number, more: 240 }]);
    expect((await readLivePlan(store.sql)).overdueMinutes).toBeGreaterThan(240);
  });
});

test('time in which nothing was due does not count as waiting, if live SKUs are new after days without any', async () => {
  await due(300, 20);
  await store.sql`update catalog_internal.live_plan set refreshed_at = now() - interval '3 days'`;
  await planLive(context());
  const [plan] = await store.sql`
    select (overdue_minutes - max_interval_minutes)::int as more from catalog_internal.live_plan`;
  expect(plan).toEqual({ more: 18 });
});

test('the list has the planner’s order, also for SKUs that have probably moved', async () => {
  const { sql } = store;
  const sku = fc.record({
    weight: fc.constantFrom(1, 1, 3, 50),
    alpha: fc.double({ min: 0.2, max: 20, noNaN: true }),
    beta: fc.double({ min: 1, max: 4320, noNaN: true }),
    minutes: fc.option(fc.integer({ min: 1, max: 3000 })),
    learned: fc.boolean(),
    // For SKUs with a learned rate: how likely they have moved besides.
    hazard: fc.oneof(fc.constant(0), fc.double({ min: 0.01, max: 20, noNaN: true })),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(sku, { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 1, max: 20 }),
      fc.constantFrom(100, 1000, 2000),
      async (drawn, count, overdue) => {
        await sql`delete from catalog.skus`;
        await sql`delete from catalog_internal.watched`;
        const rows = drawn.map((row, n) => ({ ...row, sku: `S${String(n).padStart(2, '0')}` }));
        for (const { sku: name, weight, alpha, beta, minutes, learned, hazard } of rows) {
          await sql`
            insert into catalog.skus (sku, price_source, in_manifest, asked_at)
            values (${name}, 'live', true, clock_timestamp() - make_interval(mins => ${minutes}))`;
          if (learned)
            await sql`
              insert into catalog_internal.live_rates (sku, alpha, beta, hazard)
              values (${name}, ${alpha}, ${beta}, ${hazard})`;
          await sql`insert into catalog_internal.watched (sku, weight) values (${name}, ${weight})`;
        }
        await sql`select catalog_internal.mark_due((select array_agg(sku) from catalog.skus), 'live', true)`;
        await listBacklog(sql, { count, overdueMinutes: overdue, prior: PRIOR });
        const chosen = chooseLive(
          rows.map(({ sku: name, weight, alpha, beta, minutes, learned, hazard }) => ({
            sku: name,
            weight,
            rate: learned ? { alpha, beta } : PRIOR,
            tau: minutes ?? Infinity,
            hazard: learned ? hazard : 0,
          })),
          count,
          overdue,
        );
        expect(await listed()).toEqual(chosen.map((one) => one.sku));
      },
    ),
    { numRuns: runs(120) },
  );
});
