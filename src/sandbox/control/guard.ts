import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopbackAddress, isLoopbackHost } from '../hosts.ts';

/** What of a request decides whether it may control the sandbox. */
export interface Caller {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** The other end of the connection. */
  readonly remoteAddress: string | undefined;
}

export interface Refused {
  readonly status: number;
  readonly message: string;
}

/** Headers that a proxy adds, behind which anybody may be. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const;

/**
 * Why a request may not control the sandbox; null = it may. With a token whoever sends it may, from anywhere. Without
 * one only this machine may, and no page in one of its browsers: neither one of another site, nor one whose name was
 * bound to this address.
 */
export function refusalOf(caller: Caller, token: string | null): Refused | null {
  const refused = token === null ? strangeness(caller) : withoutToken(caller.headers, token);
  if (refused !== null) return refused;
  const type = caller.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  const hasBody =
    Number(caller.headers['content-length'] ?? 0) > 0 || caller.headers['transfer-encoding'] !== undefined;
  if (!hasBody || caller.method === 'GET' || type === 'application/json') return null;
  return { status: 415, message: "send the body with -H 'Content-Type: application/json'" };
}

/** Whether a page that shows the credential may be given to this request: no page of another site reads it. */
export function isOwnBrowser({ headers, remoteAddress }: Pick<Caller, 'headers' | 'remoteAddress'>): boolean {
  return !isLoopbackAddress(remoteAddress) || isForwarded(headers) || isLoopbackHost(headers.host);
}

function withoutToken({ authorization = '' }: IncomingHttpHeaders, token: string): Refused | null {
  const [, given = ''] = /^bearer +(\S+) *$/i.exec(authorization) ?? [];
  if (timingSafeEqual(digest(given), digest(token))) return null;
  return { status: 401, message: 'send the token of --control-token: -H "Authorization: Bearer <token>"' };
}

function strangeness({ headers, remoteAddress }: Caller): Refused | null {
  if (!isLoopbackAddress(remoteAddress) || isForwarded(headers))
    return forbidden(
      'only the machine of the sandbox may control it; start it with --control-token to control it from elsewhere',
    );
  if (!isLoopbackHost(headers.host))
    return forbidden(
      'the Host header must be localhost, 127.0.0.1 or [::1]; for another name start the sandbox with --control-token',
    );
  const site = headers['sec-fetch-site'];
  const isOwnSite = site === undefined || site === 'none' || site === 'same-origin';
  const isOwnOrigin = headers.origin === undefined || headers.origin === `http://${headers.host}`;
  return isOwnSite && isOwnOrigin ? null : forbidden('no page of another site may control the sandbox');
}

function isForwarded(headers: IncomingHttpHeaders): boolean {
  return FORWARDED.some((name) => headers[name] !== undefined);
}

function forbidden(message: string): Refused {
  return { status: 403, message };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
