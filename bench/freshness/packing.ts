import type { DueClass } from '../../src/store/ledger/due.ts';
import { FIRST_PACKING, planBatch, type PlanLimits } from '../../src/sync/reprice/packing.ts';
import { lingerMs } from '../../src/sync/reprice/plan-call.ts';
import { LiveKnowledge } from '../ceiling/knowledge.ts';
import { CeilingServer } from './ceiling-server.ts';
import { seeded } from './random.ts';

export interface PackingResult {
  readonly calls: number;
  /** The least calls that any plan could do it in: a hundred SKUs and five live ones a call. */
  readonly bound: number;
  readonly minutes: number;
  /** The least minutes: by those calls at the pace there is, or by the ceiling on live computations. */
  readonly boundMinutes: number;
  readonly deferred: number;
  /**
   * Minutes until all but a thousandth were priced: the last ones may have been deferred, and wait DEFERRED_INTERVAL.
   */
  readonly nearlyAllMinutes: number;
  /** Part of the ceiling that was used until then; 1 where there is none. */
  readonly ceilingUsed: number;
}

export interface Fill {
  readonly skus: number;
  readonly liveShare: number;
  /**
   * Part of the live SKUs that is listed as snapshot: they use live budget unseen until they have been deferred once.
   */
  readonly mislisted: number;
  /** The partner's hidden ceiling on live computations a minute; null: none. */
  readonly ceiling: number | null;
}

const MAX_SKUS = 100;
const LIVE_BUDGET = 5;
const CALLS_A_MINUTE = 118;
const SPACING_MS = 60_000 / CALLS_A_MINUTE;
/** DEFERRED_INTERVAL's default, and its jitter. */
const DEFERRED_MS = 300_000;
const JITTER = 0.1;
const NEARLY_ALL = 0.999;
const NOT_EARLY = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };

/**
 * A first fill through the production planner and its learning, on a virtual clock: how many calls it takes, and how
 * long.
 */
export function simulateFill(fill: Fill, seed: number): PackingResult {
  const market = new Unpriced(fill, seed);
  const server = new CeilingServer(LIVE_BUDGET, fill.ceiling);
  const known = new LiveKnowledge({
    budget: LIVE_BUDGET,
    mostBudget: MAX_SKUS,
    callsPerMinute: CALLS_A_MINUTE,
  });
  let [now, calls, deferred, lastCallAt, priced, computed] = [0, 0, 0, -Infinity, 0, 0];
  let turns = FIRST_PACKING;
  let nearlyAll: { readonly minutes: number; readonly computed: number } | null = null;

  while (!market.done) {
    market.wake(now);
    const credit = known.credit(now);
    const limits: PlanLimits = {
      callSkus: MAX_SKUS,
      liveBudget: Math.min(known.budget, credit.skus),
      turns,
      spareSeconds: 0,
    };
    const due = market.due();
    const batch = planBatch(due, NOT_EARLY, limits);
    // Nothing that a call may carry now: time passes, and no call is made.
    if (batch === null) {
      now =
        market.live > 0
          ? now + Math.max(1, Math.min(250, credit.waitMs))
          : Math.max(now + 1, market.nextWake);
      continue;
    }
    const linger = lingerMs(due, limits, CALLS_A_MINUTE, now - lastCallAt);
    if (linger > 0) {
      now += Math.min(linger, 500);
      continue;
    }
    calls += 1;
    turns = batch.turns;
    lastCallAt = now;
    const taken = (isLive: boolean) =>
      batch.quotas.filter((q) => q.live === isLive && q.lane === 'new').reduce((n, q) => n + q.count, 0);
    const asked = market.take(taken(true), taken(false));
    const seen = server.answer(asked, now);
    for (const _ of seen.deferred) market.defer(now);
    deferred += seen.deferred.length;
    computed += seen.computed;
    priced += asked.length - seen.deferred.length;
    if (priced >= fill.skus * NEARLY_ALL) nearlyAll ??= { minutes: now / 60_000, computed };
    const askedLive = asked.filter(({ counted }) => counted).length;
    const deferredLive = seen.deferred.filter(({ counted }) => counted).length;
    const deferredOthers = seen.deferred.length - deferredLive;
    known.spend(now, askedLive);
    known.learn({
      askedAt: now,
      answeredAt: now,
      asked: askedLive,
      computed: askedLive - deferredLive,
      deferred: deferredLive,
      snapshotDeferred: deferredOthers,
    });
    now += SPACING_MS;
  }
  const live = Math.round(fill.skus * fill.liveShare);
  const bound = Math.max(Math.ceil(fill.skus / MAX_SKUS), Math.ceil(live / LIVE_BUDGET));
  return {
    calls,
    bound,
    minutes: now / 60_000,
    boundMinutes: Math.max(bound / CALLS_A_MINUTE, live / (fill.ceiling ?? Infinity)),
    deferred,
    nearlyAllMinutes: nearlyAll?.minutes ?? now / 60_000,
    ceilingUsed:
      fill.ceiling === null || nearlyAll === null ? 1 : nearlyAll.computed / nearlyAll.minutes / fill.ceiling,
  };
}

/** An asked SKU: computed live or not, and counted as live by the mirror or not. */
export interface Asked {
  readonly live: boolean;
  readonly counted: boolean;
}

/** What is not priced yet: the lane `new` of the ledger, and those deferred. */
class Unpriced {
  readonly #random: () => number;
  /** Live SKUs that the mirror counts as live. */
  live: number;
  /** The others, in the order of the ledger; true where one is live all the same. */
  readonly #snapshot: boolean[];
  readonly #waiting: number[] = [];

  constructor({ skus, liveShare, mislisted }: Fill, seed: number) {
    this.#random = seeded(seed);
    const live = Math.round(skus * liveShare);
    const hidden = Math.round(live * mislisted);
    this.live = live - hidden;
    this.#snapshot = shuffled(
      Array.from({ length: skus - this.live }, (_, i) => i < hidden),
      this.#random,
    );
  }

  get done(): boolean {
    return this.live + this.#snapshot.length + this.#waiting.length === 0;
  }

  get nextWake(): number {
    return Math.min(...this.#waiting);
  }

  wake(now: number): void {
    for (let i = this.#waiting.length - 1; i >= 0; i -= 1) {
      if ((this.#waiting[i] as number) > now) continue;
      this.#waiting.splice(i, 1);
      this.live += 1;
    }
  }

  due(): DueClass[] {
    const lane = (live: boolean, count: number): DueClass[] =>
      count === 0 ? [] : [{ lane: 'new', live, count: Math.min(count, MAX_SKUS) }];
    return [...lane(true, this.live), ...lane(false, this.#snapshot.length)];
  }

  /** The partner computes in whatever order it likes. */
  take(live: number, snapshot: number): Asked[] {
    const counted = Math.min(live, this.live);
    this.live -= counted;
    const rest = this.#snapshot.splice(-snapshot, snapshot);
    return shuffled(
      [
        ...Array.from({ length: counted }, () => ({ live: true, counted: true })),
        ...rest.map((isLive) => ({ live: isLive, counted: false })),
      ],
      this.#random,
    );
  }

  defer(now: number): void {
    this.#waiting.push(now + DEFERRED_MS * (1 + JITTER * this.#random()));
  }
}

function shuffled<T>(items: T[], random: () => number): T[] {
  for (let i = items.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [items[i], items[j]] = [items[j] as T, items[i] as T];
  }
  return items;
}
