import type { MirrorConfig } from '../../config.ts';
import { paceLimits, rateFloor } from '../../limits.ts';
import { sendsPerWindow } from '../../partner/pacer.ts';
import { type Finding, ok, warn } from './finding.ts';

/** Requests that the partner documents for an account, a minute (specification 8). */
const DOCUMENTED_PER_MINUTE = 200;
const MINUTE_MS = 60_000;

/** What the request share comes to. `others`: requests of the account's other users in the last window; null: not known. */
export function judgeShare({ rate }: Pick<MirrorConfig, 'rate'>, others: number | null): Finding[] {
  const { limit, windowMs, share, floor } = rate;
  const limits = paceLimits({ rate });
  const window = windowMs === MINUTE_MS ? 'per minute' : `in ${windowMs / 1000} s`;
  const beside =
    others === null || others === 0 ? 'other services have used none' : `other services have used ${others}`;
  const text = `${sendsPerWindow(limits)} requests ${window} of the account's ${limit}, at least ${rateFloor({ rate })} while other services use theirs; ${beside}`;
  const findings: Finding[] = [];
  const perMinute = (limit * MINUTE_MS) / windowMs;
  if (perMinute > DOCUMENTED_PER_MINUTE)
    findings.push(
      warn(
        'request share',
        `PARTNER_RATE_LIMIT is ${Math.round(perMinute)} per minute; the partner documents ${DOCUMENTED_PER_MINUTE}`,
        "set it to your account's limit: above it, every request is rejected",
      ),
    );
  if (share > 0.95)
    findings.push(
      warn(
        'request share',
        `the mirror uses ${Math.round(share * 100)} % of the limit`,
        'lower PARTNER_RATE_SHARE: otherwise a burst of your other services gets all requests rejected',
      ),
    );
  if (floor > share)
    findings.push(
      warn(
        'request share',
        `PARTNER_RATE_FLOOR (${floor}) is above PARTNER_RATE_SHARE (${share})`,
        'lower it: at this value the mirror never slows down for other services',
      ),
    );
  return [ok('request share', text), ...findings];
}
