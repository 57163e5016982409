import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  jsonb,
  pgSchema,
  primaryKey,
  real,
  smallint,
  text,
  timestamp,
} from 'drizzle-orm/pg-core';

/*
 * The tables, as drizzle-kit generates migrations from them. Views, functions, comments, roles and storage settings are in
 * hand-written migrations beside (drizzle/*.sql). What each column means to a seller is said once, in COMMENT ON.
 */

export const catalog = pgSchema('catalog');
export const internal = pgSchema('catalog_internal');

const instant = (name: string) => timestamp(name, { withTimezone: true });

export const skus = catalog.table(
  'skus',
  {
    sku: text().primaryKey(),
    state: text().notNull().default('pending'),
    priceSource: text('price_source'),
    hash: text(),
    sizes: integer(),
    inManifest: boolean('in_manifest').notNull(),
    updatedAt: instant('updated_at'),
    firstSeenAt: instant('first_seen_at').notNull().defaultNow(),
    pricedAt: instant('priced_at'),
    removedAt: instant('removed_at'),
    /** When the request behind the newest applied answer was sent: an answer to an older request changes nothing. */
    askedAt: instant('asked_at'),
    /** When the partner first answered with a record: no history before that. */
    firstPricedAt: instant('first_priced_at'),
    /** When a delta last reported the SKU: a manifest asked for before that does not overrule the delta. */
    reportedAt: instant('reported_at'),
  },
  (t) => [
    check('skus_state', sql`${t.state} in ('pending', 'priced', 'not_found', 'removed')`),
    check('skus_price_source', sql`${t.priceSource} in ('snapshot', 'live')`),
  ],
);

export const prices = catalog.table(
  'prices',
  {
    sku: text().notNull(),
    size: text().notNull(),
    price: integer(),
    entry: jsonb(),
    changedAt: instant('changed_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.sku, t.size] })],
);

export const products = catalog.table('products', {
  sku: text().primaryKey(),
  name: text(),
  model: text(),
  brand: text(),
  genderSize: text('gender_size'),
  sizeType: text('size_type'),
  category: text(),
  sizeMapSizeType: text('size_map_size_type'),
  product: jsonb().notNull(),
  refreshedAt: instant('refreshed_at').notNull(),
  changedAt: instant('changed_at').notNull(),
});

export const priceHistory = catalog.table(
  'price_history',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    sku: text().notNull(),
    size: text().notNull(),
    oldPrice: integer('old_price'),
    newPrice: integer('new_price'),
    observedAt: instant('observed_at').notNull(),
  },
  (t) => [index('price_history_sku').on(t.sku, t.id)],
);

export const productHistory = catalog.table(
  'product_history',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    sku: text().notNull(),
    field: text().notNull(),
    oldValue: text('old_value'),
    newValue: text('new_value'),
    observedAt: instant('observed_at').notNull(),
  },
  (t) => [index('product_history_sku').on(t.sku, t.id)],
);

export const watchlist = catalog.table(
  'watchlist',
  {
    sku: text().primaryKey(),
    weight: real().notNull().default(1),
    note: text(),
  },
  (t) => [check('watchlist_weight', sql`${t.weight} > 0`)],
);

/**
 * The due ledger: one row for each known SKU, saying when its next look is owed and why. A claim (a worker has asked the
 * partner) and a wait (deferred, error) both hold the row back until `held_until`.
 */
export const due = internal.table(
  'due',
  {
    sku: text().primaryKey(),
    lane: smallint().notNull(),
    reason: text().notNull(),
    /** Counts against the live budget: listed as live, or deferred although listed as snapshot. */
    live: boolean().notNull().default(false),
    dueAt: instant('due_at').notNull(),
    /** Counts the marks: an answer settles the row only if no mark came after its claim. */
    generation: integer().notNull().default(0),
    claim: bigint({ mode: 'bigint' }),
    heldUntil: instant('held_until'),
    deferrals: integer().notNull().default(0),
    failures: integer().notNull().default(0),
  },
  (t) => [
    index('due_claim')
      .on(t.live, t.lane, t.dueAt)
      .where(sql`held_until is null`),
    index('due_held')
      .on(t.heldUntil)
      .where(sql`held_until is not null`),
  ],
);

export const claimNumbers = internal.sequence('claim_numbers');

/** One row: the sync token and what is known of the upstream's catalog. */
export const sync = internal.table(
  'sync',
  {
    id: boolean().primaryKey().default(true),
    snapshotId: text('snapshot_id'),
    snapshotGeneratedAt: instant('snapshot_generated_at'),
    manifestAppliedAt: instant('manifest_applied_at'),
    manifestLines: integer('manifest_lines'),
    deltaCheckedAt: instant('delta_checked_at'),
    snapshotMovedAt: instant('snapshot_moved_at'),
    catalogCheckedAt: instant('catalog_checked_at'),
    livePricedSkuCount: integer('live_priced_sku_count'),
    /** '0012' or '0014' while the catalog routes answer so; null otherwise. */
    catalogFault: text('catalog_fault'),
    /** Set when the delta chain broke (0010, 0013) until a fresh manifest is applied. */
    chainBrokenAt: instant('chain_broken_at'),
    /** Breaks in a row without a delta applied between: the first fetches a manifest at once, the next ones wait. */
    chainBreaks: integer('chain_breaks').notNull().default(0),
    /** The token the delta rejected: a fresh manifest that offers it again is no way out. */
    rejectedSnapshotId: text('rejected_snapshot_id'),
    /** Why the last fresh manifest was refused; null once one is applied. */
    manifestRefused: text('manifest_refused'),
    /** `refresh --manifest` has confirmed that a shrunken manifest may be applied. */
    shrinkConfirmed: boolean('shrink_confirmed').notNull().default(false),
    liveBudget: real('live_budget'),
  },
  (t) => [check('sync_one_row', sql`${t.id}`)],
);

/** What is believed of each live SKU's rate of change: a gamma distribution over changes a minute (sync/live-policy.ts). */
export const liveRates = internal.table('live_rates', {
  sku: text().primaryKey(),
  alpha: doublePrecision().notNull(),
  beta: doublePrecision().notNull(),
});

/** One row: the price of a live look and what is known of the partner's ceiling on live computations. */
export const livePlan = internal.table(
  'live_plan',
  {
    id: boolean().primaryKey().default(true),
    /** Null while there are looks enough for every SKU's LIVE_INTERVAL. */
    lookPrice: doublePrecision('look_price'),
    /** Longest allowed wait between two looks at a SKU, in minutes; null likewise. */
    mostMinutes: doublePrecision('most_minutes'),
    solvedAt: instant('solved_at'),
    ceilingPerMinute: doublePrecision('ceiling_per_minute'),
    ceilingAt: instant('ceiling_at'),
  },
  (t) => [check('live_plan_one_row', sql`${t.id}`)],
);

/** Live SKUs of recent bulk calls: how many were computed. Kept for some minutes. */
export const liveCalls = internal.table(
  'live_calls',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    calledAt: instant('called_at').notNull(),
    computed: integer().notNull(),
    deferred: integer().notNull(),
  },
  (t) => [index('live_calls_called_at').on(t.calledAt)],
);

/** The settings that SQL needs to tell fresh from stale; written by the daemon at start. */
export const settings = internal.table(
  'settings',
  {
    id: boolean().primaryKey().default(true),
    liveInterval: doublePrecision('live_interval').notNull().default(1800),
    sweepInterval: doublePrecision('sweep_interval').notNull().default(86_400),
    metadataInterval: doublePrecision('metadata_interval').notNull().default(604_800),
    catalogStaleAfter: doublePrecision('catalog_stale_after').notNull().default(86_400),
    rateLimit: integer('rate_limit').notNull().default(200),
    rateWindow: doublePrecision('rate_window').notNull().default(60),
    /** The mirror's share of it, in requests a window. */
    rateShare: integer('rate_share').notNull().default(120),
    /** Requests a window that are the mirror's, however much the account's other users ask for. */
    rateFloor: integer('rate_floor').notNull().default(40),
  },
  (t) => [check('settings_one_row', sql`${t.id}`)],
);

/** When each recurring task runs next and how it went last. The queues only knock; this decides. */
export const tasks = internal.table('tasks', {
  task: text().primaryKey(),
  nextAt: instant('next_at').notNull().defaultNow(),
  run: bigint({ mode: 'bigint' }),
  runningUntil: instant('running_until'),
  startedAt: instant('started_at'),
  finishedAt: instant('finished_at'),
  succeededAt: instant('succeeded_at'),
  failures: integer().notNull().default(0),
  outcome: text(),
  progress: jsonb(),
});

/** One row: the pace of the account, shared by all replicas. */
export const pace = internal.table(
  'pace',
  {
    id: boolean().primaryKey().default(true),
    ceiling: doublePrecision().notNull(),
    raisedAt: instant('raised_at').notNull(),
    silentUntil: instant('silent_until'),
    probeSentAt: instant('probe_sent_at'),
    episodes: integer().notNull().default(0),
    refusal: text(),
    refusedAt: instant('refused_at'),
    occupancy: integer(),
    resumeAt: doublePrecision('resume_at'),
  },
  (t) => [check('pace_one_row', sql`${t.id}`)],
);

/** The sliding log of requests sent with the api_key. */
export const paceSends = internal.table(
  'pace_sends',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    sentAt: instant('sent_at').notNull(),
    lane: text().notNull(),
    /** Sent by another user of the account, through catalog.take_request. */
    foreignUser: boolean('foreign_user').notNull().default(false),
  },
  (t) => [index('pace_sends_sent_at').on(t.sentAt)],
);

/** Samples of what could not be read, newest kept. */
export const quarantine = internal.table('quarantine', {
  id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
  source: text().notNull(),
  reason: text().notNull(),
  sku: text(),
  sample: text(),
  seenAt: instant('seen_at').notNull().defaultNow(),
});
