import type { ListingType, OrderStatus } from './orders/order.ts';
import { createRng } from './rng.ts';
import type { Example } from './routing.ts';
import type { Services } from './services.ts';

const NOTHING = { sku: 'AB1234-567', size: '9', price: 1000 };

/** GET /partner/lowest/{sku} of a SKU that has prices. */
export function lowestExample(services: Services): Example {
  return { target: `/partner/lowest/${encodeURIComponent(goods(services).sku)}` };
}

/** POST /partner/lowest/bulk of a SKU that has prices. */
export function bulkExample(services: Services): Example {
  return { body: { [services.settings.dialect.bulkBodyKey]: [goods(services).sku] } };
}

/** GET /partner/catalog/delta since the newest snapshot. */
export function deltaExample({ world }: Services): Example {
  return { target: `/partner/catalog/delta?since=${encodeURIComponent(world.newestSnapshot() ?? '')}` };
}

/** A read below `prefix` of an order in `process`. */
export function orderExample(prefix: string): (services: Services) => Example {
  return (services) => ({ target: prefix + orderIn(services, 'process') });
}

/** PUT /partner/confirm/order of an order that may be confirmed. */
export function confirmExample(services: Services): Example {
  return { body: { order_id: orderIn(services, 'process') } };
}

/** PUT /partner/update/tracking of an order that was confirmed. */
export function trackingExample(services: Services): Example {
  const order_id = orderIn(services, 'matched');
  return { body: { orders: [{ order_id, tracking_number: 'TH0123456789', courier: 'Flash' }] } };
}

export function creationExample(services: Services): Example {
  return { body: { ...goods(services), quantity: 1 } };
}

export function editExample(listingType: ListingType): (services: Services) => Example {
  return ({ listings }) => {
    const listing = [...listings].find((found) => found.own && found.listingType === listingType);
    return { body: { order_id: listing?.id ?? 'L-000001', price: 1990 } };
  };
}

/** POST /partner/batch/r2s of a SKU that the catalog knows. */
export function intakeExample(services: Services): Example {
  return { body: { items: [{ ...goods(services), quantity: 2 }] } };
}

export function manifestFileExample({ settings, world, presigner }: Services): Example {
  const id = world.newestSnapshot();
  if (id === null) return {};
  return { target: presigner.sign(id, settings.now() + settings.urlTtlMs, world.urlGeneration) };
}

export function labelFileExample(services: Services): Example {
  const { settings, labels } = services;
  return { target: labels.sign(orderIn(services, 'process'), settings.now() + settings.urlTtlMs) };
}

function goods({ world }: Services): { sku: string; size: string; price: number } {
  return world.draw(createRng(1)) ?? NOTHING;
}

/** The account's oldest order in a state; where it has none, an id that may not exist. */
function orderIn({ orders }: Services, status: OrderStatus): string {
  return [...orders].find((order) => order.own && order.status === status)?.id ?? 'O-000001';
}
