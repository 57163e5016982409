import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { Agent, type Dispatcher } from 'undici';
import { parseJson } from '../lib/json.ts';
import {
  classifyAnswer,
  classifyFailure,
  codeOf,
  failureCode,
  PartnerError,
  safeCause,
  type Route,
} from './errors.ts';
import { type AnswerLimits, excessOf, REFUSAL_LIMITS } from './limits.ts';
import { proxyFor, type ProxySettings, type ProxySource } from './proxy.ts';
import { decodeUtf8 } from './text.ts';
import { factsOfWay, tunnelConnector } from './tunnel.ts';

/** User name and password of the Basic credential (partner rule 5.1). */
export interface Credentials {
  apiKey: string;
  secret: string;
}

/** Settings of the connection to the API. `credentials` is called before each request, so a rotation takes effect. */
export interface TransportOptions {
  baseUrl: URL;
  credentials: () => Credentials;
  /** Milliseconds for one request, from sending to the last byte of the answer. */
  timeoutMs: number;
  userAgent: string;
  /** Without it, connections are direct. */
  proxy?: ProxySettings | undefined;
}

/**
 * One API request. `path` begins with a slash and is already encoded; `body` is sent as JSON; `parse` parses the
 * text of a 200 that is within `limits`, and may throw a PartnerError of its own.
 */
export interface ApiRequest {
  route: Route;
  limits: AnswerLimits;
  method: 'GET' | 'POST';
  path: string;
  body?: unknown;
  parse: (text: string) => unknown;
  signal?: AbortSignal | undefined;
}

/** What the headers of the answer said. Stays available for observation if the request fails later. */
export interface AnswerHead {
  status: number | null;
  /** Time at the partner, to the second. */
  date: Date | null;
  /** Seconds for which a cache has kept the answer; null if none says so. */
  ageSeconds: number | null;
  /** The JSON body of a status other than 200, unchecked; null if it was not JSON. */
  refusal?: unknown;
}

export interface Transport {
  /** Sends a request and returns the parsed body of a 200. Fills in `head` on the way. Throws PartnerError. */
  request(request: ApiRequest, head: AnswerHead): Promise<unknown>;
  close(): Promise<void>;
}

/** More than the number of concurrent requests of all routes, so a request never waits for a connection. */
const MAX_CONNECTIONS = 40;

/** Characters from which on parsing takes milliseconds. */
const LARGE_TEXT = 1024 * 1024;

const unzip = promisify(gunzip);

/** Some programs write it before a text; it is not part of the JSON. */
const BYTE_ORDER_MARK = /^\uFEFF/;

/** Hint for an answer that is not JSON, or is a redirect. */
const NOT_THE_API =
  'a page, a redirect or half an answer came in its place: the partner may be under maintenance, ' +
  'or a proxy in between; check PARTNER_BASE_URL if it lasts';

function authorization({ apiKey, secret }: Credentials): string {
  return `Basic ${Buffer.from(`${apiKey}:${secret}`, 'utf8').toString('base64')}`;
}

function isGzip(body: Buffer): boolean {
  return body[0] === 0x1f && body[1] === 0x8b;
}

/**
 * Returns the whole body as text without a byte order mark, decompressed (partner rule 1.3), of at most `cap` bytes
 * before and after. Throws RangeError if it is larger.
 */
async function readBody(body: Dispatcher.ResponseData['body'], cap: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > cap) throw new RangeError('body over the limit');
    chunks.push(chunk);
  }
  let plain: Buffer = Buffer.concat(chunks);
  // Twice: a gateway may have compressed again what the partner had compressed.
  for (let n = 0; n < 2 && isGzip(plain); n += 1) plain = await unzip(plain, { maxOutputLength: cap });
  return decodeUtf8(plain).replace(BYTE_ORDER_MARK, '');
}

/** Returns the body of a refusal; null if it is not JSON or is too large. */
async function readRefusal(body: Dispatcher.ResponseData['body']): Promise<unknown> {
  try {
    const text = await readBody(body, REFUSAL_LIMITS.bytes);
    return (await excessOf(text, REFUSAL_LIMITS)) === null ? parseJson(text) : null;
  } catch {
    return null;
  }
}

class UndiciTransport implements Transport {
  readonly #options: TransportOptions;
  readonly #agent: Agent;
  readonly #prefix: string;
  readonly #proxy: ProxySource | null;
  readonly #closing = new AbortController();

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#prefix = options.baseUrl.pathname.replace(/\/+$/, '');
    this.#proxy = proxyFor(options.baseUrl, options.proxy);
    // Only the total timeout below counts; undici's own timeouts would cut a longer setting short.
    this.#agent = new Agent({
      allowH2: false,
      connections: MAX_CONNECTIONS,
      ...(this.#proxy === null
        ? { connectTimeout: options.timeoutMs }
        : { connect: this.#through(this.#proxy) }),
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  async request(request: ApiRequest, head: AnswerHead): Promise<unknown> {
    const { route, signal: caller } = request;
    const credentials = this.#options.credentials();
    const header = authorization(credentials);
    const timer = AbortSignal.timeout(this.#options.timeoutMs);
    const signal = caller === undefined ? timer : AbortSignal.any([caller, timer]);
    const fail = (error: unknown) => {
      const secrets = [credentials.secret, credentials.apiKey, header.slice('Basic '.length)];
      const kind = classifyFailure(error, caller, timer);
      // The reason of an abort is the caller's own object: it says nothing about the request and may contain
      // anything.
      if (kind === 'aborted') return new PartnerError(kind, route);
      const way = factsOfWay(error, kind, this.#proxy);
      return new PartnerError(kind, route, { ...way, cause: safeCause(error, secrets) });
    };
    let response: Dispatcher.ResponseData;
    try {
      response = await this.#send(request, header, signal);
    } catch (error) {
      throw fail(error);
    }
    head.status = response.statusCode;
    head.ageSeconds = ageOf(response.headers['age']);
    head.date = dateOf(response.headers['date'], head.ageSeconds ?? 0);
    if (response.statusCode !== 200) throw await this.#refusal(route, response, head);
    return this.#read(request, response, fail);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#agent.destroy();
  }

  /** Gives up on an unresponsive proxy before the request times out, so that the error names the proxy. */
  #through(proxy: ProxySource): ReturnType<typeof tunnelConnector> {
    const timeoutMs = Math.ceil(this.#options.timeoutMs * 0.75);
    return tunnelConnector({ proxy, timeoutMs, signal: this.#closing.signal });
  }

  async #send(request: ApiRequest, header: string, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const headers: Record<string, string> = {
      authorization: header,
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'user-agent': this.#options.userAgent,
    };
    const body = request.body === undefined ? null : JSON.stringify(request.body);
    if (body !== null) headers['content-type'] = 'application/json';
    const { method } = request;
    const path = `${this.#prefix}${request.path}`;
    return this.#agent.request({ origin: this.#options.baseUrl.origin, path, method, headers, body, signal });
  }

  /** Returns the error of an answer other than 200. The status decides even if the body cannot be read. */
  async #refusal(route: Route, response: Dispatcher.ResponseData, head: AnswerHead): Promise<PartnerError> {
    const status = response.statusCode;
    const body = await readRefusal(response.body);
    head.refusal = body;
    const code = codeOf(body);
    const kind = classifyAnswer(route, status, body) ?? 'unreadable';
    const hint = kind === 'unreadable' ? { hint: NOT_THE_API } : {};
    return new PartnerError(kind, route, { status, ...(code !== undefined && { code }), ...hint });
  }

  async #read(
    request: ApiRequest,
    response: Dispatcher.ResponseData,
    fail: (error: unknown) => PartnerError,
  ): Promise<unknown> {
    const { route, parse, limits } = request;
    const status = response.statusCode;
    let text: string;
    try {
      text = await readBody(response.body, limits.bytes);
    } catch (error) {
      if (isTooLarge(error))
        throw new PartnerError('answer-too-large', route, { status, detail: `over ${limits.bytes} bytes` });
      throw failureCode(error)?.startsWith('Z_') === true
        ? new PartnerError('unreadable', route, {
            status,
            detail: 'the gzip body is damaged',
            hint: NOT_THE_API,
          })
        : fail(error);
    }
    const excess = await excessOf(text, limits);
    if (excess !== null) {
      const detail =
        excess === 'nesting'
          ? `nested over ${limits.depth} levels`
          : excess === 'values'
            ? `over ${limits.values} values`
            : `over ${limits.structure} names, objects and arrays`;
      throw new PartnerError('answer-too-large', route, { status, detail });
    }
    let body: unknown;
    try {
      body = parse(text);
    } catch (error) {
      if (error instanceof PartnerError) throw error;
      throw new PartnerError('unreadable', route, {
        status,
        detail: 'the body is not JSON',
        hint: NOT_THE_API,
      });
    }
    // Reading a large parsed body takes about as long as parsing it: yield to the event loop in between.
    if (text.length > LARGE_TEXT) await setImmediate();
    const kind = classifyAnswer(route, status, body);
    if (kind === null) return body;
    const code = codeOf(body);
    throw new PartnerError(kind, route, code === undefined ? { status } : { status, code });
  }
}

function isTooLarge(error: unknown): boolean {
  return failureCode(error) === 'ERR_BUFFER_TOO_LARGE' || error instanceof RangeError;
}

/** Returns the time at the partner. A cache sends the `Date` at which it received the answer, so its age is added. */
function dateOf(header: string | string[] | undefined, keptSeconds: number): Date | null {
  const sent = typeof header === 'string' ? Date.parse(header) : Number.NaN;
  const date = new Date(sent + keptSeconds * 1000);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** Returns the `Age` header in seconds; the greatest of several, because each cache on the way may have added one. */
function ageOf(header: string | string[] | undefined): number | null {
  const ages = [header ?? []].flat().flatMap((text) => text.split(','));
  const seconds = ages.map((text) => text.trim()).filter((text) => /^\d{1,15}$/.test(text));
  return seconds.length === 0 ? null : Math.max(...seconds.map(Number));
}

/** Opens the connection pool: Basic credential on each request (partner rule 5.1), gzip, no redirects, no retries. */
export function createTransport(options: TransportOptions): Transport {
  return new UndiciTransport(options);
}
