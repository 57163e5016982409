import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { errorCode } from '../../lib/errors.ts';

/** Errors of a system without IPv6: the first if it lacks the protocol, the second if it lacks addresses. */
const NO_IPV6: ReadonlySet<string | null> = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL']);

/** Every address of the host, IPv6 and IPv4. */
const EVERY = '::';
const EVERY_IPV4 = '0.0.0.0';

/**
 * Listens on `host`. On a host without IPv6, `::` (every address) falls back to every IPv4 address.
 *
 * @throws the system's error
 */
export async function listenOn(
  server: Pick<Server, 'listen' | 'on'>,
  port: number,
  host: string,
): Promise<void> {
  try {
    await listening(server, port, host);
  } catch (error) {
    if (host !== EVERY || !NO_IPV6.has(errorCode(error))) throw error;
    await listening(server, port, EVERY_IPV4);
  }
}

async function listening(server: Pick<Server, 'listen' | 'on'>, port: number, host: string): Promise<void> {
  server.listen(port, host);
  await once(server as Server, 'listening');
}

/** Returns an address of this host that reaches a server listening on `host`. */
export const reachedAt = (host: string): string =>
  host === EVERY_IPV4 || host === EVERY ? '127.0.0.1' : host;

/**
 * Returns the address that a connection is from. An IPv4 address is in its usual form, even if it came in through
 * `::`.
 */
export const peerOf = ({ remoteAddress }: Pick<Socket, 'remoteAddress'>): string | undefined =>
  remoteAddress?.replace(/^::ffff:(?=[\d.]+$)/i, '');
