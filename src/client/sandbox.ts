import { STATUS_CODES } from 'node:http';
import { Agent, request } from 'undici';
import { type OwnSku, startSandbox as startServer } from '../sandbox/index.ts';

/* The sandbox of the partner API, for tests of programs. Importing this starts nothing. */

export type { OwnSku } from '../sandbox/index.ts';

export interface SandboxOptions {
  /**
   * The clock stands at this time until `control.advance`, and equal calls give equal answers. By default it
   * follows the clock of this machine.
   */
  readonly now?: Date;
  /** Seed of the catalog, the orders and all events; 1 by default. */
  readonly seed?: number;
  /** Number of generated SKUs; 5000 by default, none if `catalog` is given. */
  readonly skus?: number;
  /** SKUs of your own. */
  readonly catalog?: readonly OwnSku[];
  /** Port on 127.0.0.1; any free one by default. */
  readonly port?: number;
  /** Requests let through in any rolling minute; 200 by default. */
  readonly rateLimit?: number;
}

/** Why a control call failed; `status` is HTTP's. */
export class SandboxControlError extends Error {
  override readonly name = 'SandboxControlError';
  readonly kind = 'sandbox-control';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

type Answer = Readonly<Record<string, unknown>>;

/** Changes the sandbox's world. Each method rejects with SandboxControlError if that is impossible. */
export interface SandboxControl {
  /** Runs this many market intervals: prices move, listings sell, orders progress. */
  step(steps?: number): Promise<void>;
  /** Builds a catalog snapshot of the present market, which manifest and delta then answer; returns its identifier. */
  snapshot(): Promise<string>;
  /** Advances the clock, through everything that happens on the way. */
  advance(ms: number): Promise<void>;
  /** Changes or adds a SKU. It then has only the named sizes; null stands for a size without a price. */
  setSku(sku: string, change: SkuChanges): Promise<void>;
  /** Returns to the initial state, with the same seed or another. */
  reset(seed?: number): Promise<void>;
  /**
   * Calls any other control route of docs/sandbox.md, such as `call('POST', '/sandbox/faults', { route: 'bulk',
   * status: 500 })`.
   */
  call(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: `/sandbox/${string}`, body?: object): Promise<Answer>;
}

export interface SkuChanges {
  readonly sizes?: Readonly<Record<string, number | null>>;
  readonly price_source?: 'snapshot' | 'live';
  readonly size_type?: string;
  readonly product?: Readonly<Record<string, string>>;
  readonly removed?: boolean;
}

/** A running sandbox. */
export interface Sandbox extends AsyncDisposable {
  /** `{base_url}` of the partner API, without a trailing slash. */
  readonly url: string;
  readonly apiKey: string;
  readonly secret: string;
  /** Environment variables for a mirror of this sandbox. */
  readonly env: Readonly<Record<'PARTNER_BASE_URL' | 'PARTNER_API_KEY' | 'PARTNER_SECRET', string>>;
  readonly control: SandboxControl;
  /** Stops the sandbox and closes every open connection. */
  close(): Promise<void>;
}

/**
 * Starts a sandbox in this process. Market and snapshots stand still until `control` moves them. Rejects with the
 * server's error if the port is taken.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { now, catalog, ...rest } = options;
  const skus = options.skus ?? (catalog === undefined ? undefined : 0);
  const server = await startServer({
    ...rest,
    ...(skus !== undefined && { skus }),
    ...(catalog !== undefined && { catalog }),
    startAt: now?.getTime() ?? null,
  });
  const { url, apiKey, secret } = server;
  return {
    url,
    apiKey,
    secret,
    env: { PARTNER_BASE_URL: url, PARTNER_API_KEY: apiKey, PARTNER_SECRET: secret },
    control: controlOf(url),
    close: () => server.close(),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

function controlOf(url: string): SandboxControl {
  // Node.js may make a proxy the default for all requests (NODE_USE_ENV_PROXY).
  const dispatcher = new Agent();
  const call: SandboxControl['call'] = async (method, path, body) => {
    const { statusCode, body: answered } = await request(`${url}${path}`, {
      dispatcher,
      method,
      ...(body !== undefined && {
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
    const answer = (await answered.json()) as Answer;
    const { message = STATUS_CODES[statusCode] ?? '' } = answer as { message?: string };
    if (statusCode < 200 || statusCode > 299) throw new SandboxControlError(statusCode, message);
    return answer;
  };
  return {
    call,
    step: async (steps = 1) => void (await call('POST', '/sandbox/step', { steps })),
    snapshot: async () => String((await call('POST', '/sandbox/snapshots'))['snapshot_id']),
    advance: async (ms) => void (await call('POST', '/sandbox/clock', { advance: `${ms}ms` })),
    setSku: async (sku, change) =>
      void (await call('PUT', `/sandbox/skus/${encodeURIComponent(sku)}`, change)),
    reset: async (seed) => void (await call('POST', '/sandbox/reset', seed === undefined ? {} : { seed })),
  };
}
