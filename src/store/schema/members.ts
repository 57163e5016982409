import { sql } from 'drizzle-orm';
import { integer, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

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
 * The names that the partner does not document, as answers have shown them (store/catalog/learned-names.ts): `price`,
 * the field that entries of size_map have their price in, `manifest_url` and `snapshot_id`.
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
