/** Sections 1 to 3 of the partner's rules: conventions, resources, and how an order moves. */
const CONVENTIONS = {
  '1.1': 'No route is public: each asks for HTTP Basic credentials.',
  '1.2': 'A successful body is the documented object itself, without `success` or `data` around it.',
  '1.3': 'Successes are gzipped for a client that accepts gzip.',
  '1.4': 'The partner listens on HTTPS only.',
  '1.5': 'Nothing is pushed: there are no webhooks.',
  '1.6': 'Sending a write twice does it twice; an idempotency key has no effect.',
  '1.7': 'Amounts are whole Thai baht (THB), never satang.',
  '1.8': 'Answers allow any origin (CORS). The credential belongs on servers all the same.',
} as const;

/** The members of `product`, as rule 2.4.product names them. */
export const PRODUCT_MEMBERS = ['name', 'model', 'brand', 'gender_size', 'size_type', 'category'];

const RESOURCES = {
  '2.1.type': '`type` says which list the page belongs to.',
  '2.1.orders': '`orders` holds up to 100 order records.',
  '2.1.nextCursor': '`nextCursor` is a string, and null on the last page.',
  '2.2.order_id': '`order_id` is a string that identifies the order.',
  '2.2.status': '`status` is one of the six states of section 3.',
  '2.2.expected_payout':
    '`expected_payout` is a number of baht; under seller shipping a confirmation lowers it by the fee.',
  '2.2.owner': 'An order has exactly one supplier.',
  '2.3.order_id': 'The `order_id` in the answer to its creation identifies a listing.',
  '2.3.page': 'Live listings come 500 a page, with `nextCursor`.',
  '2.4.message': '`message` is a text.',
  '2.4.code': '`code` is `0000` where the lookup succeeded.',
  '2.4.size_map': '`size_map` has the prices by size, and a member `size_type`: what the size keys mean.',
  '2.4.product': `\`product\` has ${new Intl.ListFormat('en-GB').format(PRODUCT_MEMBERS.map((name) => `\`${name}\``))}.`,
  '2.5.results':
    '`results` maps a SKU to exactly the body that its single lookup would have now; nothing is added.',
  '2.5.not_found': '`not_found` has the SKUs that the single lookup refuses with 400 and `0009`.',
  '2.5.deferred': '`deferred` has existing SKUs for which the call had no work budget left.',
  '2.5.errors': '`errors` has the SKUs that the single lookup would answer with a 500.',
  '2.5.requested': '`requested` counts the SKUs as sent.',
  '2.5.deduped': '`deduped` counts them without duplicates.',
  '2.5.partition':
    'Each SKU of the de-duplicated input is in exactly one of the four parts, and nothing else is.',
  '2.6.file': 'The file is gzipped NDJSON: one JSON object a line.',
  '2.6.sku': '`sku` is a string.',
  '2.6.sizes': '`sizes` is the number of sizes.',
  '2.6.hash': '`hash` can only be compared for equality; it is null on live lines.',
  '2.6.price_source': '`price_source` is `snapshot` or `live`.',
  '2.6.updated_at': '`updated_at` is ISO 8601 in UTC, to the millisecond.',
  '2.6.membership': 'Only SKUs with market state have a line: the manifest is not the whole catalog.',
  '2.7.url': 'The answer carries a presigned URL of the manifest file.',
  '2.7.url_expires_at': '`url_expires_at` is when that URL stops working, an hour on.',
  '2.7.generated_at': '`generated_at` is when the snapshot was built.',
  '2.7.sku_count': '`sku_count` is the number of lines in the file.',
  '2.7.live_priced_sku_count':
    '`live_priced_sku_count` is how many of them are live; in an incident it can equal `sku_count`.',
  '2.8.changed':
    '`changed` has every snapshot-priced SKU whose market state moved since `since`, and perhaps some that did not.',
  '2.8.removed': '`removed` has the SKUs whose market state was deleted.',
  '2.8.now_live': '`now_live` has the reported SKUs that are live-priced at `to_snapshot`.',
  '2.8.to_snapshot': '`to_snapshot` identifies the snapshot that the answer leads to.',
} as const;

const STATES = {
  '3.states': 'An order is `pending`, `pre_order`, `process`, `matched`, `settled` or `failed`.',
  '3.pending-process': '`pending` becomes `process` on the normal path.',
  '3.process-matched': '`process` becomes `matched`.',
  '3.matched-settled': '`matched` becomes `settled`.',
  '3.pending-pre_order': '`pending` becomes `pre_order` on the pre-order path.',
  '3.pre_order-process': '`pre_order` becomes `process`.',
  '3.confirm':
    'Confirming an order in `process` or `pre_order` starts its next move and records a shipping-leg fee.',
  '3.1': 'Nothing documents what causes any other move.',
  '3.2': 'Two states of the main path can become `failed`; nothing documents which.',
  '3.3': 'No call fails, cancels or refunds an order: only the operator does.',
  '3.4':
    'In any other state a confirmation gets 400 and a message with the state. The move comes later: until then the order still reads `process`.',
} as const;

export const RESOURCE_ROWS = { ...CONVENTIONS, ...RESOURCES, ...STATES } as const;
