import type { Settings } from './options.ts';
import type { RequestRecord } from './requests.ts';

/** What every API request passes first: the count against the account's limit, and the check of the credential. */
export class Gate {
  readonly authorizer: Authorizer;
  readonly #rateLimit: number;
  /** Counted per api_key, all routes and methods (partner rule 8.rate). */
  readonly #keyWindow: RollingWindow;
  readonly #apiWindow: RollingWindow;

  constructor({ apiKey, secret, accountConfigured, rateLimit, rateWindowMs }: Settings) {
    this.authorizer = new Authorizer(apiKey, secret, accountConfigured);
    this.#rateLimit = rateLimit;
    this.#keyWindow = new RollingWindow(rateWindowMs);
    this.#apiWindow = new RollingWindow(rateWindowMs);
  }

  /** The most API requests in any window so far, refused ones included. */
  get peak(): number {
    return this.#apiWindow.peak;
  }

  /** Returns what the account may still send in the window that ends now. */
  budget(now: number): { limit: number; used: number; left: number } {
    const used = this.#keyWindow.held(now);
    return { limit: this.#rateLimit, used, left: Math.max(0, this.#rateLimit - used) };
  }

  /** Counts a request, even a refused one, and checks its credential (partner rules 5.5, 8.rate, 8.over-rate). */
  admit(record: RequestRecord, authorization: string | undefined): AuthRefusal | null {
    this.#apiWindow.add(record.at);
    const result = this.authorizer.judge(authorization, record.at);
    if (result === 'absent' || result === 'malformed' || result === 'unknown_key') return REFUSALS[result];
    record.apiKey = true;
    const throttled = this.#keyWindow.add(record.at) > this.#rateLimit;
    if (throttled) return REFUSALS.wrong_secret;
    return result === 'ok' ? null : REFUSALS[result];
  }
}

/** What an API request's `Authorization` header proves to be (partner rules 5.5, row by row). */
export type AuthResult = 'absent' | 'malformed' | 'unknown_key' | 'wrong_secret' | 'not_configured' | 'ok';

export interface AuthRefusal {
  status: number;
  body: Record<string, unknown>;
}

/** The answer to each result but `ok`. A throttled request gets that of `wrong_secret`, byte for byte. */
export const REFUSALS: Record<Exclude<AuthResult, 'ok'>, AuthRefusal> = {
  absent: { status: 401, body: { message: 'Unauthorized' } },
  malformed: { status: 500, body: { message: 'Internal Server Error' } },
  unknown_key: { status: 500, body: { message: 'Internal Server Error' } },
  wrong_secret: { status: 403, body: { message: 'Forbidden' } },
  not_configured: { status: 403, body: { statusCode: 403, message: 'Supplier account not configured' } },
};

const BASIC = /^basic +((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?) *$/i;

/** The account's credential, with the overlap of a rotation (partner rule 5.4). */
export class Authorizer {
  secret: string;
  readonly #apiKey: string;
  /** Whether the supplier account is complete. */
  configured: boolean;
  /** Earlier secrets, with the moment (epoch milliseconds) at which each stops authenticating. */
  #old: { secret: string; until: number }[] = [];

  constructor(apiKey: string, secret: string, configured: boolean) {
    this.#apiKey = apiKey;
    this.secret = secret;
    this.configured = configured;
  }

  /** Replaces the secret; the old one stays valid for `overlapMs` more. */
  rotate(next: string, overlapMs: number, now: number): void {
    this.#old.push({ secret: this.secret, until: now + overlapMs });
    this.secret = next;
  }

  /** Checks a header's value; undefined means that the header is absent. */
  judge(header: string | undefined, now: number): AuthResult {
    if (header === undefined) return 'absent';
    const encoded = BASIC.exec(header)?.[1];
    const decoded = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString('utf8');
    const colon = decoded.indexOf(':');
    if (colon < 0) return 'malformed';
    if (decoded.slice(0, colon) !== this.#apiKey) return 'unknown_key';
    const given = decoded.slice(colon + 1);
    this.#old = this.#old.filter((old) => now < old.until);
    if (given !== this.secret && !this.#old.some((old) => old.secret === given)) return 'wrong_secret';
    return this.configured ? 'ok' : 'not_configured';
  }
}

/** Events in a rolling window. An event exactly `windowMs` old no longer counts. */
export class RollingWindow {
  /** The most events in any window so far. */
  peak = 0;
  readonly #windowMs: number;
  #times: number[] = [];
  #first = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Counts one event at `now` (epoch milliseconds); returns how many the window contains, including this one. */
  add(now: number): number {
    this.#times.push(now);
    const held = this.held(now);
    this.peak = Math.max(this.peak, held);
    return held;
  }

  /** Returns how many events the window that ends at `now` contains. */
  held(now: number): number {
    for (let oldest = this.#times[this.#first]; oldest !== undefined && oldest <= now - this.#windowMs;) {
      this.#first += 1;
      oldest = this.#times[this.#first];
    }
    if (this.#first > 1024 && this.#first * 2 > this.#times.length) {
      this.#times = this.#times.slice(this.#first);
      this.#first = 0;
    }
    return this.#times.length - this.#first;
  }
}

/** The server's hidden ceiling on live computations (partner rule 4.1.3), over all calls of all clients. */
export class LiveLimiter {
  readonly #perMinute: number | null;
  readonly #window = new RollingWindow(60_000);

  constructor(perMinute: number | null) {
    this.#perMinute = perMinute;
  }

  /** Takes one computation if the ceiling allows it; returns false, and takes nothing, if not. */
  take(now: number): boolean {
    if (this.#perMinute !== null && this.#window.held(now) >= this.#perMinute) return false;
    this.#window.add(now);
    return true;
  }
}
