import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  primaryKey,
  real,
  smallint,
  text,
} from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/*
 * What `p_right` is computed from, and how well it has held. The formulas are in
 * drizzle/objects/functions/catalog_internal.p_right.sql.
 */

/**
 * One row: what refreshes have taught about prices in general (store/trust/beliefs.ts). The defaults are what is
 * believed before any refresh.
 */
export const beliefs = internal.table(
  'beliefs',
  {
    id: boolean().primaryKey().default(true),
    /** The part of the sizes that move with their SKU, for live and for snapshot-priced SKUs. */
    liveMovedPart: doublePrecision('live_moved_part').notNull().default(1),
    snapshotMovedPart: doublePrecision('snapshot_moved_part').notNull().default(1),
    /** The part of the delta's reports whose refresh finds a move. */
    reportedMoves: doublePrecision('reported_moves').notNull().default(0.9),
    /** The part of snapshot-priced SKUs that have moved and will be reported, but are not reported yet. */
    waitingMoves: doublePrecision('waiting_moves').notNull().default(0.02),
    /** Moves per SKU and minute that no delta reports. */
    missedRate: doublePrecision('missed_rate').notNull().default(0),
    /** Moves per SKU and minute of snapshot-priced SKUs: one in three days before any was counted. */
    moveRate: doublePrecision('move_rate').notNull().default(0.000231),
    /**
     * Mean minutes between two moves of a live SKU before any of its own refreshes, and the variance of their
     * logarithm (rate-prior.ts).
     */
    livePriorMinutes: doublePrecision('live_prior_minutes').notNull().default(30),
    livePriorVariance: doublePrecision('live_prior_variance').notNull().default(2),
    /**
     * What refreshes have found since that was learned: how many more were right than claimed, how much that depends
     * on it, and its variance.
     */
    livePriorSurprise: doublePrecision('live_prior_surprise').notNull().default(0),
    livePriorLeverage: doublePrecision('live_prior_leverage').notNull().default(0),
    livePriorNoise: doublePrecision('live_prior_noise').notNull().default(0),
    /**
     * Second looks after an answer that contained nothing new about a report, how many found a change, and the part
     * of such SKUs that get one (store/trust/late-prices.ts); then the first two since that was learned.
     */
    againLooks: doublePrecision('again_looks').notNull().default(0),
    againFound: doublePrecision('again_found').notNull().default(0),
    againShare: doublePrecision('again_share').notNull().default(1),
    againNewLooks: doublePrecision('again_new_looks').notNull().default(0),
    againNewFound: doublePrecision('again_new_found').notNull().default(0),
    /** How likely an answer with nothing new about a report is wrong, before its second look. */
    lateMoves: doublePrecision('late_moves').notNull().default(0.01),
    /** Since when so many have been wrong that it is reported; null if they are not. */
    lateSince: instant('late_since'),
  },
  (t) => [check('beliefs_one_row', sql`${t.id}`)],
);

/**
 * Answered refreshes, each a test of the probability believed just before it: by hour, by cohort, and by where in
 * [0, 1] the probability was.
 */
export const calibrationHours = internal.table(
  'calibration_hours',
  {
    hour: instant('hour').notNull(),
    cohort: key().notNull(),
    /** 0 to 11 (store/trust/calibration.ts). */
    bin: smallint().notNull(),
    looks: bigint({ mode: 'bigint' }).notNull(),
    /** How many of these found nothing moved. */
    right: bigint({ mode: 'bigint' }).notNull(),
    /** Sum of the probabilities. */
    claimed: doublePrecision().notNull(),
    /** Sum of the minutes since the previous refresh. */
    minutes: doublePrecision().notNull(),
    /** Refreshes that proved that a move had never been reported (store/catalog/audit.ts). */
    missed: bigint({ mode: 'bigint' }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.hour, t.cohort, t.bin] })],
);

/** How long moves had waited on average for the deltas that reported them, by hour (store/catalog/report-waits.ts). */
export const reportWaits = internal.table('report_waits', {
  hour: instant('hour').primaryKey(),
  reports: bigint({ mode: 'bigint' }).notNull(),
  /** Sum over the reports. */
  minutes: doublePrecision().notNull(),
});

/** Live SKUs drawn at random to be refreshed whatever that is worth: a fair sample of all live prices. */
export const randomLooks = internal.table('random_looks', {
  sku: key().primaryKey(),
  lookAt: instant('look_at').notNull(),
});

/**
 * While more live refreshes are due than can be done: the most valuable SKUs, which are refreshed in this order
 * before all others.
 */
export const liveBacklog = internal.table(
  'live_backlog',
  {
    sku: key().primaryKey(),
    place: integer().notNull(),
    listedAt: instant('listed_at').notNull(),
  },
  (t) => [index('live_backlog_place').on(t.place)],
);

/** One row: whether prices move implausibly en masse (store/answer/mass-moves.ts), and how far they usually move. */
export const massMove = internal.table(
  'mass_move',
  {
    id: boolean().primaryKey().default(true),
    /** Null if there is no mass move. */
    since: instant('since'),
    /**
     * implausible, lost: too many of the answers were, or had lost all their prices. factor, one-price: too many
     * were implausible, and several of them by one factor, or most by one price for all sizes. factor-of-some: not
     * too many were, but several by one factor. far: prices moved far beyond what is usual.
     */
    kind: text(),
    answers: integer(),
    implausible: integer(),
    /** Medians of the natural logarithm of moves: in the hour before it began, and in normal hours. */
    move: real(),
    usual: real(),
    /** Natural logarithms: the common factor, and the last one that the seller accepted as the market's. */
    factor: real(),
    accepted: real(),
    acceptedAt: instant('accepted_at'),
  },
  (t) => [check('mass_move_one_row', sql`${t.id}`)],
);

/**
 * SKUs that began to move implausibly within the last hour, and by what factor (natural logarithm), according to
 * answers (store/answer/odd-moves.ts).
 */
export const oddMoves = internal.table(
  'odd_moves',
  {
    sku: key().notNull(),
    factor: real().notNull(),
    begunAt: instant('begun_at').notNull(),
  },
  (t) => [primaryKey({ columns: [t.sku, t.begunAt] })],
);

/**
 * Members of products and of prices' entries that change with each refresh, and have no history (answer/members.ts).
 */
export const mutedMembers = internal.table(
  'muted_members',
  {
    part: key().notNull(),
    path: key().notNull(),
    since: instant('since')
      .notNull()
      .default(sql`now()`),
  },
  (t) => [primaryKey({ columns: [t.part, t.path] })],
);

/**
 * The names that the partner does not document, as learned from answers (store/catalog/learned-names.ts): `price`
 * and `price_also`, the fields of size_map entries that contain their price, `other_members`, the members of
 * size_map that are no sizes, `manifest_url` and `snapshot_id`.
 */
export const learnedNames = internal.table('learned_names', {
  name: key().primaryKey(),
  /** Null for `price`: entries are plain numbers. */
  value: text(),
  /** Consecutive answers that contained it; only for `price`. */
  answers: integer().notNull().default(1),
  /** When the first answer came without it; null if the last one contained it. */
  missingSince: instant('missing_since'),
  learnedAt: instant('learned_at')
    .notNull()
    .default(sql`clock_timestamp()`),
  /** Counts the changes: whoever has read an earlier step changes nothing. */
  step: integer().notNull().default(1),
});
