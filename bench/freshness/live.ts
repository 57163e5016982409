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
  LEAST_MINUTES,
  MOST_ROUNDS,
  nextLookMinutes,
  PRIOR,
  type Rate,
  rateFromPast,
  type RateGroup,
  roundMinutes,
  SHORTLIST,
  solvePrice,
} from '../../src/sync/live-policy.ts';
import { planBatch } from '../../src/sync/reprice-plan.ts';
import { CeilingServer } from './ceiling-server.ts';
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
  /**
   * Everything has just turned live: SKUs were looked at within the last `sweptMinutes`, and their rates are known from
   * what such looks showed in three days; no cap on the wait but the metadata's age.
   */
  readonly incident?: { readonly sweptMinutes: number };
}

export interface LiveLooks {
  /** Looks answered a minute, over the second half of the run. */
  readonly looksPerMinute: number;
  readonly calls: number;
  readonly deferred: number;
}

const RESOLVE_EVERY = 10;
/** METADATA_INTERVAL's default, and how much of the past counts (past_moves in SQL). */
const METADATA_MINUTES = 7 * 24 * 60;
const PAST_MINUTES = 3 * 24 * 60;
const NOT_EARLY = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };

export function simulateLive(market: Market, run: LiveRun, accounts: readonly Account[]): LiveLooks {
  const ledger = new Ledger(market, run);
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
    ledger.plan(now / 60_000, Math.min(callsPerMinute * budget, liveRate(ceiling)));
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

/** The live lane of the due ledger, with what is known of each SKU's rate. */
class Ledger {
  readonly #market: Market;
  readonly #index: boolean;
  readonly #heap = new Heap();
  readonly #due: Float64Array;
  readonly #rates: Rate[];
  readonly #names: string[];
  readonly #incident: boolean;
  #price = 1;
  #most = Infinity;
  #early = 0;
  #solvedAt = -Infinity;

  constructor(market: Market, { policy, incident }: Pick<LiveRun, 'policy' | 'incident'>) {
    this.#market = market;
    this.#index = policy === 'index';
    this.#incident = incident !== undefined;
    this.#due = new Float64Array(market.size);
    this.#rates = Array.from({ length: market.size }, (_, i) =>
      incident === undefined ? PRIOR : pastRate(market, i, incident.sweptMinutes),
    );
    this.#names = Array.from({ length: market.size }, (_, i) => String(i));
    // A fill has just ended, in this order; of the rates nothing is known.
    for (let i = 0; i < market.size; i += 1)
      this.#heap.push(this.#incident ? (market.lastLook[i] as number) : i / market.size, i);
  }

  get nextDue(): number {
    return this.#heap.first;
  }

  /** Where there are fewer looks than wanted, no slot stays empty: the next ones due are taken a little early. */
  get earlyMinutes(): number {
    return this.#index ? this.#early : 0;
  }

  owed(minute: number, most: number): number {
    // In round robin everything is always due, as its interval is one round.
    return !this.#index || this.#heap.first <= minute ? most : 0;
  }

  plan(minute: number, looks: number): void {
    if (!this.#index || minute - this.#solvedAt < RESOLVE_EVERY) return;
    const first = this.#solvedAt === -Infinity;
    this.#solvedAt = minute;
    const round = roundMinutes(this.#market.size, looks);
    this.#most = this.#incident ? Math.max(MOST_ROUNDS * round, METADATA_MINUTES) : MOST_ROUNDS * round;
    this.#early = earlyMinutes(round);
    this.#price = solvePrice(groupsOf(this.#rates, this.#market.weights), looks, this.#most);
    if (first && this.#incident) this.#placeAll();
  }

  /** As sync/live-order.ts places everything when an incident begins. */
  #placeAll(): void {
    while (this.#heap.size > 0) this.#heap.pop();
    for (let i = 0; i < this.#market.size; i += 1)
      this.#schedule(i, (this.#market.lastLook[i] as number) + this.#wait(i));
  }

  #wait(item: number): number {
    return nextLookMinutes(
      this.#market.weights[item] as number,
      this.#rates[item] as Rate,
      this.#price,
      this.#most,
    );
  }

  choose(count: number, minute: number): number[] {
    const taken: number[] = [];
    const most = this.#index ? Math.max(SHORTLIST, 3 * count) : count;
    const tooSoon: number[] = [];
    while (taken.length < most && this.#heap.size > 0) {
      const item = this.#heap.pop();
      const soon = this.#index && this.#tau(item, minute) < LEAST_MINUTES;
      (soon ? tooSoon : taken).push(item);
    }
    for (const item of tooSoon) this.#heap.push(this.#due[item] as number, item);
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
    this.#schedule(item, this.#index ? minute + this.#wait(item) : minute);
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

function pastRate(market: Market, item: number, sweptMinutes: number): Rate {
  const looks = Math.floor(PAST_MINUTES / sweptMinutes);
  return rateFromPast(market.pastMoves(item, looks, sweptMinutes), PAST_MINUTES);
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
