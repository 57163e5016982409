/**
 * Every normative row of the partner's specification, sections 1 to 8: what it says, in a few words. The id is the
 * section and then the row's number where it has one, else its name. `coverage.test.ts` holds every row to a test whose
 * name begins with the id, or to a reason in `NOT_TESTED`.
 */
const CONVENTIONS = {
  '1.1': 'every endpoint asks for Basic authentication',
  '1.2': 'a success is the documented object itself, in no envelope',
  '1.3': 'successes are gzipped for whoever accepts gzip',
  '1.4': 'HTTPS only',
  '1.5': 'no webhooks',
  '1.6': 'no write is idempotent, no idempotency key is known',
  '1.7': 'amounts are whole baht',
  '1.8': 'any origin may read an answer (CORS)',
} as const;

const RESOURCES = {
  '2.1.type': 'an order page names its list',
  '2.1.orders': 'an order page carries up to 100 order records',
  '2.1.nextCursor': 'a string, or null on the last page',
  '2.2.order_id': 'an order has a string identifier',
  '2.2.status': 'an order is in one of the six states',
  '2.2.expected_payout': 'a number of baht, less the fee after confirm under seller shipping',
  '2.2.owner': 'an order belongs to exactly one supplier',
  '2.3.order_id': 'a listing goes by the order_id of its creation',
  '2.3.page': 'live listings come 500 a page with nextCursor',
  '2.4.message': 'a price record has a message',
  '2.4.code': '0000 is success',
  '2.4.size_map': 'prices by size, and size_type',
  '2.4.product': 'six members of metadata',
  '2.5.results': 'bulk results are the single lookups, by SKU, with nothing added',
  '2.5.not_found': 'SKUs that the single lookup answers with 0009',
  '2.5.deferred': "SKUs beyond the request's work budget",
  '2.5.errors': 'SKUs that the single lookup answers with 500',
  '2.5.requested': 'count before de-duplication',
  '2.5.deduped': 'count after de-duplication',
  '2.5.partition': 'the four together are the de-duplicated input, without overlap',
  '2.6.file': 'gzipped, one JSON object a line',
  '2.6.sku': 'a string',
  '2.6.sizes': 'the number of sizes',
  '2.6.hash': 'an opaque string; null on live lines',
  '2.6.price_source': 'snapshot or live',
  '2.6.updated_at': 'ISO 8601, UTC, milliseconds',
  '2.6.membership': 'only SKUs with market rows are listed',
  '2.7.url': 'the file behind a presigned URL',
  '2.7.url_expires_at': 'when the URL expires, an hour on',
  '2.7.generated_at': 'when the snapshot was built',
  '2.7.sku_count': 'lines of the manifest',
  '2.7.live_priced_sku_count': 'lines with price_source live; all of them during an incident',
  '2.8.changed': 'never misses a price change of a snapshot SKU, may report too many',
  '2.8.removed': 'SKUs whose market rows are gone',
  '2.8.now_live': 'which of the reported are live as of to_snapshot',
  '2.8.to_snapshot': 'the snapshot that the delta reaches',
} as const;

const STATES = {
  '3.states': 'six states, no other',
  '3.pending-process': 'normal path',
  '3.process-matched': 'normal path',
  '3.matched-settled': 'normal path',
  '3.pending-pre_order': 'pre-order path',
  '3.pre_order-process': 'pre-order path',
  '3.confirm': 'confirm of process or pre_order starts the next move and records a fee',
  '3.1': 'what triggers the other moves',
  '3.2': 'two states of the main path may fail',
  '3.3': 'a partner cannot make an order fail',
  '3.4': 'confirm is refused in any other status; its move is asynchronous',
} as const;

const PRICES = {
  '4.1.lowest': 'one SKU: record, 400 with 0009, or 500; a live SKU counts like any request',
  '4.1.bulk': 'up to 100 SKUs; duplicates collapse; unknown keys are ignored',
  '4.1.1': '200 means processed, not resolved',
  '4.1.2': 'deferred and errors never mean that a SKU does not exist',
  '4.1.3': 'five live computations a request, and a ceiling over all requests',
  '4.1.4': 'deferred SKUs are retried later, calmly',
  '4.1.5': 'no intermediary caches a bulk answer',
} as const;

const CATALOG = {
  '4.2.manifest': 'metadata of the newest snapshot; 500; 503 with 0012 or 0014',
  '4.2.delta': 'changes since a snapshot; 400 with 0010, 0011, 0013; 503 with 0014',
  '4.2.1': 'the manifest is rebuilt on a schedule, the price routes are up to date',
  '4.2.2': 'metadata and size_type move without hash and delta',
  '4.2.3': 'priceable SKUs may be unlisted, listed SKUs may answer 0009',
  '4.2.4': 'withdrawn SKUs stay listed with another hash and an empty size_map',
  '4.2.5': 'a price move of a snapshot SKU is reported',
  '4.2.6': 'a price move of a live SKU is not',
  '4.2.7': 'a crossing is reported once; now_live says which way',
  '4.2.8': 'the manifest is fetched anew weekly',
  '4.2.9': 'a presigned URL may answer 403 before its time; a new manifest response has a new one',
  '4.2.10': 'generated_at tells an old snapshot',
  '4.2.11': 'manifest, delta and bulk together follow the market',
} as const;

const READS = {
  '4.3.processing': 'processing orders, 100 a page',
  '4.3.settled': 'settled orders, 100 a page',
  '4.3.listings': 'live listings of a type, 500 a page',
  '4.3.order': 'one order; 400 for a missing one and for that of another supplier',
  '4.3.payout': 'the payout after fees',
  '4.3.label': 'a presigned URL of a PDF for whoever holds it; ownership failure with 403 in the body',
  '4.3.1': 'cursor is left out first, then passed on until null',
  '4.3.2': 'page size is fixed: limit has no effect',
  '4.3.3': 'a cursor is an opaque base64 keyset token of one endpoint',
} as const;

const WRITES = {
  '4.4.ask': 'an ask listing a call; vacation mode creates nothing; 50 baht at least',
  '4.4.preorder': 'a pre-order listing a call; 50 baht at least',
  '4.4.edit-listing': 'edits a listing; 100 baht at least',
  '4.4.edit-preorder': 'edits a pre-order listing; 100 baht at least',
  '4.4.confirm': 'confirms process and pre_order; every accepted call records and deducts the fee again',
  '4.4.tracking': 'one by one: skips unknown orders, stops at a foreign one, keeps what is written',
  '4.4.r2s': 'stores price, quantity and size as sent; rejects with success false',
  '4.4.reconcile': 'what was written is found by re-reading',
} as const;

const AUTHENTICATION = {
  '5.1': 'Basic, base64 of key and secret; a trailing newline in it is a 403',
  '5.2': 'credentials are issued by the operator',
  '5.3': 'one secret for every endpoint',
  '5.4': 'old and new secret overlap for up to five minutes',
  '5.5.absent': '401 Unauthorized',
  '5.5.malformed': '500 Internal Server Error',
  '5.5.unknown-key': '500 Internal Server Error',
  '5.5.wrong-secret': '403 Forbidden',
  '5.5.throttled': '403 Forbidden',
  '5.5.not-configured': '403 with a statusCode of its own',
  '5.6': '401, 403 and 500 of the auth path are one class',
  '5.7': 'a throttled answer is byte-identical to that of a wrong secret',
  '5.8': "another supplier's order is refused",
} as const;

const EVENTS = { '6': 'no events: changes are found by polling' } as const;

const ERRORS = {
  '7.1.200': 'OK',
  '7.1.201': 'created, and vacation mode',
  '7.1.400': 'validation, status, missing order, foreign order',
  '7.1.401': 'no Authorization header',
  '7.1.403': 'wrong secret, throttled, not configured',
  '7.1.404': 'no such route; never a missing order',
  '7.1.500': 'server fault, unknown key, malformed header',
  '7.1.503': 'catalog endpoints only',
  '7.1.never': '429, 409 and 422 are never sent',
  '7.2.400': 'statusCode and message',
  '7.2.code': 'message and code on price and catalog endpoints',
  '7.2.500-service': 'errorMessage',
  '7.2.500-authorizer': 'message',
  '7.2.403-authorizer': 'message Forbidden',
  '7.2.r2s': 'success false and message',
  '7.3.0000': '200',
  '7.3.0009': '400',
  '7.3.0010': '400',
  '7.3.0011': '400',
  '7.3.0012': '503',
  '7.3.0013': '400',
  '7.3.0014': '503',
  '7.4.1': 'foreign: uid not match; missing: not Found order ID; never 404',
  '7.4.2': 'label and tracking: 400 whose body says 403',
  '7.4.3': 'confirm in a wrong status names it',
  '7.4.4': 'vacation mode is known by the missing order_id',
  '7.4.5': 'prices below the floor are raised, not refused',
  '7.4.6': 'tracking and bulk may apply a part and answer 200',
  '7.4.7': 'a catalog 503 leaves the price endpoints alone',
  '7.4.8': 'the list of validation messages is not complete',
} as const;

const LIMITS = {
  '8.rate': '200 requests in any 60 seconds a key, all endpoints and methods',
  '8.over-rate': '403, no Retry-After; retries use up the same budget',
  '8.bulk': '100 SKUs and 5 live computations a request',
  '8.order-page': '100',
  '8.listing-page': '500',
  '8.create-floor': '50 baht',
  '8.edit-floor': '100 baht',
  '8.label-url': 'an hour at most',
  '8.manifest-url': 'an hour, perhaps less',
  '8.manifest-interval': 'six hours',
  '8.rotation': 'five minutes at most',
  '8.cache.lowest': 'Cache-Control of the single lookup',
  '8.cache.settled': 'Cache-Control of settled orders',
  '8.cache.listings': 'Cache-Control of live listings',
  '8.cache.processing': 'Cache-Control of processing orders',
  '8.cache.order': 'Cache-Control of an order',
  '8.cache.payout': 'Cache-Control of a payout',
  '8.cache.manifest': 'Cache-Control of the manifest: private',
  '8.cache.delta': 'Cache-Control of the delta',
  '8.cache.bulk': 'bulk is not cached',
} as const;

/** What each row says, by its id. */
export const ROWS = {
  ...CONVENTIONS,
  ...RESOURCES,
  ...STATES,
  ...PRICES,
  ...CATALOG,
  ...READS,
  ...WRITES,
  ...AUTHENTICATION,
  ...EVENTS,
  ...ERRORS,
  ...LIMITS,
} as const;

export type RowId = keyof typeof ROWS;

/** Why a row has no test here. */
export const NOT_TESTED: Partial<Record<RowId, string>> = {
  '1.4': 'the sandbox listens on loopback without TLS; test/security holds the mirror to https',
  '1.5': 'says that something is not sent: there is no call to make',
  '3.1': 'the specification does not show what triggers the moves',
  '4.1.4': 'tells clients when to retry; the server answers the same way at any pace',
  '4.2.8': 'tells clients how often to download',
  '5.2': 'credentials are issued by people, outside the interface',
  '5.6': 'tells clients how to read 401, 403 and 500; what is sent is held by the rows of 5.5',
  '6': 'says that something is not sent: there is no call to make',
  '7.4.8': 'says that the specification leaves messages open',
  '8.manifest-interval':
    "a default of the partner's deployment; the sandbox builds when told or at an interval of its own",
};
