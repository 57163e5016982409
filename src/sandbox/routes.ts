import { answerBulk, answerDelta, answerLowest, answerManifest } from './catalog/handlers.ts';
import { manifestFile } from './catalog/file.ts';
import { answerOrder, answerPayout, answerProcessing, answerSettled } from './orders/handlers.ts';
import { createMatcher, type RouteDefinition } from './routing.ts';

const SHORT = 'public, max-age=30, s-maxage=60, stale-while-revalidate=15';
const MINUTE = 'public, max-age=60, s-maxage=120, stale-while-revalidate=30';

/** Every route there is: dispatch, the routes page and `sandbox --help` read this table, and there is no other. */
export const ROUTES = {
  manifest: {
    origin: 'api',
    method: 'GET',
    path: '/partner/catalog/manifest',
    summary: 'the newest snapshot and the URL of its file',
    cacheControl: 'private, max-age=300',
    handle: (services) => answerManifest(services),
  },
  delta: {
    origin: 'api',
    method: 'GET',
    path: '/partner/catalog/delta',
    summary: 'what changed since a snapshot',
    cacheControl: 'public, max-age=60, s-maxage=60',
    handle: (services, { query }) => answerDelta(services, query.get('since')),
  },
  lowest: {
    origin: 'api',
    method: 'GET',
    path: '/partner/lowest/{sku}',
    summary: 'lowest prices of a SKU by size',
    cacheControl: 'public, max-age=300, s-maxage=600, stale-while-revalidate=120',
    handle: (services, { params }) => answerLowest(services, params['sku'] ?? ''),
  },
  bulk: {
    origin: 'api',
    method: 'POST',
    path: '/partner/lowest/bulk',
    summary: 'the same for up to 100 SKUs',
    cacheControl: 'no-store',
    handle: (services, { text }) => answerBulk(services, text),
  },
  processing_orders: {
    origin: 'api',
    method: 'GET',
    path: '/partner/processing/orders',
    summary: 'orders that are neither settled nor failed, newest first',
    cacheControl: MINUTE,
    handle: answerProcessing,
  },
  settled_orders: {
    origin: 'api',
    method: 'GET',
    path: '/partner/settled/orders',
    summary: 'settled orders, newest first',
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
  },
  payout: {
    origin: 'api',
    method: 'GET',
    path: '/partner/payout/{order_id}',
    summary: 'what an order pays, after fees',
    cacheControl: SHORT,
    handle: answerPayout,
  },
  file: {
    origin: 'files',
    method: 'GET',
    path: '/files/{file}',
    summary: 'a manifest file, by its presigned URL',
    cacheControl: null,
    handle: manifestFile,
  },
} as const satisfies Record<string, RouteDefinition>;

export type RouteName = keyof typeof ROUTES;

/** The route of a request; a fixed path goes before one with parameters. */
export const matchRoute = createMatcher<RouteName>(ROUTES);
