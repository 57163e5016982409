import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { pause } from '../support/eventually.ts';
import type { Answer, Answers, Route } from './answers.ts';

/*
 * A partner written from the documented rules alone: it shares no code with the sandbox, and what the rules leave open
 * is drawn.
 */

export interface Request {
  readonly at: number;
  readonly route: Route | 'other';
  readonly skus: number;
  readonly live: number;
  outcome: string;
}

const KEY = 'world-key';
const FORBIDDEN: Answer = { status: 403, body: { message: 'Forbidden' } };

/** The HTTP server in front of the answers: authorization, the rate limit, and faults in transit. */
export class Partner {
  readonly answers: Answers;
  secrets: string[];
  readonly requests: Request[] = [];
  url = '';
  /** Number of requests beyond the rate limit. */
  overRate = 0;
  readonly #server = createServer((req, res) => void this.#serve(req, res));

  constructor(answers: Answers, secret: string) {
    this.answers = answers;
    this.secrets = [secret];
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  /** Decides whether the account's requests in the last window, with refused ones and other services', are too many. */
  #isTooFast(now: number): boolean {
    const own = this.requests.filter(
      ({ at, route }) => route !== 'file' && at > now - this.answers.plan.rateWindowMs,
    ).length;
    return own + this.answers.plan.neighbours > this.answers.plan.rateLimit;
  }

  #authorize(req: IncomingMessage, now: number): Answer | null {
    const header = req.headers.authorization;
    if (header === undefined) return { status: 401, body: { message: 'Unauthorized' } };
    const [scheme, encoded = ''] = header.split(' ');
    if (scheme !== 'Basic') return { status: 500, body: { message: 'Internal Server Error' } };
    const [key, ...rest] = Buffer.from(encoded, 'base64').toString().split(':');
    if (key !== KEY) return { status: 500, body: { message: 'Internal Server Error' } };
    if (!this.secrets.includes(rest.join(':'))) return FORBIDDEN;
    if (!this.#isTooFast(now)) return null;
    this.overRate += 1;
    return FORBIDDEN;
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const at = Date.now();
    const url = new URL(req.url ?? '/', this.url);
    const route = routeOf(req.method ?? '', url.pathname);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of req) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const skus = route === 'bulk' ? this.#skusOf(Buffer.concat(chunks).toString()) : [];
    const live = skus.filter((sku) => this.answers.market.items.get(sku)?.source === 'live').length;
    const request: Request = { at, route, skus: skus.length, live, outcome: 'under way' };
    this.requests.push(request);
    res.setHeader('Date', new Date(Date.now() + this.answers.plan.clockMs).toUTCString());
    const refused = route === 'file' ? null : this.#authorize(req, at);
    try {
      if (refused !== null) return await this.#send(req, res, request, refused);
      if (route === 'other')
        return await this.#send(req, res, request, { status: 404, body: { message: 'Not Found' } });
      if (await this.#fail(req, res, request, route)) return;
      if (route === 'file') return await this.#sendFile(url.pathname, res, request);
      const answer =
        route === 'manifest'
          ? this.answers.manifest(this.url)
          : route === 'delta'
            ? this.answers.delta(url)
            : await this.answers.bulk(skus);
      await this.#send(req, res, request, answer);
    } catch {
      res.destroy();
    }
  }

  #skusOf(text: string): string[] {
    const body = JSON.parse(text) as Record<string, unknown>;
    const list = body[this.answers.forms.bulkKey];
    return Array.isArray(list) ? list.map(String) : [];
  }

  async #fail(req: IncomingMessage, res: ServerResponse, request: Request, route: Route): Promise<boolean> {
    const fault = this.answers.fault(route, [
      'service-500',
      'authorizer-500',
      'page-502',
      'forbidden',
      'reset',
      'hang',
      'garbage',
    ]);
    if (fault === undefined) return false;
    request.outcome = fault.kind;
    if (fault.kind === 'reset') {
      res.socket?.resetAndDestroy();
      return true;
    }
    if (fault.kind === 'hang') {
      await Promise.race([pause(Math.max(0, fault.until - Date.now())), once(res, 'close')]);
      res.destroy();
      return true;
    }
    if (fault.kind === 'page-502' || fault.kind === 'garbage') {
      res.writeHead(fault.kind === 'garbage' ? 200 : 502, { 'content-type': 'text/html' });
      res.end('<html><body>We are back soon</body></html>');
      return true;
    }
    const body =
      fault.kind === 'forbidden'
        ? { message: 'Forbidden' }
        : fault.kind === 'service-500'
          ? { errorMessage: 'Internal Server Error' }
          : { message: 'Internal Server Error' };
    await this.#send(req, res, request, { status: fault.kind === 'forbidden' ? 403 : 500, body });
    return true;
  }

  async #send(
    req: IncomingMessage,
    res: ServerResponse,
    request: Request,
    { status, body }: Answer,
  ): Promise<void> {
    if (request.outcome === 'under way') request.outcome = String(status);
    const zip = status === 200 && /\bgzip\b/.test(req.headers['accept-encoding'] ?? '');
    const text = JSON.stringify(body);
    const bytes = zip ? gzipSync(text) : Buffer.from(text);
    res.writeHead(status, {
      'content-type': 'application/json',
      'access-control-allow-origin': '*',
      ...(zip ? { 'content-encoding': 'gzip' } : {}),
    });
    await this.#write(res, bytes, request.route as Route);
  }

  /** Sends a body: whole, in drops, or cut off in the middle. */
  async #write(res: ServerResponse, bytes: Buffer, route: Route): Promise<void> {
    if (this.answers.fault(route, ['cut']) !== undefined) {
      res.write(bytes.subarray(0, Math.floor(bytes.length / 2)));
      await pause(20);
      res.destroy();
      return;
    }
    if (this.answers.fault(route, ['drip']) !== undefined) {
      const step = Math.ceil(bytes.length / 8);
      for (let i = 0; i < bytes.length && !res.destroyed; i += step) {
        res.write(bytes.subarray(i, i + step));
        await pause(150);
      }
    } else res.write(bytes);
    res.end();
  }

  async #sendFile(path: string, res: ServerResponse, request: Request): Promise<void> {
    const bytes = this.answers.file(path);
    request.outcome = bytes === null ? '403' : '200';
    if (bytes === null) {
      res.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>');
      return;
    }
    res.writeHead(200, { 'content-type': 'application/gzip' });
    await this.#write(res, bytes, 'file');
  }
}

function routeOf(method: string, path: string): Route | 'other' {
  if (path.startsWith('/files/')) return 'file';
  if (method === 'GET' && path === '/partner/catalog/manifest') return 'manifest';
  if (method === 'GET' && path === '/partner/catalog/delta') return 'delta';
  return method === 'POST' && path === '/partner/lowest/bulk' ? 'bulk' : 'other';
}
