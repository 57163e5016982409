import { sql } from 'drizzle-orm';
import { bigint, boolean, check, text } from 'drizzle-orm/pg-core';
import { instant } from './catalog.ts';
import { internal } from './internal.ts';

/* What tells this database, and what is mirrored in it, from others. */

/**
 * One row: the database that this one was when history was last written, as far as it can be told (present_lineage).
 */
export const lineage = internal.table(
  'lineage',
  {
    id: boolean().primaryKey().default(true),
    /** What initdb drew for the cluster. */
    system: text(),
    /** The database's number within it. */
    database: text(),
    /** Counts the promotions of standbys and the recoveries to a point in time. */
    timeline: text(),
    /** When its server was started, in seconds. */
    started: text(),
  },
  (t) => [check('lineage_one_row', sql`${t.id}`)],
);

/** Positions that only another database has given out: after `forked_at`, up to `resumed_at`. */
export const positionGaps = internal.table('position_gaps', {
  forkedAt: bigint('forked_at', { mode: 'bigint' }).primaryKey(),
  resumedAt: bigint('resumed_at', { mode: 'bigint' }).notNull(),
  at: instant('at').notNull().defaultNow(),
});

/** From which id on positions are further than ids, and by how much: past all gaps. None: they are the same. */
export const positionShifts = internal.table('position_shifts', {
  firstId: bigint('first_id', { mode: 'bigint' }).primaryKey(),
  shift: bigint({ mode: 'bigint' }).notNull(),
});

/** One row: whose catalog is mirrored here. All null before the first start. */
export const account = internal.table(
  'account',
  {
    id: boolean().primaryKey().default(true),
    /** Origin and path of PARTNER_BASE_URL. */
    baseUrl: text('base_url'),
    /** The api_key, of which only a salted hash is kept; and since when it has been this one. */
    salt: text(),
    keyHash: text('key_hash'),
    keySince: instant('key_since'),
    /** When a first api_key was replaced by another one. */
    keyReplaced: boolean('key_replaced').notNull().default(false),
  },
  (t) => [check('account_one_row', sql`${t.id}`)],
);
