import { sql } from 'drizzle-orm';
import { bigint, boolean, check, doublePrecision, integer, text } from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/** How often each promise of a price's age was kept: a ring of hours, of which the first is `hour`. */
export const promiseCases = internal.table('promise_cases', {
  sku: key().primaryKey(),
  hour: instant('hour').notNull(),
  cases: integer().array().notNull(),
  kept: integer().array().notNull(),
});

/** One row: what all promises together need, as of the last time that they were weighed, at most a minute ago. */
export const promising = internal.table(
  'promising',
  {
    id: boolean().primaryKey().default(true),
    promises: integer().notNull().default(0),
    feasible: integer().notNull().default(0),
    /** Requests a minute. */
    needed: doublePrecision().notNull().default(0),
    available: doublePrecision().notNull().default(0),
    /** Of the last day. */
    cases: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    kept: bigint({ mode: 'bigint' })
      .notNull()
      .default(sql`0`),
    /** When something kept all requests back last, and what it was. */
    hinderedAt: instant('hindered_at'),
    hinderedBy: text('hindered_by'),
  },
  (t) => [check('promising_one_row', sql`${t.id}`)],
);
