import type { Page } from '../cursor.ts';
import type { Dialect } from '../options.ts';
import type { ListingType } from '../orders/order.ts';
import { extra, type Json } from '../wire.ts';
import type { Listing } from './listings.ts';

// The partner documents `nextCursor`, the `order_id` of a creation and that vacation mode answers with `status` alone
// (partner rules 2.3, 4.4). Every other name, shape and text in this file is the sandbox's choice.

/** The path parameter of the live listings, as the sandbox takes it. */
export const LISTING_TYPES: readonly ListingType[] = ['ask', 'preorder'];

export const CREATION = { sku: 'text', size: 'text', price: 'whole', quantity: 'count?' } as const;

export const EDIT = { order_id: 'text', price: 'whole' } as const;

/** One page of live listings (partner rules 2.3). */
export function listingPageBody(
  dialect: Dialect,
  type: ListingType,
  { rows, nextCursor }: Page<Listing>,
): Json {
  return { type, listings: rows.map((listing) => listingBody(dialect, listing)), nextCursor };
}

export function createdBody({ id }: Listing): Json {
  return { order_id: id, status: 'created' };
}

/** The answer to a creation in vacation mode: nothing was created (partner rules 4.4). */
export const VACATION: Json = { status: 'vacation mode' };

/** The answer to an edit: the price as it was stored. */
export function editedBody({ id, price }: Listing): Json {
  return { order_id: id, price };
}

function listingBody(dialect: Dialect, listing: Listing): Json {
  return {
    order_id: listing.id,
    sku: listing.sku,
    size: listing.size,
    price: listing.price,
    quantity: listing.quantity,
    created_at: new Date(listing.createdAt).toISOString(),
    updated_at: new Date(listing.updatedAt).toISOString(),
    ...extra(dialect, { condition: 'new' }),
  };
}
