import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Clock, systemClock } from '../lib/clock.ts';
import { type Log, throttled } from '../telemetry/log/logger.ts';
import { createLogThrottle } from '../telemetry/log/throttle.ts';
import { type Answer, brief, json, send, unavailable } from './http/answer.ts';
import { createGate, type GateOptions } from './http/gate.ts';
import { createRoutes, LONGEST_ANSWER_MS, type Route, type Sources } from './http/routes.ts';

export interface HttpServerOptions extends Sources, GateOptions {
  /** 0: any free port. */
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
    this.code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
  }
}

const CLOSE_GRACE_MS = 1000;

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

/**
 * Serves GET and HEAD of `/metrics`, `/livez`, `/readyz` and the pages; 405 for other methods, 404 for other paths, and what the gate
 * answers to those who may not read. Nothing over HTTP changes state. An answer that fails or takes more than 5 s is a 503: a half-open
 * request never hangs, a request never throws.
 *
 * @throws ListenError when the address cannot be listened on.
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { host, port, log, clock = systemClock } = options;
  const routes = createRoutes(options, clock);
  const throttle = createLogThrottle(clock);
  const gate = createGate(options, log, throttle);

  function failed(err: unknown, path?: string): void {
    const { say, ...facts } = throttle.again(path ?? '', String(err));
    throttled(log, 'warn', say, { event: 'http.failed', path, err, ...facts });
  }

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

  async function answerOf(path: string, { answer }: Route): Promise<Answer> {
    try {
      return await answer();
    } catch (error) {
      failed(error, path);
      return unavailable('the check failed');
    }
  }

  const limits = {
    maxHeaderSize: 8192,
    headersTimeout: 5000,
    requestTimeout: 10_000,
    keepAliveTimeout: 5000,
  };
  const server = createServer({ ...limits, connectionsCheckingInterval: 1000 }, (request, response) => {
    answerTo(request)
      .then((answer) => send(request, response, answer))
      .catch((error: unknown) => {
        failed(error);
        response.destroy();
      });
  });
  // By itself Node.js answers without saying what may be done with the answer.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    send(request, response, json(417, { reason: 'expectation failed' })),
  );
  server.maxConnections = 64;
  // Longer than an answer may take: a connection on which nothing moves is one whose answers nobody reads. Node.js lets a
  // write that is stuck pass once, so it is held for twice as long at most.
  server.setTimeout(LONGEST_ANSWER_MS + 1000);
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new ListenError(host, port, error);
  }
  server.on('error', (error) => failed(error));

  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: () => closeServer(server, clock),
  };
}
