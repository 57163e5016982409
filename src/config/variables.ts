import {
  choice,
  duration,
  field,
  foundByShape,
  integer,
  parseBaseUrl,
  parseList,
  parseOrigins,
  pattern,
  plain,
  secret,
  share,
  timer,
} from './rules.ts';

const PRICE_FIELDS = 'price,lowest_price,lowest,lowest_ask,amount';

/** Every variable of the environment, in the order of the documentation. Parsing, checks and the generated docs are driven from here. */
export const TABLE = {
  PARTNER_BASE_URL: plain<string>(
    'partner',
    '`{base_url}` of the partner API; plain http on a loopback host only',
    {
      expected: 'an https:// URL without user, password, query or fragment',
      parse: parseBaseUrl,
    },
  ).required(),
  PARTNER_ALLOW_INSECURE: choice(
    'partner',
    'false',
    ['true', 'false'],
    'allows an http base URL on any host: the credential then travels in clear text',
  ),
  PARTNER_FILES_ORIGINS: plain<readonly string[] | null>(
    'partner',
    'the only origins that manifest files may be downloaded from. `public`: any https origin at a public address, or loopback if PARTNER_BASE_URL is on loopback. Or a list such as `https://files.example.com,https://10.0.0.7:8443`; listed origins may be in a private network',
    {
      expected:
        'public, or https:// origins separated by commas, without path (http on a loopback host only)',
      parse: (text) => (text === 'public' ? null : parseOrigins(text)),
    },
  ).or(null, 'public'),
  PARTNER_API_KEY: secret(
    'partner',
    false,
    null,
    'user name of the Basic credential',
    'the api_key: no colon, no control characters',
    /^[^:]+$/u,
  ),
  PARTNER_SECRET: secret(
    'partner',
    false,
    null,
    'password of the Basic credential',
    'the secret: no control characters',
    /^.+$/u,
  ),
  DATABASE_URL: secret(
    'mirror',
    true,
    'embedded Postgres',
    "the seller's Postgres, 14 or newer; a direct connection",
    'a postgres:// or postgresql:// URL',
    /^postgres(?:ql)?:\/\/\S+$/iu,
  ),
  REDIS_URL: secret(
    'mirror',
    true,
    'queues in Postgres',
    "BullMQ's Redis; unset, the queues live in the same Postgres",
    'a redis:// or rediss:// URL',
    /^rediss?:\/\/\S+$/iu,
  ),
  QUEUE_PREFIX: pattern(
    'mirror',
    "prefix of BullMQ's keys",
    '1 to 64 letters, digits or any of . _ : { } -',
    /^[\w.:{}-]{1,64}$/,
  ).or('catalog-mirror', 'catalog-mirror'),
  DATA_DIR: pattern('mirror', 'folder of the embedded Postgres', 'a path', /^[^\0]+$/).or(
    '.catalog-mirror',
    '.catalog-mirror',
  ),
  PARTNER_RATE_LIMIT: integer(
    'mirror',
    200,
    1,
    1_000_000,
    "the account's limit: requests in one rolling window",
  ),
  PARTNER_RATE_WINDOW: timer('mirror', '60s', 'length of that rolling window'),
  PARTNER_RATE_SHARE: share(
    'mirror',
    0.6,
    'share of the limit that the mirror may use; the rest is for your other traffic',
  ),
  PARTNER_RATE_FLOOR: share(
    'mirror',
    0.2,
    'share of the limit that the mirror keeps while your other services request theirs through `catalog.take_request`',
  ),
  PARTNER_BACKOFF: timer('mirror', '60s', 'pause after a 403 response'),
  PARTNER_TIMEOUT: timer('partner', '30s', 'timeout of one API request'),
  PARTNER_DOWNLOAD_TIMEOUT: timer('partner', '30m', 'timeout of one manifest download'),
  BULK_MAX_SKUS: integer('mirror', 100, 1, 100, 'SKUs in one bulk call'),
  BULK_LIVE_BUDGET: integer(
    'mirror',
    5,
    1,
    100,
    'initial number of live SKUs in one bulk call; adjusted from the answers afterwards; at most BULK_MAX_SKUS',
  ),
  DELTA_INTERVAL: timer('mirror', '5m', 'time between two polls of the delta'),
  MANIFEST_INTERVAL: duration('mirror', '7d', 'time between two manifests (re-baseline)'),
  CATALOG_CHECK_INTERVAL: timer('mirror', '1h', 'how often manifest metadata is checked (no download)'),
  LIVE_INTERVAL: duration('mirror', '30m', "target age of a live SKU's price"),
  LIVE_POLICY: choice(
    'mirror',
    'index',
    ['index', 'round-robin'],
    'order of live refreshes when the request budget is too small for `LIVE_INTERVAL`: `index` by learned rate of change and watchlist weight, or `round-robin`',
  ),
  DEFERRED_INTERVAL: duration('mirror', '5m', 'earliest retry of a deferred SKU'),
  ERROR_INTERVAL: duration('mirror', '1m', 'first retry of a SKU in `errors`; doubles up to 6h', {
    max: 6 * 3_600_000,
  }),
  METADATA_INTERVAL: duration('mirror', '7d', "maximum age of a SKU's metadata, and of a `not_found` result"),
  SWEEP_INTERVAL: duration(
    'mirror',
    '24h',
    "target age of a snapshot-priced SKU's price; 0: no scheduled sweep",
    { zero: true },
  ),
  SWEEP_MIN_AGE: duration(
    'mirror',
    '30m',
    'minimum age of a price that is refreshed in a spare slot of a call',
  ),
  CATALOG_STALE_AFTER: duration(
    'mirror',
    '24h',
    'age at which the catalog snapshot counts as stale and SKUs are refreshed by age instead',
  ),
  MANIFEST_MAX_SHRINK: share(
    'mirror',
    0.5,
    'a manifest with fewer lines than this share of the mirrored SKUs is refused until `refresh --manifest` confirms it',
  ),
  // Never less than the daemon itself looks back: three days to a rate of change, some snapshots to judge the delta.
  HISTORY_RETENTION: duration(
    'mirror',
    '0',
    'minimum retention of `catalog.price_history`, which is dropped in chunks of five million changes; 0: keep forever',
    { zero: true, min: 7 * 86_400_000 },
  ),
  PARTNER_BULK_BODY_KEY: field(
    'skus',
    'name of the SKU list in the bulk request body (undocumented by the partner)',
  ),
  PARTNER_PRICE_FIELDS: plain<readonly string[]>(
    'partner',
    'fields of a `size_map` object that may hold its price, first match wins (undocumented by the partner)',
    {
      expected: 'field names separated by commas',
      parse: parseList,
    },
  ).or(PRICE_FIELDS.split(','), PRICE_FIELDS),
  PARTNER_SKU_FIELD: field(
    'sku',
    'field that holds the SKU when an element of `not_found`, `deferred`, `errors`, `changed`, `removed` or `now_live` is an object (undocumented by the partner)',
  ),
  PARTNER_MANIFEST_URL_FIELD: foundByShape(
    'field of the manifest response that holds the URL (undocumented by the partner)',
  ),
  PARTNER_SNAPSHOT_ID_FIELD: foundByShape(
    'field of the manifest response that holds the snapshot identifier (undocumented by the partner)',
  ),
  HTTP_HOST: pattern(
    'http',
    'address of the metrics and health server',
    'a host name or address',
    /^[^\s/]+$/,
  ).or('127.0.0.1', '127.0.0.1'),
  HTTP_PORT: integer(
    'http',
    9464,
    0,
    65_535,
    'port of the metrics and health server; 0: any free port, printed in the log',
  ),
  STATUS_PAGE: choice(
    'http',
    'on',
    ['on', 'off'],
    'the status page at `GET /` and `GET /status.json`; off: both return 404',
  ),
  LOG_LEVEL: choice(
    'http',
    'info',
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    'minimum level that is logged',
  ),
};
