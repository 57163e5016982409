import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { Authorizer, REFUSALS, type Refusal } from './auth.ts';
import { Faults, type Fault, type Route } from './faults.ts';
import { FILES_PREFIX, Presigner, snapshotOf } from './files.ts';
import { LiveCeiling, RollingWindow } from './limits.ts';
import { resolveOptions, type SandboxOptions, type Settings } from './options.ts';
import { RequestLog, type RequestRecord } from './requests.ts';
import { compress, faultReply, fileErrorReply, fileReply, jsonReply, send, type Reply } from './respond.ts';
import {
  answerBulk,
  answerDelta,
  answerLowest,
  answerManifest,
  invalid,
  matchRoute,
  type Answer,
} from './routes.ts';
import { SERVICE_ERROR, type Json } from './wire.ts';
import { World } from './world.ts';

const MAX_BODY_BYTES = 1024 * 1024;

/** A running sandbox: its address and credential, the levers on its world, and what it has seen. */
export interface Sandbox extends AsyncDisposable {
  /** `{base_url}`, without a trailing slash. */
  readonly url: string;
  readonly apiKey: string;
  /** The present secret. */
  readonly secret: string;
  readonly options: Readonly<Settings>;
  readonly world: World;
  readonly faults: Faults;
  /** The last 20,000 requests, oldest first. */
  readonly requests: readonly RequestRecord[];
  /** The most API requests that any rolling window held so far, refused ones included. */
  maxRequestsInWindow(): number;
  /** Requests so far; of one route, or of all (`*`). */
  counts(route?: Route | '*'): number;
  /** Replaces the secret; the old one authenticates for `overlapMs` more (specification 5.4). */
  rotateSecret(next: string, overlapMs?: number): void;
  /** Completes the supplier account, or makes it incomplete. */
  configureAccount(configured: boolean): void;
  /** Stops timers and server, and destroys every open connection. */
  close(): Promise<void>;
}

/** One request on its way through the sandbox. */
interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  path: string;
  query: URLSearchParams;
  record: RequestRecord;
  fault: Fault | undefined;
}

/** Starts a sandbox. Rejects with the server's error where the address cannot be listened on. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = new SandboxServer(resolveOptions(options));
  await sandbox.listen();
  return sandbox;
}

class SandboxServer implements Sandbox {
  readonly world: World;
  readonly faults = new Faults();
  readonly options: Settings;
  url = '';
  readonly #log = new RequestLog();
  readonly #authorizer: Authorizer;
  readonly #ceiling: LiveCeiling;
  readonly #presigner = new Presigner();
  readonly #server: Server;
  /** Counted per api_key, all routes and methods (specification 8). */
  readonly #keyWindow: RollingWindow;
  readonly #apiWindow: RollingWindow;
  readonly #closing = new AbortController();
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(settings: Settings) {
    this.options = settings;
    this.world = new World(settings);
    this.#authorizer = new Authorizer(settings.apiKey, settings.secret, settings.accountConfigured);
    this.#ceiling = new LiveCeiling(settings.liveCeilingPerMinute);
    this.#keyWindow = new RollingWindow(settings.rateWindowMs);
    this.#apiWindow = new RollingWindow(settings.rateWindowMs);
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.keepAliveTimeout = 60_000;
  }

  get apiKey(): string {
    return this.options.apiKey;
  }

  get secret(): string {
    return this.#authorizer.secret;
  }

  get requests(): readonly RequestRecord[] {
    return this.#log.records;
  }

  maxRequestsInWindow(): number {
    return this.#apiWindow.peak;
  }

  counts(route: Route | '*' = '*'): number {
    return this.#log.count(route);
  }

  rotateSecret(next: string, overlapMs = 0): void {
    this.#authorizer.rotate(next, overlapMs, this.options.now());
  }

  configureAccount(configured: boolean): void {
    this.#authorizer.configured = configured;
  }

  async listen(): Promise<void> {
    const { host, port, marketIntervalMs, snapshotIntervalMs } = this.options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    const address = this.#server.address() as AddressInfo;
    this.url = `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
    this.#every(marketIntervalMs, () => this.world.step());
    this.#every(snapshotIntervalMs, () => {
      if (this.world.builderRuns()) this.world.buildSnapshot();
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const timer of this.#timers) clearInterval(timer);
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #every(intervalMs: number, act: () => void): void {
    if (intervalMs > 0) this.#timers.push(setInterval(act, intervalMs).unref());
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => response.destroy());
    const exchange = this.#begin(request, response);
    try {
      await this.#exchange(exchange);
    } catch {
      if (response.headersSent || response.destroyed) response.destroy();
      else
        await send(response, jsonReply({ status: 500, body: SERVICE_ERROR }, this.options.now()), undefined);
    }
  }

  #begin(request: IncomingMessage, response: ServerResponse): Exchange {
    const [path = '', search = ''] = (request.url ?? '').split(/\?(.*)/s);
    const isFile = request.method === 'GET' && path.startsWith(FILES_PREFIX);
    const route = isFile ? 'file' : matchRoute(request.method ?? '', path).route;
    const fault = this.faults.take(route);
    const record: RequestRecord = {
      at: this.options.now(),
      route,
      path,
      status: 0,
      code: null,
      apiKey: false,
      authorization: arriving(request, fault) !== undefined,
      skus: [],
      liveComputed: 0,
    };
    this.#log.add(record);
    return {
      request,
      response,
      path,
      query: new URLSearchParams(search),
      record,
      fault,
    };
  }

  async #exchange(exchange: Exchange): Promise<void> {
    const { request, response, record, fault } = exchange;
    // Counted on arrival, before anything is awaited: requests that overlap must see each other.
    const refusal = record.route === 'file' ? null : this.#admit(exchange);
    const body = await readBody(request);
    const { signal } = this.#closing;
    const delayMs = this.options.latencyMs + (fault?.delayMs ?? 0);
    if (delayMs > 0) await wait(delayMs, undefined, { ref: false, signal });
    if (fault?.hang) return;
    if (fault?.reset) {
      request.socket.resetAndDestroy();
      return;
    }
    const reply = this.#reply(exchange, refusal, body);
    record.status = reply.status;
    await send(response, reply, fault);
  }

  #reply(exchange: Exchange, refusal: Refusal | null, body: string | null): Reply {
    const { request, record, fault } = exchange;
    const now = this.options.now();
    const accepts = request.headers['accept-encoding'];
    if (fault?.status !== undefined || fault?.body !== undefined) {
      record.code = codeOf(fault.body);
      return compress(faultReply(fault, record.route, now), accepts);
    }
    if (record.route === 'file') return this.#file(exchange);
    if (refusal !== null) return jsonReply(refusal, now);
    const answer = this.#answer(exchange, body);
    if (fault?.mutate !== undefined) answer.body = fault.mutate(answer.body as Json);
    record.code = codeOf(answer.body);
    record.skus = answer.skus ?? [];
    record.liveComputed = answer.liveComputed ?? 0;
    return compress(jsonReply(answer, now), accepts);
  }

  /** Counts an API request and judges its credential (specification 5.5, 8): refused requests count as well. */
  #admit({ request, record, fault }: Exchange): Refusal | null {
    this.#apiWindow.add(record.at);
    const verdict = this.#authorizer.judge(arriving(request, fault), record.at);
    if (verdict === 'absent' || verdict === 'malformed' || verdict === 'unknown_key')
      return REFUSALS[verdict];
    record.apiKey = true;
    const throttled = this.#keyWindow.add(record.at) > this.options.rateLimit;
    if (throttled) return REFUSALS.wrong_secret;
    return verdict === 'ok' ? null : REFUSALS[verdict];
  }

  #answer({ request, path, query, record }: Exchange, body: string | null): Answer {
    const context = {
      settings: this.options,
      world: this.world,
      ceiling: this.#ceiling,
      presigner: this.#presigner,
      base: this.url,
    };
    switch (record.route) {
      case 'manifest':
        return answerManifest(context);
      case 'delta':
        return answerDelta(context, query.get('since'));
      case 'lowest':
        return answerLowest(context, matchRoute('GET', path).rawSku ?? '');
      case 'bulk':
        return body === null ? invalid('body too large') : answerBulk(context, body);
      case 'file':
      case 'unknown':
        break;
    }
    return { status: 404, body: { statusCode: 404, message: `Cannot ${request.method ?? ''} ${path}` } };
  }

  #file({ path, query }: Exchange): Reply {
    const now = this.options.now();
    const refusal = this.#presigner.check(path, query, now, this.world.urlGeneration);
    if (refusal !== null) return fileErrorReply(refusal, now);
    const lines = this.world.lines(snapshotOf(path) ?? '');
    return lines === null ? fileErrorReply('freed', now) : fileReply(this.options.dialect, lines, now);
  }
}

/** The `Authorization` header as it arrives. */
function arriving(request: IncomingMessage, fault: Fault | undefined): string | undefined {
  if (fault?.authorization === undefined) return request.headers.authorization;
  return fault.authorization ?? undefined;
}

function codeOf(body: unknown): string | null {
  const hasCode = typeof body === 'object' && body !== null && 'code' in body;
  return hasCode && typeof body.code === 'string' ? body.code : null;
}

/** The request's body as text; null where it is larger than the sandbox takes. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += (part as Buffer).length;
    if (size <= MAX_BODY_BYTES) parts.push(part as Buffer);
  }
  return size > MAX_BODY_BYTES ? null : Buffer.concat(parts).toString('utf8');
}
