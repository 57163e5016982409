import type { Partner } from './support.ts';

/** The goods of an order; the prices in the tests are round so that fees show. */
export const GOODS = { sku: 'CONF-001', size: '42', price: 5000 };

/** Places a new order of the account in a state. */
export function orderIn(
  partner: Partner,
  status: 'pending' | 'pre_order' | 'process' | 'matched' | 'settled' | 'failed',
): string {
  return partner.sandbox.orders.place(GOODS, { status }).id;
}

/** Places a new order of another supplier. */
export function foreignOrder(
  partner: Partner,
  status: 'pending' | 'process' | 'settled' = 'process',
): string {
  return partner.sandbox.orders.place(GOODS, { status, own: false }).id;
}

/** Returns the tracking number stored with an order; null = none. */
export function trackingOf(partner: Partner, orderId: string): string | null {
  return partner.sandbox.orders.find(orderId)?.tracking?.number ?? null;
}

/** Returns the shipping fees recorded against an order, in baht. */
export function feesOf(partner: Partner, orderId: string): number {
  return partner.sandbox.orders.find(orderId)?.shippingFees ?? 0;
}

/** Returns the stored intake records, oldest first. */
export function intake(
  partner: Partner,
): { sku: unknown; size: unknown; price: unknown; quantity: unknown }[] {
  return [...partner.sandbox.intake].map(({ sku, size, price, quantity }) => ({
    sku,
    size,
    price,
    quantity,
  }));
}
