import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import type { SecretSource } from '../../config/secrets.ts';
import type { Clock } from '../../lib/clock.ts';
import { hostName } from '../../lib/host-name.ts';
import type { Log } from '../../telemetry/log/logger.ts';
import { createInterval, type LogThrottle } from '../../telemetry/log/throttle.ts';
import { peerOf } from './listen.ts';
import { type Answer, json } from './routes.ts';

/** What an Authorization header contains. */
type Credential = 'right' | 'wrong' | 'none';

const REREAD_MS = 1000;
const BASIC = /^basic +([a-z\d+/]+=*) *$/i;
const BEARER = /^bearer +(\S+) *$/i;

/** Extracts the password of Basic, for any user, or the token of Bearer; null for anything else. */
function presented(authorization: string): string | null {
  const token = BEARER.exec(authorization)?.[1];
  if (token !== undefined) return token;
  const pair = Buffer.from(BASIC.exec(authorization)?.[1] ?? '', 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon === -1 ? null : pair.slice(colon + 1);
}

/** Compares in constant time, wherever the two differ and however long they are. */
const isSame = (one: string, other: string): boolean =>
  timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'));

/**
 * Returns the judge of Authorization headers. A password from a file is read again before a comparison, at most once
 * a second. A credential of ours that has changed is noticed when it is rejected, but a withdrawn password would
 * still be accepted.
 */
function passwordJudge(
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

/** What the Host header of a request names: a host of ours (or none at all), another one, or two at once. */
type HostJudgement = 'known' | 'unknown' | 'ambiguous';

const AUTHORITY = /^(\[[^\]]*\]|[^:[\]]*)(?::\d{0,5})?$/;

/**
 * Returns the judge of Host headers, given the host listened on and further names that lead here. A web page under a
 * name that somebody has pointed at this machine (DNS rebinding) sends that name, so only these are known:
 * addresses, which nobody can point elsewhere, `localhost`, and the given names, each with any port. The machine's
 * own name is not among them, because networks assign it. A missing Host is known too, because every browser sends
 * one (Node.js refuses HTTP/1.1 without).
 */
function hostJudge(
  listensOn: string,
  names: readonly string[],
): (hosts: readonly string[] | undefined) => HostJudgement {
  const known = new Set(['localhost', listensOn, ...names].filter((name) => isIP(name) === 0).map(hostName));
  return (hosts = []) => {
    if (hosts.length > 1) return 'ambiguous';
    const [host] = hosts;
    return host === undefined || isKnown(host) ? 'known' : 'unknown';
  };

  function isKnown(host: string): boolean {
    const name = AUTHORITY.exec(host)?.[1] ?? '';
    if (name.startsWith('[')) return isIPv6(name.slice(1, -1));
    const canonical = hostName(name);
    return canonical !== null && (isIPv4(canonical) || known.has(canonical));
  }
}

export interface GateOptions {
  /** HTTP_HOST. */
  readonly host: string;
  /** Names other than HTTP_HOST by which this server is reached; null: none. */
  readonly allowedHosts?: readonly string[] | null;
  /** If absent, everybody may read. */
  readonly password?: SecretSource | null;
}

/** Why a request may not read what is not for everyone. */
type Refusal = 'ambiguous-host' | 'unknown-host' | 'cross-site' | 'no-password' | 'wrong-password';

/** Basic comes first: a browser takes the first scheme that it knows, and asks its user. */
const CHALLENGES = ['Basic realm="catalog-mirror", charset="UTF-8"', 'Bearer realm="catalog-mirror"'];
const UNAUTHORIZED = json(401, { reason: 'a password is needed' }, { 'www-authenticate': CHALLENGES });

const ANSWERS: Readonly<Record<Refusal, Answer>> = {
  'ambiguous-host': json(400, { reason: 'more than one Host' }),
  'unknown-host': json(421, {
    reason: 'this Host is not known here: use an address, or add the name to HTTP_ALLOWED_HOSTS',
  }),
  'cross-site': json(403, { reason: 'asked by a page of another site' }),
  'no-password': UNAUTHORIZED,
  'wrong-password': UNAUTHORIZED,
};

/**
 * Whether a page of another site (or another port of this host) makes the browser ask, according to the browser's
 * headers. The browser withholds the answer from that page, but reading costs Postgres time, and its duration and
 * size reveal something. Links that a user follows pass.
 */
function isOfAnotherSite(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return headers['sec-fetch-mode'] !== 'navigate' || headers['sec-fetch-dest'] !== 'document';
}

export interface Gate {
  /** Returns the answer to a request that may not read, or null if it may. `always`: whatever it asks for. */
  refusal(request: IncomingMessage): { readonly always: boolean; readonly answer: Answer } | null;
}

/**
 * Decides who may read prices and health in detail. Logs, throttled, the refusals that an operator may have to act
 * on.
 */
export function createGate(options: GateOptions, clock: Clock, log: Log, throttle: LogThrottle): Gate {
  const { password = null } = options;
  const judgeHost = hostJudge(options.host, options.allowedHosts ?? []);

  const judgePassword = password === null ? () => 'right' as const : passwordJudge(password, clock);

  function refusalOf({ headers, headersDistinct }: IncomingMessage): Refusal | null {
    const host = judgeHost(headersDistinct.host);
    if (host !== 'known') return host === 'ambiguous' ? 'ambiguous-host' : 'unknown-host';
    if (isOfAnotherSite(headers)) return 'cross-site';
    const credential = judgePassword(headers.authorization);
    return credential === 'right' ? null : `${credential === 'none' ? 'no' : 'wrong'}-password`;
  }

  function tell(refusal: Refusal, { headers, socket }: IncomingMessage): void {
    if (refusal !== 'unknown-host' && refusal !== 'wrong-password') return;
    // One fingerprint: clients must not determine how many lines there are, or how long they get.
    const { say, ...facts } = throttle.again(refusal, '');
    if (!say) return;
    const from = peerOf(socket);
    if (refusal === 'wrong-password') return log.warn({ event: 'http.wrong-password', from, ...facts });
    const host = hostName(headers.host?.replace(/:\d{0,5}$/, '') ?? '') ?? undefined;
    log.warn({ event: 'http.unknown-host', host, from, ...facts });
  }

  return {
    refusal(request) {
      const refusal = refusalOf(request);
      if (refusal === null) return null;
      tell(refusal, request);
      return { always: refusal === 'ambiguous-host', answer: ANSWERS[refusal] };
    },
  };
}
