import {
  decide,
  guardMs,
  initialPace,
  type PaceLimits,
  type PaceState,
  settled,
} from '../../src/pace/policy.ts';
import type { RequestOutcome } from '../../src/partner/errors.ts';

/** How a request ends. `lost`: its process dies before the answer. */
export type End = RequestOutcome | 'lost';

/** An account on a clock of its own, which sends through the pacer and remembers what it sent. */
export class Account {
  readonly limits: PaceLimits;
  readonly sends: number[] = [];
  state: PaceState;
  now = 1_700_000_000_000;
  /** How many sends have left the window. Time only grows. */
  #left = 0;
  readonly #underway: { at: number; sentAt: number; outcome: RequestOutcome }[] = [];

  constructor(limits: PaceLimits) {
    this.limits = limits;
    this.state = initialPace(limits, this.now);
  }

  get span(): number {
    return this.limits.windowMs + guardMs(this.limits);
  }

  recent(): number[] {
    while ((this.sends[this.#left] ?? Infinity) <= this.now - this.span) this.#left += 1;
    return this.sends.slice(this.#left);
  }

  ask() {
    return decide(this.limits, this.state, this.recent(), this.now);
  }

  /** Sends if the pacer allows it. The answer comes `latencyMs` later. */
  send(outcome: End, latencyMs: number): boolean {
    const decision = this.ask();
    if (!decision.go) return false;
    this.state = decision.state;
    this.sends.push(this.now);
    if (outcome !== 'lost') this.#underway.push({ at: this.now + latencyMs, sentAt: this.now, outcome });
    return true;
  }

  /** Lets time pass, and settles the answers that arrive meanwhile. */
  pass(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const next = this.#underway.toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined || next.at > end) break;
      this.#underway.splice(this.#underway.indexOf(next), 1);
      this.now = next.at;
      this.settle(next.sentAt, next.outcome);
    }
    this.now = end;
  }

  settle(sentAt: number, outcome: RequestOutcome): void {
    const sendsInWindow = this.recent().length;
    this.state = settled(this.limits, this.state, { sentAt, outcome, sendsInWindow }, this.now);
  }

  /** Waits until the pacer allows a request, however often it delays it, and sends. Returns how long that took. */
  sendNext(outcome: End, latencyMs = 0): number {
    const from = this.now;
    for (let patience = 0; patience < 5000; patience += 1) {
      if (this.send(outcome, latencyMs)) return this.now - from;
      const decision = this.ask();
      if (!decision.go) this.pass(decision.at - this.now);
    }
    throw new Error(`no place after ${this.now - from} ms: ${JSON.stringify(this.state)}`);
  }

  mostInAnySpan(): number {
    let first = 0;
    return this.sends.reduce((most, at, i) => {
      while ((this.sends[first] ?? at) <= at - this.span) first += 1;
      return Math.max(most, i - first + 1);
    }, 0);
  }
}
