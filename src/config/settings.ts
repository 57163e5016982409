import { SERVER_SETTINGS, TRACE_SETTINGS } from './monitoring-settings.ts';
import { FIELD_SETTINGS, PARTNER_SETTINGS } from './partner-settings.ts';
import {
  choice,
  duration,
  either,
  integer,
  pattern,
  postgresUrl,
  redisUrl,
  secretText,
  type Setting,
  share,
  timer,
} from './rules.ts';

const webhookSecret = () =>
  secretText(
    'whsec_ and 24 to 64 random bytes in base64, as of `echo whsec_$(openssl rand -base64 32)`',
    /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/,
  );

/**
 * Every setting, in the order of the documentation. `Config`, its checks, the tables in the documents and the tests'
 * defaults are derived from it.
 */
export const SETTINGS = {
  ...PARTNER_SETTINGS,
  DATABASE_URL: {
    path: 'database.url',
    rule: postgresUrl(),
    unset: 'embedded Postgres',
    secret: true,
    connection: true,
    meaning: "the seller's Postgres, 14 or newer; a direct connection, or a pooler in session mode",
  },
  DATABASE_POOL_MAX: {
    path: 'database.poolMax',
    rule: integer(5, 100),
    default: '12',
    meaning:
      'most connections to Postgres that one daemon opens in all, queues included. ' +
      'Its pool of statements gets what is left after two (the daemon itself, and manifests) and those of the queues',
  },
  REDIS_URL: {
    path: 'queues.redisUrl',
    rule: redisUrl(),
    unset: 'queues in Postgres',
    secret: true,
    connection: true,
    meaning: "BullMQ's Redis; unset, the queues live in the same Postgres",
  },
  QUEUE_PREFIX: {
    path: 'queues.prefix',
    rule: pattern('1 to 64 letters, digits or any of . _ : { } -', /^[\w.:{}-]{1,64}$/),
    default: 'catalog-mirror',
    meaning: "prefix of BullMQ's keys",
  },
  DATA_DIR: {
    path: 'database.dataDir',
    rule: pattern('a path', /^[^\0]+$/),
    default: '.catalog-mirror',
    meaning: 'folder of the embedded Postgres',
  },
  PARTNER_RATE_LIMIT: {
    path: 'rate.limit',
    rule: integer(1, 1_000_000),
    default: '200',
    meaning: "the account's limit: requests in one rolling window",
  },
  PARTNER_RATE_WINDOW: {
    path: 'rate.windowMs',
    rule: timer(),
    default: '60s',
    meaning: 'length of that rolling window',
  },
  PARTNER_RATE_SHARE: {
    path: 'rate.share',
    rule: share(),
    default: '0.6',
    meaning: 'share of the limit that the mirror may use; the rest is for your other traffic',
  },
  PARTNER_RATE_FLOOR: {
    path: 'rate.floor',
    rule: share(),
    default: '0.2',
    meaning:
      'share of the limit that the mirror keeps while your other services request theirs through `catalog.take_request`',
  },
  PARTNER_BACKOFF: {
    path: 'rate.backoffMs',
    rule: timer(),
    default: '60s',
    meaning: 'pause after a 403 response',
  },
  PARTNER_TIMEOUT: {
    path: 'partner.timeoutMs',
    rule: timer(),
    default: '30s',
    meaning: 'timeout of one API request',
  },
  PARTNER_DOWNLOAD_TIMEOUT: {
    path: 'partner.downloadTimeoutMs',
    rule: timer(),
    default: '30m',
    meaning: 'timeout of one manifest download',
  },
  BULK_MAX_SKUS: {
    path: 'bulk.maxSkus',
    rule: integer(1, 100),
    default: '100',
    meaning: 'SKUs in one bulk call',
  },
  BULK_LIVE_BUDGET: {
    path: 'bulk.liveBudget',
    rule: integer(1, 100),
    default: '5',
    meaning:
      'initial number of live SKUs in one bulk call; adjusted from the answers afterwards; at most BULK_MAX_SKUS',
  },
  DELTA_INTERVAL: {
    path: 'intervals.deltaMs',
    rule: timer(),
    default: '5m',
    meaning: 'time between two polls of the delta',
  },
  MANIFEST_INTERVAL: {
    path: 'intervals.manifestMs',
    rule: duration(),
    default: '7d',
    meaning: 'time between two manifests (re-baseline)',
  },
  CATALOG_CHECK_INTERVAL: {
    path: 'intervals.catalogCheckMs',
    rule: timer(),
    default: '1h',
    meaning: 'how often manifest metadata is checked (no download)',
  },
  LIVE_INTERVAL: {
    path: 'intervals.liveMs',
    rule: duration(),
    default: '30m',
    meaning: 'target age of the price of a live SKU, or of one that no manifest lists',
  },
  LIVE_POLICY: {
    path: 'intervals.livePolicy',
    rule: choice(['index', 'round-robin']),
    default: 'index',
    meaning:
      'order of live refreshes when the request budget is too small for `LIVE_INTERVAL`: ' +
      '`index` by learned rate of change and watchlist weight, or `round-robin`',
  },
  DEFERRED_INTERVAL: {
    path: 'intervals.deferredMs',
    rule: duration(),
    default: '5m',
    meaning: 'earliest retry of a deferred SKU',
  },
  ERROR_INTERVAL: {
    path: 'intervals.errorMs',
    rule: duration({ max: 6 * 3_600_000 }),
    default: '1m',
    meaning:
      'first retry of a SKU in `errors`; doubles up to 6h, of a live SKU up to `LIVE_INTERVAL` where calls suffice for all',
  },
  METADATA_INTERVAL: {
    path: 'intervals.metadataMs',
    rule: duration(),
    default: '7d',
    meaning: "maximum age of a SKU's metadata, and of a `not_found` result",
  },
  SWEEP_INTERVAL: {
    path: 'intervals.sweepMs',
    rule: duration({ zero: true }),
    default: '24h',
    meaning: "target age of a snapshot-priced SKU's price; 0: no scheduled sweep",
  },
  SWEEP_MIN_AGE: {
    path: 'intervals.sweepMinAgeMs',
    rule: duration(),
    default: '30m',
    meaning: 'minimum age of a price that is refreshed in a spare slot of a call',
  },
  CATALOG_STALE_AFTER: {
    path: 'catalog.staleAfterMs',
    rule: duration(),
    default: '24h',
    meaning: 'age at which the catalog snapshot counts as stale and SKUs are refreshed by age instead',
  },
  MIRROR_SCOPE: {
    path: 'catalog.scope',
    rule: choice(['catalog', 'scope']),
    default: 'catalog',
    meaning:
      'what is priced: the whole `catalog`, or with `scope` only what the rules of `catalog.scope` say; ' +
      'the same for all daemons on one database',
  },
  WATCHLIST_MAX_SKUS: {
    path: 'catalog.watchedSkus',
    rule: integer(0, 10_000_000),
    default: '100000',
    meaning:
      'SKUs of `catalog.watchlist` that are watched, those of the greatest weights first; others are as if they were not in it',
  },
  MANIFEST_MAX_SHRINK: {
    path: 'catalog.manifestMinShare',
    rule: share(),
    default: '0.5',
    meaning:
      'a manifest with fewer lines than this share of the mirrored SKUs, or a delta that leaves fewer, ' +
      'is refused until `refresh --manifest --accept-shrink` confirms it',
  },
  ACTIONABLE_CONFIDENCE: {
    path: 'catalog.actionableConfidence',
    rule: share(),
    default: '0.95',
    meaning:
      'prices are `actionable` where they are right with this probability at least (`p_right`), and nothing else speaks against them',
  },
  // At least as far as the daemon looks back: three days for a rate of change, some snapshots to judge the delta.
  HISTORY_RETENTION: {
    path: 'history.retentionMs',
    rule: duration({ zero: true, min: 7 * 86_400_000 }),
    default: '0',
    meaning:
      'minimum retention of `catalog.price_history`, which is dropped in chunks of five million changes, ' +
      'and of what `catalog.product_history` holds of members without a column; 0: keep forever',
  },
  DAILY_RETENTION: {
    path: 'history.dailyRetentionMs',
    rule: duration({ zero: true, min: 7 * 86_400_000 }),
    default: '0',
    meaning:
      'how long days are kept in `catalog.daily_prices`, at least `HISTORY_RETENTION`; 0: keep forever',
  },
  ...FIELD_SETTINGS,
  WEBHOOK_SECRET: {
    path: 'webhook.secret',
    rule: webhookSecret(),
    unset: 'none',
    secret: true,
    meaning:
      'secret that `follow --webhook` signs with, as Standard Webhooks has it: `whsec_` and base64. Its file is ' +
      'read again before each delivery',
  },
  WEBHOOK_SECRET_PREVIOUS: {
    path: 'webhook.previousSecret',
    rule: webhookSecret(),
    unset: 'none',
    secret: true,
    meaning: 'a second secret that is signed with, too, while receivers change from it to WEBHOOK_SECRET',
  },
  WEBHOOK_ALLOW_PRIVATE: {
    path: 'webhook.allowPrivate',
    rule: either('true', 'false'),
    default: 'false',
    meaning:
      'lets `follow --webhook` post to this machine and to private networks (100.64.0.0/10 is one, too), there also over plain http; ' +
      'link-local addresses and metadata services are never called',
  },
  WEBHOOK_TIMEOUT: {
    path: 'webhook.timeoutMs',
    rule: timer(),
    default: '20s',
    meaning: 'timeout of one delivery of `follow --webhook`',
  },
  ...SERVER_SETTINGS,
  ...TRACE_SETTINGS,
} as const satisfies Readonly<Record<string, Setting>>;
