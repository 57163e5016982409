import type { ListingType, OrderStatus } from './orders/order.ts';
import { createRng } from './rng.ts';
import type { State } from './state.ts';

/** A request as the page shows it. */
export interface Example {
  readonly target?: string;
  readonly body?: object;
  /** A request that must come first, so that this one can succeed; it is shown instead. */
  readonly first?: { readonly method: string; readonly target: string; readonly body?: object };
}

const UNKNOWN = 'AB1234-567';

/** Returns a size that is on the market, with its price; `UNKNOWN` if hardly any is. */
function sellable({ world }: Pick<State, 'world'>): { sku: string; size: string; price: number } {
  return world.draw(createRng(1)) ?? { sku: UNKNOWN, size: '9', price: 1000 };
}

/** GET /partner/catalog/manifest. */
export function manifestExample(state: State): Example {
  return withSnapshot(state, () => ({}));
}

/** GET /partner/catalog/delta since the newest snapshot. */
export function deltaExample(state: State): Example {
  return withSnapshot(state, (id) => ({ target: `/partner/catalog/delta?since=${encodeURIComponent(id)}` }));
}

/** GET /partner/lowest/{sku} for a SKU with prices. */
export function lowestExample(state: State): Example {
  return withGoods(state, ({ sku }) => ({ target: `/partner/lowest/${encodeURIComponent(sku)}` }));
}

/** POST /partner/lowest/bulk for a SKU with prices. */
export function bulkExample(state: State): Example {
  return withGoods(state, ({ sku }) => ({ body: { [state.settings.dialect.bulkBodyKey]: [sku] } }));
}

/** A read below `prefix` for an order in `process`. */
export function orderExample(prefix: string): (state: State) => Example {
  return (state) => withOrder(state, ['process'], (id) => ({ target: prefix + id }));
}

/** PUT /partner/confirm/order for an order that may be confirmed. */
export function confirmExample(state: State): Example {
  return withOrder(state, ['process'], (order_id) => ({ body: { order_id } }));
}

/** PUT /partner/update/tracking for an order that was confirmed. */
export function trackingExample(state: State): Example {
  return withOrder(state, ['matched', 'process'], (order_id) => ({
    body: { orders: [{ order_id, tracking_number: 'TH0123456789', courier: 'Flash' }] },
  }));
}

export function creationExample(state: State): Example {
  return withGoods(state, (goods) => ({ body: { ...goods, quantity: 1 } }));
}

export function editExample(listingType: ListingType): (state: State) => Example {
  return (state) => {
    const listing = [...state.listings].find((found) => found.own && found.listingType === listingType);
    if (listing !== undefined) return { body: { order_id: listing.id, price: 1990 } };
    const { first, body } = creationExample(state);
    if (first !== undefined) return { first };
    return { first: { method: 'POST', target: `/partner/list/${listingType}`, ...(body && { body }) } };
  };
}

/** POST /partner/batch/r2s for a SKU that the catalog knows. */
export function intakeExample(state: State): Example {
  return withGoods(state, (goods) => ({ body: { items: [{ ...goods, quantity: 2 }] } }));
}

export function manifestFileExample(state: State): Example {
  const { settings, world, presigner } = state;
  return withSnapshot(state, (id) => ({
    target: presigner.sign(id, settings.now() + settings.urlTtlMs, world.urlGeneration),
  }));
}

export function labelFileExample(state: State): Example {
  const { settings, labels } = state;
  return withOrder(state, ['process'], (id) => ({
    target: labels.sign(id, settings.now() + settings.urlTtlMs),
  }));
}

function withSnapshot({ world }: State, example: (id: string) => Example): Example {
  const snapshot = world.servable();
  if (typeof snapshot !== 'string') return example(snapshot.id);
  if (world.builderRuns()) return { first: { method: 'POST', target: '/sandbox/snapshots' } };
  return { first: { method: 'PUT', target: '/sandbox/catalog', body: { builder: 'running' } } };
}

/** Creates an example with something that is on the market; if hardly anything is, one that puts something there. */
export function withGoods(state: State, example: (goods: ReturnType<typeof sellable>) => Example): Example {
  const goods = sellable(state);
  if (state.world.knows(goods.sku)) return example(goods);
  return { first: { method: 'PUT', target: `/sandbox/skus/${UNKNOWN}`, body: { sizes: { '9': 1000 } } } };
}

/** Creates an example with the account's oldest order in the first of these states that has any. */
function withOrder(
  { orders }: State,
  statuses: readonly OrderStatus[],
  example: (id: string) => Example,
): Example {
  for (const status of statuses) {
    const order = [...orders].find((each) => each.own && each.status === status);
    if (order !== undefined) return example(order.id);
  }
  return { first: { method: 'POST', target: '/sandbox/orders', body: { status: 'process' } } };
}
