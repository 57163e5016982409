import { eachColumn } from '../../src/declared/metadata.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer, LowestRecord } from '../../src/partner/answers.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import { HintCounts } from '../../src/store/sellers/hints.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { settingsWith } from '../support/settings.ts';

export const MINUTE = 60_000;
export const SKUS = Array.from({ length: 60 }, (_, i) => `L${String(i).padStart(2, '0')}`);

export const FIRST_PRICE = 100;

/** A partner of live SKUs. It answers not_found for any other SKU. */
export class HintedPartner {
  readonly prices = new Map(SKUS.map((sku) => [sku, [FIRST_PRICE, 200]]));

  answer(asked: readonly string[]): BulkAnswer {
    const there = asked.filter((sku) => this.prices.has(sku));
    const results = new Map(there.map((sku): [string, LowestRecord] => [sku, this.#record(sku)]));
    const notFound = asked.filter((sku) => !this.prices.has(sku));
    return { results, notFound, deferred: [], errors: [], requested: null };
  }

  #record(sku: string): LowestRecord {
    const prices = this.prices.get(sku) ?? [];
    const names = { name: sku, brand: 'Acme', model: sku };
    const sizes = new Map(prices.map((price, size) => [String(size), { price, entry: null }]));
    return { sizes, metadata: { ...eachColumn(() => null), ...names }, product: names };
  }
}

/** Returns the context of calls. */
export function contextOf(sql: Sql, partner: HintedPartner, events: SyncEvent[]): SyncContext {
  const settings = settingsWith({
    LIVE_INTERVAL: '1s',
    PARTNER_RATE_LIMIT: '12',
    PARTNER_RATE_SHARE: '1',
    BULK_LIVE_BUDGET: '4',
    BULK_MAX_SKUS: '20',
  });
  return {
    observers: { ...NO_OBSERVERS, hints: new HintCounts(systemClock, 0) },
    sql,
    pacer: createPacer(sql, systemClock, { maxPerWindow: 1_000_000, windowMs: MINUTE, backoffMs: MINUTE }),
    client: {
      bulk: async (permit: { settle(outcome: string): Promise<void> }, skus: readonly string[]) => {
        await permit.settle('ok');
        return partner.answer(skus);
      },
    },
    clock: systemClock,
    floors: new DueFloors(systemClock),
    recent: new RecentAnswers(),
    random: () => 0.5,
    emit: (event: SyncEvent) => events.push(event),
    settings,
    tracer: NO_TRACER,
  } as unknown as SyncContext;
}

/** Advances everything that has a time by `minutes`. */
export async function passAll({ sql, floors }: SyncContext, minutes: number): Promise<void> {
  const by = `interval '${minutes} minutes'`;
  await sql.unsafe(`
    update catalog.skus set asked_at = asked_at - ${by}, priced_at = priced_at - ${by};
    update catalog_internal.due set due_at = due_at - ${by}, held_until = held_until - ${by};
    update catalog_internal.hints set hinted_at = hinted_at - ${by};
    update catalog_internal.waiting_hints set hinted_at = hinted_at - ${by};
    update catalog_internal.hint_sources set last_hint = last_hint - ${by};
    update catalog_internal.releases set early_at = early_at - ${by}`);
  floors.reset();
}
