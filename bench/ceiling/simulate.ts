import { seeded } from '../freshness/random.ts';
import { LiveKnowledge } from './knowledge.ts';
import type { LimitedPartner, Limiter } from './limiters.ts';

/*
 * Hours of live calls against a partner that limits live computations, on a virtual clock: the production code
 * decides how many SKUs a call has, and learns from each answer. There is always something to ask for.
 */

const CALLS_PER_MINUTE = 118;
const LIVE_BUDGET = 5;
const MAX_BUDGET = 100;
const HOUR_MS = 3_600_000;

export interface CeilingResult {
  readonly name: string;
  readonly moves: boolean;
  /** Parts of the allowed computations that were used: in the first hour, and in all. */
  readonly firstHour: number;
  readonly all: number;
  /** Part of the asked live SKUs that was deferred. */
  readonly deferred: number;
}

/** How long answers take, in milliseconds. */
export interface Answers {
  readonly fromMs: number;
  readonly toMs: number;
}

export function simulateCeiling(
  partner: LimitedPartner,
  { hours, answers, seed }: { readonly hours: number; readonly answers: Answers; readonly seed: number },
): CeilingResult {
  const limiter = partner.limiter();
  const calls = new Calls(limiter, answers, seeded(seed));
  const spacingMs = 60_000 / CALLS_PER_MINUTE;
  let firstHour = 0;
  for (let now = 0; now < hours * HOUR_MS; now += spacingMs) {
    calls.settle(now);
    calls.ask(now);
    if (now < HOUR_MS) firstHour = calls.computed;
  }
  const allowed = (to: number) => limiter.allowed(0, to * HOUR_MS, CALLS_PER_MINUTE * LIVE_BUDGET);
  return {
    name: partner.name,
    moves: partner.moves,
    firstHour: firstHour / allowed(1),
    all: calls.computed / allowed(hours),
    deferred: (calls.asked - calls.computed) / calls.asked,
  };
}

interface UnderWay {
  readonly askedAt: number;
  readonly answeredAt: number;
  readonly asked: number;
  readonly computed: number;
}

class Calls {
  asked = 0;
  computed = 0;
  readonly #limiter: Limiter;
  readonly #answers: Answers;
  readonly #random: () => number;
  readonly #known = new LiveKnowledge({
    budget: LIVE_BUDGET,
    mostBudget: MAX_BUDGET,
    callsPerMinute: CALLS_PER_MINUTE,
  });
  /** In the order of their answers. */
  readonly #underWay: UnderWay[] = [];

  constructor(limiter: Limiter, answers: Answers, random: () => number) {
    this.#limiter = limiter;
    this.#answers = answers;
    this.#random = random;
  }

  /** Learns from the answers that are there at `now`. */
  settle(now: number): void {
    const waiting = this.#underWay.findIndex(({ answeredAt }) => answeredAt > now);
    const answered = this.#underWay.splice(0, waiting < 0 ? this.#underWay.length : waiting);
    for (const call of answered)
      this.#known.learn({ ...call, deferred: call.asked - call.computed, snapshotDeferred: 0 });
  }

  /** Sends a call with as many live SKUs as it may have. */
  ask(now: number): void {
    const asked = Math.floor(Math.min(this.#known.budget, this.#known.credit(now).skus));
    if (asked < 1) return;
    this.#known.spend(now, asked);
    const computed = this.#limiter.take(now, Math.min(asked, LIVE_BUDGET));
    this.asked += asked;
    this.computed += computed;
    const { fromMs, toMs } = this.#answers;
    const call = {
      askedAt: now,
      answeredAt: now + fromMs + (toMs - fromMs) * this.#random(),
      asked,
      computed,
    };
    const place = this.#underWay.findLastIndex(({ answeredAt }) => answeredAt <= call.answeredAt);
    this.#underWay.splice(place + 1, 0, call);
  }
}
