import { sql } from 'drizzle-orm';
import { bigint, boolean, check, doublePrecision, integer, text } from 'drizzle-orm/pg-core';
import { instant } from './catalog.ts';
import { internal } from './internal.ts';

/**
 * Lines (one brand and model) of live SKUs, and whether their SKUs move together at present (sync/live/releases.ts).
 */
export const liveLines = internal.table(
  'live_lines',
  {
    /** Of brand and model (catalog_internal.line_of): they may be longer than an index takes. */
    line: bigint({ mode: 'bigint' }).primaryKey(),
    brand: text().notNull(),
    model: text().notNull(),
    step: integer().notNull(),
    /** quiet, suspected or released. */
    phase: text().notNull(),
    evidence: doublePrecision().notNull(),
    weighedAt: instant('weighed_at').notNull(),
    /** Since when it is suspected, or was when that was confirmed last. */
    since: instant('since'),
    answers: integer().notNull(),
    moved: integer().notNull(),
    hits: doublePrecision().notNull(),
    misses: doublePrecision().notNull(),
  },
  (t) => [check('live_lines_phase', sql`${t.phase} in ('quiet', 'suspected', 'released')`)],
);

/** One row: what is known of all lines, and what became of suspicions over the mirror's life. */
export const releases = internal.table(
  'releases',
  {
    id: boolean().primaryKey().default(true),
    /** With how much evidence a line is suspected. */
    threshold: doublePrecision().notNull().default(6),
    /** Wholesale moves a minute of a SKU by itself. */
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
