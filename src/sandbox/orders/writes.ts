import { type Answer, type Call, invalid, readObject, refused } from '../answer.ts';
import { readFields } from '../fields.ts';
import type { Services } from '../services.ts';
import { ofOwnOrder, unauthorized } from './owned.ts';
import { CONFIRMATION, confirmedBody, TRACKED, TRACKING_DONE } from './wire.ts';

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
 * PUT /partner/update/tracking (partner rules 4.4): one by one; a missing order is skipped, a foreign one stops the call and
 * leaves the earlier ones written. A body of the wrong shape is refused before anything is written (the sandbox's choice).
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
