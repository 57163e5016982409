import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody } from '../requests.ts';
import { createMatcher, decodeParams, lineOfRoute } from '../routing.ts';
import type { State } from '../state.ts';
import { type Example, withGoods } from '../try-it.ts';
import { type ControlAnswer, type ControlHandler, ControlProblem, type ControlTarget, done } from './call.ts';
import { armFault, clearFaults, clearRequests, disarmFault, listFaults, listRequests } from './faults.ts';
import { refusalOf } from './guard.ts';
import {
  buildSnapshot,
  dropSnapshots,
  listHints,
  moveClock,
  release,
  reset,
  setCatalog,
  setSku,
  showSku,
  showState,
  step,
} from './market.ts';
import {
  listIntake,
  listListings,
  listOrders,
  moveOrder,
  placeOrder,
  rotateSecret,
  setAccount,
} from './orders.ts';

const PREFIX = '/sandbox';

export interface ControlRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly summary: string;
  readonly handle: ControlHandler;
  /** A call that does something now; absent if the path alone does. */
  readonly example?: (state: State) => Example;
}

/** All control routes. Dispatch, the page and the help read this table. */
export const CONTROL_ROUTES: readonly ControlRoute[] = [
  {
    method: 'GET',
    path: '/sandbox/state',
    summary: 'seed, clock, catalog, budget left, counts',
    handle: showState,
  },
  {
    method: 'POST',
    path: '/sandbox/step',
    summary: 'lets the market go on by steps',
    handle: step,
    example: () => ({ body: { steps: 10, snapshot: true } }),
  },
  { method: 'POST', path: '/sandbox/releases', summary: 'a line (brand and model) moves', handle: release },
  { method: 'GET', path: '/sandbox/hints', summary: 'SKUs that have probably moved', handle: listHints },
  {
    method: 'POST',
    path: '/sandbox/clock',
    summary: 'puts the clock ahead',
    handle: moveClock,
    example: () => ({ body: { advance: '1m' } }),
  },
  {
    method: 'GET',
    path: '/sandbox/orders',
    summary: 'orders with fees, deadline and tracking',
    handle: listOrders,
  },
  {
    method: 'POST',
    path: '/sandbox/orders',
    summary: 'a buyer takes something',
    handle: placeOrder,
    example: () => ({ body: { status: 'process' } }),
  },
  {
    method: 'PUT',
    path: '/sandbox/orders/{order_id}',
    summary: 'moves an order',
    handle: moveOrder,
    example: (state) => anyOrder(state, { status: 'settled' }),
  },
  { method: 'GET', path: '/sandbox/listings', summary: 'listings of every seller', handle: listListings },
  { method: 'GET', path: '/sandbox/intake', summary: 'intake records as sent', handle: listIntake },
  {
    method: 'PUT',
    path: '/sandbox/account',
    summary: 'sets the account',
    handle: setAccount,
    example: () => ({ body: { confirm_deadline: '30m' } }),
  },
  {
    method: 'POST',
    path: '/sandbox/secret',
    summary: 'rotates the secret',
    handle: rotateSecret,
    example: ({ gate }) => ({ body: { secret: gate.authorizer.secret, overlap: '5m' } }),
  },
  {
    method: 'GET',
    path: '/sandbox/skus/{sku}',
    summary: 'what is true of a SKU',
    handle: showSku,
    example: anySku,
  },
  {
    method: 'PUT',
    path: '/sandbox/skus/{sku}',
    summary: 'changes or adds a SKU',
    handle: setSku,
    example: (state) => ({ ...anySku(state), body: { failing: false } }),
  },
  { method: 'POST', path: '/sandbox/snapshots', summary: 'builds a snapshot', handle: buildSnapshot },
  {
    method: 'DELETE',
    path: '/sandbox/snapshots',
    summary: 'drops all snapshots: 0012',
    handle: dropSnapshots,
  },
  {
    method: 'PUT',
    path: '/sandbox/catalog',
    summary: '0010, 0013, 0014, incident, URLs',
    handle: setCatalog,
    example: () => ({ body: { builder: 'running' } }),
  },
  { method: 'GET', path: '/sandbox/faults', summary: 'armed faults and their hits', handle: listFaults },
  {
    method: 'POST',
    path: '/sandbox/faults',
    summary: 'arms a fault',
    handle: armFault,
    example: () => ({ body: LOST }),
  },
  {
    method: 'DELETE',
    path: '/sandbox/faults/{id}',
    summary: 'clears one fault',
    handle: disarmFault,
    example: anyFault,
  },
  { method: 'DELETE', path: '/sandbox/faults', summary: 'clears all faults', handle: clearFaults },
  { method: 'GET', path: '/sandbox/requests', summary: 'the last requests of clients', handle: listRequests },
  { method: 'DELETE', path: '/sandbox/requests', summary: 'forgets the requests', handle: clearRequests },
  { method: 'POST', path: '/sandbox/reset', summary: 'everything as at start', handle: reset },
];

/** The fault that costs money: a confirmation that took place but whose answer never came. */
const LOST = { route: 'confirm_order', lost: 'reset' };

function anyOrder({ orders }: State, body: object): Example {
  const [order] = [...orders].filter(({ own }) => own);
  if (order === undefined)
    return { first: { method: 'POST', target: '/sandbox/orders', body: { status: 'process' } } };
  return { target: `/sandbox/orders/${order.id}`, body };
}

function anySku(state: State): Example {
  return withGoods(state, ({ sku }) => ({ target: `/sandbox/skus/${encodeURIComponent(sku)}` }));
}

function anyFault({ faults }: State): Example {
  const [fault] = faults;
  if (fault === undefined) return { first: { method: 'POST', target: '/sandbox/faults', body: LOST } };
  return { target: `/sandbox/faults/${fault.id}` };
}

const BY_NAME = Object.fromEntries(CONTROL_ROUTES.map((route) => [`${route.method} ${route.path}`, route]));
const matchControl = createMatcher(BY_NAME);

/** Returns the control routes as lines of text: method, path, what it does. */
export function controlLines(): string[] {
  return CONTROL_ROUTES.map(lineOfRoute);
}

/** The routes that control the sandbox itself: off the partner's paths, without its credential, and not counted. */
export class ControlRoutes {
  readonly #target: ControlTarget;

  constructor(target: ControlTarget) {
    this.#target = target;
  }

  /** Returns whether the request's path is one of these routes or below them. */
  serves({ url = '' }: Pick<IncomingMessage, 'url'>): boolean {
    return /^\/sandbox(?:[/?]|$)/.test(url);
  }

  /** Never rejects. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => response.destroy());
    const { status, body } = await this.#answer(request).catch(answerTo);
    const bytes = Buffer.from(`${JSON.stringify(body, null, 2)}\n`);
    const { settings } = this.#target.state;
    response.writeHead(status, {
      Date: new Date(settings.now()).toUTCString(),
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(bytes.length),
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
    });
    response.end(request.method === 'HEAD' ? undefined : bytes);
    settings.log?.(
      `${new Date(settings.now()).toISOString()} ${request.method} ${pathOf(request)} ${status} (control)`,
    );
  }

  async #answer(request: IncomingMessage): Promise<ControlAnswer> {
    const { method = '', headers, socket } = request;
    const { controlToken } = this.#target.state.settings;
    const refused = refusalOf({ method, headers, remoteAddress: socket.remoteAddress }, controlToken);
    if (refused !== null) throw new ControlProblem(refused.status, refused.message);
    const [path = '', search = ''] = (request.url ?? '').split(/\?(.*)/s);
    const match = matchControl(method, path);
    const route = match === null ? undefined : BY_NAME[match.name];
    if (match === null || route === undefined) throw noSuchRoute(method, path);
    const params = decodeParams(match.params);
    if (typeof params === 'string') throw new ControlProblem(400, params);
    const body = await readBody(request);
    if (body === null) throw new ControlProblem(413, 'the body is too large');
    return route.handle(this.#target, { params, query: new URLSearchParams(search), body });
  }
}

function noSuchRoute(method: string, path: string): ControlProblem {
  const others = CONTROL_ROUTES.filter(
    (route) => matchControl(route.method, path)?.name === `${route.method} ${route.path}`,
  );
  if (others.length > 0)
    return new ControlProblem(
      405,
      `${path} takes ${others.map((other) => other.method).join(', ')}, not ${method}`,
    );
  return new ControlProblem(404, `no such control route; GET / lists them all, below ${PREFIX}/`);
}

function answerTo(error: unknown): ControlAnswer {
  if (error instanceof ControlProblem) return done({ message: error.message }, error.status);
  return done({ message: 'the sandbox failed; this is a defect of it' }, 500);
}

/** Returns the path without the query, on one line whatever was sent. */
function pathOf({ url = '' }: IncomingMessage): string {
  return encodeURI(url.split('?')[0] ?? '').replaceAll('%25', '%');
}
