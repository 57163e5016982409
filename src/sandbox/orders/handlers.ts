import { type Answer, type Call, invalid, pageOf, readFields, readObject, refused } from '../answer.ts';
import type { Services } from '../routing.ts';
import { isOpen, notFound, type Order, unauthorized } from './order.ts';
import type { Orders } from './orders.ts';
import {
  CONFIRMATION,
  confirmedBody,
  orderBody,
  orderPageBody,
  payoutBody,
  TRACKED,
  TRACKING_DONE,
} from './wire.ts';

const PAGE_SIZE = 100;

/** GET /partner/processing/orders (partner rules 4.3). */
export function answerProcessing(services: Services, { query }: Call): Answer {
  return listOf(services, 'processing', query.get('cursor'), isOpen);
}

/** GET /partner/settled/orders (partner rules 4.3). */
export function answerSettled(services: Services, { query }: Call): Answer {
  return listOf(services, 'settled', query.get('cursor'), (order) => order.status === 'settled');
}

/** GET /partner/{order_id} (partner rules 4.3). */
export function answerOrder(services: Services, { params }: Call): Answer {
  return ofOwnOrder(services.orders, params['order_id'], (order) => ({
    status: 200,
    body: orderBody(services.settings.dialect, order),
  }));
}

/** GET /partner/payout/{order_id} (partner rules 4.3). */
export function answerPayout(services: Services, { params }: Call): Answer {
  return ofOwnOrder(services.orders, params['order_id'], (order) => ({
    status: 200,
    body: payoutBody(services.settings.dialect, order),
  }));
}

function listOf(
  { settings, orders }: Services,
  type: 'processing' | 'settled',
  cursor: string | null,
  fits: (order: Order) => boolean,
): Answer {
  const rows = [...orders].filter((order) => order.own && fits(order));
  const page = pageOf(rows, { endpoint: type, cursor, size: PAGE_SIZE });
  if (page === null) return invalid('invalid cursor');
  return { status: 200, body: orderPageBody(settings.dialect, type, page) };
}

/** PUT /partner/confirm/order (partner rules 4.4): a repeat while the status allows it costs the fee again. */
export function answerConfirm({ orders }: Services, { text }: Call): Answer {
  const body = readObject(text);
  const fields = typeof body === 'string' ? body : readFields(body, CONFIRMATION);
  if (typeof fields === 'string') return invalid(fields);
  return ofOwnOrder(orders, fields.order_id, (order) => {
    if (!orders.confirm(order.id)) return invalid(`status not allowed status: ${order.status}`);
    return { status: 200, body: confirmedBody(order) };
  });
}

/**
 * PUT /partner/update/tracking (partner rules 4.4): one by one; a missing order is skipped, a foreign one stops the
 * call and leaves the earlier ones written. A body of the wrong shape is refused before anything is written (the
 * sandbox's choice).
 */
export function answerTracking({ orders }: Services, { text }: Call): Answer {
  const body = readObject(text);
  if (typeof body === 'string') return invalid(body);
  if (!Array.isArray(body['orders'])) return invalid('orders must be an array');
  const updates = body['orders'].map((row: unknown) => readFields(row, TRACKED));
  const problem = updates.find((update) => typeof update === 'string');
  if (problem !== undefined) return invalid(problem);
  for (const update of updates) {
    if (typeof update === 'string') continue;
    const order = orders.find(update.order_id);
    if (order === undefined) continue;
    if (!order.own) return refused(403, unauthorized(order.id));
    orders.track(order.id, update.tracking_number, update.courier ?? null);
  }
  return { status: 200, body: TRACKING_DONE };
}

/** The answer about an order that has to exist and be the caller's (partner rule 7.4.1). */
export function ofOwnOrder(orders: Orders, id = '', answer: (order: Readonly<Order>) => Answer): Answer {
  const order = orders.find(id);
  if (order === undefined) return invalid(notFound(id));
  return order.own ? answer(order) : invalid('uid not match');
}
