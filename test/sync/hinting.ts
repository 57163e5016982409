import { beforeEach } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { NO_LEARNING, type SkuResult } from '../../src/store/answer/types.ts';
import { claimDue } from '../../src/store/ledger/claim.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { readLivePlan } from '../../src/store/live/live.ts';
import { HintCounts } from '../../src/store/sellers/hints.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { learnRefresh } from '../../src/sync/live/learn-refresh.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { followHints } from '../../src/sync/reprice/take-hints.ts';
import { callInputs, found, knownSkus, LEASE_MS, mark, REFRESH, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

export const LIVE = Array.from({ length: 80 }, (_, i) => `L${String(i).padStart(2, '0')}`);
const SNAPSHOT = ['S0', 'S1'];

export const unmoved = (sku: string) => found(sku, { 7: 100 });
export const moved = (sku: string) => found(sku, { 7: 150 });

/**
 * Sets up a mirror of live SKUs, all refreshed an hour ago, and its helpers. Must be called at a file's top level.
 */
export function useHints() {
  const store = useStore();
  let events: SyncEvent[];
  let counts: HintCounts;

  const context = () =>
    ({
      sql: store.sql,
      random: () => 0.5,
      floors: new DueFloors(systemClock),
      recent: new RecentAnswers(),
      settings: settingsWith({ LIVE_INTERVAL: '1m' }),
      emit: (event: SyncEvent) => events.push(event),
      tracer: NO_TRACER,
    }) as unknown as SyncContext;

  async function hint(sku: string | null, source: string | null = 'orders'): Promise<boolean> {
    const [row] = await store.sql<[{ taken: boolean }]>`select catalog.hint(${sku}, ${source}) as taken`;
    return row.taken;
  }
  const drain = async () => followHints(context(), await readLivePlan(store.sql));
  const came = async () => (await callInputs(store.sql)).hintsCame;

  async function claimed(...skus: string[]) {
    await store.sql`update catalog_internal.due set due_at = now(), held_until = null where sku = any(${skus})`;
    const claim = await claimDue(store.sql, { named: skus }, LEASE_MS, null);
    if (claim === null) throw new Error('nothing was claimed');
    return claim;
  }

  async function answer(claim: Awaited<ReturnType<typeof claimed>>, results: readonly SkuResult[]) {
    const plan = await readLivePlan(store.sql);
    await applyAnswer(store.sql, claim, results, REFRESH, {
      learning: { ...NO_LEARNING, live: learnRefresh(plan, context().settings) },
      observers: { ...NO_OBSERVERS, hints: counts },
    });
  }
  const call = async (...results: SkuResult[]) =>
    answer(await claimed(...results.map(({ sku }) => sku)), results);

  async function rate(sku: string) {
    const [row] =
      await store.sql`select alpha, beta, long_alpha, long_beta, hint_hazard as hazard from catalog_internal.live_rates where sku = ${sku}`;
    return row;
  }
  async function dueIn(sku: string): Promise<number> {
    const [row] = await store.sql<[{ minutes: number }]>`
    select (extract(epoch from due_at - clock_timestamp()) / 60)::float8 as minutes from catalog_internal.due where sku = ${sku}`;
    return row.minutes;
  }
  const waiting = async () => {
    const rows = await store.sql<{ name: string }[]>`
    select sku || ' ' || source as name from catalog_internal.waiting_hints order by 1`;
    return rows.map(({ name }) => name);
  };
  async function source(name = 'orders') {
    const [row] = await store.sql`
    select hints::int, pulled::int, tested, expected, unmoved, moves, followed, stayed, undone
    from catalog_internal.hint_sources where source = ${name}`;
    return row;
  }

  beforeEach(async () => {
    events = [];
    counts = new HintCounts({ monotonic: () => 0 }, 0);
    const { sql } = store;
    await knownSkus(sql, LIVE, { priceSource: 'live' });
    await knownSkus(sql, SNAPSHOT);
    await mark(sql, LIVE, 'live', true);
    await mark(sql, SNAPSHOT, 'sweep', false);
    await sql`update catalog_internal.live_plan set refresh_threshold = 0.01, max_interval_minutes = 10000, early_minutes = 1, overdue_minutes = 10000, solved_at = now()`;
    await call(...LIVE.map(unmoved), ...SNAPSHOT.map(unmoved));
    await sql`update catalog.skus set asked_at = asked_at - interval '1 hour', priced_at = priced_at - interval '1 hour'`;
    await sql`update catalog_internal.due set due_at = now() + interval '1 day'`;
  });
  return {
    store,
    hint,
    drain,
    came,
    claimed,
    answer,
    call,
    rate,
    dueIn,
    waiting,
    source,
    seen: () => events,
  };
}
