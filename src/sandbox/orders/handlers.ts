import {
  type Answer,
  type Call,
  invalid,
  type Page,
  pageOf,
  readFields,
  readObject,
  refused,
} from '../answer.ts';
import type { Dialect } from '../options.ts';
import type { Services } from '../routing.ts';
import { extra, type Json } from '../wire.ts';
import { commissionOf, expectedPayout, isOpen, notFound, type Order, unauthorized } from './order.ts';
import type { Orders } from './orders.ts';

// The partner documents `order_id`, `status`, `expected_payout` and the page's three fields (partner rules 2.1,
// 2.2). All other names and shapes are the sandbox's choice.

const CONFIRMATION = { order_id: 'text' } as const;

/** Members of each element of a tracking update's `orders`. */
const TRACKED = { order_id: 'text', tracking_number: 'text', courier: 'text?' } as const;

const TRACKING_DONE: Json = { message: 'success' };

/** Creates the order record (partner rules 2.2). */
function orderBody(dialect: Dialect, order: Order): Json {
  return {
    order_id: order.id,
    status: order.status,
    expected_payout: expectedPayout(order),
    sku: order.sku,
    size: order.size,
    price: order.price,
    listing_type: order.listingType,
    created_at: new Date(order.createdAt).toISOString(),
    updated_at: new Date(order.updatedAt).toISOString(),
    ...extra(dialect, { tracking_number: order.tracking?.number ?? null }),
  };
}

/** Creates a page of the order list (partner rules 2.1). */
function orderPageBody(
  dialect: Dialect,
  type: 'processing' | 'settled',
  { rows, nextCursor }: Page<Order>,
): Json {
  return { type, orders: rows.map((order) => orderBody(dialect, order)), nextCursor };
}

/** Creates the answer to a confirmation: the status as it still is. */
function confirmedBody({ id, status }: Order): Json {
  return { order_id: id, status };
}

/** Creates the payout of an order. `shipping_fee` is what was recorded, deducted or not. */
function payoutBody(dialect: Dialect, order: Order): Json {
  return {
    order_id: order.id,
    price: order.price,
    commission_fee: commissionOf(order),
    shipping_fee: order.shippingFees,
    expected_payout: expectedPayout(order),
    ...extra(dialect, { currency: 'THB' }),
  };
}

const PAGE_SIZE = 100;

/** Answers GET /partner/processing/orders (partner rules 4.3). */
export function answerProcessing(services: Services, { query }: Call): Answer {
  return listOf(services, 'processing', query.get('cursor'), isOpen);
}

/** Answers GET /partner/settled/orders (partner rules 4.3). */
export function answerSettled(services: Services, { query }: Call): Answer {
  return listOf(services, 'settled', query.get('cursor'), (order) => order.status === 'settled');
}

/** Answers GET /partner/{order_id} (partner rules 4.3). */
export function answerOrder(services: Services, { params }: Call): Answer {
  return ofOwnOrder(services.orders, params['order_id'], (order) => ({
    status: 200,
    body: orderBody(services.settings.dialect, order),
  }));
}

/** Answers GET /partner/payout/{order_id} (partner rules 4.3). */
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

/** Answers PUT /partner/confirm/order (partner rules 4.4). A repeat that the status allows costs the fee again. */
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
 * Answers PUT /partner/update/tracking (partner rules 4.4), one by one. A missing order is skipped; another
 * supplier's order ends the call, and what was written stays. A body of the wrong shape is refused before anything
 * is written (the sandbox's choice).
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

/** Answers about an order that must exist and be the caller's (partner rule 7.4.1). */
function ofOwnOrder(orders: Orders, id = '', answer: (order: Readonly<Order>) => Answer): Answer {
  const order = orders.find(id);
  if (order === undefined) return invalid(notFound(id));
  return order.own ? answer(order) : invalid('uid not match');
}
