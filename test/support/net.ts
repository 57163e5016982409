import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A listener on 127.0.0.1, for tests of servers that are away, hang or misbehave. */
export interface Port extends AsyncDisposable {
  readonly port: number;
  /** Connections made to it so far. */
  readonly connections: number;
}

async function listen(serve: (socket: Socket) => void): Promise<Port> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Returns a port of 127.0.0.1 on which nobody listened a moment ago. */
export async function freePort(): Promise<number> {
  await using port = await deafPort();
  return port.port;
}

/** Listens on a port, accepts connections and never sends anything. */
export function deafPort(): Promise<Port> {
  return listen(() => {});
}

/** Forwards to a server, but hides from its clients that it has closed a connection. */
export async function holdingPort(url: string): Promise<Port> {
  const { hostname, port } = new URL(url);
  return await listen((socket) => {
    const onward = connect(Number(port), hostname);
    onward.on('error', () => {});
    onward.on('data', (data) => socket.write(data));
    socket.on('data', (data) => onward.write(data));
    socket.on('close', () => onward.destroy());
  });
}

/** Encodes an error in the Postgres protocol: fields by their letters (S severity, C SQLSTATE, M message). */
function errorMessage(fields: Readonly<Record<string, string>>): Buffer {
  const body = Object.entries(fields).map(([letter, text]) => `${letter}${text}\0`);
  const content = Buffer.from(`${body.join('')}\0`);
  const head = Buffer.from('E\0\0\0\0');
  head.writeInt32BE(content.length + 4, 1);
  return Buffer.concat([head, content]);
}

/**
 * Forwards to a Postgres, but rejects sessions with settings with this error, `times` times in all; those without
 * settings get through.
 */
export async function refusingSettings(
  url: string,
  fields: Readonly<Record<string, string>>,
  times = Infinity,
): Promise<Port> {
  const { hostname, port } = new URL(url);
  let left = times;
  return await listen((socket) => {
    socket.once('data', (startup) => {
      if (startup.includes('\0options\0') && left > 0) {
        left -= 1;
        socket.end(errorMessage(fields));
        return;
      }
      const onward = connect(Number(port), hostname);
      onward.on('error', () => socket.destroy());
      socket.on('close', () => onward.destroy());
      onward.write(startup);
      socket.pipe(onward).pipe(socket);
    });
  });
}

export interface Gate extends Port {
  /** Lets connections through from now on. */
  open(): void;
  /** Cuts the existing connections, and drops new ones. */
  shut(): void;
}

/** Opens a gate to a server, at first shut: it drops connections as they come. */
export async function gateTo(url: string): Promise<Gate> {
  const { hostname, port } = new URL(url);
  let isOpen = false;
  const passing = new Set<Socket>();
  const listening = await listen((socket) => {
    passing.add(socket);
    socket.on('close', () => passing.delete(socket));
    if (!isOpen) {
      socket.destroy();
      return;
    }
    const onward = connect(Number(port), hostname);
    onward.on('error', () => socket.destroy());
    socket.on('close', () => onward.destroy());
    onward.on('close', () => socket.destroy());
    socket.pipe(onward).pipe(socket);
  });
  const shut = () => {
    isOpen = false;
    for (const socket of passing) socket.destroy();
  };
  return Object.defineProperties(
    { open: () => (isOpen = true), shut },
    Object.getOwnPropertyDescriptors(listening),
  ) as unknown as Gate;
}

/** Returns the same URL with another port of this machine. */
export function through(url: string, { port }: Pick<Port, 'port'>): string {
  const changed = new URL(url);
  changed.host = `127.0.0.1:${port}`;
  return changed.href;
}
