import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, systemClock } from '../lib/clock.ts';
import { errorCode } from '../lib/errors.ts';
import { type Log, throttled } from '../telemetry/log/logger.ts';
import { createLogThrottle } from '../telemetry/log/throttle.ts';
import { createConnections } from './http/connections.ts';
import { createGate, type Gate, type GateOptions } from './http/gate.ts';
import { listenOn, reachedAt } from './http/listen.ts';
import {
  type Answer,
  brief,
  createRoutes,
  type HttpRoute,
  json,
  LONGEST_ANSWER_MS,
  send,
  type Sources,
  unavailable,
} from './http/routes.ts';

export interface HttpServerOptions extends Sources, GateOptions {
  /** 0 means any free port. */
  readonly port: number;
  readonly log: Log;
  readonly clock?: Clock;
}

export interface HttpServer {
  readonly port: number;
  /** Stops listening; answers under way get a second to end. */
  close(): Promise<void>;
}

/** The address cannot be listened on; `code` is the system's (EADDRINUSE, EACCES, EADDRNOTAVAIL, …). */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  readonly kind = 'listen';
  readonly hint = 'check HTTP_HOST and HTTP_PORT; port 0 takes any free one';
  readonly code: string;

  constructor(host: string, port: number, cause: unknown) {
    super(`cannot listen on ${host} port ${port}`, { cause });
    this.code = errorCode(cause) ?? 'unknown';
  }
}

/** Returns where a browser on this host finds the status page of a server that listens on `host`. */
export function pageUrl(host: string, port: number): string {
  const reached = reachedAt(host);
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}/`;
}

const CLOSE_GRACE_MS = 1000;
const CHECK_EVERY_MS = 1000;
/** How long a request may take to arrive, and how large it may be. */
const LIMITS = {
  maxHeaderSize: 8192,
  headersTimeout: 5000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: CHECK_EVERY_MS,
};

/** Returns a function that answers requests: by their route, or with what prevents that. Its promise never rejects. */
function answering(
  routes: ReadonlyMap<string, HttpRoute>,
  gate: Gate,
  failed: (error: unknown, path: string) => void,
): (request: IncomingMessage) => Promise<Answer> {
  return answerTo;

  async function answerTo(request: IncomingMessage): Promise<Answer> {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    const route = routes.get(path);
    const readers = route?.readers ?? 'known';
    const refusal = gate.refusal(request);
    if (refusal !== null && (refusal.always || readers === 'known')) return refusal.answer;
    if (route === undefined) return json(404, { reason: 'not found' });
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return json(405, { reason: 'method not allowed' }, { allow: 'GET, HEAD' });
    const answer = await answerOf(path, route);
    return refusal !== null && readers === 'status' ? brief(answer) : answer;
  }

  async function answerOf(path: string, { answer }: HttpRoute): Promise<Answer> {
    try {
      return await answer();
    } catch (error) {
      failed(error, path);
      return unavailable('the check failed');
    }
  }
}

async function closeServer(server: Server, clock: Clock): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  const settled = new AbortController();
  server.close();
  server.closeIdleConnections();
  await Promise.race([closed, clock.sleep(CLOSE_GRACE_MS, settled.signal)]);
  settled.abort();
  server.closeAllConnections();
  await closed;
}

async function listen(server: Parameters<typeof listenOn>[0], port: number, host: string): Promise<void> {
  try {
    await listenOn(server, port, host);
  } catch (error) {
    throw new ListenError(host, port, error);
  }
}

/**
 * Listens for a moment, so that a start that would not be able to listen fails before it changes anything.
 *
 * @throws ListenError
 */
export async function tryListening({ host, port }: Pick<HttpServerOptions, 'host' | 'port'>): Promise<void> {
  const server = createServer();
  server.on('connection', (socket: Socket) => socket.destroy());
  await listen(server, port, host);
  const closed = once(server, 'close');
  server.close();
  await closed;
}

/**
 * Serves GET and HEAD of `/metrics`, `/livez`, `/readyz` and the pages; 405 for other methods, 404 for other paths,
 * and the gate's answer to those who may not read. Nothing over HTTP changes state. An answer that fails or takes
 * more than 5 s is a 503: a half-open request never hangs, a request never throws.
 *
 * @throws ListenError if the address cannot be listened on
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { host, port, log, clock = systemClock } = options;
  const throttle = createLogThrottle(clock);
  const gate = createGate(options, clock, log, throttle);
  const connections = createConnections(clock, (from) => {
    const { say, ...facts } = throttle.again('crowded', '');
    if (say) log.warn({ event: 'http.crowded', from, ...facts });
  });

  function failed(err: unknown, path?: string): void {
    const { say, ...facts } = throttle.again(path ?? '', String(err));
    throttled(log, 'warn', say, { event: 'http.failed', path, err, ...facts });
  }

  const answerTo = answering(createRoutes(options, clock), gate, failed);

  function serve(request: IncomingMessage, response: ServerResponse, work: Promise<Answer>): void {
    connections.asked(request.socket, response);
    const reply = async () => {
      const answer = await work;
      connections.answered(request.socket);
      send(request, response, answer);
    };
    reply().catch((error: unknown) => {
      failed(error);
      response.destroy();
    });
  }

  const server = createServer({ ...LIMITS, ...connections.reading }, (request, response) =>
    serve(request, response, answerTo(request)),
  );
  // By default Node.js answers without saying what may be done with the answer.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    serve(request, response, Promise.resolve(json(417, { reason: 'expectation failed' }))),
  );
  server.on('connection', connections.opened);
  server.on('upgrade', (_request, socket: Socket) => connections.flooded(socket));
  // Longer than an answer may take: if nothing moves on a connection, nobody reads its answers. Node.js lets a stuck
  // write pass once, so the connection is closed after twice as long at most.
  server.setTimeout(LONGEST_ANSWER_MS + 1000);
  await listen(server, port, host);
  server.on('error', (error) => failed(error));

  const expiring = setInterval(connections.expire, CHECK_EVERY_MS).unref();

  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close() {
      clearInterval(expiring);
      return closeServer(server, clock);
    },
  };
}
