import { bigint, boolean, doublePrecision, integer, interval, real, text } from 'drizzle-orm/pg-core';
import { catalog, instant, key, PRICE_SOURCES, SKU_STATES } from './catalog.ts';

/*
 * The views of schema catalog, for sellers' queries in TypeScript. Their SQL, and the meaning of each column, are in
 * drizzle/objects/views; test/client/schema.pg.test.ts compares these columns with those.
 */

const priceSource = () => text('price_source', { enum: PRICE_SOURCES });

export const currentPrices = catalog
  .view('current_prices', {
    sku: key().notNull(),
    size: key().notNull(),
    price: integer(),
    sizeType: text('size_type'),
    name: text(),
    brand: text(),
    model: text(),
    genderSize: text('gender_size'),
    category: text(),
    priceSource: priceSource(),
    pricedAt: instant('priced_at'),
    changedAt: instant('changed_at').notNull(),
    stale: boolean().notNull(),
    actionable: boolean().notNull(),
    pRight: real('p_right'),
    doubt: text(),
  })
  .existing();

export const skuTrust = catalog
  .view('sku_trust', {
    sku: key().notNull(),
    state: text({ enum: SKU_STATES }).notNull(),
    priceSource: priceSource(),
    inManifest: boolean('in_manifest').notNull(),
    pricedAt: instant('priced_at'),
    priceAge: interval('price_age'),
    targetAge: interval('target_age'),
    pastTarget: boolean('past_target').notNull(),
    isOwed: boolean('owed').notNull(),
    owedReason: text('owed_reason'),
    owedLane: text('owed_lane'),
    owedSince: instant('owed_since'),
    deferrals: integer().notNull(),
    failures: integer().notNull(),
    nextLookAt: instant('next_look_at'),
    stale: boolean().notNull(),
    fresh: boolean().notNull(),
    doubt: text(),
    actionable: boolean().notNull(),
    pRight: real('p_right'),
    sizePRight: real('size_p_right'),
    sizeActionable: boolean('size_actionable').notNull(),
  })
  .existing();

export const syncStatus = catalog
  .view('sync_status', {
    snapshotId: text('snapshot_id'),
    snapshotGeneratedAt: instant('snapshot_generated_at'),
    manifestAppliedAt: instant('manifest_applied_at'),
    deltaCheckedAt: instant('delta_checked_at'),
    skus: count('skus'),
    liveSkus: count('live_skus'),
    pendingSkus: count('pending_skus'),
    dueSkus: count('due_skus'),
    deferredSkus: count('deferred_skus'),
    oldestDueAt: instant('oldest_due_at'),
    requestsPerMinute: real('requests_per_minute'),
    backingOffUntil: instant('backing_off_until'),
    catalogState: text('catalog_state', { enum: ['ok', 'stale', 'none'] }).notNull(),
    incidentSince: instant('incident_since'),
    refusal: text(),
    refusedSince: instant('refused_since'),
    refusals: integer().notNull(),
    pausedSince: instant('paused_since'),
    pausedUntil: instant('paused_until'),
    skusInScope: count('skus_in_scope'),
  })
  .existing();

export const deltaAudit = catalog
  .view('delta_audit', {
    since: instant('since').notNull(),
    reportsConfirmed: count('reports_confirmed'),
    reportsUnchanged: count('reports_unchanged'),
    movesSeenFirst: count('moves_seen_first'),
    seenFirstBySeconds: doublePrecision('seen_first_by_seconds'),
    movesNeverReported: count('moves_never_reported'),
    movesWaiting: count('moves_waiting'),
  })
  .existing();

export const calibration = catalog
  .view('calibration', {
    cohort: text().notNull(),
    tenth: doublePrecision().notNull(),
    looks: count('looks'),
    rightShare: real('right_share').notNull(),
    claimedShare: real('claimed_share').notNull(),
    since: instant('since').notNull(),
  })
  .existing();

export const hintSources = catalog
  .view('hint_sources', {
    source: key().notNull(),
    hints: count('hints'),
    refreshesBroughtForward: count('refreshes_brought_forward'),
    refreshesTested: doublePrecision('refreshes_tested').notNull(),
    precision: doublePrecision().notNull(),
    recall: doublePrecision().notNull(),
    lastHint: instant('last_hint').notNull(),
    undone: doublePrecision().notNull(),
  })
  .existing();

export const promises = catalog
  .view('promises', {
    sku: key().notNull(),
    maxAge: interval('max_age').notNull(),
    feasible: boolean().notNull(),
    keptShare: real('kept_share'),
    because: text(),
  })
  .existing();

/** bigint in Postgres, but far below 2^53. */
function count(name: string) {
  return bigint(name, { mode: 'number' }).notNull();
}
