import type { Json } from './wire.ts';

/** The routes that the sandbox answers, named as in the table of routes.ts. */
export const ROUTE_NAMES = [
  'manifest',
  'delta',
  'lowest',
  'bulk',
  'processing_orders',
  'settled_orders',
  'order',
  'payout',
  'label',
  'confirm_order',
  'tracking',
  'live_listings',
  'list_ask',
  'list_preorder',
  'edit_listing',
  'edit_preorder',
  'batch_r2s',
  'file',
  'label_file',
  'routes_page',
] as const;

export type RouteName = (typeof ROUTE_NAMES)[number];

/** The routes that the sandbox distinguishes; `unknown` means that there is no such route. */
export type Route = RouteName | 'unknown';

/**
 * One thing that goes wrong on purpose. A request with a fault still counts against the rate limit. `status`,
 * `body`, `reset` and `hang` replace the handler (and the authorizer); the others change the handler's answer.
 */
export interface Fault {
  route: Route | '*';
  /** Requests of the route that pass first; 0 by default. */
  after?: number;
  /** Requests that are hit; 1 by default, Infinity until cleared. */
  times?: number;
  status?: number;
  /** An object is sent as JSON, a string as it is. Without `status`, the status is 200. */
  body?: object | string;
  headers?: Record<string, string>;
  /** What arrives instead of the `Authorization` header, as after a proxy that changes it; null if it is stripped. */
  authorization?: string | null;
  delayMs?: number;
  /** Resets the connection instead of answering. */
  reset?: true;
  hang?: true;
  /** The request takes effect but its answer is lost: the connection is reset, or nothing ever comes. */
  lost?: 'reset' | 'hang';
  /** Sends only this many bytes of the body as transmitted, then destroys the connection. */
  truncateAt?: number;
  /** With `truncateAt`: ends the answer as if it were complete. */
  clean?: true;
  /** Changes the handler's JSON answer, whatever its status. */
  mutate?(json: Json): object;
  /** Changes the bytes of the manifest file as transmitted. */
  file?(body: Buffer): Buffer;
}

/** Names in a word what a fault does. */
export function nameOf(fault: Fault): string {
  if (fault.lost !== undefined) return 'lost';
  if (fault.reset) return 'reset';
  if (fault.hang) return 'hang';
  if (fault.status !== undefined || fault.body !== undefined) return 'status';
  return fault.truncateAt === undefined ? 'bent' : 'truncated';
}

/** An armed fault and its progress. */
export interface ArmedFault {
  readonly id: number;
  readonly fault: Fault;
  /** Requests of its route since then. */
  seen: number;
  hits: number;
}

/** The armed faults of a sandbox. The first one that fits a request hits it; the others wait. */
export class Faults {
  #armed: ArmedFault[] = [];
  #lastId = 0;

  [Symbol.iterator](): Iterator<Readonly<ArmedFault>> {
    return this.#armed.values();
  }

  /** Adds a fault that counts requests from now on; returns a function that tells how often it has hit. */
  add(fault: Fault): () => number {
    const armed = this.arm(fault);
    return () => armed.hits;
  }

  arm(fault: Fault): Readonly<ArmedFault> {
    this.#lastId += 1;
    const armed = { id: this.#lastId, fault, seen: 0, hits: 0 };
    this.#armed.push(armed);
    return armed;
  }

  clear(): void {
    this.#armed = [];
  }

  /** Clears one of them; returns false if there is none with this id. */
  disarm(id: number): boolean {
    const rest = this.#armed.filter((armed) => armed.id !== id);
    const isKnown = rest.length < this.#armed.length;
    this.#armed = rest;
    return isKnown;
  }

  /** Counts the request and returns the fault that hits it, or undefined. */
  take(route: Route): Fault | undefined {
    let hit: ArmedFault | undefined;
    for (const armed of this.#armed) {
      if (armed.fault.route !== '*' && armed.fault.route !== route) continue;
      armed.seen += 1;
      const ready = armed.seen > (armed.fault.after ?? 0) && armed.hits < (armed.fault.times ?? 1);
      if (ready) hit ??= armed;
    }
    if (hit === undefined) return undefined;
    hit.hits += 1;
    return hit.fault;
  }
}
