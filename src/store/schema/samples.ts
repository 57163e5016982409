import { bigint, boolean, doublePrecision, integer, text } from 'drizzle-orm/pg-core';
import { instant } from './catalog.ts';
import { internal } from './internal.ts';

/**
 * What the status showed, one row a minute of Postgres's clock, kept for a day: the charts of the status page. A
 * minute without a row is one in which no daemon could read the mirror (store/status/samples.ts).
 */
export const samples = internal.table('samples', {
  minute: instant('minute').primaryKey(),
  state: text().notNull(),
  backingOff: boolean('backing_off').notNull(),
  incident: boolean().notNull(),
  /**
   * Requests of the window before: the mirror's, and those of the account's other users; and what was allowed in it.
   */
  requests: integer().notNull(),
  otherRequests: integer('other_requests').notNull(),
  ceiling: doublePrecision().notNull(),
  requestLimit: integer('request_limit').notNull(),
  /** From here on: null where the catalog was not counted at about that time. */
  skus: integer(),
  pending: integer(),
  due: integer(),
  snapshotPriced: integer('snapshot_priced'),
  snapshotFresh: integer('snapshot_fresh'),
  snapshotP50: doublePrecision('snapshot_p50'),
  snapshotP95: doublePrecision('snapshot_p95'),
  livePriced: integer('live_priced'),
  liveFresh: integer('live_fresh'),
  liveP50: doublePrecision('live_p50'),
  liveP95: doublePrecision('live_p95'),
  /** A minute, since the row before; null where that is too far away to tell. */
  priceChanges: doublePrecision('price_changes'),
  /** The newest row of catalog.price_history then. */
  pricePosition: bigint('price_position', { mode: 'bigint' }).notNull(),
});
