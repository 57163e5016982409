import type { Json } from './wire.ts';

/** The routes that the sandbox answers, as the table in routes.ts has them. */
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

/** The routes that the sandbox tells apart; `unknown` = no such route. */
export type Route = RouteName | 'unknown';

/**
 * One thing that goes wrong, on purpose. A request with a fault still counts against the rate limit. `status`, `body`,
 * `reset` and `hang` happen in place of the handler (and of the authorizer); the others bend the handler's answer.
 */
export interface Fault {
  route: Route | '*';
  /** Requests of the route that are let through first. Default 0. */
  after?: number;
  /** Requests that are hit. Default 1; Infinity = until cleared. */
  times?: number;
  status?: number;
  /** An object is sent as JSON, a string as it is. Without `status`, status 200. */
  body?: object | string;
  headers?: Record<string, string>;
  /** What arrives in place of the `Authorization` header, as after a proxy that bends it; null = it is stripped. */
  authorization?: string | null;
  delayMs?: number;
  /** Reset the connection instead of an answer. */
  reset?: true;
  hang?: true;
  /** The request does what it was to do, and its answer is lost: the connection is reset, or nothing ever comes. */
  lost?: 'reset' | 'hang';
  /** Send only so many bytes of the body as it travels, then destroy the connection. */
  truncateAt?: number;
  /** With `truncateAt`: end the answer as if it were whole. */
  clean?: true;
  /** Bends the handler's JSON answer, whatever its status. */
  mutate?(json: Json): object;
  /** Bends the bytes of the manifest file as they travel. */
  file?(body: Buffer): Buffer;
}

/** What a fault does, in a word. */
export function nameOf(fault: Fault): string {
  if (fault.lost !== undefined) return 'lost';
  if (fault.reset) return 'reset';
  if (fault.hang) return 'hang';
  if (fault.status !== undefined || fault.body !== undefined) return 'status';
  return fault.truncateAt === undefined ? 'bent' : 'truncated';
}

/** A fault that was armed, and how far it is. */
export interface ArmedFault {
  readonly id: number;
  readonly fault: Fault;
  /** Requests of its route since then. */
  seen: number;
  hits: number;
}

/** The faults a sandbox has been told to show. The first one that fits a request hits it; the others wait. */
export class Faults {
  #armed: ArmedFault[] = [];
  #lastId = 0;

  [Symbol.iterator](): Iterator<Readonly<ArmedFault>> {
    return this.#armed.values();
  }

  /** Adds a fault, counting its requests from now on; returns how often it has hit so far, as a function. */
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

  /** Clears one of them; false where there is none of this id. */
  disarm(id: number): boolean {
    const rest = this.#armed.filter((armed) => armed.id !== id);
    const isKnown = rest.length < this.#armed.length;
    this.#armed = rest;
    return isKnown;
  }

  /** The fault that hits this request, or undefined; counts the request. */
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
