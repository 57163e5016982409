import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Clock, systemClock } from '../lib/clock.ts';
import { shownJson } from '../lib/shown-json.ts';
import { type Log, throttled } from '../telemetry/log/logger.ts';
import { createLogThrottle } from '../telemetry/log/throttle.ts';

/** How the daemon is: `ok` decides between 200 and 503, all of it is the JSON body. */
export interface HealthAnswer {
  readonly ok: boolean;
  readonly [detail: string]: unknown;
}

export type Page = () => Promise<{
  readonly type: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}>;

export interface HttpServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly metrics: () => Promise<string>;
  readonly live: () => HealthAnswer;
  readonly ready: () => Promise<HealthAnswer>;
  /** By path. */
  readonly pages?: ReadonlyMap<string, Page>;
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

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const LONGEST_ANSWER_MS = 5000;
const CLOSE_GRACE_MS = 1000;
const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

const json = (status: number, body: object): Answer => ({
  status,
  type: 'application/json; charset=utf-8',
  body: `${shownJson(body)}\n`,
});

const unavailable = (reason: string): Answer => json(503, { ok: false, reason });
const healthAnswer = (health: HealthAnswer): Answer => json(health.ok ? 200 : 503, health);

/** The same work for all who ask while it runs: slow scrapes do not pile up on Postgres. */
function shared<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  return () => {
    running ??= work().finally(() => {
      running = null;
    });
    return running;
  };
}

/** What `work` resolves to, or `otherwise` when it takes longer than an answer may. */
async function inTime(clock: Clock, work: Promise<Answer>, otherwise: Answer): Promise<Answer> {
  const settled = new AbortController();
  try {
    return await Promise.race([work, clock.sleep(LONGEST_ANSWER_MS, settled.signal).then(() => otherwise)]);
  } finally {
    settled.abort();
  }
}

function routes(options: HttpServerOptions, clock: Clock): ReadonlyMap<string, () => Promise<Answer>> {
  const check = async () => healthAnswer(await options.ready());
  const scrape = async () => ({ status: 200, type: PROMETHEUS_TEXT, body: await options.metrics() });
  // The time limit is inside the shared promise: work that never ends does not block later requests.
  const pages = [...(options.pages ?? [])].map(([path, page]): [string, () => Promise<Answer>] => [
    path,
    shared(() =>
      inTime(
        clock,
        page().then((answer) => ({ status: 200, ...answer })),
        unavailable('the page took too long'),
      ),
    ),
  ]);
  return new Map<string, () => Promise<Answer>>([
    ...pages,
    ['/livez', async () => healthAnswer(options.live())],
    ['/readyz', shared(() => inTime(clock, check(), unavailable('the check took too long')))],
    ['/metrics', shared(() => inTime(clock, scrape(), unavailable('the scrape took too long')))],
  ]);
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  extra: Record<string, string> = {},
) {
  // A request body is of no use here: it is not read, so its connection is not used again.
  const hasBody =
    request.headers['transfer-encoding'] !== undefined || (request.headers['content-length'] ?? '0') !== '0';
  response.writeHead(answer.status, {
    'content-type': answer.type,
    'content-length': Buffer.byteLength(answer.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(hasBody && { connection: 'close' }),
    ...answer.headers,
    ...extra,
  });
  response.end(answer.body);
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

/**
 * Serves GET and HEAD of `/metrics`, `/livez`, `/readyz` and the pages; 405 for other methods, 404 for other paths. Nothing over HTTP
 * changes state. An answer that fails or takes more than 5 s is a 503: a half-open request never hangs, a request never throws.
 *
 * @throws ListenError when the address cannot be listened on.
 */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { host, port, log, clock = systemClock } = options;
  const table = routes(options, clock);
  const throttle = createLogThrottle(clock);

  function failed(err: unknown, path?: string): void {
    const { say, ...facts } = throttle.again(path ?? '', String(err));
    throttled(log, 'warn', say, { event: 'http.failed', path, err, ...facts });
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    const route = table.get(path);
    if (route === undefined) return send(request, response, json(404, { reason: 'not found' }));
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return send(request, response, json(405, { reason: 'method not allowed' }), { allow: 'GET, HEAD' });
    }
    let answer: Answer;
    try {
      answer = await route();
    } catch (error) {
      failed(error, path);
      answer = unavailable('the check failed');
    }
    send(request, response, answer);
  }

  const limits = {
    maxHeaderSize: 8192,
    headersTimeout: 5000,
    requestTimeout: 10_000,
    keepAliveTimeout: 5000,
  };
  const server = createServer({ ...limits, connectionsCheckingInterval: 1000 }, (request, response) => {
    handle(request, response).catch((error: unknown) => {
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
