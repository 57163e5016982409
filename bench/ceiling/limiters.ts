/*
 * Partners that limit live computations in time, each in another way. Only that there is such a ceiling is documented
 * (partner rules 4.1.3, 8.open). Times in milliseconds.
 */

export interface Limiter {
  /** How many of `wanted` computations are made at `now`, which never goes back. */
  take(now: number, wanted: number): number;
  /**
   * Computations that could have been made between two times by somebody who knows the limiter and asks `perMinute`
   * at most.
   */
  allowed(from: number, to: number, perMinute: number): number;
}

/** At most `most` in any window that ends now. */
export class RollingWindow implements Limiter {
  readonly #most: number;
  readonly #windowMs: number;
  #taken: { at: number; count: number }[] = [];
  #count = 0;

  constructor(most: number, windowMs: number) {
    this.#most = most;
    this.#windowMs = windowMs;
  }

  take(now: number, wanted: number): number {
    const gone = this.#taken.findIndex(({ at }) => at > now - this.#windowMs);
    for (const { count } of this.#taken.splice(0, gone < 0 ? this.#taken.length : gone)) this.#count -= count;
    const count = Math.min(wanted, this.#most - this.#count);
    if (count > 0) this.#taken.push({ at: now, count });
    this.#count += count;
    return count;
  }

  allowed(from: number, to: number, perMinute: number): number {
    return allowedInWindows(this.#most, this.#windowMs, from, to, perMinute);
  }
}

/** At most `most` from one full multiple of the window to the next. */
export class FixedWindow implements Limiter {
  readonly #most: number;
  readonly #windowMs: number;
  #window = -1;
  #count = 0;

  constructor(most: number, windowMs: number) {
    this.#most = most;
    this.#windowMs = windowMs;
  }

  take(now: number, wanted: number): number {
    const window = Math.floor(now / this.#windowMs);
    if (window !== this.#window) this.#count = 0;
    this.#window = window;
    const count = Math.min(wanted, this.#most - this.#count);
    this.#count += count;
    return count;
  }

  allowed(from: number, to: number, perMinute: number): number {
    return allowedInWindows(this.#most, this.#windowMs, from, to, perMinute);
  }
}

function allowedInWindows(
  most: number,
  windowMs: number,
  from: number,
  to: number,
  perMinute: number,
): number {
  const by = (time: number) => {
    const windows = Math.floor(time / windowMs);
    const rest = ((time - windows * windowMs) * perMinute) / 60_000;
    const whole = Math.min(most, (windowMs * perMinute) / 60_000);
    return windows * whole + Math.min(most, rest);
  };
  return by(to) - by(from);
}

/** A bucket of `burst`, full at first, that fills by so many a minute; the rate may depend on the time. */
export class TokenBucket implements Limiter {
  readonly #burst: number;
  readonly #rateAt: (now: number) => number;
  #tokens: number;
  #at = 0;

  constructor(burst: number, rateAt: (now: number) => number) {
    this.#burst = burst;
    this.#tokens = burst;
    this.#rateAt = rateAt;
  }

  take(now: number, wanted: number): number {
    const filled = (this.#rateAt(now) * (now - this.#at)) / 60_000;
    this.#tokens = Math.min(this.#burst, this.#tokens + filled);
    this.#at = now;
    const count = Math.min(wanted, Math.floor(this.#tokens));
    this.#tokens -= count;
    return count;
  }

  allowed(from: number, to: number, perMinute: number): number {
    let sum = from === 0 ? this.#burst : 0;
    for (let at = from; at < to; at += 60_000)
      sum += Math.min(perMinute, this.#rateAt(at)) * Math.min(1, (to - at) / 60_000);
    return Math.min(sum, ((to - from) * perMinute) / 60_000);
  }
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const byTheHour = (rates: readonly number[]) => (now: number) =>
  rates[Math.floor(now / HOUR) % rates.length] ?? 0;

/** A partner of the benchmark. */
export interface LimitedPartner {
  readonly name: string;
  readonly moves: boolean;
  readonly limiter: () => Limiter;
}

const partner = (name: string, limiter: () => Limiter, moves = false): LimitedPartner => ({
  name,
  moves,
  limiter,
});

export const PARTNERS: readonly LimitedPartner[] = [
  partner('rolling 4 in 1 s', () => new RollingWindow(4, SECOND)),
  partner('rolling 34 in 10 s', () => new RollingWindow(34, 10 * SECOND)),
  partner('rolling 200 in 60 s', () => new RollingWindow(200, MINUTE)),
  partner('rolling 1,000 in 5 min', () => new RollingWindow(1000, 5 * MINUTE)),
  partner('rolling 12,000 in 1 h', () => new RollingWindow(12_000, HOUR)),
  partner('fixed 4 in 1 s', () => new FixedWindow(4, SECOND)),
  partner('fixed 34 in 10 s', () => new FixedWindow(34, 10 * SECOND)),
  partner('fixed 200 in 60 s', () => new FixedWindow(200, MINUTE)),
  partner('fixed 1,000 in 5 min', () => new FixedWindow(1000, 5 * MINUTE)),
  partner('fixed 12,000 in 1 h', () => new FixedWindow(12_000, HOUR)),
  partner('bucket of 5, 100 a minute', () => new TokenBucket(5, () => 100)),
  partner('bucket of 20, 200 a minute', () => new TokenBucket(20, () => 200)),
  partner('bucket of 50, 400 a minute', () => new TokenBucket(50, () => 400)),
  partner('bucket of 500, 200 a minute', () => new TokenBucket(500, () => 200)),
  partner('bucket of 20, by the hour', () => new TokenBucket(20, byTheHour([400, 150, 500, 250])), true),
  partner('bucket of 200, by the hour', () => new TokenBucket(200, byTheHour([400, 150, 500, 250])), true),
];
