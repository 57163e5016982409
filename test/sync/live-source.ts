import { beforeEach } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer } from '../../src/partner/answers.ts';
import { PartnerError } from '../../src/partner/errors.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { knownSkus, mark, useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

export const MINUTE = 60_000;
export const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const numbered = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, i) => `${prefix}${String(i).padStart(3, '0')}`);
const LIVE = numbered('L', 60);
const OTHERS = numbered('S', 400);

/** A partner whose live source fails in one way or another, and daemons that call it. */
class LiveSource {
  works = false;
  /** Live SKUs have unreadable records. */
  isOdd = false;
  /** Calls with a live SKU fail as a whole. */
  hangs = false;
  /** The live SKUs of each call, and its number of SKUs in all. */
  asked: string[][] = [];
  sizes: number[] = [];
  ctx: SyncContext;
  readonly sql: Sql;
  readonly #events: SyncEvent[] = [];

  constructor(sql: Sql) {
    this.sql = sql;
    this.ctx = this.daemon();
  }

  /** Returns a daemon of its own. Live SKUs are in errors unless the live source works. */
  daemon(): SyncContext {
    return {
      observers: NO_OBSERVERS,
      sql: this.sql,
      pacer: createPacer(this.sql, systemClock, {
        maxPerWindow: 1_000_000,
        windowMs: MINUTE,
        backoffMs: MINUTE,
      }),
      client: { bulk: async (_: unknown, skus: readonly string[]) => Promise.resolve(this.#answer(skus)) },
      clock: systemClock,
      floors: new DueFloors(systemClock),
      recent: new RecentAnswers(),
      random: () => 0.5,
      emit: (event: SyncEvent) => this.#events.push(event),
      settings: settingsWith({ BULK_MAX_SKUS: '20' }),
      tracer: NO_TRACER,
    } as unknown as SyncContext;
  }

  #answer(skus: readonly string[]): BulkAnswer {
    const live = skus.filter((sku) => sku.startsWith('L'));
    this.asked.push(live);
    this.sizes.push(skus.length);
    if (this.hangs && live.length > 0) throw new PartnerError('timeout', 'bulk', {});
    return {
      results: new Map(this.isOdd ? live.map((sku) => [sku, { unreadable: 'no entry reads' }]) : []),
      notFound: skus.filter((sku) => this.works || !live.includes(sku)),
      deferred: [],
      errors: this.works || this.isOdd ? [] : live,
      requested: null,
    };
  }

  async calls(count: number, by = this.ctx): Promise<void> {
    for (let made = 0; made < count; made += 1)
      await repriceOnce(by, { sinceLastCallMs: Infinity }, MINUTE, signals);
  }

  /** Dates the last try of a live SKU `minutes` earlier, and ends waits. */
  async passMinutes(minutes: number): Promise<void> {
    const ago = this.sql`make_interval(mins => ${minutes})`;
    await this.sql`update catalog_internal.live_ceiling set credit_from = credit_from - ${ago}`;
    await this
      .sql`update catalog_internal.live_plan set outage_since = outage_since - ${ago} where outage_since is not null`;
    await this
      .sql`update catalog_internal.due set held_until = held_until - ${ago} where held_until is not null`;
  }

  /** Returns the reported starts and ends of outages. */
  told(): string[] {
    return this.#events.flatMap(({ event }) => (event.startsWith('live-outage') ? [event] : []));
  }
}

/**
 * Sets up a database for the file and, in each test, 60 live SKUs and 400 others that are due, and such a partner.
 */
export function useLiveSource(begun: (partner: LiveSource) => void): ReturnType<typeof useStore> {
  const store = useStore();
  beforeEach(async () => {
    begun(new LiveSource(store.sql));
    await knownSkus(store.sql, LIVE, { priceSource: 'live' });
    await knownSkus(store.sql, OTHERS);
    await mark(store.sql, LIVE, 'live', true);
    await mark(store.sql, OTHERS, 'sweep', false);
  });
  return store;
}

export type { LiveSource };
