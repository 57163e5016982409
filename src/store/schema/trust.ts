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
 * What `p_right` is computed from, and how well it has held. Formulas:
 * drizzle/objects/functions/catalog_internal.p_right.sql.
 */

/**
 * One row: what refreshes have taught of prices in general (store/trust/beliefs.ts). The defaults are what is
 * believed before any.
 */
export const beliefs = internal.table(
  'beliefs',
  {
    id: boolean().primaryKey().default(true),
    /** Of the sizes of a live SKU, and of a snapshot-priced one, the part that moves with it. */
    liveMovedPart: doublePrecision('live_moved_part').notNull().default(1),
    snapshotMovedPart: doublePrecision('snapshot_moved_part').notNull().default(1),
    /** Part of the delta's reports whose refresh finds a move. */
    reportedMoves: doublePrecision('reported_moves').notNull().default(0.9),
    /** Part of the snapshot-priced SKUs that have moved and will be reported, but are not yet. */
    waitingMoves: doublePrecision('waiting_moves').notNull().default(0.02),
    /** Moves a SKU-minute that no delta reports. */
    missedRate: doublePrecision('missed_rate').notNull().default(0),
    /** Moves a SKU-minute of snapshot-priced SKUs: once in three days, before any was counted. */
    moveRate: doublePrecision('move_rate').notNull().default(0.000231),
    /**
     * Mean minutes between two moves of a live SKU before any of its own refreshes, and the variance of their
     * logarithm (rate-prior.ts).
     */
    livePriorMinutes: doublePrecision('live_prior_minutes').notNull().default(30),
    livePriorVariance: doublePrecision('live_prior_variance').notNull().default(2),
    /**
     * What refreshes have found since that was learned: right ones beyond those claimed, how much they depend on it,
     * and their variance.
     */
    livePriorSurprise: doublePrecision('live_prior_surprise').notNull().default(0),
    livePriorLeverage: doublePrecision('live_prior_leverage').notNull().default(0),
    livePriorNoise: doublePrecision('live_prior_noise').notNull().default(0),
    /**
     * Second looks after an answer that had nothing new of what was reported, those that found a change, and the
     * part of such SKUs that gets one (store/trust/late-prices.ts); both of those since that was learned.
     */
    againLooks: doublePrecision('again_looks').notNull().default(0),
    againFound: doublePrecision('again_found').notNull().default(0),
    againShare: doublePrecision('again_share').notNull().default(1),
    againNewLooks: doublePrecision('again_new_looks').notNull().default(0),
    againNewFound: doublePrecision('again_new_found').notNull().default(0),
    /** How likely an answer is wrong that had nothing new of what was reported, before its second look. */
    lateMoves: doublePrecision('late_moves').notNull().default(0.01),
    /** Since when so many are that it is said; null: they are not. */
    lateSince: instant('late_since'),
  },
  (t) => [check('beliefs_one_row', sql`${t.id}`)],
);

/**
 * Answered refreshes, each a test of the probability that was held just before it: by hour, by cohort, and by where in
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
    /** Of these, those that found nothing moved. */
    right: bigint({ mode: 'bigint' }).notNull(),
    /** Sum of the probabilities. */
    claimed: doublePrecision().notNull(),
    /** Sum of the minutes since the refresh before. */
    minutes: doublePrecision().notNull(),
    /** Refreshes that settled that a move had never been reported (store/catalog/audit.ts). */
    missed: bigint({ mode: 'bigint' }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.hour, t.cohort, t.bin] })],
);

/**
 * How long the moves that deltas have reported had waited for that, on average, by hour
 * (store/catalog/report-waits.ts).
 */
export const reportWaits = internal.table('report_waits', {
  hour: instant('hour').primaryKey(),
  reports: bigint({ mode: 'bigint' }).notNull(),
  /** Sum over the reports. */
  minutes: doublePrecision().notNull(),
});

/** Live SKUs drawn at random to be refreshed, whatever that is worth: a fair sample of all live prices. */
export const randomLooks = internal.table('random_looks', {
  sku: key().primaryKey(),
  lookAt: instant('look_at').notNull(),
});

/**
 * While more is due than live refreshes can do: its most valuable SKUs, to be refreshed in this order before all
 * others.
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

/** One row: whether prices move implausibly in masses (store/answer/mass-moves.ts), and how far they usually do. */
export const massMove = internal.table(
  'mass_move',
  {
    id: boolean().primaryKey().default(true),
    /** Null: they do not. */
    since: instant('since'),
    /**
     * implausible, lost: of so many answers, too many were, or had lost all their prices; factor, one-price: too
     * many were implausible, and several of them by one factor, most by one price for all sizes; factor-of-some: not
     * too many were, but several by one factor; far: prices moved far beyond what is usual.
     */
    kind: text(),
    answers: integer(),
    implausible: integer(),
    /**
     * Medians of the natural logarithm of moves: of the hour before it began, and of the hours in which nothing was
     * the matter.
     */
    move: real(),
    usual: real(),
    /** Natural logarithms: the common factor, and the last one that the seller has taken for the market's. */
    factor: real(),
    accepted: real(),
    acceptedAt: instant('accepted_at'),
  },
  (t) => [check('mass_move_one_row', sql`${t.id}`)],
);

/**
 * SKUs that have begun to move implausibly within the hour, and by what (natural logarithm), as answers have said
 * (store/answer/odd-moves.ts).
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

/** Members of products and of prices' entries that move with each refresh, and have no history (answer/members.ts). */
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
 * The names that the partner does not document, as answers have shown them (store/catalog/learned-names.ts): `price`
 * and `price_also`, the fields that entries of size_map have their price in, `other_members`, the members of size_map
 * that are no sizes, `manifest_url` and `snapshot_id`.
 */
export const learnedNames = internal.table('learned_names', {
  name: key().primaryKey(),
  /** Of `price` null: entries are numbers by themselves. */
  value: text(),
  /** Answers in a row that had it; only of `price`. */
  answers: integer().notNull().default(1),
  /** When the first answer came that had it no longer; null: the last had it. */
  missingSince: instant('missing_since'),
  learnedAt: instant('learned_at')
    .notNull()
    .default(sql`clock_timestamp()`),
  /** Counts the changes: who has read an earlier one changes nothing. */
  step: integer().notNull().default(1),
});
