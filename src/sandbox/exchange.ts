import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { type Answer, invalid } from './answer.ts';
import type { Gate, AuthRefusal } from './gate.ts';
import type { Fault, Faults, Route, RouteName } from './faults.ts';
import type { RequestLog, RequestRecord } from './requests.ts';
import { compress, faultReply, jsonReply, send, type Reply } from './respond.ts';
import { matchRoute, ROUTES } from './routes.ts';
import { type ApiRoute, decodeParams, type Match, type RouteDefinition, type Services } from './routing.ts';
import { SERVICE_ERROR, type Json } from './wire.ts';

const MAX_BODY_BYTES = 1024 * 1024;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Null where there is no such route. */
  readonly match: Match<RouteName> | null;
  readonly record: RequestRecord;
  readonly fault: Fault | undefined;
}

/** The way of every request: counted, judged, delayed, answered by its route, bent by its fault, sent. */
export class Exchanges {
  readonly #services: () => Services;
  readonly #parts: { gate: Gate; faults: Faults; log: RequestLog; closing: AbortSignal };

  /** `services` is asked for each request; `closing` ends waits. */
  constructor(
    services: () => Services,
    parts: { gate: Gate; faults: Faults; log: RequestLog; closing: AbortSignal },
  ) {
    this.#services = services;
    this.#parts = parts;
  }

  /** Never rejects. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => response.destroy());
    const services = this.#services();
    const exchange = this.#begin(services, request, response);
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
  }

  #begin({ settings }: Services, request: IncomingMessage, response: ServerResponse): Exchange {
    const [path = '', search = ''] = (request.url ?? '').split(/\?(.*)/s);
    const match = matchRoute(request.method ?? '', path);
    const route: Route = match?.name ?? 'unknown';
    const fault = this.#parts.faults.take(route);
    const record: RequestRecord = {
      at: settings.now(),
      route,
      path,
      status: 0,
      code: null,
      apiKey: false,
      authorization: arriving(request, fault) !== undefined,
      skus: [],
      liveComputed: 0,
    };
    this.#parts.log.add(record);
    return { request, response, path, query: new URLSearchParams(search), match, record, fault };
  }

  async #exchange(services: Services, exchange: Exchange): Promise<void> {
    const { request, response, record, fault, match } = exchange;
    const isApi = match === null || ROUTES[match.name].origin === 'api';
    // Counted on arrival, before anything is awaited: requests that overlap must see each other.
    const refusal = isApi ? this.#parts.gate.admit(record, arriving(request, fault)) : null;
    const text = await readBody(request);
    const delayMs = services.settings.latencyMs + (fault?.delayMs ?? 0);
    if (delayMs > 0) await wait(delayMs, undefined, { ref: false, signal: this.#parts.closing });
    if (fault?.hang) return;
    if (fault?.reset) {
      request.socket.resetAndDestroy();
      return;
    }
    const reply = replyTo(services, exchange, refusal, text);
    record.status = reply.status;
    await send(response, reply, fault);
  }
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
