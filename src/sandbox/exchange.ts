import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { type Answer, invalid } from './answer.ts';
import { isOwnBrowser } from './control/guard.ts';
import { type Fault, nameOf, type Route, type RouteName } from './faults.ts';
import type { AuthRefusal } from './gate.ts';
import { LONGEST_TIMER_MS } from './options.ts';
import { readBody, bodyShown, lineOf, type RequestRecord } from './requests.ts';
import { compress, faultReply, jsonReply, send, type Reply, wrongHostReply } from './respond.ts';
import { matchRoute, ROUTES } from './routes.ts';
import { type ApiRoute, decodeParams, type Match, type RouteDefinition, type Services } from './routing.ts';
import { SERVICE_ERROR, type Json } from './wire.ts';

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Null if there is no such route. */
  readonly match: Match<RouteName> | null;
  readonly record: RequestRecord;
  readonly fault: Fault | undefined;
}

/** Handles every request: counts it, checks its credential, delays, answers by its route, applies its fault, sends. */
export class Exchanges {
  readonly #services: (host: string | undefined) => Services;
  readonly #closing: AbortSignal;

  /** `services` is called for each request with its Host header; `closing` ends waits. */
  constructor(services: (host: string | undefined) => Services, closing: AbortSignal) {
    this.#services = services;
    this.#closing = closing;
  }

  /** Never rejects. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => response.destroy());
    const services = this.#services(request.headers.host);
    const exchange = begin(services, request, response);
    try {
      await this.#exchange(services, exchange);
    } catch {
      if (response.headersSent || response.destroyed) response.destroy();
      else
        await send(
          response,
          jsonReply({ status: 500, body: SERVICE_ERROR }, services.settings.now()),
          undefined,
        );
    }
    services.settings.log?.(lineOf(exchange.record));
  }

  async #exchange(services: Services, exchange: Exchange): Promise<void> {
    const { request, response, record, fault, match } = exchange;
    const isApi = match === null || ROUTES[match.name].origin === 'api';
    // Counted on arrival, before any await: overlapping requests must see each other.
    const refusal = isApi ? services.gate.admit(record, arriving(request, fault)) : null;
    const text = await readBody(request);
    record.body = bodyShown(match?.name, text);
    const delayMs = Math.min(LONGEST_TIMER_MS, services.settings.latencyMs + (fault?.delayMs ?? 0));
    if (delayMs > 0) await wait(delayMs, undefined, { ref: false, signal: this.#closing });
    if (fault?.hang || fault?.reset) {
      if (fault.reset) request.socket.resetAndDestroy();
      return;
    }
    const reply = replyTo(services, exchange, refusal, text);
    record.status = reply.status;
    // By now the request has taken effect; only the client does not learn of it.
    if (fault?.lost === undefined) await send(response, reply, fault);
    else if (fault.lost === 'reset') request.socket.resetAndDestroy();
  }
}

function begin(services: Services, request: IncomingMessage, response: ServerResponse): Exchange {
  const [path = '', search = ''] = (request.url ?? '').split(/\?(.*)/s);
  const match = matchRoute(request.method ?? '', path);
  const route: Route = match?.name ?? 'unknown';
  const fault = services.faults.take(route);
  const record: RequestRecord = {
    at: services.settings.now(),
    route,
    method: request.method ?? '',
    path,
    query: search,
    body: null,
    status: 0,
    code: null,
    fault: fault === undefined ? null : nameOf(fault),
    apiKey: false,
    authorization: arriving(request, fault) !== undefined,
    skus: [],
    liveComputed: 0,
  };
  services.log.add(record);
  return { request, response, path, query: new URLSearchParams(search), match, record, fault };
}

function replyTo(
  services: Services,
  exchange: Exchange,
  refusal: AuthRefusal | null,
  text: string | null,
): Reply {
  const { request, path, query, match, record, fault } = exchange;
  const now = services.settings.now();
  const accepts = request.headers['accept-encoding'];
  const definition: RouteDefinition | null = match === null ? null : ROUTES[match.name];
  if (fault?.status !== undefined || fault?.body !== undefined) {
    record.code = codeOf(fault.body);
    return compress(faultReply(fault, definition?.origin ?? 'api', now), accepts);
  }
  if (definition?.origin === 'page' && !isOwnBrowser(caller(request))) return wrongHostReply(now);
  if (definition !== null && definition.origin !== 'api') return definition.handle(services, { path, query });
  if (refusal !== null) return jsonReply(refusal, now);
  const answer = answerTo(services, exchange, definition, text);
  if (fault?.mutate !== undefined) answer.body = fault.mutate(answer.body as Json);
  record.code = codeOf(answer.body);
  record.skus = answer.skus ?? [];
  record.liveComputed = answer.liveComputed ?? 0;
  const cacheControl = answer.status < 300 ? definition?.cacheControl : null;
  return compress(jsonReply(answer, now, cacheControl), accepts);
}

function caller({ headers, socket }: IncomingMessage) {
  return { headers, remoteAddress: socket.remoteAddress };
}

function answerTo(
  services: Services,
  { request, path, query, match }: Exchange,
  definition: ApiRoute | null,
  text: string | null,
): Answer {
  if (definition === null || match === null) {
    return { status: 404, body: { statusCode: 404, message: `Cannot ${request.method ?? ''} ${path}` } };
  }
  const params = decodeParams(match.params);
  if (typeof params === 'string') return invalid(params);
  if (text === null) return invalid('body too large');
  return definition.handle(services, { params, query, text });
}

function arriving(request: IncomingMessage, fault: Fault | undefined): string | undefined {
  if (fault?.authorization === undefined) return request.headers.authorization;
  return fault.authorization ?? undefined;
}

function codeOf(body: unknown): string | null {
  const hasCode = typeof body === 'object' && body !== null && 'code' in body;
  return hasCode && typeof body.code === 'string' ? body.code : null;
}
