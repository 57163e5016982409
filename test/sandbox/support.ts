import { gunzipSync } from 'node:zlib';
import { startSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/index.ts';

/** A wall clock that advances only when told to. */
export class HandClock {
  #now = Date.UTC(2026, 10, 21, 9, 0, 0, 125);
  readonly now = (): number => this.#now;

  advance(ms: number): void {
    this.#now += ms;
  }
}

export interface Seen {
  status: number;
  headers: Headers;
  text: string;
  json: Body;
}

export type Body = Record<string, unknown> & {
  results: Record<string, Record<string, unknown>>;
  changed: string[];
  removed: string[];
  now_live: string[];
  not_found: string[];
  deferred: string[];
  errors: string[];
  to_snapshot: string;
  snapshot_id: string;
  url: string;
  orders: Row[];
  listings: Row[];
  nextCursor: string | null;
};

/** A row of the order and listing lists. */
export type Row = Record<string, unknown> & {
  order_id: string;
  status: string;
  price: number;
  created_at: string;
};

export interface Line {
  sku: string;
  sizes: number;
  hash: string | null;
  price_source: string;
  updated_at: string;
}

/** A sandbox with a caller that signs its requests. */
export class Caller {
  readonly sandbox: Sandbox;

  constructor(sandbox: Sandbox) {
    this.sandbox = sandbox;
  }

  basic(user = this.sandbox.apiKey, password = this.sandbox.secret): string {
    return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  }

  async send(path: string, init: RequestInit = {}): Promise<Seen> {
    const headers = { authorization: this.basic(), ...(init.headers as Record<string, string> | undefined) };
    return read(await fetch(this.sandbox.url + path, { ...init, headers }));
  }

  manifest(): Promise<Seen> {
    return this.send('/partner/catalog/manifest');
  }

  delta(since: string): Promise<Seen> {
    return this.send(`/partner/catalog/delta?since=${encodeURIComponent(since)}`);
  }

  lowest(sku: string): Promise<Seen> {
    return this.send(`/partner/lowest/${encodeURIComponent(sku)}`);
  }

  bulk(skus: unknown, key = 'skus', more: Record<string, unknown> = {}): Promise<Seen> {
    const body = JSON.stringify({ ...more, [key]: skus });
    return this.send('/partner/lowest/bulk', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    });
  }

  /** Sends a write with a JSON body. */
  write(method: 'POST' | 'PUT', path: string, body: unknown): Promise<Seen> {
    return this.send(path, { method, body: typeof body === 'string' ? body : JSON.stringify(body) });
  }

  /** Returns every page of a list, from the first to the one without a next cursor. */
  async pages(path: string, key: 'orders' | 'listings'): Promise<Row[][]> {
    const all: Row[][] = [];
    for (let target: string | null = path; target !== null;) {
      const { json }: Seen = await this.send(target);
      all.push(json[key]);
      target = json.nextCursor === null ? null : `${path}?cursor=${json.nextCursor}`;
    }
    return all;
  }

  async lines(url?: string): Promise<Line[]> {
    const response = await fetch(url ?? (await this.manifest()).json.url);
    return parseLines(gunzipSync(Buffer.from(await response.arrayBuffer())));
  }
}

/** Starts a sandbox and returns its caller. */
export async function start(options: SandboxOptions = {}): Promise<Caller> {
  return new Caller(await startSandbox({ skus: 60, noopShare: 0, ...options }));
}

export function parseLines(ndjson: Buffer): Line[] {
  const text = ndjson.toString('utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
}

export async function read(response: Response): Promise<Seen> {
  const text = await response.text();
  let json: unknown = null;
  try {
    json = JSON.parse(text);
  } catch {
    // Some answers are not JSON; their tests use the text.
  }
  return { status: response.status, headers: response.headers, text, json: json as Body };
}

/** Returns the matching SKUs of the current truth, in catalog order. */
export function skusWhere(
  caller: Caller,
  fits: (row: { listed: boolean; priceSource: string | null; answer: string }) => boolean,
): string[] {
  return [...caller.sandbox.world.truth().values()].filter(fits).map((row) => row.sku);
}
