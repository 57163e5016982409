import { systemClock } from '../../src/lib/clock.ts';
import { NO_TRACER } from '../../src/lib/tracer.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { SentPermit } from '../../src/pace/permit.ts';
import type { BulkAnswer } from '../../src/partner/answers.ts';
import { PartnerError, type PartnerErrorKind, type RequestOutcome } from '../../src/partner/errors.ts';
import { NO_OBSERVERS } from '../../src/store/answer/observers.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { DueFloors } from '../../src/store/ledger/due-floors.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import type { SyncEvent } from '../../src/sync/events.ts';
import { RecentAnswers } from '../../src/sync/reprice/recent.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { letBackoffEnd } from '../contract/backoff.ts';
import { knownSkus, mark } from '../store/support.ts';
import { settingsWith } from '../support/settings.ts';

const MINUTE = 60_000;
const signals = { stopping: new AbortController().signal, hard: new AbortController().signal };
const limits = { maxPerWindow: 1_000_000, windowMs: 1000, backoffMs: 10 * MINUTE };

/**
 * A partner, or a gateway before it, that refuses some calls. It answers not_found for the SKUs of all others.
 * Time passes only when a test says so.
 */
export class RefusingPartner {
  refuses: (skus: readonly string[]) => boolean = () => false;
  kind: PartnerErrorKind = 'throttled-or-forbidden';
  status = 403;
  /** What happens while a call is under way. */
  meanwhile: () => Promise<void> = async () => {};
  readonly events: SyncEvent[] = [];
  /** Each call: its SKUs, whether it was let through, and whether the request before it was, on any route. */
  readonly calls: {
    readonly skus: readonly string[];
    readonly worked: boolean;
    readonly wasOpen: boolean;
  }[] = [];
  #isOpen = true;
  readonly ctx: SyncContext;
  readonly #sql: Sql;

  constructor(sql: Sql, random: () => number = () => 0.5) {
    this.#sql = sql;
    this.ctx = {
      observers: NO_OBSERVERS,
      sql,
      pacer: createPacer(sql, systemClock, limits, {}, undefined, () => 0),
      client: { bulk: this.#bulk },
      clock: systemClock,
      floors: new DueFloors(systemClock),
      recent: new RecentAnswers(),
      random,
      emit: (event: SyncEvent) => this.events.push(event),
      settings: settingsWith({}),
      tracer: NO_TRACER,
    } as unknown as SyncContext;
  }

  readonly #bulk = async (permit: SentPermit, skus: readonly string[]): Promise<BulkAnswer> => {
    const worked = !this.refuses(skus);
    this.calls.push({ skus, worked, wasOpen: this.#isOpen });
    this.#isOpen = worked;
    await this.meanwhile();
    await permit.settle(worked ? 'ok' : this.kind);
    if (!worked) throw new PartnerError(this.kind, 'bulk', { status: this.status });
    const nothing = { deferred: [], errors: [], requested: null };
    return { results: new Map(), notFound: [...skus], ...nothing };
  };

  /** Runs one iteration of a slice, assuming that the back-off before it is over. */
  async iterate(): Promise<void> {
    await repriceOnce(this.ctx, { sinceLastCallMs: Infinity }, MINUTE, signals);
  }

  /** Runs `count` iterations like a slice. Each back-off ends at once, but no wait of a SKU ends. */
  async iterations(count: number, others: () => Promise<void> = async () => {}): Promise<void> {
    for (let made = 0; made < count; made += 1) {
      await this.iterate();
      await letBackoffEnd(this.#sql);
      await others();
    }
  }

  /** Sends a request of another route, which ends with `outcome`. */
  async otherRequest(outcome: RequestOutcome = 'ok'): Promise<void> {
    const acquired = await this.ctx.pacer.acquire('delta', MINUTE);
    if (acquired.kind !== 'granted') return;
    this.#isOpen = outcome === 'ok';
    await acquired.permit.settle(outcome);
  }

  /**
   * Ends the waits of SKUs as if their time had passed, once nothing else is due: a minute has calls for all
   * others, and SKUs that are asked for first each time would keep them waiting.
   */
  async waitsEnd(): Promise<void> {
    await this.#sql`
      update catalog_internal.due set held_until = null
      where claim is null
        and not exists (select from catalog_internal.due where due_at <= now() and claim is null and held_until is null)`;
  }

  async due(skus: readonly string[]): Promise<void> {
    await knownSkus(this.#sql, skus);
    await mark(this.#sql, skus, 'changed');
  }

  /** Returns SKUs that are still due, with the largest call that they may share. */
  async waiting(): Promise<{ sku: string; largestCall: number | null }[]> {
    return await this.#sql<{ sku: string; largestCall: number | null }[]>`
      select sku, largest_call as "largestCall" from catalog_internal.due where due_at <= now() order by sku`;
  }

  get lost(): number {
    return this.calls.filter(({ worked }) => !worked).length;
  }

  /**
   * Counts refused calls that came when nothing had been let through since the refusal before: they prove nothing.
   */
  get unjudged(): number {
    return this.calls.filter(({ worked, wasOpen }) => !worked && !wasOpen).length;
  }

  /** SKUs that were named to the operator, once for each mention. */
  get blamed(): string[] {
    return this.events.flatMap((event) => (event.event === 'bulk.failed' && event.sku ? [event.sku] : []));
  }
}

export const named = (of: number): string[] => Array.from({ length: of }, (_, n) => `S${n}`);
