import { type Answer, type Call, invalid } from '../answer.ts';
import { pageOf } from '../cursor.ts';
import type { Services } from '../services.ts';
import { isOpen, type Order } from './order.ts';
import { ofOwnOrder } from './owned.ts';
import { orderBody, orderPageBody, payoutBody } from './wire.ts';

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
