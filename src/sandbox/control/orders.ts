import { type Listing, LISTING_TYPES } from '../listings.ts';
import {
  awaitsConfirmation,
  expectedPayout,
  type Goods,
  type Order,
  type OrderStatus,
} from '../orders/order.ts';
import { createRng, mix } from '../rng.ts';
import type { State } from '../state.ts';
import {
  choice,
  type ControlHandler,
  ControlProblem,
  done,
  duration,
  flag,
  newest,
  orNull,
  readMembers,
  text,
  whole,
  written,
} from './call.ts';

const STATUSES = [
  'pending',
  'pre_order',
  'process',
  'matched',
  'settled',
  'failed',
] as const satisfies OrderStatus[];
const status = choice(...STATUSES);

/** GET /sandbox/orders: lists everything about the last orders, even what the partner does not show. */
export const listOrders: ControlHandler = ({ state }, { query }) => {
  const wanted = query.get('status');
  if (wanted !== null && status.read(wanted) === undefined)
    throw new ControlProblem(400, `status ${status.must}`);
  const orders = [...state.orders].filter((order) => wanted === null || order.status === wanted);
  const { total, rows } = newest(orders, query);
  return done({ total, orders: rows.map(shown) });
};

/** POST /sandbox/orders: a buyer takes one item of a listing, or what the body says, or anything. */
export const placeOrder: ControlHandler = ({ state }, { body }) => {
  const asked = readMembers(body, {
    listing: text,
    sku: text,
    size: text,
    price: whole(1, 100_000_000),
    listing_type: choice(...LISTING_TYPES),
    status,
    own: flag,
  });
  const { listing: id, own = true, status: born = 'pending' } = asked;
  if (id !== undefined) {
    const besides = Object.keys(asked).filter((name) => !['listing', 'status'].includes(name));
    if (besides.length > 0) throw new ControlProblem(400, `a listing has its own ${besides.join(', ')}`);
    const listing = sell(state, id);
    const order = state.orders.place(listing, {
      listingType: listing.listingType,
      status: born,
      own: listing.own,
    });
    return done(shown(order), 201);
  }
  const goods = { ...goodsFor(state, asked.sku), ...given(asked) };
  const order = state.orders.place(goods, { own, status: born, listingType: asked.listing_type ?? 'ask' });
  return done(shown(order), 201);
};

/** PUT /sandbox/orders/{order_id}: moves it as the service's operator can, or sets the time for its confirmation. */
export const moveOrder: ControlHandler = ({ state: { orders } }, { params, body }) => {
  const id = params['order_id'] ?? '';
  const asked = readMembers(body, { status, confirm_within: duration });
  const before = orders.find(id);
  if (before === undefined) throw new ControlProblem(404, `no order ${id}: GET /sandbox/orders lists them`);
  if (Object.keys(asked).length === 0) throw new ControlProblem(400, 'send status or confirm_within');
  const within = asked.confirm_within;
  // An order moved by hand is unconfirmed.
  const after = asked.status === undefined ? before : { status: asked.status, confirmed: false };
  if (within !== undefined && !awaitsConfirmation(after))
    throw new ControlProblem(
      400,
      `${id} does not wait for a confirmation: only an unconfirmed order in process or pre_order does`,
    );
  if (asked.status !== undefined) orders.setStatus(id, asked.status);
  if (within !== undefined) orders.setDeadline(id, within);
  const order = orders.find(id);
  return done(order === undefined ? {} : shown(order));
};

/** GET /sandbox/listings. */
export const listListings: ControlHandler = ({ state }, { query }) => {
  const { total, rows } = newest([...state.listings], query);
  return done({ total, listings: rows.map(shownListing) });
};

/** GET /sandbox/intake: lists the records as they were sent. */
export const listIntake: ControlHandler = ({ state }, { query }) => {
  const { total, rows } = newest([...state.intake], query);
  return done({ total, items: rows });
};

/** PUT /sandbox/account: sets up the supplier's account, and what becomes of its orders. */
export const setAccount: ControlHandler = ({ state: { account, gate, settings } }, { body }) => {
  const asked = readMembers(body, {
    vacation: flag,
    seller_shipping: flag,
    configured: flag,
    auto_confirm: flag,
    confirm_delay: duration,
    confirm_deadline: orNull(duration),
  });
  account.vacation = asked.vacation ?? account.vacation;
  account.sellerShipping = asked.seller_shipping ?? account.sellerShipping;
  gate.authorizer.configured = asked.configured ?? gate.authorizer.configured;
  settings.autoConfirm = asked.auto_confirm ?? settings.autoConfirm;
  settings.confirmDelayMs = asked.confirm_delay ?? settings.confirmDelayMs;
  if (asked.confirm_deadline !== undefined) settings.confirmDeadlineMs = asked.confirm_deadline;
  return done({
    vacation: account.vacation,
    seller_shipping: account.sellerShipping,
    configured: gate.authorizer.configured,
    auto_confirm: settings.autoConfirm,
    confirm_delay_ms: settings.confirmDelayMs,
    confirm_deadline_ms: settings.confirmDeadlineMs,
  });
};

/** POST /sandbox/secret: rotates the secret (partner rule 5.4). */
export const rotateSecret: ControlHandler = ({ state: { gate, settings } }, { body }) => {
  const { secret, overlap = 0 } = readMembers(body, { secret: text, overlap: duration });
  if (secret === undefined) throw new ControlProblem(400, 'send the new secret: {"secret": "…"}');
  gate.authorizer.rotate(secret, overlap, settings.now());
  return done({ api_key: settings.apiKey, secret, old_until: written(settings.now() + overlap) });
};

/** Returns everything known about an order. */
function shown(order: Readonly<Order>): object {
  return {
    order_id: order.id,
    own: order.own,
    status: order.status,
    sku: order.sku,
    size: order.size,
    price: order.price,
    listing_type: order.listingType,
    created_at: written(order.createdAt),
    updated_at: written(order.updatedAt),
    confirmed: order.confirmed,
    confirm_by: written(order.confirmBy),
    moves_at: written(order.movesAt),
    shipping_fees: order.shippingFees,
    deducted: order.deducted,
    expected_payout: expectedPayout(order),
    tracking_number: order.tracking?.number ?? null,
    courier: order.tracking?.courier ?? null,
  };
}

function shownListing({
  id,
  own,
  listingType,
  sku,
  size,
  price,
  quantity,
  createdAt,
  updatedAt,
}: Readonly<Listing>) {
  return {
    order_id: id,
    own,
    listing_type: listingType,
    sku,
    size,
    price,
    quantity,
    created_at: written(createdAt),
    updated_at: written(updatedAt),
  };
}

function sell({ listings }: State, id: string): Readonly<Listing> {
  const sold = listings.sell(id);
  if (sold === null) throw new ControlProblem(404, `no listing ${id}: GET /sandbox/listings lists them`);
  return sold;
}

/** Returns a size of this SKU, or of any, with its price. */
function goodsFor({ world, orders, settings }: State, sku: string | undefined): Goods {
  if (sku === undefined)
    return (
      world.draw(createRng(mix(settings.seed, [...orders].length))) ?? {
        sku: 'AB1234-567',
        size: '9',
        price: 1000,
      }
    );
  const quote = world.quote(sku);
  const [first] = quote.result === 'record' ? quote.sizes : [];
  return { sku, size: first?.[0] ?? '9', price: first?.[1] ?? 1000 };
}

function given({ size, price }: { size?: string; price?: number }): Partial<Goods> {
  return { ...(size === undefined ? {} : { size }), ...(price === undefined ? {} : { price }) };
}
