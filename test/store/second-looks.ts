import { type Applied, applyAnswer } from '../../src/store/answer/apply.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { NO_LEARNING, type SkuResult } from '../../src/store/answer/types.ts';
import { applyDelta } from '../../src/store/catalog/delta.ts';
import { CalibrationCounts } from '../../src/store/trust/calibration.ts';
import { claimAll, found, knownSkus, mark, REFRESH, type TestStore } from './support.ts';

export const OLD = { 40: 4000, 41: 4100 };
export const NEW = { 40: 4000, 41: 4200 };

/** Returns what tests of second checks do with a store. */
export function lookingTwice(store: TestStore) {
  let snapshot = 0;

  /** Answers whatever is due, and stores what that teaches. */
  async function answer(results: readonly SkuResult[], draw = 0): Promise<Applied> {
    const { sql } = store;
    const calibration = new CalibrationCounts({ monotonic: () => 0 }, 0);
    return await applyAnswer(sql, await claimAll(sql), results, REFRESH, {
      learning: { ...NO_LEARNING, random: () => draw },
      observers: { ...NO_OBSERVERS, calibration },
    });
  }

  async function tell(changed: readonly string[], gone: readonly string[]): Promise<void> {
    const since = String(snapshot);
    snapshot += 1;
    await applyDelta(store.sql, { since, toSnapshot: String(snapshot), changed, nowLive: [], removed: gone });
  }

  /** Reports SKUs as changed by a delta. */
  const report = async (...changed: readonly string[]): Promise<void> => await tell(changed, []);

  /** Reports SKUs as removed by a delta. */
  const removed = async (...gone: readonly string[]): Promise<void> => await tell([], gone);

  async function reported(sku: string, prices: Readonly<Record<string, number>>, draw = 0): Promise<void> {
    await report(sku);
    await answer([found(sku, prices)], draw);
  }

  /** Applies a delta without anything newer than the last one. */
  async function stands(): Promise<void> {
    const at = String(snapshot);
    await applyDelta(store.sql, { since: at, toSnapshot: at, changed: [], nowLive: [], removed: [] });
  }

  async function pass(minutes: number): Promise<void> {
    const { sql } = store;
    const by = sql`make_interval(secs => ${minutes * 60})`;
    await sql`update catalog_internal.due set due_at = due_at - ${by}, again_at = again_at - ${by}, held_until = held_until - ${by}`;
    await sql`
      update catalog.skus set asked_at = asked_at - ${by}, priced_at = priced_at - ${by}, reported_at = reported_at - ${by},
        first_priced_at = first_priced_at - ${by}`;
    await sql`
      update catalog_internal.sync set manifest_applied_at = manifest_applied_at - ${by}, token_at = token_at - ${by},
        built_after = built_after - ${by}`;
    await sql`update catalog_internal.unreported_moves set seen_at = seen_at - ${by}`;
    await sql`update catalog.price_history set observed_at = observed_at - ${by}`;
  }

  /** Makes SKUs whose prices are known, an hour after the manifest. */
  async function priced(...skus: readonly string[]): Promise<void> {
    const { sql } = store;
    snapshot = 0;
    await sql`
      update catalog_internal.sync set snapshot_id = '0', manifest_applied_at = now(), snapshot_generated_at = now(), delta_checked_at = now()`;
    await knownSkus(sql, skus);
    await mark(sql, skus, 'new');
    await answer(skus.map((sku) => found(sku, OLD)));
    await pass(60);
  }

  /** Returns when a SKU is requested next, in minutes, why, and whether its price may be acted on. */
  async function next(sku: string) {
    const [row] = await store.sql<
      [{ reason: string; lane: number; minutes: number; actionable: boolean; stale: boolean; again: boolean }]
    >`
      select d.reason, d.lane, round(extract(epoch from d.due_at - clock_timestamp()) / 60)::int as minutes,
        t.actionable, t.stale, d.again_at is not null as again
      from catalog_internal.due d join catalog.sku_trust t using (sku) where d.sku = ${sku}`;
    return row;
  }

  return { answer, report, removed, reported, stands, pass, priced, next };
}
