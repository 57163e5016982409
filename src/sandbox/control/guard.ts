import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';

/** The parts of a request that decide whether it may control the sandbox. */
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

/** Headers that a proxy adds. Anybody may be behind a proxy. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const;

/**
 * Returns why a request may not control the sandbox; null if it may. With a token, whoever sends it may, from
 * anywhere. Without one only this machine may, but no web page in its browsers: neither one of another site, nor
 * one whose name was bound to this address.
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

/** Returns whether this request may get a page that shows the credential, so that no page of another site reads it. */
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

const NAME = /^[a-z0-9](?:[a-z0-9_.-]{0,251}[a-z0-9])?\.?$/i;

/** Parses name and port of a Host header; null if it is invalid. */
function parseHost(header: string | undefined): { name: string; port: string } | null {
  const [, name = '', port = ''] = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::(\d{1,5}))?$/i.exec(header ?? '') ?? [];
  const isName = name.startsWith('[') ? isIPv6(name.slice(1, -1)) : NAME.test(name);
  return isName && Number(port) <= 65_535 ? { name, port } : null;
}

/** Returns the address by which a request reached the sandbox, by its Host header; null if missing or invalid. */
export function baseOf(host: string | undefined): string | null {
  return parseHost(host) === null ? null : `http://${host}`;
}

/** Returns whether a Host header names this machine as no name server does, so that no page of another site can. */
export function isLoopbackHost(header: string | undefined): boolean {
  const name = parseHost(header)?.name.toLowerCase().replace(/\.$/, '');
  return name === 'localhost' || name === '[::1]' || isLoopbackAddress(name);
}

/** Returns whether a connection's other end is this machine. */
function isLoopbackAddress(address: string | undefined): boolean {
  const plain = address?.replace(/^::ffff:/i, '') ?? '';
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'));
}

/** Returns the URL of a server that listens there, for clients on the same machine. */
export function urlOf(listensOn: string, port: number): string {
  const host = listensOn === '0.0.0.0' ? '127.0.0.1' : listensOn === '::' ? '::1' : listensOn;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
