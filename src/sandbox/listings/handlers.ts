import { type Answer, type Call, invalid, type Page, pageOf, readFields, readObject } from '../answer.ts';
import type { Dialect } from '../options.ts';
import { type ListingType, notFound } from '../orders/order.ts';
import type { Services } from '../routing.ts';
import { extra, type Json } from '../wire.ts';
import type { Listing } from './listings.ts';

const PAGE_SIZE = 500;

/** GET /partner/live/listings/{type} (partner rules 4.3). */
export function answerListings({ settings, listings }: Services, { params, query }: Call): Answer {
  const type = LISTING_TYPES.find((known) => known === params['type']);
  if (type === undefined) return invalid('invalid listing type');
  const rows = [...listings].filter((listing) => listing.own && listing.listingType === type);
  const page = pageOf(rows, { endpoint: `listings:${type}`, cursor: query.get('cursor'), size: PAGE_SIZE });
  if (page === null) return invalid('invalid cursor');
  return { status: 200, body: listingPageBody(settings.dialect, type, page) };
}

/**
 * POST /partner/list/ask and /partner/list/preorder (partner rules 4.4): every call creates, but in vacation mode no
 * ask.
 */
export function answerCreate(services: Services, { text }: Call, listingType: ListingType): Answer {
  const body = readObject(text);
  const goods = typeof body === 'string' ? body : readFields(body, CREATION);
  if (typeof goods === 'string') return invalid(goods);
  const { sku, size, price, quantity = 1 } = goods;
  if (!services.world.knows(sku)) return invalid(`unknown sku: ${sku}`);
  if (listingType === 'ask' && services.account.vacation) return { status: 201, body: VACATION };
  return {
    status: 201,
    body: createdBody(services.listings.create({ sku, size, price }, listingType, quantity)),
  };
}

/**
 * PUT /partner/edit/listing and /partner/edit/preorder (partner rules 4.4). A listing of the other type is not found.
 */
export function answerEdit({ listings }: Services, { text }: Call, listingType: ListingType): Answer {
  const body = readObject(text);
  const edit = typeof body === 'string' ? body : readFields(body, EDIT);
  if (typeof edit === 'string') return invalid(edit);
  const listing = listings.find(edit.order_id);
  if (listing === undefined || listing.listingType !== listingType) return invalid(notFound(edit.order_id));
  if (!listing.own) return invalid('uid not match');
  const edited = listings.edit(listing.id, edit.price);
  return { status: 200, body: editedBody(edited ?? listing) };
}

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
