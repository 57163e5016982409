import { Agent, request } from 'undici';
import { startSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/index.ts';

export type Json = Record<string, unknown>;
export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH';

/** An answer as sent: not decoded, and no redirect followed. */
export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
  text: string;
  /** The body if it is JSON, else an empty object. */
  json: Json;
}

export interface Order {
  order_id: string;
  status: string;
  expected_payout: number;
}

export interface Page<Row> {
  type: string;
  orders: Row[];
  listings: Row[];
  nextCursor: string | null;
}

/** The states of an order (partner rule 3.states). */
export const STATUSES = ['pending', 'pre_order', 'process', 'matched', 'settled', 'failed'];

/** An order id that does not exist. */
export const NO_ORDER = 'O-nobody';

/** A clock in epoch milliseconds that advances only when told to. */
export class HandClock {
  #now = Date.UTC(2026, 10, 21, 9, 0, 0, 125);
  readonly now = (): number => this.#now;

  advance(ms: number): void {
    this.#now += ms;
  }
}

/** Returns headers with this value as `Authorization`; null = none at all. */
export function authorized(authorization: string | null): Record<string, string> {
  return authorization === null ? {} : { authorization };
}

/** The partner as a client sees it: signed requests to one sandbox. Disposing of it stops the sandbox. */
export class Partner implements AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly #agent = new Agent({ connections: 8 });

  constructor(sandbox: Sandbox) {
    this.sandbox = sandbox;
  }

  /** Returns the header for a credential, by default the sandbox's own. */
  basic(key = this.sandbox.apiKey, secret = this.sandbox.secret): string {
    return `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`;
  }

  /** Sends exactly these headers; `url` is a path, or a whole URL as the partner returned it. */
  async raw(method: Method, url: string, headers: Record<string, string>, body?: string): Promise<Answer> {
    const answer = await request(new URL(url, this.sandbox.url), {
      method,
      headers,
      body: body ?? null,
      dispatcher: this.#agent,
    });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    const text = bytes.toString('utf8');
    return { status: answer.statusCode, headers: answer.headers, bytes, text, json: parsed(text) };
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.raw('GET', path, { authorization: this.basic(), ...headers });
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#write('POST', path, body, headers);
  }

  put(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#write('PUT', path, body, headers);
  }

  bulk(skus: readonly string[]): Promise<Answer> {
    return this.post('/partner/lowest/bulk', { skus });
  }

  lowest(sku: string): Promise<Answer> {
    return this.get(`/partner/lowest/${encodeURIComponent(sku)}`);
  }

  manifest(): Promise<Answer> {
    return this.get('/partner/catalog/manifest');
  }

  delta(since: string): Promise<Answer> {
    return this.get(`/partner/catalog/delta?since=${encodeURIComponent(since)}`);
  }

  /** Returns one page of a list; `query` is appended after the cursor. */
  async page<Row = Order>(
    path: string,
    cursor: string | null = null,
    query: Record<string, string> = {},
  ): Promise<Page<Row>> {
    const search = new URLSearchParams({ ...(cursor === null ? {} : { cursor }), ...query });
    const answer = await this.get(`${path}?${search.toString()}`);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text}`);
    return answer.json as unknown as Page<Row>;
  }

  /** Returns every page of a list, first to last. */
  async pages<Row = Order>(path: string): Promise<Page<Row>[]> {
    const pages: Page<Row>[] = [];
    let cursor: string | null = null;
    do {
      const page: Page<Row> = await this.page<Row>(path, cursor);
      pages.push(page);
      cursor = page.nextCursor;
    } while (cursor !== null && pages.length < 100);
    return pages;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
    await this.sandbox.close();
  }

  #write(method: Method, path: string, body: unknown, headers: Record<string, string>): Promise<Answer> {
    const all = { authorization: this.basic(), 'content-type': 'application/json', ...headers };
    return this.raw(method, path, all, JSON.stringify(body));
  }
}

/** Opens a partner with a small catalog and no randomness in its answers. */
export async function open(options: SandboxOptions = {}): Promise<Partner> {
  return new Partner(await startSandbox({ skus: 60, noopShare: 0, ...options }));
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return {};
  }
}
