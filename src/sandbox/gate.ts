import { Authorizer, REFUSALS, type Refusal } from './auth.ts';
import { RollingWindow } from './limits.ts';
import type { Settings } from './options.ts';
import type { RequestRecord } from './requests.ts';

/** What every API request passes first: the count against the account's limit, and the credential. */
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

  /** The most API requests that any window held so far, refused ones included. */
  get peak(): number {
    return this.#apiWindow.peak;
  }

  /** Counts a request and judges its credential (partner rules 5.5, 8.rate, 8.over-rate): refused requests count as well. */
  admit(record: RequestRecord, authorization: string | undefined): Refusal | null {
    this.#apiWindow.add(record.at);
    const verdict = this.authorizer.judge(authorization, record.at);
    if (verdict === 'absent' || verdict === 'malformed' || verdict === 'unknown_key')
      return REFUSALS[verdict];
    record.apiKey = true;
    const throttled = this.#keyWindow.add(record.at) > this.#rateLimit;
    if (throttled) return REFUSALS.wrong_secret;
    return verdict === 'ok' ? null : REFUSALS[verdict];
  }
}
