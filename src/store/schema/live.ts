import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  check,
  doublePrecision,
  index,
  integer,
  jsonb,
  real,
  text,
} from 'drizzle-orm/pg-core';
import type { PredictedMove } from '../live/hint-state.ts';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/**
 * What is believed about each live SKU's rate of change: a gamma distribution of changes a minute
 * (sync/live/policy.ts).
 */
export const liveRates = internal.table(
  'live_rates',
  {
    sku: key().primaryKey(),
    alpha: doublePrecision().notNull(),
    beta: doublePrecision().notNull(),
    /** Sizes in refreshes that found a move, and how many of them had moved; fading. */
    sizesSeen: real('sizes_seen').notNull().default(0),
    sizesMoved: real('sizes_moved').notNull().default(0),
    /**
     * Until its next refresh: with a probability of 1 - exp(-hazard) it has moved with its line. Null if its line
     * does not move.
     */
    hazard: doublePrecision(),
    /** The same for hints at it (sync/live/hints.ts); null if there are none. */
    hintHazard: doublePrecision('hint_hazard'),
    /**
     * The move that the last refresh found after hints had told of it: { sources, former }
     * (store/live/hint-state.ts).
     */
    told: jsonb().$type<PredictedMove>(),
    /**
     * How often it has moved wholesale by itself, in how many minutes; fading. No defaults, because its row type is
     * an argument of p_right.
     */
    wholesaleMoves: real('wholesale_moves'),
    wholesaleMinutes: real('wholesale_minutes'),
    /**
     * What alpha and beta consist of (sync/live/learn-refresh.ts). Null if they come from one memory, as in an
     * earlier version, or only from its past. No defaults either.
     */
    longAlpha: real('long_alpha'),
    longBeta: real('long_beta'),
    shortAlpha: real('short_alpha'),
    shortBeta: real('short_beta'),
    shortOdds: real('short_odds'),
    /**
     * How much of the starting point of rates is left in alpha and beta, and in each memory
     * (store/live/rate-prior.ts); null: as much as possible, as in an earlier version.
     */
    priorPart: real('prior_part'),
    longPrior: real('long_prior'),
    shortPrior: real('short_prior'),
    /** Its line (catalog_internal.line_of); null if brand or model is unknown. */
    line: bigint({ mode: 'bigint' }),
  },
  (t) => [
    index('live_rates_line')
      .on(t.line)
      .where(sql`line is not null`),
  ],
);

/** One row: the threshold of live refreshes, and the present incident and outage. */
export const livePlan = internal.table(
  'live_plan',
  {
    id: boolean().primaryKey().default(true),
    /** Null while there are enough refreshes for every SKU's LIVE_INTERVAL. */
    refreshThreshold: doublePrecision('refresh_threshold'),
    /** Longest allowed wait between two refreshes of a SKU, in minutes; null likewise. */
    maxIntervalMinutes: doublePrecision('max_interval_minutes'),
    /** How many minutes before its time a SKU may be refreshed; null likewise. */
    earlyMinutes: doublePrecision('early_minutes'),
    /** After how many minutes without a refresh a SKU comes before all others (sync/live/choose.ts); null likewise. */
    overdueMinutes: doublePrecision('overdue_minutes'),
    /** How long nothing was refreshed, for as long as that has effects, and the last refresh taken into account. */
    idleMinutes: doublePrecision('idle_minutes'),
    refreshedAt: instant('refreshed_at'),
    solvedAt: instant('solved_at'),
    /**
     * Since when, and by which evidence, everything is treated as live-priced (sync/live/incident.ts); null: no
     * incident.
     */
    incidentSince: instant('incident_since'),
    incidentBecause: text('incident_because'),
    /**
     * When a call last tried snapshot-priced SKUs during the incident. Without an incident: when a call disproved
     * the last one, until counts agree.
     */
    incidentTriedAt: instant('incident_tried_at'),
    /** Since when the partner's live source has failed while other SKUs are answered; null: it works. */
    outageSince: instant('outage_since'),
  },
  (t) => [check('live_plan_one_row', sql`${t.id}`)],
);

/**
 * One row: the learned ceiling on the partner's live computations, and what was spent of it (sync/live/ceiling.ts).
 */
export const liveCeiling = internal.table(
  'live_ceiling',
  {
    id: boolean().primaryKey().default(true),
    step: integer().notNull().default(0),
    /** Live computations a minute at `since`; null until a ceiling has been met. */
    perMinute: doublePrecision('per_minute'),
    since: instant('since')
      .notNull()
      .default(sql`now()`),
    alike: integer().notNull().default(0),
    blockedAt: instant('blocked_at'),
    failedAt: instant('failed_at'),
    cycleFrom: instant('cycle_from')
      .notNull()
      .default(sql`now()`),
    /** Since when credit for live SKUs has been growing. Every call with live SKUs moves it. */
    creditFrom: instant('credit_from')
      .notNull()
      .default(sql`now()`),
  },
  (t) => [check('live_ceiling_one_row', sql`${t.id}`)],
);

/** Live SKUs of recent bulk calls, and how many were computed. Kept for some minutes. */
export const liveCalls = internal.table(
  'live_calls',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    calledAt: instant('called_at').notNull(),
    computed: integer().notNull(),
    deferred: integer().notNull(),
    /** SKUs asked for as snapshot-priced, and how many of these were deferred. */
    snapshotAsked: integer('snapshot_asked').notNull().default(0),
    snapshotDeferred: integer('snapshot_deferred').notNull().default(0),
  },
  (t) => [index('live_calls_called_at').on(t.calledAt)],
);

/** Lines (one brand and model) of live SKUs, and whether their SKUs are moving together (sync/live/releases.ts). */
export const liveLines = internal.table(
  'live_lines',
  {
    /** Derived from brand and model (catalog_internal.line_of), which may be too long for an index. */
    line: bigint({ mode: 'bigint' }).primaryKey(),
    brand: text().notNull(),
    model: text().notNull(),
    step: integer().notNull(),
    /** quiet, suspected or released. */
    phase: text().notNull(),
    evidence: doublePrecision().notNull(),
    weighedAt: instant('weighed_at').notNull(),
    /** Since when it has been suspected, or was before the last confirmation. */
    since: instant('since'),
    answers: integer().notNull(),
    moved: integer().notNull(),
    hits: doublePrecision().notNull(),
    misses: doublePrecision().notNull(),
  },
  (t) => [check('live_lines_phase', sql`${t.phase} in ('quiet', 'suspected', 'released')`)],
);

/** One row: what is known about all lines, and what became of suspicions over the mirror's life. */
export const releases = internal.table(
  'releases',
  {
    id: boolean().primaryKey().default(true),
    /** The evidence at which a line is suspected. */
    threshold: doublePrecision().notNull().default(6),
    /** Wholesale moves a minute that a SKU makes by itself. */
    wholesaleRate: doublePrecision('wholesale_rate')
      .notNull()
      .default(sql`1.0 / 1500`),
    /** SKUs a minute that were refreshed early, as of early_at; fading. */
    early: doublePrecision().notNull().default(0),
    earlyAt: instant('early_at').notNull().defaultNow(),
    suspected: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    confirmed: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    dismissed: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    refreshes: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
  },
  (t) => [check('releases_one_row', sql`${t.id}`)],
);
