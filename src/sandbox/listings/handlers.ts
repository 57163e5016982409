import { type Answer, type Call, invalid, readObject } from '../answer.ts';
import { pageOf } from '../cursor.ts';
import { readFields } from '../fields.ts';
import type { ListingType } from '../orders/order.ts';
import { notFound } from '../orders/owned.ts';
import type { Services } from '../services.ts';
import { createdBody, CREATION, EDIT, editedBody, LISTING_TYPES, listingPageBody, VACATION } from './wire.ts';

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

/** POST /partner/list/ask and /partner/list/preorder (partner rules 4.4): every call creates, but in vacation mode no ask. */
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

/** PUT /partner/edit/listing and /partner/edit/preorder (partner rules 4.4). A listing of the other type is not found. */
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
