import { beforeEach } from 'vitest';
import { eachColumn } from '../../src/declared/metadata.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { BulkAnswer, LowestRecord } from '../../src/partner/answers.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import type { useStore } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

export const MINUTE = 60_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };

/** Null: nobody offers it. */
const record = (price: number | null): LowestRecord => ({
  sizes: new Map(price === null ? [] : [['9', { price, entry: null }]]),
  metadata: eachColumn(() => null),
  product: {},
});

/** A partner that answers every call, with one size. Prices are 100 in each test until it says otherwise. */
export class Calls {
  priceOf: (sku: string) => number | null = () => 100;
  events: SyncEvent[] = [];
  asked: (readonly string[])[] = [];
  ctx: SyncContext;
  readonly #url: string;

  constructor({ sql, url }: Pick<ReturnType<typeof useStore>, 'sql' | 'url'>) {
    this.#url = url;
    this.ctx = {
      observers: NO_OBSERVERS,
      sql,
      pacer: createPacer(sql, systemClock, { maxPerWindow: 1_000_000, windowMs: MINUTE, backoffMs: MINUTE }),
      client: {
        bulk: (_: unknown, wanted: readonly string[]): Promise<BulkAnswer> => {
          this.asked.push(wanted);
          return Promise.resolve({
            results: new Map(wanted.map((sku) => [sku, record(this.priceOf(sku))])),
            notFound: [],
            deferred: [],
            errors: [],
            requested: null,
          } as unknown as BulkAnswer);
        },
      },
      clock: systemClock,
      floors: new DueFloors(systemClock),
      recent: new RecentAnswers(),
      random: () => 0.5,
      emit: (event: SyncEvent) => this.events.push(event),
      settings: settingsWith({ BULK_MAX_SKUS: '40' }),
      tracer: NO_TRACER,
    } as unknown as SyncContext;
  }

  /** Returns the daemon's pool with short waits for locks. */
  async impatient(): Promise<Sql & AsyncDisposable> {
    const sql = connect(this.#url, { max: 1 });
    await sql`set lock_timeout = '100ms'`;
    this.ctx = { ...this.ctx, sql };
    return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 2 }) });
  }

  /** Makes calls until nothing is due. An exception ends a call, as it would end a job. */
  async untilIdle(): Promise<void> {
    for (let number = 1; number <= 60; number += 1) {
      const done = await repriceOnce(this.ctx, { sinceLastCallMs: Infinity }, MINUTE, signals).catch(
        () => null,
      );
      if (done?.kind === 'idle' || done?.kind === 'wait') return;
    }
  }
}

/** Sets up the calls of each test of a file. */
export function useCalls(store: ReturnType<typeof useStore>): () => Calls {
  let calls: Calls;
  beforeEach(() => {
    calls = new Calls(store);
  });
  return () => calls;
}
