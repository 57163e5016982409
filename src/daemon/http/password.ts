import { hash, timingSafeEqual } from 'node:crypto';
import type { SecretSource } from '../../config/secrets.ts';
import type { Clock } from '../../lib/clock.ts';
import { createInterval } from '../../telemetry/log/throttle.ts';

/** What an Authorization header holds. */
export type Credential = 'right' | 'wrong' | 'none';

const REREAD_MS = 1000;
const BASIC = /^basic +([a-z\d+/]+=*) *$/i;
const BEARER = /^bearer +(\S+) *$/i;

/** The password of Basic, whatever the user, or the token of Bearer; null for anything else. */
function presented(authorization: string): string | null {
  const token = BEARER.exec(authorization)?.[1];
  if (token !== undefined) return token;
  const pair = Buffer.from(BASIC.exec(authorization)?.[1] ?? '', 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon === -1 ? null : pair.slice(colon + 1);
}

/** In the same time, wherever the two differ and however long they are. */
const isSame = (one: string, other: string): boolean =>
  timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'));

/**
 * Returns the judge of Authorization headers. The file of the password, if it is in one, is read again before it is
 * compared, once a second at most: unlike a rejected credential of ours, one that was withdrawn would go on being
 * accepted.
 */
export function passwordJudge(
  password: SecretSource,
  clock: Pick<Clock, 'monotonic'>,
): (authorization: string | undefined) => Credential {
  const isTime = createInterval(clock, REREAD_MS);
  return (authorization) => {
    if (authorization === undefined) return 'none';
    if (isTime()) password.refresh();
    const given = presented(authorization);
    return given !== null && isSame(given, password.read()) ? 'right' : 'wrong';
  };
}
