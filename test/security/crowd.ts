import { connect, type Socket } from 'node:net';

/** A way to hold a connection or to take up the server's time. */
export type Behaviour = (socket: Socket, port: number) => void;

const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`;

/** Calls `work` every `ms` milliseconds until the connection closes. */
function every(socket: Socket, ms: number, work: () => void): void {
  const timer = setInterval(work, ms);
  socket.once('close', () => clearInterval(timer));
}

/** What clients do that are malicious or cannot do better. */
export const BEHAVIOURS = {
  silent: () => {},
  'half a request': (socket) => void socket.write('GET /livez HT'),
  'headers without end': (socket) => {
    socket.write('GET /livez HTTP/1.1\r\n');
    every(socket, 200, () => socket.write('X: y\r\n'));
  },
  'one byte at a time': (socket) => {
    const bytes = get('/metrics', 'A: b\r\n'.repeat(200));
    let at = 0;
    every(socket, 20, () => socket.write(bytes[at++ % bytes.length] ?? ''));
  },
  'a body without end': (socket) => {
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n');
    every(
      socket,
      20,
      () => socket.writableLength < 100_000 && socket.write(`400\r\n${'x'.repeat(1024)}\r\n`),
    );
  },
  'an answer that is not read': (socket) => {
    socket.pause();
    socket.write(get('/metrics'));
    every(socket, 50, () => socket.writableLength < 100_000 && socket.write(get('/metrics')));
  },
  'an answer that is read by the byte': (socket) => {
    socket.pause();
    socket.write(get('/'));
    every(socket, 100, () => {
      socket.read(1);
      if (socket.writableLength < 100_000) socket.write(get('/'));
    });
  },
  'hundreds at once': (socket) => void socket.write(get('/livez').repeat(600)),
  'hundreds of pages at once, unread': (socket) => {
    socket.pause();
    socket.write(get('/status.json').repeat(600));
  },
  'kept open after an answer': (socket) => void socket.write(get('/livez')),
  'gone at once': (socket) => void socket.resetAndDestroy(),
  'gone after asking': (socket) => {
    socket.write(get('/metrics'), () => socket.resetAndDestroy());
  },
  'one scrape after the other': (socket) => {
    socket.write(get('/metrics'));
    socket.on('data', (chunk) => {
      if (chunk.includes('HTTP/1.1 200')) socket.write(get('/metrics'));
    });
  },
  nonsense: (socket) => void socket.write('\u0016\u0003\u0001\u0002\u0000\u0001\u0000'.repeat(20)),
} as const satisfies Readonly<Record<string, Behaviour>>;

export type Kind = keyof typeof BEHAVIOURS;
export const KINDS = Object.keys(BEHAVIOURS) as Kind[];

export interface Crowd extends Disposable {
  /** Connections made so far. */
  readonly dialled: number;
}

/** Connects clients of each kind to a port of 127.0.0.1. Each connects again as soon as it is disconnected. */
export function startCrowd(port: number, members: readonly (readonly [Kind, number])[]): Crowd {
  const sockets = new Set<Socket>();
  let isOver = false;
  let dialled = 0;
  const join = (behave: Behaviour) => {
    if (isOver) return;
    dialled += 1;
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('connect', () => behave(socket, port));
    if (behave !== BEHAVIOURS['an answer that is read by the byte']) socket.resume();
    socket.once('close', () => {
      sockets.delete(socket);
      setImmediate(() => join(behave));
    });
  };
  for (const [kind, count] of members) for (let n = 0; n < count; n += 1) join(BEHAVIOURS[kind]);
  return {
    get dialled() {
      return dialled;
    },
    [Symbol.dispose]() {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}
