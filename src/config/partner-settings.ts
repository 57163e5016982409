import {
  baseUrl,
  either,
  filesOrigins,
  secretText,
  field,
  list,
  proxyExceptions,
  proxyUrl,
  type Setting,
} from './rules.ts';

/** The partner's addresses, and the credential. */
export const PARTNER_SETTINGS = {
  PARTNER_BASE_URL: {
    path: 'partner.baseUrl',
    rule: baseUrl(),
    meaning: '`{base_url}` of the partner API; plain http on a loopback host only',
  },
  PARTNER_ALLOW_INSECURE: {
    path: 'partner.allowInsecure',
    rule: either('true', 'false'),
    default: 'false',
    meaning: 'allows an http base URL on any host: the credential then travels in clear text',
  },
  PARTNER_FILES_ORIGINS: {
    path: 'partner.filesOrigins',
    rule: filesOrigins(),
    default: 'public',
    meaning:
      'the only origins that manifest files may be downloaded from. `public`: ' +
      'any https origin at a public address, or loopback if PARTNER_BASE_URL is on loopback. ' +
      'Or a list such as `https://files.example.com,https://10.0.0.7:8443`; listed origins may be in a private network',
  },
  PARTNER_API_KEY: {
    path: 'partner.apiKey',
    rule: secretText('the api_key: no colon, no control characters', /^[^:]+$/u),
    secret: true,
    meaning: 'user name of the Basic credential',
  },
  PARTNER_SECRET: {
    path: 'partner.secret',
    rule: secretText('the secret: no control characters', /^.+$/u),
    secret: true,
    meaning: 'password of the Basic credential',
  },
  // Proxies, under the names that other programs use. Upper and lower case are one variable (see `given`).
  HTTPS_PROXY: {
    path: 'partner.proxy.https',
    rule: proxyUrl(),
    unset: 'direct',
    secret: true,
    connection: true,
    meaning:
      'proxy for the partner API and manifest files at https, such as `http://user:password@proxy.example:3128`. `https_proxy` goes first',
  },
  HTTP_PROXY: {
    path: 'partner.proxy.http',
    rule: proxyUrl(),
    unset: 'direct',
    secret: true,
    connection: true,
    meaning: 'the same for plain http, which only sandboxes speak. `http_proxy` goes first',
  },
  NO_PROXY: {
    path: 'partner.proxy.except',
    rule: proxyExceptions(),
    unset: 'none',
    meaning:
      'hosts that are connected to without a proxy, such as `files.example.com,.internal,10.0.0.0/8`; `*`: all. `no_proxy` goes first',
  },
} as const satisfies Readonly<Record<string, Setting>>;

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
