import type { Clock } from '../lib/clock.ts';
import { failpoint } from '../lib/failpoint.ts';
import type { RequestOutcome } from '../partner/errors.ts';
import type { Sql } from '../store/connection/db.ts';
import { createCircuitBreaker, type CircuitBreaker } from './circuit-breaker.ts';
import { ledgerIn, type PaceLedger } from './ledger.ts';
import { whilePaused } from './pause.ts';
import type { Acquired, Pacer, SentPermit } from './permit.ts';
import {
  concernsOneOnly,
  decide,
  guardMs,
  initialPace,
  letsThrough,
  type PaceDecision,
  LAPSES_AFTER_MS,
  type PaceLimits,
  type PaceWait,
  refuses,
  settled,
} from './policy.ts';
import { explainRefusal, refusalOf } from './view.ts';

/** How long a process with an open circuit breaker postpones a task that it gives back, for any process to take. */
const BREAKER_WAIT_MS = 1000;
/** After a failed half-open request, a process leaves the next one to others for a random time up to this. */
const GIVES_WAY_MS = 2000;

export interface PacerEvents {
  /** A refusal made the fleet, or only this process, back off until `backoffUntil` (epoch ms). */
  backedOff?(event: {
    outcome: RequestOutcome;
    backoffUntil: number;
    refusals: number;
    occupancy: number;
    /** The suspected cause, as in the status. The text changes with every refusal, this does not. */
    suspected: string;
    explained: string | null;
    /** Only this process backs off; others are let through. */
    isAlone?: true;
  }): void;
  /** A half-open request succeeded: requests are sent again, more slowly. */
  resumed?(event: { ceiling: number }): void;
  /** An `acquire` ended after `ms`: with a permit (null), or postponed. */
  waited?(event: { lane: string; ms: number; putOff: PaceWait | null }): void;
  /** A request was refused since this process last sent; before it sends again, a credential file should be reread. */
  afterRefusal?(): void;
}

interface Tried {
  readonly decision: PaceDecision;
  /** Database time in epoch milliseconds. */
  readonly now: number;
  /** The same moment on the monotonic clock. */
  readonly decidedAt: number;
  /** If the request may go: until this time (monotonic) it keeps the next one waiting, whatever others send. */
  readonly nextFrom: number;
  /** Null if the request may not be sent. */
  readonly sendId: string | null;
}

/** Turns a decision of the fleet into that of this process. */
type Considered = (decision: PaceDecision, now: number) => PaceDecision;

/** Asks the ledger once. A send that it permits is in the ledger's log when this resolves. */
async function tryOnce(
  ledger: PaceLedger,
  clock: Clock,
  limits: PaceLimits,
  lane: string,
  considered: Considered,
): Promise<Tried> {
  const spanMs = limits.windowMs + guardMs(limits);
  const { result, sendId } = await ledger.withPace<Omit<Tried, 'sendId'>>(spanMs, (view) => {
    const { state, sends, others, now, pause } = view;
    const decision =
      whilePaused(pause, now) ??
      considered(decide(limits, state ?? initialPace(limits, now), sends, now, others), now);
    const decidedAt = clock.monotonic();
    if (!decision.go) return { result: { decision, now, decidedAt, nextFrom: -Infinity } };
    const next = decide(limits, decision.state, [...sends, now], now, others);
    // After a half-open request, its answer decides when the next one may go.
    const known = !next.go && (next.because === 'spacing' || next.because === 'window');
    const nextFrom = known ? clock.monotonic() + next.at - now : -Infinity;
    return { state: decision.state, send: lane, result: { decision, now, decidedAt, nextFrom } };
  });
  return { ...result, sendId };
}

/** Creates the fleet's pacer over the ledger in Postgres, by the database's clock, with one queue per process. */
export function createPacer(sql: Sql, ...parts: Parts): Pacer {
  return pacerOver(ledgerIn(sql), ...parts);
}

type Parts = [
  clock: Clock,
  limits: PaceLimits,
  events?: PacerEvents,
  breaker?: CircuitBreaker,
  random?: () => number,
];

/** Creates the same pacer over any ledger. */
export function pacerOver(
  ledger: PaceLedger,
  ...[clock, limits, events = {}, breaker = createCircuitBreaker(clock, limits), random = Math.random]: Parts
): Pacer {
  const paced = new PacedProcess(ledger, clock, limits, events, breaker, random);
  const acquireNext: Pacer['acquire'] = (...asked) => paced.acquireNext(...asked);
  return { acquire: oneByOne(acquireNext, clock, events) };
}

/** One process of the fleet: what it knows of the pace besides the ledger. */
class PacedProcess {
  readonly #ledger: PaceLedger;
  readonly #clock: Clock;
  readonly #limits: PaceLimits;
  readonly #events: PacerEvents;
  readonly #breaker: CircuitBreaker;
  readonly #random: () => number;
  /** The last half-open request of this process was not let through, and no other request has been since. */
  #triedInVain = false;
  /** End of the back-off in which this process has given way to others. */
  #gaveWayAt: number | null = null;
  /** When the ceiling was last set, as far as this process knows. Each end of a back-off sets it. */
  #knownRaise = 0;
  /** Until this time (monotonic) this process's last send keeps the next one waiting: no need to ask the ledger. */
  #nextFrom = -Infinity;
  /** When this process has sent, by the database's clock: its entries in the log, for the length of a window. */
  #sends: readonly number[] = [];
  /** When a request of this process was last refused, on the monotonic clock. */
  #refusedAt = -Infinity;

  constructor(
    ledger: PaceLedger,
    clock: Clock,
    limits: PaceLimits,
    events: PacerEvents,
    breaker: CircuitBreaker,
    random: () => number,
  ) {
    this.#ledger = ledger;
    this.#clock = clock;
    this.#limits = limits;
    this.#events = events;
    this.#breaker = breaker;
    this.#random = random;
  }

  /** Waits for a permit like `Pacer.acquire`; calls must not overlap. */
  async acquireNext(lane: string, maxWaitMs: number, signal?: AbortSignal): Promise<Acquired> {
    const clock = this.#clock;
    const end = clock.monotonic() + maxWaitMs;
    let hasLapsed = false;
    for (let waited = false; ; waited = true) {
      if (signal?.aborted) return { kind: 'wait', forMs: 0, because: 'stopping' };
      if (this.#breaker.openMs() > 0) {
        this.#events.afterRefusal?.();
        // Reading the credential again may have closed it. The wait is short, whatever is left, because another
        // process may run a shared task that this one cannot.
        if (this.#breaker.openMs() > 0) return { kind: 'wait', forMs: BREAKER_WAIT_MS, because: 'silence' };
      }
      const ended = await this.#attempt(lane, end - clock.monotonic());
      if ('settle' in ended) {
        // Only once: if Postgres is that slow, the next permit would lapse too.
        if (hasLapsed || !ended.lapsed()) return { kind: 'granted', permit: ended, waited };
        hasLapsed = true;
        await ended.cancel();
        continue;
      }
      // No worker is kept waiting for a pause, which may last for hours or end at any moment.
      if (ended.because === 'paused' || clock.monotonic() + ended.forMs > end)
        return { kind: 'wait', ...ended };
      await clock.sleep(ended.forMs, signal);
    }
  }

  /** Returns a permit, or how long to wait before asking again, and for what. */
  async #attempt(
    lane: string,
    patienceMs: number,
  ): Promise<SentPermit | { forMs: number; because: PaceWait }> {
    const forMs = this.#nextFrom - this.#clock.monotonic();
    if (forMs > 0 && forMs <= patienceMs) return { forMs, because: 'spacing' };
    const tried = await tryOnce(this.#ledger, this.#clock, this.#limits, lane, this.#considered);
    const { decision, now } = tried;
    if (!decision.go) return { forMs: Math.max(1, decision.at - now), because: decision.because };
    failpoint('pace.logged');
    const { backoffUntil, raisedAt } = decision.state;
    if (backoffUntil !== null || raisedAt !== this.#knownRaise) this.#events.afterRefusal?.();
    this.#knownRaise = raisedAt;
    this.#nextFrom = tried.nextFrom;
    return this.#permitOf(tried);
  }

  /** Notes a send before it is in the log, because the answer to another request may read the log right then. */
  readonly #considered: Considered = (decision, now) => {
    const considered = this.#givingWay(decision, now);
    if (considered.go) this.#sends = [...this.#sendsAt(now), now];
    return considered;
  };

  #sendsAt(now: number): readonly number[] {
    const spanMs = this.#limits.windowMs + guardMs(this.#limits);
    return this.#sends.filter((at) => at > now - spanMs);
  }

  /**
   * Once in each back-off, a process that has tried in vain leaves the half-open request to others for a moment.
   * Otherwise the process nearest to Postgres would always be first. If its credential is wrong, or it cannot reach
   * the partner, nobody would ever find out that requests are let through.
   */
  #givingWay(decision: PaceDecision, now: number): PaceDecision {
    const until = decision.go ? decision.state.backoffUntil : null;
    if (until === null || !this.#triedInVain || until === this.#gaveWayAt) return decision;
    this.#gaveWayAt = until;
    return { go: false, at: now + this.#random() * GIVES_WAY_MS, because: 'silence' };
  }

  #permitOf({ decision, now, decidedAt, sendId }: Tried): SentPermit {
    const halfOpen = decision.go && decision.state.halfOpenSentAt === now;
    let began = false;
    return {
      halfOpen,
      refusals: decision.go ? decision.state.refusals : 0,
      beganBackoff: () => began,
      // Most answers say nothing about the pace; only a refusal or the end of a half-open request is worth a
      // transaction.
      settle: async (outcome) => {
        if (letsThrough(outcome)) this.#breaker.cleared();
        if (halfOpen || letsThrough(outcome)) this.#triedInVain = !letsThrough(outcome);
        if (refuses(outcome) || halfOpen) began = await this.#settle({ sentAt: now, decidedAt }, outcome);
      },
      lapsed: () => this.#clock.monotonic() - decidedAt > LAPSES_AFTER_MS,
      cancel: async () => {
        this.#nextFrom = -Infinity;
        if (sendId !== null) await this.#ledger.unsend(sendId);
        this.#sends = this.#sends.filter((at) => at !== now);
        // A cancelled half-open request must not keep the others waiting for its answer.
        this.#triedInVain ||= halfOpen;
        if (halfOpen) await this.#settle({ sentAt: now, decidedAt }, 'aborted');
      },
    };
  }

  /**
   * Stores what the result of a request means for the pace, and reports a back-off that it began or ended. Returns
   * whether one began while there was none.
   */
  async #settle(
    { sentAt, decidedAt }: { readonly sentAt: number } & Pick<Tried, 'decidedAt'>,
    outcome: RequestOutcome,
  ): Promise<boolean> {
    const [limits, breaker] = [this.#limits, this.#breaker];
    const spanMs = limits.windowMs + guardMs(limits);
    const isSuspected = refuses(outcome) && breaker.explain() !== null;
    const { result } = await this.#ledger.withPace(spanMs, ({ state, sends, now }) => {
      const before = state ?? initialPace(limits, now);
      const isAlone = isSuspected && concernsOneOnly(before, { sentAt, own: this.#sendsAt(now) }, sends);
      const request = { sentAt, outcome, sendsInWindow: sends.length };
      const after = isAlone ? before : settled(limits, before, request, now);
      return { state: after, result: { before, after, sends: sends.length, now, isAlone } };
    });
    const { before, after, sends, now, isAlone } = result;
    failpoint('pace.silenced');
    // A request that was already under way at the previous refusal does not prolong the back-off.
    if (isAlone) return decidedAt > this.#refusedAt && this.#backOffAlone(outcome, now, sends);
    if (after === before) return false;
    if (after.refusals > before.refusals) {
      breaker.refused(after.refusals);
      this.#refusedAt = this.#clock.monotonic();
    }
    if (after.backoffUntil === null) this.#events.resumed?.({ ceiling: after.ceiling });
    else if (after.refusals > before.refusals) {
      this.#events.backedOff?.({
        outcome,
        backoffUntil: after.backoffUntil,
        refusals: after.refusals,
        occupancy: sends,
        suspected:
          breaker.explain() === null ? (refusalOf(limits, after)?.suspected ?? 'nothing') : 'own-credential',
        explained: breaker.explain() ?? explainRefusal(limits, after),
      });
    }
    return before.backoffUntil === null && after.backoffUntil !== null;
  }

  /** Makes only this process back off. */
  #backOffAlone(outcome: RequestOutcome, now: number, occupancy: number): false {
    const refusals = this.#breaker.refused(0);
    this.#refusedAt = this.#clock.monotonic();
    this.#events.backedOff?.({
      outcome,
      backoffUntil: now + this.#breaker.openMs(),
      refusals,
      occupancy,
      suspected: 'own-credential',
      explained: this.#breaker.explain(),
      isAlone: true,
    });
    return false;
  }
}

/** Serialises waiting, because otherwise all callers would wake for the same slot. Reports how long each waited. */
function oneByOne(acquireNext: Pacer['acquire'], clock: Clock, events: PacerEvents): Pacer['acquire'] {
  let last: Promise<unknown> = Promise.resolve();
  let asking = 0;
  return async (lane, ...patience) => {
    const askedAt = clock.monotonic();
    const behind = asking > 0;
    asking += 1;
    const mine = last.then(() => acquireNext(lane, ...patience)).finally(() => (asking -= 1));
    last = mine.catch(() => {});
    const acquired = await mine;
    const putOff = acquired.kind === 'wait' ? acquired.because : null;
    const ms = clock.monotonic() - askedAt;
    if (putOff !== 'stopping') events.waited?.({ lane, ms, putOff });
    if (acquired.kind === 'wait') return acquired;
    const permit = { ...acquired.permit, waitedMs: ms };
    return { ...acquired, permit, waited: acquired.waited || behind };
  };
}
