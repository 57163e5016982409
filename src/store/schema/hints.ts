import { sql } from 'drizzle-orm';
import { bigint, doublePrecision, index, primaryKey } from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/**
 * Hints as sellers gave them (catalog.hint), until the mirror has read them. No key of SKU and source: nobody may
 * wait for another's hint.
 */
export const hints = internal.table(
  'hints',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    sku: key().notNull(),
    source: key().notNull(),
    hintedAt: instant('hinted_at').notNull(),
  },
  (t) => [index('hints_sku').on(t.sku)],
);

/** Hints at live SKUs that have not been refreshed since: with a probability of 1 - exp(-hazard) each has moved. */
export const waitingHints = internal.table(
  'waiting_hints',
  {
    sku: key().notNull(),
    source: key().notNull(),
    hintedAt: instant('hinted_at').notNull(),
    hazard: doublePrecision().notNull(),
    /** How often what its source tells of is undone before the next refresh. */
    undone: doublePrecision().notNull().default(0),
  },
  (t) => [primaryKey({ columns: [t.sku, t.source] }), index('waiting_hints_source').on(t.source)],
);

/** What is known of each source of hints (sync/live/hints.ts). */
export const hintSources = internal.table('hint_sources', {
  source: key().primaryKey(),
  /** Hints so far, and those at live SKUs that had brought a refresh forward. */
  hints: bigint({ mode: 'bigint' })
    .notNull()
    .default(sql`0`),
  pulled: bigint({ mode: 'bigint' })
    .notNull()
    .default(sql`0`),
  tested: doublePrecision().notNull().default(0),
  expected: doublePrecision().notNull().default(0),
  unmoved: doublePrecision().notNull().default(0),
  moves: doublePrecision().notNull().default(0),
  /** Refreshes after those that found what it had told of, and how many found that as it was left, and undone. */
  followed: doublePrecision().notNull().default(0),
  stayed: doublePrecision().notNull().default(0),
  undone: doublePrecision().notNull().default(0),
  lastHint: instant('last_hint').notNull(),
});
