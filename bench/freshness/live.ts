import {
  decide,
  initialPace,
  type PaceLimits,
  type PaceState,
  sendsPerWindow,
} from '../../src/partner/pacer.ts';
import { learnLiveBudget } from '../../src/sync/live-budget.ts';
import {
  learnLiveCeiling,
  liveAllowance,
  type LiveCeiling,
  NO_CEILING,
} from '../../src/sync/live-ceiling.ts';
import {
  chooseLive,
  earlyMinutes,
  learnRate,
  MOST_ROUNDS,
  nextLookMinutes,
  PRIOR,
  type Rate,
  type RateGroup,
  roundMinutes,
  SHORTLIST,
  solvePrice,
} from '../../src/sync/live-policy.ts';
import { planBatch } from '../../src/sync/reprice-plan.ts';
import { Heap } from './heap.ts';
import type { Account, Market } from './market.ts';

/*
 * Days of live re-pricing in seconds: the production pacer, planner, policy and learning, in the order that
 * sync/reprice.ts calls them, on a virtual clock. Only the ledger is in memory instead of in Postgres.
 */

export interface LiveRun {
  readonly policy: 'index' | 'round-robin';
  readonly minutes: number;
  readonly limits: PaceLimits;
  /** The partner's live computations a call, and in a rolling minute (null: no ceiling). */
  readonly liveBudget: number;
  readonly liveCeiling: number | null;
  readonly redrawEveryMinutes?: number;
}

export interface LiveLooks {
  /** Looks answered a minute, over the second half of the run. */
  readonly looksPerMinute: number;
  readonly calls: number;
  readonly deferred: number;
}

const RESOLVE_EVERY = 10;
const NOT_EARLY = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };

export function simulateLive(market: Market, run: LiveRun, accounts: readonly Account[]): LiveLooks {
  const ledger = new Ledger(market, run.policy);
  const server = new CeilingServer(run.liveBudget, run.liveCeiling);
  let pace: PaceState = { ...initialPace(run.limits, 0), ceiling: sendsPerWindow(run.limits) };
  let sends: number[] = [];
  let budget = run.liveBudget;
  let ceiling: LiveCeiling = NO_CEILING;
  let now = 0;
  let [turn, calls, deferred, half] = [0, 0, 0, 0];
  let redrawAt = (run.redrawEveryMinutes ?? Infinity) * 60_000;
  const end = run.minutes * 60_000;
  const callsPerMinute = (sendsPerWindow(run.limits) * 60_000) / run.limits.windowMs;

  while (now < end) {
    if (now >= redrawAt) {
      market.redraw(now / 60_000);
      redrawAt += (run.redrawEveryMinutes ?? Infinity) * 60_000;
    }
    const owed = ledger.owed(now / 60_000 + ledger.earlyMinutes, 100);
    const allowed = liveAllowance(ceiling, now, server.recent(now), callsPerMinute);
    const quota =
      allowed < 1 || owed === 0
        ? undefined
        : planBatch([{ lane: 'live', live: true, count: owed, oldestSeconds: 0 }], NOT_EARLY, {
            maxSkus: 100,
            liveBudget: Math.min(budget, allowed),
            turn,
            spareSeconds: 0,
          })?.find((q) => q.live);
    if (quota === undefined) {
      now = owed > 0 ? now + 250 : Math.max(now + 100, ledger.nextDue * 60_000);
      continue;
    }
    sends = sends.filter((at) => at > now - run.limits.windowMs - 1000);
    const decision = decide(run.limits, pace, sends, now);
    if (!decision.go) {
      // Whole milliseconds, as the database's clock gives them.
      now = Math.max(now + 1, Math.ceil(decision.at));
      continue;
    }
    pace = decision.state;
    sends.push(now);
    calls += 1;
    turn += 1;
    const minute = now / 60_000;
    ledger.plan(minute, Math.min(callsPerMinute * budget, liveRate(ceiling)));
    const chosen = ledger.choose(quota.count, minute);
    const computed = server.compute(chosen.length, now);
    for (const [at, item] of chosen.entries()) {
      if (at < computed) ledger.settle(item, minute, market.look(item, minute, accounts));
      else ledger.defer(item, minute);
    }
    const deferredLive = chosen.length - computed;
    deferred += deferredLive;
    if (now > end / 2) half += computed;
    const seen = { askedLive: chosen.length, deferredLive, deferredOthers: 0 };
    const withinBudget = chosen.length <= Math.floor(budget);
    ceiling = learnLiveCeiling(
      ceiling,
      {
        deferredAll: withinBudget && deferredLive > 0 && computed === 0,
        computed: server.recent(now),
        capacity: callsPerMinute * budget,
      },
      now,
    );
    if (run.liveCeiling === null)
      budget = learnLiveBudget(budget, seen, { start: run.liveBudget, most: run.liveBudget });
  }
  market.close(run.minutes, accounts);
  return { looksPerMinute: half / (run.minutes / 2), calls, deferred };
}

function liveRate({ perMinute }: LiveCeiling): number {
  return perMinute ?? Infinity;
}

/** The partner's side: a budget a call and a ceiling in any rolling minute. */
class CeilingServer {
  readonly #budget: number;
  readonly #ceiling: number;
  #log: { at: number; computed: number }[] = [];

  constructor(budget: number, ceiling: number | null) {
    this.#budget = budget;
    this.#ceiling = ceiling ?? Infinity;
  }

  recent(now: number): number {
    this.#log = this.#log.filter(({ at }) => at > now - 60_000);
    return this.#log.reduce((sum, { computed }) => sum + computed, 0);
  }

  compute(asked: number, now: number): number {
    const computed = Math.max(0, Math.min(asked, this.#budget, this.#ceiling - this.recent(now)));
    this.#log.push({ at: now, computed });
    return computed;
  }
}

/** The live lane of the due ledger, with what is known of each SKU's rate. */
class Ledger {
  readonly #market: Market;
  readonly #index: boolean;
  readonly #heap = new Heap();
  readonly #due: Float64Array;
  readonly #rates: Rate[];
  readonly #names: string[];
  #price = 1;
  #most = Infinity;
  #solvedAt = -Infinity;

  constructor(market: Market, policy: LiveRun['policy']) {
    this.#market = market;
    this.#index = policy === 'index';
    this.#due = new Float64Array(market.size);
    this.#rates = Array.from({ length: market.size }, () => PRIOR);
    this.#names = Array.from({ length: market.size }, (_, i) => String(i));
    // A fill has just ended, in this order; of the rates nothing is known.
    for (let i = 0; i < market.size; i += 1) this.#heap.push(i / market.size, i);
  }

  get nextDue(): number {
    return this.#heap.first;
  }

  /** Where there are fewer looks than wanted, no slot stays empty: the next ones due are taken a little early. */
  get earlyMinutes(): number {
    return this.#index ? earlyMinutes(this.#most) : 0;
  }

  owed(minute: number, most: number): number {
    // In round robin everything is always due, as its interval is one round.
    return !this.#index || this.#heap.first <= minute ? most : 0;
  }

  plan(minute: number, looks: number): void {
    if (!this.#index || minute - this.#solvedAt < RESOLVE_EVERY) return;
    this.#solvedAt = minute;
    this.#most = MOST_ROUNDS * roundMinutes(this.#market.size, looks);
    this.#price = solvePrice(groupsOf(this.#rates, this.#market.weights), looks);
  }

  choose(count: number, minute: number): number[] {
    const taken: number[] = [];
    const most = this.#index ? Math.max(SHORTLIST, 3 * count) : count;
    while (taken.length < most && this.#heap.size > 0) taken.push(this.#heap.pop());
    if (!this.#index) return taken;
    const chosen = new Set(
      chooseLive(
        taken.map((item) => ({
          sku: this.#names[item] as string,
          weight: this.#market.weights[item] as number,
          rate: this.#rates[item] as Rate,
          tau: this.#tau(item, minute),
        })),
        count,
        this.#most,
      ).map(({ sku }) => Number(sku)),
    );
    for (const item of taken) if (!chosen.has(item)) this.#heap.push(this.#due[item] as number, item);
    return [...chosen];
  }

  settle(item: number, minute: number, changed: boolean): void {
    const before = this.#tauBefore[item];
    if (before !== undefined && before < Infinity)
      this.#rates[item] = learnRate(this.#rates[item] as Rate, before, changed);
    const wait = nextLookMinutes(
      this.#market.weights[item] as number,
      this.#rates[item] as Rate,
      this.#price,
      this.#most,
    );
    this.#schedule(item, this.#index ? minute + wait : minute);
  }

  defer(item: number, minute: number): void {
    // DEFERRED_INTERVAL's default.
    this.#schedule(item, minute + 5);
  }

  readonly #tauBefore: (number | undefined)[] = [];

  #tau(item: number, minute: number): number {
    const last = this.#market.lastLook[item] as number;
    const tau = minute - last;
    this.#tauBefore[item] = tau;
    return tau;
  }

  #schedule(item: number, due: number): void {
    this.#due[item] = due;
    this.#heap.push(due, item);
  }
}

/** SKUs by rate and weight in half powers of two, as store/live.ts groups them in SQL. */
function groupsOf(rates: readonly Rate[], weights: Float64Array): RateGroup[] {
  const groups = new Map<number, { count: number; lambda: number; weight: number }>();
  for (let i = 0; i < rates.length; i += 1) {
    const { alpha, beta } = rates[i] as Rate;
    const lambda = alpha / beta;
    const weight = weights[i] as number;
    const key = Math.round(Math.log2(lambda) * 2) * 1000 + Math.round(Math.log2(weight) * 2);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { count: 1, lambda, weight });
    else {
      group.count += 1;
      group.lambda += lambda;
      group.weight += weight;
    }
  }
  return [...groups.values()].map(({ count, lambda, weight }) => ({
    count,
    lambda: lambda / count,
    weight: weight / count,
  }));
}
