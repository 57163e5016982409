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
  real,
  text,
} from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';

export const internal = pgSchema('catalog_internal');

/** The newest position when a chunk of price_history was created: whatever was observed later has a greater one. */
export const historyMilestones = internal.table('history_milestones', {
  position: bigint({ mode: 'bigint' }).primaryKey(),
  at: instant('at').notNull(),
});

/**
 * Chunks of price_history that were created and not dropped by retention: a chunk that is missing was dropped by
 * hand.
 */
export const historyChunks = internal.table('history_chunks', {
  number: bigint({ mode: 'bigint' }).primaryKey(),
});

export const changePositions = internal.sequence('change_positions');

/**
 * Changes that came together, each with a position from id to last_id: SKUs that appear or whose state changes, and
 * first prices and metadata, which are not in the histories (catalog_internal.add_changes).
 */
export const changeBatches = internal.table(
  'change_batches',
  {
    id: bigint({ mode: 'bigint' }).primaryKey(),
    lastId: bigint('last_id', { mode: 'bigint' }).notNull(),
    /** sku: each of `skus` changed in all of `fields`. price, product: one element per change. */
    kind: text().notNull(),
    skus: text().array().notNull(),
    sizes: text().array(),
    prices: integer().array(),
    fields: text().array(),
    oldValues: text('old_values').array(),
    newValues: text('new_values').array(),
    observedAt: instant('observed_at').notNull(),
  },
  (t) => [
    index('change_batches_last_id').on(t.lastId, t.id),
    check('change_batches_kind', sql`${t.kind} in ('sku', 'price', 'product')`),
  ],
);

/** Its last value is the newest dropped position. A sequence, because every snapshot sees the same value. */
export const droppedPositions = internal.sequence('dropped_positions', { minValue: 0, startWith: 0 });

/** One row: the sync token and what is known of the partner's catalog. */
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
    /** '0012' or '0014' while the catalog routes answer with it; null otherwise. */
    catalogFault: text('catalog_fault'),
    /** When the delta chain broke (0010, 0013); null again once a fresh manifest is applied. */
    chainBrokenAt: instant('chain_broken_at'),
    /** Consecutive breaks without an applied delta: the first fetches a manifest at once, the next ones wait. */
    chainBreaks: integer('chain_breaks').notNull().default(0),
    /** The token that the delta rejected: a fresh manifest that offers it again does not help. */
    rejectedSnapshotId: text('rejected_snapshot_id'),
    /**
     * The newest snapshot that the manifest route has named, and the newest claim at that moment, when the snapshot
     * already existed.
     */
    seenSnapshotId: text('seen_snapshot_id'),
    seenGeneratedAt: instant('seen_generated_at'),
    seenClaim: bigint('seen_claim', { mode: 'bigint' }),
    /** Why the last fresh manifest was refused; null once one is applied. */
    manifestRefused: text('manifest_refused'),
    /** `refresh --manifest --accept-shrink` has confirmed that a shrunken manifest may be applied. */
    shrinkConfirmed: boolean('shrink_confirmed').notNull().default(false),
    liveBudget: real('live_budget'),
    /** The last delta brought nothing newer, so the next snapshot that it leads to is built after that. */
    caughtUp: boolean('caught_up').notNull().default(false),
    /** When the token was last moved, by a delta or a manifest. */
    tokenAt: instant('token_at'),
    /** The token's snapshot was built after this time; null while unknown (store/catalog/audit.ts). */
    builtAfter: instant('built_after'),
    /**
     * The last snapshots that the manifest route has named, most recently named first: `id`, `generated` (when it
     * was built, null: not given), `named` (when it was first named).
     */
    namedSnapshots: jsonb('named_snapshots').notNull().default([]),
    /**
     * Whether the delta leads to the present catalog (sync/catalog-check.ts). suspected: the manifest route names a
     * newer snapshot, as it does for some minutes after each is built. behind: it has done so for longer.
     * distrusted: it did, a manifest has replaced the delta, and the delta has not moved since. Null: the delta
     * leads there.
     */
    deltaDoubt: text('delta_doubt'),
    /** Since when a newer snapshot has been named. */
    behindSince: instant('behind_since'),
    /** Since when a distrusted delta is known to stand still: it has been behind again. Null if that is not known. */
    deltaStillSince: instant('delta_still_since'),
    /** Since when the manifest route's data about the token's own snapshot has differed from the mirror, and how. */
    catalogDiffersAt: instant('catalog_differs_at'),
    catalogDifference: jsonb('catalog_difference'),
    /** Rejected and duplicate lines of the last manifest, and by how much its live SKUs were miscounted. */
    manifestUnclear: integer('manifest_unclear').notNull().default(0),
    manifestLiveMiscount: integer('manifest_live_miscount').notNull().default(0),
    /** Manifests of rebuilt snapshots since a build time last stood still. */
    rebuilds: integer().notNull().default(0),
    /** Each answer of the delta has a token of its own, so a moving token says nothing. */
    ownTokens: boolean('own_tokens').notNull().default(false),
    /** A round number of SKUs in `changed` that may be the most that the partner reports, or null. */
    roundChanged: integer('round_changed'),
    limitSuspectedAt: instant('limit_suspected_at'),
  },
  (t) => [
    check('sync_one_row', sql`${t.id}`),
    check('sync_delta_doubt', sql`${t.deltaDoubt} in ('suspected', 'behind', 'distrusted')`),
  ],
);

/** Tokens that deltas have left since a manifest last set the token (store/catalog/tokens.ts). */
export const leftTokens = internal.table('left_tokens', {
  token: key().primaryKey(),
  /** When the first report of changes since its snapshot came. */
  leftAt: instant('left_at').notNull(),
});

/**
 * Manifests that were applied because counts differed from the mirror's, and listed nothing else; one fewer for each
 * later check with the right counts (sync/catalog-check-decision.ts).
 */
export const idleManifests = internal.table('idle_manifests', {
  appliedAt: instant('applied_at').primaryKey(),
});

/**
 * SKUs that count as if the delta had left out a move (`missed_moves`) although none is known: their manifest lines
 * could not be read (store/catalog/unread-lines.ts).
 */
export const unreadLines = internal.table('unread_lines', {
  sku: key().primaryKey(),
});

/** Sellers' changes to catalog.watchlist that the mirror has not read yet (store/sellers/watchlist.ts). */
export const watchChanges = internal.table('watch_changes', {
  id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
  /** Whether the SKUs were inserted; otherwise their weights changed, or they are gone. */
  added: boolean().notNull(),
  /** Null: everything was removed (TRUNCATE). */
  skus: text().array(),
});

/**
 * The mirror's copy of catalog.watchlist, because sellers may lock the original. Everything else that needs a weight
 * reads it here.
 */
export const watched = internal.table(
  'watched',
  {
    sku: key().primaryKey(),
    /** Null: no longer watched, but the ledger has not been told yet. */
    weight: real(),
    /**
     * What the ledger has not been told yet: that the SKU is due ('mark'), or has another rank or promise ('rank').
     */
    pending: text(),
    /** The promise: how old its price may get, in seconds, and since when; null if there is none. */
    maxAge: doublePrecision('max_age'),
    promisedSince: instant('promised_since'),
    /** Whether the account has enough requests to keep it in addition to promises of higher priority. */
    feasible: boolean().notNull().default(false),
  },
  (t) => [
    index('watched_promised')
      .on(t.sku)
      .where(sql`${t.maxAge} is not null`),
    index('watched_pending')
      .on(t.sku)
      .where(sql`${t.pending} is not null`),
    check('watched_pending', sql`${t.pending} in ('mark', 'rank')`),
  ],
);

/** One row, locked by whoever reads the watchlist. */
export const watching = internal.table(
  'watching',
  {
    id: boolean().primaryKey().default(true),
    /** SKUs of the list that were left out because too many are watched. */
    leftOut: integer('left_out').notNull().default(0),
  },
  (t) => [check('watching_one_row', sql`${t.id}`)],
);

/** The settings by which SQL distinguishes fresh from stale; the daemon writes them when it starts. */
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
    /** The mirror's share of the limit, in requests a window. */
    rateShare: integer('rate_share').notNull().default(120),
    /** Requests a window that the mirror gets, however many the account's other users ask for. */
    rateFloor: integer('rate_floor').notNull().default(40),
    deltaInterval: doublePrecision('delta_interval').notNull().default(300),
    /** SKUs in a bulk call, and how many of them are live until something is learned. */
    bulkMaxSkus: integer('bulk_max_skus').notNull().default(100),
    bulkLiveBudget: integer('bulk_live_budget').notNull().default(5),
    /** Prices are actionable from this probability of being right on. */
    actionableConfidence: doublePrecision('actionable_confidence').notNull().default(0.95),
  },
  (t) => [check('settings_one_row', sql`${t.id}`)],
);

/**
 * Moves of snapshot-priced SKUs that a refresh found before any delta reported them, until a delta reports them or
 * should have (store/catalog/audit.ts).
 */
export const unreportedMoves = internal.table('unreported_moves', {
  sku: key().primaryKey(),
  seenAt: instant('seen_at').notNull(),
  /**
   * More than one: it is unknown whether the delta should report it. 0: no move was seen, and the report is not
   * judged.
   */
  moves: integer().notNull().default(1),
  /** When a delta reported it: the refresh that this causes may rightly find nothing. */
  reportedAt: instant('reported_at'),
});

/** One row: what became of reports and of moves, over the mirror's life (view catalog.delta_audit). */
export const deltaAudit = internal.table(
  'delta_audit',
  {
    id: boolean().primaryKey().default(true),
    since: instant('since').notNull().defaultNow(),
    confirmed: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    unchanged: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    seenFirst: bigint('seen_first', { mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    seenFirstSeconds: doublePrecision('seen_first_seconds').notNull().default(0),
    neverReported: bigint('never_reported', { mode: 'bigint' })
      .notNull()
      .default(sql`0`),
  },
  (t) => [check('delta_audit_one_row', sql`${t.id}`)],
);

/** One row: counts that need a scan of the catalog, as of `counted_at` (store/status/counts-reader.ts). */
export const catalogCounts = internal.table(
  'catalog_counts',
  {
    id: boolean().primaryKey().default(true),
    countedAt: instant('counted_at').notNull(),
    countedInMs: doublePrecision('counted_in_ms').notNull(),
    counts: jsonb().notNull(),
  },
  (t) => [check('catalog_counts_one_row', sql`${t.id}`)],
);

/** Samples of what could not be read; the newest are kept. */
export const quarantine = internal.table('quarantine', {
  id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
  source: text().notNull(),
  reason: text().notNull(),
  sku: text(),
  sample: text(),
  seenAt: instant('seen_at').notNull().defaultNow(),
});
