import {
  FIRST_RATE_PRIOR,
  learnPrior,
  type Memories,
  priorLeverage,
  type RatePrior,
  unmovedProbability,
  withPrior,
  type Rate,
} from '../../src/store/live/rate-prior.ts';
import {
  isBacklog,
  listedSkus,
  isBacklogNear,
  overdueMinutes,
  idleAfter,
} from '../../src/sync/live/choose.ts';
import { learnMemories, memoriesOf, rateOfMemories } from '../../src/sync/live/learn-refresh.ts';
import {
  chooseLive,
  earlyMinutes,
  MIN_MINUTES,
  MAX_ROUNDS,
  nextRefreshMinutes,
  PRIOR,
  roundMinutes,
  SHORTLIST,
  solveThreshold,
} from '../../src/sync/live/policy.ts';
import { Heap } from './heap.ts';
import { Hints } from './hints.ts';
import { groupsOf, pastRate } from './known-rates.ts';
import { type LedgerOfLines, Lines } from './lines.ts';
import type { LiveRun } from './live-run.ts';
import type { LiveMarket } from './market.ts';
import { World } from './worlds.ts';

const RESOLVE_EVERY = 10;
const RESOLVE_BEHIND_EVERY = 1;
/** In the first two hours it is learned each minute what is believed of all SKUs (plan-live.ts). */
const YOUNG_MINUTES = 120;
const LEARN_YOUNG_EVERY = 1;
/** METADATA_INTERVAL's default. */
const METADATA_MINUTES = 7 * 24 * 60;

/** The live lane of the due ledger, with what is known of each SKU's rate. */
export class Ledger {
  /** What is known of lines that move together; absent where nobody goes by it. */
  readonly lines: Lines | undefined;
  /** What hints say, and what is known of their sources; absent where there are none. */
  readonly hints: Hints | undefined;
  readonly #market: LiveMarket;
  readonly #catchesUp: boolean;
  readonly #index: boolean;
  readonly #heap = new Heap();
  readonly #due: Float64Array;
  readonly #rates: Rate[];
  /** What they are made of; undefined: nothing is learned yet. */
  readonly #memories: (Memories | undefined)[] = [];
  readonly #names: string[];
  readonly #incident: boolean;
  #threshold = 1;
  #most = Infinity;
  #early = 0;
  #solvedAt = -Infinity;
  #solveAt = -Infinity;
  #listed: number[] = [];
  #listedAt = 0;
  #idle = 0;
  #lookedAt = 0;
  #gap = 0;
  /** After a wait of so many minutes a SKU comes first. */
  #overdue = Infinity;
  #prior: RatePrior = FIRST_RATE_PRIOR;
  #lesson = { surprise: 0, leverage: 0, noise: 0 };
  #learnedAt = 0;

  constructor(
    market: LiveMarket,
    {
      policy,
      incident,
      catchesUp = true,
      releases = false,
      hints,
    }: Pick<LiveRun, 'policy' | 'incident' | 'catchesUp' | 'releases' | 'hints'>,
  ) {
    this.#market = market;
    this.lines = releases && market instanceof World ? new Lines(market, this.#forLines()) : undefined;
    this.hints = hints === undefined ? undefined : new Hints(market, hints, this.#forLines());
    this.#index = policy === 'index';
    this.#catchesUp = this.#index && catchesUp;
    this.#incident = incident !== undefined;
    this.#due = new Float64Array(market.size);
    this.#rates = Array.from({ length: market.size }, (_, i) =>
      incident === undefined ? PRIOR : pastRate(incident.market, i, incident.sweptMinutes),
    );
    this.#names = Array.from({ length: market.size }, (_, i) => String(i));
    // A fill has just ended, in this order; of the rates nothing is known.
    for (let i = 0; i < market.size; i += 1)
      this.#schedule(i, this.#incident ? (market.lastRefresh[i] as number) : i / market.size);
  }

  #forLines(): LedgerOfLines {
    const [threshold, most] = [() => this.#threshold, () => this.#most];
    return {
      get refreshThreshold() {
        return threshold();
      },
      get maxIntervalMinutes() {
        return most();
      },
      rate: (item) => this.#rates[item] as Rate,
      dueAt: (item) => this.#due[item] as number,
      wait: (item) => this.#wait(item),
      // Never a due time that it has had already: that one is still in the heap.
      schedule: (item, due) => {
        if (due !== this.#due[item]) this.#schedule(item, due + 1e-6);
      },
    };
  }

  /** Takes the hints that have come until now. */
  hint(minute: number): void {
    this.hints?.take(minute);
  }

  /** As prices are judged by it. */
  rate(item: number): Rate {
    return withPrior(this.#rates[item] as Rate, this.#prior);
  }

  get nextDue(): number {
    this.#skim();
    return this.#heap.first;
  }

  /** What was taken out of turn, and has a new due time, is still in the heap by its former one. */
  #skim(): void {
    for (
      let item = this.#heap.top;
      item !== undefined && this.#heap.first !== this.#due[item];
      item = this.#heap.top
    )
      this.#heap.pop();
  }

  /** Where there are fewer refreshes than wanted, no slot stays empty: the next ones due are taken a little early. */
  get earlyMinutes(): number {
    return this.#index ? this.#early : 0;
  }

  owed(minute: number, most: number): number {
    // In round robin everything is always due, as its interval is one round.
    return !this.#index || this.nextDue <= minute ? most : 0;
  }

  plan(minute: number, refreshes: number): void {
    this.#learnPrior(minute);
    if (!this.#index || minute < this.#solveAt) return;
    const elapsed = this.#solvedAt === -Infinity ? 0 : minute - this.#solvedAt;
    const first = this.#solvedAt === -Infinity;
    this.#solvedAt = minute;
    const round = roundMinutes(this.#market.size, refreshes);
    this.#most = this.#incident ? Math.max(MAX_ROUNDS * round, METADATA_MINUTES) : MAX_ROUNDS * round;
    this.#early = earlyMinutes(round);
    const setAside = (this.lines?.setAside(minute) ?? 0) + (this.hints?.setAside(minute) ?? 0);
    const groups = groupsOf(this.#rates, this.#market.weights);
    this.#threshold = solveThreshold(groups, refreshes, this.#most, setAside);
    if (first && this.#incident) this.#scheduleAll();
    this.#solveAt = minute + this.#catchUp(minute, elapsed, refreshes);
  }

  /** As sync/live/plan-live.ts does after each solution. Returns in how many minutes the next one is wanted. */
  #catchUp(minute: number, elapsed: number, refreshesPerMinute: number): number {
    this.#listed = [];
    this.#overdue = this.#most;
    if (!this.#catchesUp) return RESOLVE_EVERY;
    const due = this.#dueItems(minute);
    const behind = { due: due.length, refreshesPerMinute };
    const backlog = isBacklog(behind);
    const waiting = due.reduce((most, item) => Math.max(most, minute - (this.#due[item] as number)), 0);
    this.#idle = idleAfter(this.#idle, { gaps: [Math.min(this.#gap, waiting)], elapsed, backlog });
    this.#gap = 0;
    const present = idleAfter(this.#idle, {
      gaps: [Math.min(minute - this.#lookedAt, waiting)],
      elapsed: 0,
      backlog,
    });
    this.#overdue = overdueMinutes(this.#most, present);
    this.#listedAt = minute;
    if (backlog)
      this.#listed = chooseLive(
        due.map((item) => this.#candidate(item, minute)),
        listedSkus(behind),
        this.#overdue,
      )
        .map(({ sku }) => Number(sku))
        .toReversed();
    return isBacklogNear(behind) ? RESOLVE_BEHIND_EVERY : RESOLVE_EVERY;
  }

  #dueItems(minute: number): number[] {
    const items: number[] = [];
    for (let item = 0; item < this.#market.size; item += 1)
      if ((this.#due[item] as number) <= minute) items.push(item);
    return items;
  }

  #candidate(item: number, minute: number) {
    return {
      sku: this.#names[item] as string,
      weight: this.#market.weights[item] as number,
      rate: this.#rates[item] as Rate,
      tau: this.#tau(item, minute),
      hazard: (this.lines?.hazards[item] ?? 0) + (this.hints?.hazards[item] ?? 0),
    };
  }

  /** As sync/live/plan-live.ts places everything when an incident begins. */
  #scheduleAll(): void {
    while (this.#heap.size > 0) this.#heap.pop();
    for (let i = 0; i < this.#market.size; i += 1)
      this.#schedule(i, (this.#market.lastRefresh[i] as number) + this.#wait(i));
  }

  #wait(item: number): number {
    return nextRefreshMinutes(
      { weight: this.#market.weights[item] as number, rate: this.#rates[item] as Rate },
      { refreshThreshold: this.#threshold, maxIntervalMinutes: this.#most },
    );
  }

  choose(count: number, minute: number): number[] {
    const taken: number[] = [];
    const most = this.#index ? Math.max(SHORTLIST, 3 * count) : count;
    const tooSoon: number[] = [];
    while (taken.length < most && this.#listed.length > 0) {
      const item = this.#listed.pop() as number;
      if ((this.#market.lastRefresh[item] as number) < this.#listedAt) taken.push(item);
    }
    const listed = new Set(taken);
    for (this.#skim(); taken.length < most && this.#heap.size > 0; this.#skim()) {
      const item = this.#heap.pop();
      const soon = this.#index && this.#tau(item, minute) < MIN_MINUTES;
      (soon || listed.has(item) ? tooSoon : taken).push(item);
    }
    for (const item of tooSoon) this.#heap.push(this.#due[item] as number, item);
    if (!this.#index) return taken;
    const chosen = new Set(
      chooseLive(
        taken.map((item) => this.#candidate(item, minute)),
        count,
        this.#overdue,
      ).map(({ sku }) => Number(sku)),
    );
    for (const item of taken.toReversed()) if (!chosen.has(item)) this.#putBack(item, listed.has(item));
    return [...chosen];
  }

  #putBack(item: number, wasListed: boolean): void {
    if (wasListed) this.#listed.push(item);
    else this.#heap.push(this.#due[item] as number, item);
  }

  /** A SKU that has taken the place of another one was refreshed just now, and nothing is known of it. */
  replace(item: number, minute: number): void {
    this.#rates[item] = PRIOR;
    this.#memories[item] = undefined;
    this.lines?.forget(item);
    this.hints?.forget(item);
    this.#schedule(item, minute + this.#wait(item));
  }

  settle(item: number, minute: number, changed: boolean): void {
    this.#gap = Math.max(this.#gap, minute - this.#lookedAt);
    this.#lookedAt = minute;
    const before = this.#tauBefore[item];
    if (before !== undefined && before < Infinity) this.#notePrior(item, before, changed);
    const line = before === undefined ? undefined : this.lines?.settle(item, minute, before);
    const own = before === undefined ? 1 : unmovedProbability(this.rate(item), before);
    const isHinted = this.hints?.settle(item, own, changed) ?? false;
    if (before !== undefined && before < Infinity && line?.explained !== true) {
      const rate = this.#rates[item] as Rate;
      const memories = learnMemories(
        this.#memories[item] ?? memoriesOf(rate),
        before,
        { moved: changed, hinted: isHinted },
        this.#prior,
      );
      this.#memories[item] = memories;
      this.#rates[item] = rateOfMemories(memories, this.#prior);
    }
    const dueIn = Math.min(this.#wait(item), line?.again ?? Infinity);
    const wait = this.hints?.againIn(item, dueIn) ?? dueIn;
    this.#schedule(item, this.#index ? minute + wait : minute);
  }

  /** As store/trust/calibration.ts and store/trust/beliefs.ts do. */
  #notePrior(item: number, tau: number, changed: boolean): void {
    const hazard = (this.lines?.hazards[item] ?? 0) + (this.hints?.hazards[item] ?? 0);
    const probability = unmovedProbability(this.rate(item), tau) * Math.exp(-hazard);
    this.#lesson.surprise += Number(!changed) - probability;
    this.#lesson.leverage += priorLeverage(this.#rates[item] as Rate, tau, this.#prior);
    this.#lesson.noise += probability * (1 - probability);
  }

  #learnPrior(minute: number): void {
    if (minute - this.#learnedAt < (minute < YOUNG_MINUTES ? LEARN_YOUNG_EVERY : RESOLVE_EVERY)) return;
    this.#learnedAt = minute;
    this.#prior = learnPrior(this.#prior, this.#lesson);
    this.#lesson = { surprise: 0, leverage: 0, noise: 0 };
  }

  defer(item: number, minute: number): void {
    // DEFERRED_INTERVAL's default.
    this.#schedule(item, minute + 5);
  }

  readonly #tauBefore: (number | undefined)[] = [];

  #tau(item: number, minute: number): number {
    const last = this.#market.lastRefresh[item] as number;
    const tau = minute - last;
    this.#tauBefore[item] = tau;
    return tau;
  }

  #schedule(item: number, due: number): void {
    this.#due[item] = due;
    this.#heap.push(due, item);
  }
}
