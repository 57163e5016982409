import { field, list } from './rules.ts';
import type { Setting } from './setting.ts';

/** Names in the partner's requests and answers that its documentation leaves open. */
export const FIELD_SETTINGS = {
  PARTNER_BULK_BODY_KEY: {
    path: 'partner.fields.bulkBodyKey',
    rule: field(),
    default: 'skus',
    meaning: 'name of the SKU list in the bulk request body (undocumented by the partner)',
  },
  PARTNER_PRICE_FIELDS: {
    path: 'partner.fields.price',
    rule: list('field names separated by commas'),
    default: 'price,lowest_price,lowest,lowest_ask,amount',
    meaning:
      'fields of a `size_map` object that may hold its price; that of most entries is used, of several the first. ' +
      'Once learned it stays, over restarts too, while it is in this list (undocumented by the partner)',
  },
  PARTNER_SKU_FIELD: {
    path: 'partner.fields.sku',
    rule: field(),
    default: 'sku',
    meaning:
      'field that holds the SKU when an element of `not_found`, `deferred`, `errors`, `changed`, `removed` or `now_live` ' +
      'is an object (undocumented by the partner)',
  },
  PARTNER_MANIFEST_URL_FIELD: {
    path: 'partner.fields.manifestUrl',
    rule: field(),
    unset: 'detected by shape',
    meaning: 'field of the manifest response that holds the URL (undocumented by the partner)',
  },
  PARTNER_SNAPSHOT_ID_FIELD: {
    path: 'partner.fields.snapshotId',
    rule: field(),
    unset: 'detected by shape',
    meaning:
      'field of the manifest response that holds the snapshot identifier (undocumented by the partner)',
  },
} as const satisfies Readonly<Record<string, Setting>>;
