import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createSecureContext, type PeerCertificate, TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';

export type Certificate = 'localhost' | 'address' | 'elsewhere';

/** Returns the path of one of the test certificates. */
export const certificate = (name: string): string =>
  fileURLToPath(new URL(`certificates/${name}`, import.meta.url));

/** A TLS front of a server, which starts TLS like Postgres (after an SSLRequest) or like Redis (at once). */
export interface TlsProxy extends AsyncDisposable {
  readonly port: number;
  /** Connections so far, and how many of them completed the handshake. */
  readonly connections: number;
  readonly secured: number;
  /** Bytes that reached the server, decrypted. */
  readonly passed: number;
  /** What arrived in the clear instead of TLS. */
  readonly clear: string;
  /** Names on the certificates that clients have presented. */
  readonly clients: readonly string[];
}

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const HANDSHAKE = 0x16;

export interface TlsProxyOptions {
  readonly protocol: 'postgres' | 'redis';
  readonly shows?: Certificate;
  /** Answers SSLRequest with N, like a server without TLS or somebody in between. */
  readonly refuses?: boolean;
}

/** Opens a TLS front of the server at the host and port of `url`. */
export async function tlsProxyTo(url: string, options: TlsProxyOptions): Promise<TlsProxy> {
  const { hostname, port } = new URL(url);
  const name = options.shows ?? 'localhost';
  const secureContext = createSecureContext({
    cert: readFileSync(certificate(`${name}.pem`)),
    key: readFileSync(certificate(`${name}.key`)),
    ca: readFileSync(certificate('ca.pem')),
  });
  const state = { connections: 0, secured: 0, passed: 0, clear: '', clients: [] as string[] };
  const open = new Set<Socket>();

  function secure(socket: Socket): void {
    const inner = new TLSSocket(socket, {
      isServer: true,
      secureContext,
      requestCert: true,
      rejectUnauthorized: false,
    });
    inner.on('error', () => socket.destroy());
    inner.once('secure', () => {
      state.secured += 1;
      const shown = inner.getPeerCertificate() as Partial<PeerCertificate>;
      if (shown.subject !== undefined) state.clients.push(String(shown.subject.CN));
      const onward = connect(Number(port), hostname);
      open.add(onward);
      onward.on('error', () => inner.destroy());
      onward.on('close', () => inner.destroy());
      inner.on('close', () => onward.destroy());
      inner.on('data', (data: Buffer) => (state.passed += data.length));
      inner.pipe(onward).pipe(inner);
    });
  }

  async function serve(socket: Socket): Promise<void> {
    if (options.protocol === 'postgres') {
      const first = (await once(socket, 'data')) as [Buffer];
      socket.pause();
      if (!first[0].equals(SSL_REQUEST)) return clear(socket, first[0]);
      socket.write(options.refuses ? 'N' : 'S');
    }
    // The first byte tells a handshake from anything else. It is put back for the handshake.
    socket.once('readable', () => {
      const head = socket.read() as Buffer | null;
      if (head === null) return;
      if (head[0] !== HANDSHAKE || options.refuses) return clear(socket, head);
      socket.unshift(head);
      secure(socket);
    });
  }

  function clear(socket: Socket, data: Buffer): void {
    if (data[0] !== HANDSHAKE) state.clear += data.toString('latin1');
    socket.destroy();
  }

  const server = createServer((socket) => {
    state.connections += 1;
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
    serve(socket).catch(() => socket.destroy());
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  const { port: own } = server.address() as AddressInfo;
  const dispose = async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of open) socket.destroy();
    await closed;
  };
  return Object.assign(state, { port: own, [Symbol.asyncDispose]: dispose });
}
