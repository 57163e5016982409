import type { Config, MirrorConfig } from '../../config/config.ts';
import { blemishesOf, isBasicPair } from '../../config/secrets.ts';
import { type Finding, ok, warn } from './check.ts';
import { paceLimits, rateFloor, sendsPerWindow } from '../../pace/policy.ts';

/** Signs of a credential damaged on its way. What no credential can hold has ended the start already, by name. */
export function checkCredential({ partner }: Pick<Config, 'partner'>): Finding[] {
  const [apiKey, secret] = [partner.apiKey.read(), partner.secret.read()];
  return Object.entries({ PARTNER_API_KEY: apiKey, PARTNER_SECRET: secret }).flatMap(([name, value]) => {
    const found = blemishesOf(value);
    if (isBasicPair(value, apiKey))
      found.push('looks like api_key and secret in base64: give the bare secret');
    return found.length === 0
      ? [ok(name.toLowerCase(), 'is set, and whole by its looks')]
      : [warn(name.toLowerCase(), found.join(' and '), `compare ${name} with what you were given`)];
  });
}

/** Requests that the partner documents for an account, a minute (partner rule 8.rate). */
const DOCUMENTED_PER_MINUTE = 200;
const MINUTE_MS = 60_000;

/** What the request share comes to. `others`: requests of the account's other users in the last window; null: not known. */
export function judgeShare({ rate }: Pick<MirrorConfig, 'rate'>, others: number | null): Finding[] {
  const { limit, windowMs, share, floor } = rate;
  const limits = paceLimits({ rate });
  const window = windowMs === MINUTE_MS ? 'a minute' : `in ${windowMs / 1000} s`;
  const beside = others === null || others === 0 ? 'others have not asked' : `others asked for ${others}`;
  const text = `${sendsPerWindow(limits)} requests ${window} of the account's ${limit}; ${rateFloor({ rate })} at least while others ask; ${beside}`;
  const findings: Finding[] = [];
  const perMinute = (limit * MINUTE_MS) / windowMs;
  if (perMinute > DOCUMENTED_PER_MINUTE)
    findings.push(
      warn(
        'request share',
        `PARTNER_RATE_LIMIT is ${Math.round(perMinute)} a minute; the partner documents ${DOCUMENTED_PER_MINUTE}`,
        'set it to what your account has: too much, and everything is refused',
      ),
    );
  if (share > 0.95)
    findings.push(
      warn(
        'request share',
        `the mirror takes ${Math.round(share * 100)} % of the limit`,
        'lower PARTNER_RATE_SHARE, or a burst of your other services refuses everyone',
      ),
    );
  if (floor > share)
    findings.push(
      warn(
        'request share',
        `PARTNER_RATE_FLOOR (${floor}) is above PARTNER_RATE_SHARE (${share})`,
        'lower it: the mirror gives way to nobody, and never takes more than its share',
      ),
    );
  return [ok('request share', text), ...findings];
}
