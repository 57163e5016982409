import { type Answer, invalid } from '../answer.ts';
import type { Order } from './order.ts';
import type { Orders } from './orders.ts';

/** The answer about an order that has to exist and be the caller's (partner rule 7.4.1). */
export function ofOwnOrder(orders: Orders, id = '', answer: (order: Readonly<Order>) => Answer): Answer {
  const order = orders.find(id);
  if (order === undefined) return invalid(notFound(id));
  return order.own ? answer(order) : invalid('uid not match');
}

/** The message about an order or listing that does not exist. */
export function notFound(id: string): string {
  return `not Found order ID: ${id}`;
}

/** The message about somebody else's order on label and tracking (partner rule 7.4.2). */
export function unauthorized(id: string): string {
  return `Unauthorized: order ${id} does not belong to this supplier`;
}
