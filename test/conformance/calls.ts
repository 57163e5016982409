import type { Answer, Json, Method, Order, Partner } from './support.ts';

/** A call of an endpoint. */
export interface Call {
  /** The endpoint as the partner documents it. */
  endpoint: string;
  method: Method;
  path: string;
  body?: Json;
}

/** Returns the SKUs that the catalog lists as snapshot-priced and that have a record. */
export function quietSkus({ sandbox }: Partner): string[] {
  const rows = [...sandbox.world.truth().values()];
  return rows
    .filter((row) => row.listed && row.priceSource === 'snapshot' && row.answer === 'record')
    .map((row) => row.sku)
    .filter((sku) => /^[A-Z0-9-]+$/.test(sku));
}

/** Returns the SKUs that the catalog lists as live-priced. */
export function liveSkus({ sandbox }: Partner): string[] {
  const rows = [...sandbox.world.truth().values()];
  return rows.filter((row) => row.priceSource === 'live').map((row) => row.sku);
}

/** Returns an order of this supplier in one of these states. */
export async function ownOrder(partner: Partner, ...statuses: string[]): Promise<Order> {
  for (const list of ['processing', 'settled']) {
    for (const { orders } of await partner.pages(`/partner/${list}/orders`)) {
      const found = orders.find(({ status }) => statuses.length === 0 || statuses.includes(status));
      if (found !== undefined) return found;
    }
  }
  throw new Error(`no order in ${statuses.join(', ')}`);
}

/** Creates a listing and returns its identifier. */
export async function list(
  partner: Partner,
  kind: 'ask' | 'preorder',
  price: unknown = 1200,
  size = '42',
): Promise<string> {
  const answer = await partner.post(`/partner/list/${kind}`, { sku: quietSkus(partner)[0], size, price });
  if (answer.status !== 201) throw new Error(`list/${kind}: ${answer.status} ${answer.text}`);
  return String(answer.json['order_id']);
}

/** Returns a call of every endpoint that succeeds with what the account has at the moment. */
export async function everyCall(partner: Partner): Promise<Call[]> {
  const sku = quietSkus(partner)[0] ?? '';
  const { order_id } = await ownOrder(partner, 'process');
  const ask = await list(partner, 'ask');
  const preorder = await list(partner, 'preorder');
  const since = partner.sandbox.world.newestSnapshot() ?? '';
  const listing = { sku, size: '42', price: 1200 };
  const get = (endpoint: string, path = endpoint): Call => ({ endpoint, method: 'GET', path });
  const write = (method: Method, path: string, body: Json): Call => ({ endpoint: path, method, path, body });
  return [
    get('/partner/lowest/{sku}', `/partner/lowest/${sku}`),
    write('POST', '/partner/lowest/bulk', { skus: [sku] }),
    get('/partner/catalog/manifest'),
    get('/partner/catalog/delta', `/partner/catalog/delta?since=${since}`),
    get('/partner/processing/orders'),
    get('/partner/settled/orders'),
    get('/partner/live/listings/{type}', '/partner/live/listings/ask'),
    get('/partner/{order_id}', `/partner/${order_id}`),
    get('/partner/payout/{order_id}', `/partner/payout/${order_id}`),
    get('/partner/label/{orderId}', `/partner/label/${order_id}`),
    write('POST', '/partner/list/ask', listing),
    write('POST', '/partner/list/preorder', listing),
    write('PUT', '/partner/edit/listing', { order_id: ask, price: 1300 }),
    write('PUT', '/partner/edit/preorder', { order_id: preorder, price: 1300 }),
    write('PUT', '/partner/confirm/order', { order_id }),
    write('PUT', '/partner/update/tracking', { orders: [{ order_id, tracking_number: 'TH0001' }] }),
    write('POST', '/partner/batch/r2s', { items: [{ ...listing, quantity: 1 }] }),
  ];
}

/** Sends a call with the account's credential and these additional headers. */
export function send(partner: Partner, call: Call, headers: Record<string, string> = {}): Promise<Answer> {
  const { method, path, body } = call;
  if (method === 'GET') return partner.get(path, headers);
  return method === 'PUT' ? partner.put(path, body, headers) : partner.post(path, body, headers);
}
