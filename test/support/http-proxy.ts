import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** What the proxy does with a request to connect. */
export type Mood =
  | 'pass'
  | number // rejects with this status and its own page
  | 'silent'
  | 'cut'
  | 'garbage' // is not HTTP
  | { readonly cutAfter: number } // lets that many bytes through to the client
  | { readonly stallAfter: number };

export interface HttpProxy extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Each request to connect: its target and its login. */
  readonly asked: readonly { readonly authority: string; readonly login: string | undefined }[];
  /** Requests to be forwarded, which a mirror never sends. */
  readonly forwarded: readonly string[];
  /** `heads`: all that came before a tunnel was open; `carried`: all that went through one. */
  readonly heads: string;
  /** The number of connections, to it and from it, that are open now. */
  readonly open: number;
  readonly carried: string;
  mood: (authority: string) => Mood;
  /** Where names lead: `host:port` to a port of 127.0.0.1. */
  readonly names: Map<string, number>;
  /** Cuts every tunnel. */
  cutAll(): void;
}

/** Starts an HTTP proxy on loopback. If `login` (user:password) is given, it answers 407 without it. */
export async function startHttpProxy(login?: string): Promise<HttpProxy> {
  const open = new Set<Socket>();
  const state = { heads: '', carried: '' };
  const asked: { authority: string; login: string | undefined }[] = [];
  const forwarded: string[] = [];
  const wanted = login === undefined ? undefined : `Basic ${Buffer.from(login).toString('base64')}`;
  const server = createServer((request, response) => {
    forwarded.push(`${request.method} ${request.url}`);
    response.writeHead(403).end('<html>forwarding is not for you');
  });
  server.on('connection', (socket) => {
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
  });
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    const authority = request.url ?? '';
    const sent = request.headers['proxy-authorization'];
    state.heads += JSON.stringify([request.url, request.rawHeaders]);
    asked.push({ authority, login: sent });
    const mood = wanted !== undefined && sent !== wanted ? 407 : proxy.mood(authority);
    if (mood === 'silent') return void socket.resume().on('end', () => socket.destroy());
    if (mood === 'cut') return void socket.destroy();
    if (mood === 'garbage') return void socket.end('<html><h1>Welcome to the hotel</h1>');
    if (typeof mood === 'number') {
      const page = '<html>{"message":"Forbidden"}';
      socket.end(
        `HTTP/1.1 ${mood} No\r\nContent-Type: text/html\r\nContent-Length: ${page.length}\r\n\r\n${page}`,
      );
      return;
    }
    tunnel(authority, socket, mood);
  });

  function tunnel(authority: string, socket: Socket, mood: 'pass' | Extract<Mood, object>): void {
    const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(authority) ?? [];
    const named = proxy.names.get(authority);
    const target = connect(named ?? Number(port), named === undefined ? host : '127.0.0.1');
    open.add(target);
    target.on('close', () => open.delete(target) && socket.destroy());
    socket.on('close', () => target.destroy());
    target.on('error', () => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
    let left = typeof mood === 'string' ? Infinity : 'cutAfter' in mood ? mood.cutAfter : mood.stallAfter;
    target.once('connect', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.on('data', (data) => {
        state.carried += data.toString('latin1');
        target.write(data);
      });
      target.on('data', (data) => {
        if (left > 0) socket.write(data.subarray(0, Math.min(data.length, left)));
        left -= data.length;
        if (left <= 0 && typeof mood === 'object' && 'cutAfter' in mood) socket.destroySoon();
      });
    });
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy: HttpProxy = {
    port,
    url: `http://${login === undefined ? '' : `${login}@`}127.0.0.1:${port}`,
    asked,
    forwarded,
    get heads() {
      return state.heads;
    },
    get carried() {
      return state.carried;
    },
    get open() {
      return open.size;
    },
    mood: () => 'pass',
    names: new Map(),
    cutAll() {
      for (const socket of open) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      proxy.cutAll();
      await closed;
    },
  };
  return proxy;
}
