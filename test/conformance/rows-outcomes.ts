/** Sections 5 to 8 of the partner's rules: credentials, refusals, their bodies and codes, and limits. */
const AUTHENTICATION = {
  '5.1':
    'Basic: base64 of `api_key:secret`. A trailing newline in the encoded value spoils it, and the answer is 403.',
  '5.2': 'The operator issues a credential to each supplier.',
  '5.3': 'One secret opens every endpoint, so it stays on servers and out of logs.',
  '5.4':
    'A new credential works at once; after a rotation the old secret works for up to five minutes more, beside the new one.',
  '5.5.absent': 'No `Authorization` header: 401 with `{"message":"Unauthorized"}`.',
  '5.5.malformed': 'Not Basic, or not base64: 500 with `{"message":"Internal Server Error"}`.',
  '5.5.unknown-key': 'An unknown `api_key`: 500 with the same body.',
  '5.5.wrong-secret': 'A wrong secret: 403 with `{"message":"Forbidden"}`.',
  '5.5.throttled': 'Too many requests: 403 with the same body.',
  '5.5.not-configured':
    'A valid credential of an incomplete account: 403 with `{"statusCode":403,"message":"Supplier account not configured"}`.',
  '5.6': '401, 403 and 500 before a route is reached are one class: which of them is sent may change.',
  '5.7': 'A throttled answer and that of a wrong secret are the same bytes.',
  '5.8': "Another supplier's order is refused.",
} as const;

const EVENTS = { '6': 'No events are sent: polling finds what changed.' } as const;

const ERRORS = {
  '7.1.200': '200: done.',
  '7.1.201': '201: created; in vacation mode nothing was.',
  '7.1.400': "400: invalid input, an order's state, a missing order, another supplier's order.",
  '7.1.401': '401: no `Authorization` header.',
  '7.1.403': '403: wrong secret, too many requests, or an account that is not configured.',
  '7.1.404': '404: no such route; never a missing order.',
  '7.1.500': '500: a fault of the server, an unknown key, or a malformed header.',
  '7.1.503': '503: the catalog routes have no snapshot to serve; no other route sends it.',
  '7.1.never': '429, 409 and 422 are not sent.',
  '7.2.400': 'Most 400s: `{"statusCode":400,"message":…}`, repeating the status.',
  '7.2.code': 'Price and catalog routes: `{"message":…,"code":…}`; the code decides, not the message.',
  '7.2.500-service': '500 of the service: `errorMessage` instead of `message`.',
  '7.2.500-authorizer': '500 of the authorizer: `message`.',
  '7.2.403-authorizer': '403 of the authorizer: `message` is `Forbidden`.',
  '7.2.r2s': 'A rejected SKU of an intake: `{"success":false,"message":…}`.',
  '7.3.0000': '`0000`, 200: success.',
  '7.3.0009': '`0009`, 400: there is no such SKU.',
  '7.3.0010': '`0010`, 400: `since` is too old or its chain is broken; take a new manifest.',
  '7.3.0011': '`0011`, 400: `since` is missing or empty.',
  '7.3.0012': '`0012`, 503: no snapshot was built yet.',
  '7.3.0013': '`0013`, 400: too much changed for one delta; take a new manifest.',
  '7.3.0014': '`0014`, 503: the newest snapshot is too old; use the price routes.',
  '7.4.1':
    'An order of another supplier: 400, `uid not match`. A missing one: 400, `not Found order ID: <order_id>`. Never 404.',
  '7.4.2':
    "Label and tracking of another supplier's order: HTTP 400 whose body has `statusCode` 403 and `Unauthorized: order <order_id> does not belong to this supplier`.",
  '7.4.3': 'A confirmation in the wrong state: 400, `status not allowed status: <status>`.',
  '7.4.4': 'In vacation mode the 201 has no `order_id`: that is how to tell.',
  '7.4.5': 'A price below the floor is raised to it silently.',
  '7.4.6': 'Tracking and bulk may do a part of what was asked and still answer 200.',
  '7.4.7': 'While the catalog routes answer 503, the price routes work.',
  '7.4.8': 'The known messages of a 400 are not all there are.',
} as const;

const LIMITS = {
  '8.rate': '200 requests in any 60 seconds for one `api_key`, over all endpoints and methods.',
  '8.over-rate':
    '403 without `Retry-After` or a body of its own. Refused requests count too: pause for 60 seconds and go on more slowly.',
  '8.bulk': '100 SKUs and, at present, five live computations a call.',
  '8.order-page': '100 orders a page.',
  '8.listing-page': '500 listings a page.',
  '8.create-floor': 'A new listing costs 50 THB or more.',
  '8.edit-floor': 'An edited listing costs 100 THB or more.',
  '8.label-url': "A label's URL works for an hour at most.",
  '8.manifest-url': "The manifest file's URL works for an hour, perhaps less.",
  '8.manifest-interval': 'A snapshot is built every six hours by default.',
  '8.rotation': 'A rotated or revoked secret works for five minutes more at most.',
  '8.cache.lowest':
    '`GET /partner/lowest/{sku}`: public for 5 minutes, 10 in shared caches, 2 more while it is revalidated.',
  '8.cache.settled': 'Settled orders: public for 10 minutes, 20 in shared caches, 3 more while revalidated.',
  '8.cache.listings': 'Live listings: public for 1 minute, 2 in shared caches, 30 seconds while revalidated.',
  '8.cache.processing': 'Orders under way: as live listings.',
  '8.cache.order': 'An order: public for 30 seconds, 60 in shared caches, 15 while revalidated.',
  '8.cache.payout': 'A payout: as an order.',
  '8.cache.manifest': 'The manifest: private for 5 minutes, for the URL in it is a credential.',
  '8.cache.delta': 'The delta: public for 60 seconds.',
  '8.cache.bulk': 'A bulk answer is not cached.',
} as const;

export const OUTCOME_ROWS = { ...AUTHENTICATION, ...EVENTS, ...ERRORS, ...LIMITS } as const;
