/** What an API request's `Authorization` header turns out to be (partner rules 5.5, row by row). */
export type Verdict = 'absent' | 'malformed' | 'unknown_key' | 'wrong_secret' | 'not_configured' | 'ok';

export interface Refusal {
  status: number;
  body: Record<string, unknown>;
}

/** The answer to each verdict that is not `ok`. A throttled request answers as `wrong_secret` does, byte for byte. */
export const REFUSALS: Record<Exclude<Verdict, 'ok'>, Refusal> = {
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

  /** Replaces the secret; the old one authenticates for `overlapMs` more. */
  rotate(next: string, overlapMs: number, now: number): void {
    this.#old.push({ secret: this.secret, until: now + overlapMs });
    this.secret = next;
  }

  /** Judges a header's value; undefined = the header is absent. */
  judge(header: string | undefined, now: number): Verdict {
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
