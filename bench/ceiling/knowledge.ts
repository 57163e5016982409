import { type LiveCeiling, NO_CEILING } from '../../src/store/live/limits.ts';
import { LAST_CALLS, type LivePlan } from '../../src/store/live/live.ts';
import {
  afterAsks,
  areAlike,
  areRecovering,
  type Asks,
  type LiveAsks,
  NOTHING_REMEMBERED,
  withoutOwn,
} from '../../src/sync/live/again.ts';
import {
  type CeilingEvidence,
  type KnownOfCeiling,
  learnLiveCeiling,
  type LiveCredit,
  liveCeilingAt,
  liveCredit,
  meetsCeiling,
  returnedCreditMs,
  withoutIdleTime,
} from '../../src/sync/live/ceiling.ts';
import { learnLiveBudget } from '../../src/sync/live/learn.ts';

const MINUTE_MS = 60_000;

/** What an answered call showed, without what the mirror itself adds to it. */
export interface Observed extends Omit<CeilingEvidence, 'budget' | 'configuredBudget' | 'alike' | 'proven'> {
  /**
   * Of the SKUs that counted as live those that had been deferred when they were asked before, once or more often;
   * absent: none.
   */
  readonly again?: Pick<LiveAsks, 'second' | 'later'>;
}

const NONE: Asks = { asked: 0, deferred: 0 };

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
  #asks = NOTHING_REMEMBERED;
  #creditFrom = 0;
  #computedAt: number | null = null;
  /** Calls of the last minute, the oldest first. */
  readonly #recent: {
    readonly at: number;
    readonly computed: number;
    readonly deferred: boolean;
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
    const idle = { computedAt: this.#computedAt, now };
    return liveCeilingAt(withoutIdleTime(this.#ceiling, idle, this.#callsPerMinute), now);
  }

  get recovering(): boolean {
    return areRecovering(this.#asks);
  }

  /** Live computations of the last minute. */
  computed(now: number): number {
    return this.#recent.reduce((sum, call) => sum + (call.at > now - MINUTE_MS ? call.computed : 0), 0);
  }

  /** What a call is planned with. */
  plan(now: number): KnownOfCeiling & Pick<LivePlan, 'creditFrom' | 'now'> {
    return { ...this.#known(now), creditFrom: this.#creditFrom, now };
  }

  #known(now: number): KnownOfCeiling {
    while ((this.#recent[0]?.at ?? Infinity) <= now - MINUTE_MS) this.#recent.shift();
    return {
      ceiling: this.#ceiling,
      computedAt: this.#computedAt,
      best: this.#recent.reduce((most, { computed }) => Math.max(most, computed), 0),
      partlyDeferred: this.#recent.filter(({ computed, deferred }) => computed > 0 && deferred).length,
      lastDeferred: this.#recent.slice(-LAST_CALLS).filter(({ deferred }) => deferred).length,
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
  learn(observed: Observed): void {
    const now = observed.answeredAt;
    const plan = this.#known(now);
    const call = this.#counted(observed);
    const { second, later } = observed.again ?? { second: NONE, later: NONE };
    const returned = returnedCreditMs(this.credit(now).spend, second.deferred + later.deferred);
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
    const after = learnLiveCeiling(plan, evidence, this.#callsPerMinute);
    if (after !== null) {
      if (this.#ceiling.blockedAt !== null && after.blockedAt === null) this.#creditFrom = now;
      this.#ceiling = after;
    } else if (this.#ceiling.blockedAt === null) this.#creditFrom -= returned;
    if (call.computed > 0) this.#computedAt = now;
    if (call.computed + call.deferred + call.snapshotDeferred === 0) return;
    const others = call.snapshotDeferred > 0;
    this.#recent.push({ at: now, computed: call.computed, deferred: call.deferred > 0 && !others, others });
  }

  /** Without the deferrals of which nothing is learned. */
  #counted({ again = { second: NONE, later: NONE }, ...call }: Observed) {
    const { asked, computed, deferred, answeredAt: at } = call;
    const deferredAgain = again.second.deferred + again.later.deferred;
    const first = {
      asked: asked - again.second.asked - again.later.asked,
      deferred: deferred - deferredAgain,
    };
    // A trial of a larger budget says nothing of the SKUs.
    const isTrial = asked - deferredAgain > this.#configuredBudget;
    const after = isTrial ? null : afterAsks(this.#asks, { at, first, ...again });
    if (after !== null) this.#asks = after.remembered;
    const own = { again: deferredAgain, expected: after?.expected ?? false };
    const live = withoutOwn({ asked, answered: computed, deferred }, own);
    return {
      ...call,
      asked: live.asked,
      deferred: live.deferred,
      alike: live.deferred > 0 && areAlike(this.#asks, at),
      proven: after?.proven ?? null,
    };
  }
}
