import { type LiveCeiling, NO_CEILING } from '../../src/store/live.ts';
import {
  type CeilingEvidence,
  type KnownOfCeiling,
  learnLiveCeiling,
  type LiveCredit,
  liveCeilingAt,
  liveCredit,
  meetsCeiling,
  withoutIdleTime,
} from '../../src/sync/live/ceiling.ts';
import { learnLiveBudget } from '../../src/sync/live/learn.ts';

const MINUTE_MS = 60_000;

/** What an answered call showed, without what the mirror itself adds to it. */
export type Observed = Omit<CeilingEvidence, 'budget' | 'configuredBudget'>;

/**
 * What the mirror knows of the partner's limits on live computations, learned by the production code and kept in memory
 * instead of in Postgres. Times are milliseconds.
 */
export class LiveKnowledge {
  budget: number;
  readonly #configuredBudget: number;
  readonly #mostBudget: number;
  readonly #callsPerMinute: number;
  #ceiling: LiveCeiling = NO_CEILING;
  #creditFrom = 0;
  #computedAt: number | null = null;
  /** Calls of the last minute, the oldest first. */
  readonly #recent: {
    readonly at: number;
    readonly computed: number;
    readonly partly: boolean;
    readonly others: boolean;
  }[] = [];

  constructor(options: {
    readonly budget: number;
    readonly mostBudget: number;
    readonly callsPerMinute: number;
  }) {
    this.budget = options.budget;
    this.#configuredBudget = options.budget;
    this.#mostBudget = options.mostBudget;
    this.#callsPerMinute = options.callsPerMinute;
  }

  /** As it may be tried at `now`, in live computations a minute. */
  ceilingAt(now: number): number {
    return liveCeilingAt(withoutIdleTime(this.#ceiling, this.#computedAt, now), now);
  }

  #known(now: number): KnownOfCeiling {
    while ((this.#recent[0]?.at ?? Infinity) <= now - MINUTE_MS) this.#recent.shift();
    return {
      ceiling: this.#ceiling,
      computedAt: this.#computedAt,
      best: this.#recent.reduce((most, { computed }) => Math.max(most, computed), 0),
      partlyDeferred: this.#recent.filter(({ partly }) => partly).length,
      computedRate: Math.max(
        this.#rateSince(this.#recent[0]?.at ?? now, now),
        this.#rateSince(now - 10_000, now),
      ),
      othersDeferred: this.#recent.filter(({ others }) => others).length,
    };
  }

  /** Live computations a minute since `from`. */
  #rateSince(from: number, now: number): number {
    const computed = this.#recent.reduce((sum, call) => sum + (call.at >= from ? call.computed : 0), 0);
    return (computed * MINUTE_MS) / Math.max(1000, now - from);
  }

  /** What may be asked for at `now`. */
  credit(now: number): LiveCredit {
    return liveCredit(
      { ceiling: this.#ceiling, computedAt: this.#computedAt, creditFrom: this.#creditFrom, now },
      this.#callsPerMinute,
    );
  }

  /** Takes what `skus` live SKUs of a call at `now` cost, as claiming them does. */
  spend(now: number, skus: number): void {
    const { spend } = this.credit(now);
    if (spend === null || skus === 0) return;
    const from = Math.min(now, Math.max(this.#creditFrom, now - spend.mostMs));
    this.#creditFrom = from + skus * spend.skuMs;
  }

  /** Learns from an answered call. */
  learn(call: Observed): void {
    const now = call.answeredAt;
    const plan = this.#known(now);
    const evidence = { ...call, budget: this.budget, configuredBudget: this.#configuredBudget };
    if (plan.ceiling.perMinute === null || !meetsCeiling(evidence, plan))
      this.budget = learnLiveBudget(
        this.budget,
        {
          askedLive: call.asked,
          deferredLive: call.deferred,
          deferredOthers: call.snapshotDeferred,
          bestRecent: plan.best,
        },
        { start: this.#configuredBudget, most: this.#mostBudget },
      );
    const after = learnLiveCeiling(plan, evidence, this.#callsPerMinute * evidence.budget);
    if (after !== null) {
      if (this.#ceiling.blockedAt !== null && after.blockedAt === null) this.#creditFrom = now;
      this.#ceiling = after;
    }
    if (call.computed > 0) this.#computedAt = now;
    const partly = call.computed > 0 && call.deferred > 0 && call.snapshotDeferred === 0;
    this.#recent.push({ at: now, computed: call.computed, partly, others: call.snapshotDeferred > 0 });
  }
}
