import { exponential } from './random.ts';

/**
 * How the seller's other services use the account. With 'on and off' they are quiet, and the mirror's own work comes
 * and goes.
 */
export type Neighbours = 'quiet' | 'on and off' | 'bursty';

const ACCOUNT_LIMIT = 200;
const WINDOW_MS = 60_000;

/**
 * The partner's limit of 200 requests in any rolling 60 seconds, refused ones included (partner rule 8.rate), with
 * the requests of the account's other users in it.
 */
export class SharedAccount {
  /** Most own requests in any 60 s. */
  mostOwn = 0;
  readonly #others: readonly number[];
  readonly #random: () => number;
  #next = 0;
  readonly #all: number[] = [];
  readonly #own: number[] = [];

  constructor(neighbours: Neighbours, endMs: number, random: () => number) {
    this.#others = otherTraffic(neighbours, endMs, random);
    this.#random = random;
  }

  /**
   * How long an own request is on the way to the partner: always shorter than the spacing, so none overtakes another.
   */
  wayMs(): number {
    return 50 + 350 * this.#random();
  }

  /**
   * An own request reaches the partner, after those of the others that came before; false: it is refused. Times only
   * grow.
   */
  arrive(at: number): boolean {
    for (; (this.#others[this.#next] ?? Infinity) < at; this.#next += 1)
      count(this.#all, this.#others[this.#next] ?? 0);
    this.mostOwn = Math.max(this.mostOwn, count(this.#own, at));
    return count(this.#all, at) <= ACCOUNT_LIMIT;
  }
}

/** Counts a request into a rolling window; returns how many it holds, this one included. */
function count(window: number[], at: number): number {
  while ((window[0] ?? Infinity) <= at - WINDOW_MS) window.shift();
  return window.push(at);
}

/** Times at which the seller's other services send. Quiet ones stay within the 80 a minute that are theirs. */
function otherTraffic(kind: Neighbours, end: number, random: () => number): number[] {
  const times: number[] = [];
  for (let at = 0; at < end;) {
    // Two minutes at 130 a minute, some thirty times a day.
    const burst = kind === 'bursty' && Math.floor(at / 120_000) % 24 === 7;
    at += burst
      ? exponential(random, 130 / WINDOW_MS)
      : Math.max(WINDOW_MS / 80, exponential(random, 60 / WINDOW_MS));
    times.push(at);
  }
  return times;
}
