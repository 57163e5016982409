import { answerBulk, answerDelta, answerLowest, answerManifest, manifestFile } from './catalog.ts';
import type { RouteName } from './faults.ts';
import { answerIntake } from './intake.ts';
import { answerLabel, labelFile } from './labels.ts';
import { answerCreate, answerEdit, answerListings } from './listings.ts';
import {
  answerConfirm,
  answerOrder,
  answerPayout,
  answerProcessing,
  answerSettled,
  answerTracking,
} from './orders/handlers.ts';
import { pageOf } from './page.ts';
import type { Reply } from './respond.ts';
import { createMatcher, lineOfRoute, type RouteDefinition, type Services } from './routing.ts';
import {
  bulkExample,
  confirmExample,
  creationExample,
  deltaExample,
  editExample,
  intakeExample,
  labelFileExample,
  lowestExample,
  manifestExample,
  manifestFileExample,
  orderExample,
  trackingExample,
} from './try-it.ts';

const SHORT = 'public, max-age=30, s-maxage=60, stale-while-revalidate=15';
const MINUTE = 'public, max-age=60, s-maxage=120, stale-while-revalidate=30';

/**
 * All routes. Dispatch, the routes page and `sandbox --help` read this table. Cache-Control follows partner rules
 * 8.cache, which do not mention the label: its answer contains a presigned URL, so the sandbox forbids storing it.
 */
export const ROUTES = {
  manifest: {
    origin: 'api',
    method: 'GET',
    path: '/partner/catalog/manifest',
    summary: 'the newest snapshot and the presigned URL of its file',
    cacheControl: 'private, max-age=300',
    handle: (services) => answerManifest(services),
    example: manifestExample,
  },
  delta: {
    origin: 'api',
    method: 'GET',
    path: '/partner/catalog/delta',
    summary: 'what changed since a snapshot (?since=)',
    cacheControl: 'public, max-age=60, s-maxage=60',
    handle: (services, { query }) => answerDelta(services, query.get('since')),
    example: deltaExample,
  },
  lowest: {
    origin: 'api',
    method: 'GET',
    path: '/partner/lowest/{sku}',
    summary: 'lowest price of a SKU in each size',
    cacheControl: 'public, max-age=300, s-maxage=600, stale-while-revalidate=120',
    handle: (services, { params }) => answerLowest(services, params['sku'] ?? ''),
    example: lowestExample,
  },
  bulk: {
    origin: 'api',
    method: 'POST',
    path: '/partner/lowest/bulk',
    summary: 'the same for up to 100 SKUs',
    cacheControl: 'no-store',
    handle: (services, { text }) => answerBulk(services, text),
    example: bulkExample,
  },
  processing_orders: {
    origin: 'api',
    method: 'GET',
    path: '/partner/processing/orders',
    summary: 'orders neither settled nor failed, newest first (?cursor=)',
    cacheControl: MINUTE,
    handle: answerProcessing,
  },
  settled_orders: {
    origin: 'api',
    method: 'GET',
    path: '/partner/settled/orders',
    summary: 'settled orders, newest first (?cursor=)',
    cacheControl: 'public, max-age=600, s-maxage=1200, stale-while-revalidate=180',
    handle: answerSettled,
  },
  order: {
    origin: 'api',
    method: 'GET',
    path: '/partner/{order_id}',
    summary: 'one order',
    cacheControl: SHORT,
    handle: answerOrder,
    example: orderExample('/partner/'),
  },
  payout: {
    origin: 'api',
    method: 'GET',
    path: '/partner/payout/{order_id}',
    summary: 'what an order pays after fees',
    cacheControl: SHORT,
    handle: answerPayout,
    example: orderExample('/partner/payout/'),
  },
  label: {
    origin: 'api',
    method: 'GET',
    path: '/partner/label/{orderId}',
    summary: "the presigned URL of an order's shipping label",
    cacheControl: 'no-store',
    handle: answerLabel,
    example: orderExample('/partner/label/'),
  },
  confirm_order: {
    origin: 'api',
    method: 'PUT',
    path: '/partner/confirm/order',
    summary: 'confirms an order; every call charges the fee',
    cacheControl: null,
    handle: answerConfirm,
    example: confirmExample,
  },
  tracking: {
    origin: 'api',
    method: 'PUT',
    path: '/partner/update/tracking',
    summary: 'tracking numbers, written one by one',
    cacheControl: null,
    handle: answerTracking,
    example: trackingExample,
  },
  live_listings: {
    origin: 'api',
    method: 'GET',
    path: '/partner/live/listings/{type}',
    summary: 'live listings of type ask or preorder (?cursor=)',
    cacheControl: MINUTE,
    handle: answerListings,
    example: () => ({ target: '/partner/live/listings/ask' }),
  },
  list_ask: {
    origin: 'api',
    method: 'POST',
    path: '/partner/list/ask',
    summary: 'creates an ask listing; nothing in vacation mode',
    cacheControl: null,
    handle: (services, call) => answerCreate(services, call, 'ask'),
    example: creationExample,
  },
  list_preorder: {
    origin: 'api',
    method: 'POST',
    path: '/partner/list/preorder',
    summary: 'creates a pre-order listing',
    cacheControl: null,
    handle: (services, call) => answerCreate(services, call, 'preorder'),
    example: creationExample,
  },
  edit_listing: {
    origin: 'api',
    method: 'PUT',
    path: '/partner/edit/listing',
    summary: 'sets the price of an ask listing',
    cacheControl: null,
    handle: (services, call) => answerEdit(services, call, 'ask'),
    example: editExample('ask'),
  },
  edit_preorder: {
    origin: 'api',
    method: 'PUT',
    path: '/partner/edit/preorder',
    summary: 'sets the price of a pre-order listing',
    cacheControl: null,
    handle: (services, call) => answerEdit(services, call, 'preorder'),
    example: editExample('preorder'),
  },
  batch_r2s: {
    origin: 'api',
    method: 'POST',
    path: '/partner/batch/r2s',
    summary: 'warehouse intake records, stored as sent',
    cacheControl: null,
    handle: answerIntake,
    example: intakeExample,
  },
  file: {
    origin: 'files',
    method: 'GET',
    path: '/files/{file}',
    summary: 'a manifest file, by its presigned URL',
    cacheControl: null,
    handle: manifestFile,
    example: manifestFileExample,
  },
  label_file: {
    origin: 'files',
    method: 'GET',
    path: '/files/labels/{file}',
    summary: 'a label in PDF, by its presigned URL',
    cacheControl: null,
    handle: labelFile,
    example: labelFileExample,
  },
  routes_page: {
    origin: 'page',
    method: 'GET',
    path: '/',
    summary: 'the page: routes, orders, listings, requests, budget; not part of the partner API',
    cacheControl: null,
    handle: routesPage,
  },
} as const satisfies Record<RouteName, RouteDefinition>;

/** Finds the route of a request; a fixed path takes precedence over one with parameters. */
export const matchRoute = createMatcher<RouteName>(ROUTES);

/** Returns the routes as lines of text: method, path, what it does. */
export function routeLines(): string[] {
  return Object.values(ROUTES).map(lineOfRoute);
}

/** GET /: shows what a person wants to see. */
function routesPage(services: Services): Reply {
  return pageOf(services, Object.values(ROUTES));
}
