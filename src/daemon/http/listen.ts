import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { errorCode } from '../../lib/errors.ts';

/** What a system answers that has no IPv6: the first without the protocol, the second without its addresses. */
const NO_IPV6: ReadonlySet<string | null> = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL']);

/** Every address of the host: of IPv6, and with that of IPv4. */
const EVERY = '::';
const EVERY_IPV4 = '0.0.0.0';

/**
 * Listens on `host`. `::`, which is every address, is every one of IPv4 where there is no IPv6.
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

/** An address of this host at which a server is reached that listens on `host`. */
export const reachedAt = (host: string): string =>
  host === EVERY_IPV4 || host === EVERY ? '127.0.0.1' : host;

/** The address that a connection is from; that of IPv4 as it is written elsewhere, also where it came in by `::`. */
export const peerOf = ({ remoteAddress }: Pick<Socket, 'remoteAddress'>): string | undefined =>
  remoteAddress?.replace(/^::ffff:(?=[\d.]+$)/i, '');
