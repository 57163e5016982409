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
    'where manifest files may come from, and nowhere else. `public`: any https origin at a public address, or loopback where PARTNER_BASE_URL is. Or a list such as `https://files.example.com,https://10.0.0.7:8443`; what it names may be in a private network',
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
    "part of the limit that the mirror may use; the rest is the seller's other traffic",
  ),
  PARTNER_RATE_FLOOR: share(
    'mirror',
    0.2,
    'part of the limit that the mirror keeps while your other services ask for theirs through `catalog.take_request`',
  ),
  PARTNER_BACKOFF: timer('mirror', '60s', 'silence after a throttling answer'),
  PARTNER_TIMEOUT: timer('partner', '30s', 'longest time for one API request'),
  PARTNER_DOWNLOAD_TIMEOUT: timer('partner', '30m', 'longest time for one manifest download'),
  BULK_MAX_SKUS: integer('mirror', 100, 1, 100, 'SKUs in one bulk call'),
  BULK_LIVE_BUDGET: integer(
    'mirror',
    5,
    1,
    100,
    'live SKUs in one bulk call to start with; learned from the answers after that; at most BULK_MAX_SKUS',
  ),
  DELTA_INTERVAL: timer('mirror', '5m', 'time between two polls of the delta'),
  MANIFEST_INTERVAL: duration('mirror', '7d', 'time between two manifests (re-baseline)'),
  CATALOG_CHECK_INTERVAL: timer(
    'mirror',
    '1h',
    "time between two looks at the manifest route's metadata (no download)",
  ),
  LIVE_INTERVAL: duration('mirror', '30m', "target age of a live SKU's price"),
  LIVE_POLICY: choice(
    'mirror',
    'index',
    ['index', 'round-robin'],
    'which live SKU is looked at next where there are too few looks for `LIVE_INTERVAL`: by learned rate of change and watchlist weight, or by turn',
  ),
  DEFERRED_INTERVAL: duration('mirror', '5m', 'earliest retry of a deferred SKU'),
  ERROR_INTERVAL: duration('mirror', '1m', 'first retry of a SKU in `errors`; doubles up to 6h', {
    max: 6 * 3_600_000,
  }),
  METADATA_INTERVAL: duration(
    'mirror',
    '7d',
    "greatest age of a SKU's metadata, and of a `not_found` verdict",
  ),
  SWEEP_INTERVAL: duration(
    'mirror',
    '24h',
    "target age of a snapshot-priced SKU's price; 0: no sweep of its own",
    { zero: true },
  ),
  SWEEP_MIN_AGE: duration(
    'mirror',
    '30m',
    'age from which a price may be refreshed in a spare slot of a call',
  ),
  CATALOG_STALE_AFTER: duration(
    'mirror',
    '24h',
    'snapshot age from which the mirror re-prices by age instead',
  ),
  MANIFEST_MAX_SHRINK: share(
    'mirror',
    0.5,
    'a manifest with fewer lines than this part of the mirrored SKUs is refused until `refresh --manifest` confirms it',
  ),
  // Never less than the daemon itself looks back: three days to a rate of change, some snapshots to judge the delta.
  HISTORY_RETENTION: duration(
    'mirror',
    '0',
    'how long `catalog.price_history` is kept at least; dropped by chunks of five million changes; 0: for good',
    { zero: true, min: 7 * 86_400_000 },
  ),
  PARTNER_BULK_BODY_KEY: field('skus', "name of the bulk body's SKU list (undocumented by the partner)"),
  PARTNER_PRICE_FIELDS: plain<readonly string[]>(
    'partner',
    'where a `size_map` entry that is an object carries its price, first match (undocumented by the partner)',
    {
      expected: 'field names separated by commas',
      parse: parseList,
    },
  ).or(PRICE_FIELDS.split(','), PRICE_FIELDS),
  PARTNER_SKU_FIELD: field(
    'sku',
    'where an element of `not_found`, `deferred`, `errors`, `changed`, `removed` or `now_live` that is an object carries its SKU (undocumented by the partner)',
  ),
  PARTNER_MANIFEST_URL_FIELD: foundByShape(
    "name of the manifest response's URL field (undocumented by the partner)",
  ),
  PARTNER_SNAPSHOT_ID_FIELD: foundByShape(
    "name of the manifest response's snapshot identifier (undocumented by the partner)",
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
    'the page at `GET /` and `GET /status.json` of that server; off: both are 404',
  ),
  LOG_LEVEL: choice(
    'http',
    'info',
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    'least severe level that is logged',
  ),
};
