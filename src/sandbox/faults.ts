import type { Json } from './wire.ts';

/** The routes that the sandbox answers, as the table in routes.ts names them. */
export type RouteName =
  | 'manifest'
  | 'delta'
  | 'lowest'
  | 'bulk'
  | 'processing_orders'
  | 'settled_orders'
  | 'order'
  | 'payout'
  | 'label'
  | 'confirm_order'
  | 'tracking'
  | 'live_listings'
  | 'list_ask'
  | 'list_preorder'
  | 'edit_listing'
  | 'edit_preorder'
  | 'batch_r2s'
  | 'file'
  | 'label_file'
  | 'routes_page';

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
  /** Send only so many bytes of the body as it travels, then destroy the connection. */
  truncateAt?: number;
  /** With `truncateAt`: end the answer as if it were whole. */
  clean?: true;
  /** Bends the handler's JSON answer, whatever its status. */
  mutate?(json: Json): object;
  /** Bends the bytes of the manifest file as they travel. */
  file?(body: Buffer): Buffer;
}

interface Armed {
  readonly fault: Fault;
  seen: number;
  hits: number;
}

/** The faults a sandbox has been told to show. The first one that fits a request hits it; the others wait. */
export class Faults {
  #armed: Armed[] = [];

  /** Adds a fault, counting its requests from now on; returns how often it has hit so far, as a function. */
  add(fault: Fault): () => number {
    const armed = { fault, seen: 0, hits: 0 };
    this.#armed.push(armed);
    return () => armed.hits;
  }

  clear(): void {
    this.#armed = [];
  }

  /** The fault that hits this request, or undefined; counts the request. */
  take(route: Route): Fault | undefined {
    let hit: Armed | undefined;
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
