import { beforeEach } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { NO_LEARNING, type ProductRow, type SkuResult } from '../../src/store/answer/types.ts';
import { storeLesson } from '../../src/store/call/call-lesson.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { learnRefresh } from '../../src/sync/live/learn-refresh.ts';
import { weighLines } from '../../src/sync/live/product-lines.ts';
import { followChangedLines, turnedLines } from '../../src/sync/reprice/product-lines.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { found, knownSkus, LEASE_MS, mark, NO_METADATA, REFRESH, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

export const SKUS = Array.from({ length: 30 }, (_, i) => `L${String(i).padStart(2, '0')}`);
export const OTHERS = Array.from({ length: 5 }, (_, i) => `M${i}`);
const NOTHING = { call: null, budget: null, ceiling: null, ceilingStep: 0, trial: false, incident: null };
const WORKED = { failures: 0, callSize: null, cleared: null };

const product = (brand: string | null, model: string | null): Partial<ProductRow> => ({
  ...NO_METADATA,
  brand,
  model,
});
export const priced = (
  sku: string,
  price: number,
  brand: string | null = 'Acme',
  model: string | null = 'One',
) => found(sku, { 7: price, 8: price + 10, 9: price + 20 }, product(brand, model));

/**
 * Sets up a mirror of live SKUs of two lines, all refreshed an hour ago, and calls for them. Must be called at a
 * file's top level.
 */
export function useLines() {
  const store = useStore();
  let events: SyncEvent[];

  function context(): SyncContext {
    return {
      observers: NO_OBSERVERS,
      sql: store.sql,
      random: () => 0.5,
      floors: new DueFloors(systemClock),
      recent: new RecentAnswers(),
      settings: settingsWith({ LIVE_INTERVAL: '1m' }),
      emit: (event: SyncEvent) => events.push(event),
      tracer: NO_TRACER,
    } as unknown as SyncContext;
  }

  /** Makes one call for these SKUs like reprice.ts, from the claim to the lesson. */
  async function call(results: readonly SkuResult[], beforeLesson: () => Promise<void> = async () => {}) {
    const { sql } = store;
    const ctx = context();
    const skus = results.map(({ sku }) => sku);
    await sql`update catalog_internal.due set due_at = now(), held_until = null where sku = any(${skus})`;
    const claim = await claimDue(sql, { named: skus }, LEASE_MS, null);
    if (claim === null) throw new Error('nothing was claimed');
    const plan = await readLivePlan(sql);
    const { lines } = await applyAnswer(sql, claim, results, REFRESH, {
      learning: {
        ...NO_LEARNING,
        live: learnRefresh(plan, ctx.settings),
        lines: (refreshes) => weighLines(plan, refreshes),
      },
    });
    await beforeLesson();
    const changes = turnedLines(lines, plan.releases).map(({ change }) => change);
    const stored = await storeLesson(sql, NOTHING, { ...WORKED, lines: changes });
    await followChangedLines(ctx, plan, lines, stored.lines);
    return stored.lines;
  }

  const line = async (brand = 'Acme', model = 'One') => {
    const [row] =
      await store.sql`select * from catalog_internal.live_lines where brand = ${brand} and model = ${model}`;
    return row;
  };
  const hazards = async () => {
    const rows = await store.sql<{ sku: string }[]>`
    select sku from catalog_internal.live_rates where hazard is not null order by sku`;
    return rows.map(({ sku }) => sku);
  };
  const dueNow = async () => {
    const rows = await store.sql<
      { sku: string }[]
    >`select sku from catalog_internal.due where due_at <= now() order by sku`;
    return rows.map(({ sku }) => sku);
  };

  /** Lets `minutes` pass for refreshes and lines, but not for due times. */
  async function pass(minutes = 60): Promise<void> {
    await store.sql`update catalog.skus set asked_at = asked_at - make_interval(mins => ${minutes}), priced_at = priced_at - make_interval(mins => ${minutes})`;
    await store.sql`
    update catalog_internal.live_lines set weighed_at = weighed_at - make_interval(mins => ${minutes}), since = since - make_interval(mins => ${minutes})`;
  }

  beforeEach(async () => {
    events = [];
    const { sql } = store;
    await knownSkus(sql, [...SKUS, ...OTHERS], { priceSource: 'live' });
    await mark(sql, [...SKUS, ...OTHERS], 'live', true);
    await sql`update catalog_internal.live_plan set refresh_threshold = 0.0001, max_interval_minutes = 100000, early_minutes = 1, overdue_minutes = 100000, solved_at = now()`;
    await call([
      ...SKUS.map((sku) => priced(sku, 100)),
      ...OTHERS.map((sku) => priced(sku, 100, 'Acme', 'Two')),
    ]);
    await pass();
    // Enough to be known as calm.
    await sql`update catalog_internal.live_rates set wholesale_minutes = 2880`;
    await sql`update catalog_internal.due set due_at = now() + interval '1 day'`;
  });

  return { store, context, call, line, hazards, dueNow, pass, seen: () => events };
}
