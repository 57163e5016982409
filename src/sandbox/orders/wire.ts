import type { Page } from '../answer.ts';
import type { Dialect } from '../options.ts';
import { extra, type Json } from '../wire.ts';
import { commissionOf, expectedPayout, type Order } from './order.ts';

// The partner documents `order_id`, `status`, `expected_payout` and the page's three fields (partner rules 2.1, 2.2).
// Every other name and shape in this file is the sandbox's choice.

export const CONFIRMATION = { order_id: 'text' } as const;

/** What each element of a tracking update's `orders` has to hold. */
export const TRACKED = { order_id: 'text', tracking_number: 'text', courier: 'text?' } as const;

export const TRACKING_DONE: Json = { message: 'success' };

/** The order record (partner rules 2.2). */
export function orderBody(dialect: Dialect, order: Order): Json {
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

/** The order list page (partner rules 2.1). */
export function orderPageBody(
  dialect: Dialect,
  type: 'processing' | 'settled',
  { rows, nextCursor }: Page<Order>,
): Json {
  return { type, orders: rows.map((order) => orderBody(dialect, order)), nextCursor };
}

/** The answer to a confirmation: the status as it still is. */
export function confirmedBody({ id, status }: Order): Json {
  return { order_id: id, status };
}

/** The payout of an order. `shipping_fee` is what was recorded, deducted or not. */
export function payoutBody(dialect: Dialect, order: Order): Json {
  return {
    order_id: order.id,
    price: order.price,
    commission_fee: commissionOf(order),
    shipping_fee: order.shippingFees,
    expected_payout: expectedPayout(order),
    ...extra(dialect, { currency: 'THB' }),
  };
}
