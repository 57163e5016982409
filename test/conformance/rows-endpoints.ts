/** Section 4 of the partner's rules: what each endpoint takes, answers and means. */
const PRICES = {
  '4.1.lowest':
    '`GET /partner/lowest/{sku}`: 200 with a record (2.4), 400 with `0009`, or 500. A live SKU costs no more of the rate limit than any other.',
  '4.1.bulk':
    '`POST /partner/lowest/bulk`: up to 100 SKUs. Duplicates are merged, unknown top-level keys are ignored; 200 with the four parts of 2.5.',
  '4.1.1': '200 says that the call was processed; the four parts say which SKUs were priced.',
  '4.1.2': 'Neither `deferred` nor `errors` says that a SKU does not exist.',
  '4.1.3':
    'A call computes few live prices (five at present) and defers the other live SKUs; a rate ceiling over all calls applies as well.',
  '4.1.4': 'A deferred SKU is asked again at the normal pace, not at once.',
  '4.1.5': 'No cache in between keeps a bulk answer.',
} as const;

const CATALOG = {
  '4.2.manifest':
    '`GET /partner/catalog/manifest`: 200 with 2.7; 503 with `0012` before the first snapshot and with `0014` when the newest is too old; 500.',
  '4.2.delta':
    '`GET /partner/catalog/delta?since=`: 200 with 2.8; 400 with `0010` (unknown or broken chain), `0011` (no `since`) or `0013` (too many changes); 503 with `0014`.',
  '4.2.1': 'Snapshots are built on a schedule. Only the price routes have the present price.',
  '4.2.2':
    'The hash covers sizes and prices. A change of `product` or of `size_map.size_type` moves no hash and is in no delta, so metadata needs refreshes of its own.',
  '4.2.3': 'A SKU may have a price and no line, or a line and `0009`.',
  '4.2.4':
    'A SKU without listings normally keeps its line, with another hash and an empty `size_map`. It is `removed` only when its market state is deleted.',
  '4.2.5': 'The delta reports each price move of a snapshot-priced SKU.',
  '4.2.6': 'The delta reports no price move of a live SKU: the client has to ask for its price.',
  '4.2.7':
    'A SKU that changes its price source is in `changed` once; `now_live` tells the direction. A SKU that went live is not reported again before it returns or is removed.',
  '4.2.8': 'A client takes a new manifest from time to time; once a week is enough.',
  '4.2.9': 'The presigned URL may answer 403 before its time. Asking for the manifest again gives a new one.',
  '4.2.10': '`generated_at` shows an old snapshot; the client then refreshes prices by the price routes.',
  '4.2.11':
    'To follow the market, read the manifest, poll the delta, and ask for the reported SKUs in bulk calls.',
} as const;

const READS = {
  '4.3.processing': '`GET /partner/processing/orders`: orders under way, 100 a page.',
  '4.3.settled': '`GET /partner/settled/orders`: settled orders, 100 a page.',
  '4.3.listings': '`GET /partner/live/listings/{type}`: live listings, 500 a page.',
  '4.3.order':
    "`GET /partner/{order_id}`: the order; 400 where it is missing or another supplier's (7.4.1 has the messages).",
  '4.3.payout': '`GET /partner/payout/{order_id}`: what is paid after fees.',
  '4.3.label':
    "`GET /partner/label/{orderId}`: a presigned URL of a PDF with the buyer's address, open to whoever holds it for up to an hour; 7.4.2 where the order is another supplier's.",
  '4.3.1': 'The first request has no `cursor`; each next one passes `nextCursor` on, until it is null.',
  '4.3.2': 'The server fixes the page size; `limit` does nothing.',
  '4.3.3': 'A cursor is opaque base64, and good for its own endpoint only.',
} as const;

const WRITES = {
  '4.4.ask':
    '`POST /partner/list/ask`: each call creates a listing (201 with `order_id`), at 50 THB or more. In vacation mode: 201 with `status` only, and nothing created.',
  '4.4.preorder': '`POST /partner/list/preorder`: each call creates a pre-order listing, at 50 THB or more.',
  '4.4.edit-listing': '`PUT /partner/edit/listing`: edits a listing; a price below 100 THB becomes 100.',
  '4.4.edit-preorder':
    '`PUT /partner/edit/preorder`: edits a pre-order listing; a price below 100 THB becomes 100.',
  '4.4.confirm':
    '`PUT /partner/confirm/order`: 200, and the fee is recorded (deducted under seller shipping) at every accepted call, so an order is confirmed once: after a timeout, read it first.',
  '4.4.tracking':
    "`PUT /partner/update/tracking`: in the order sent. Unknown orders are skipped silently; another supplier's order ends the call with 400, and what was written stays.",
  '4.4.r2s':
    '`POST /partner/batch/r2s`: `price`, `quantity` and `size` are stored unchecked; a rejected SKU gets `success: false`.',
  '4.4.reconcile':
    'Orders and listings are read again to find out what a write did: it is not sent again blindly.',
} as const;

export const ENDPOINT_ROWS = { ...PRICES, ...CATALOG, ...READS, ...WRITES } as const;
