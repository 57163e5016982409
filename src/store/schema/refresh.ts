import { bigint, index, integer, smallint } from 'drizzle-orm/pg-core';
import { instant, key } from './catalog.ts';
import { internal } from './internal.ts';

/* What sellers ask for now, from SQL (catalog.refresh and catalog.refresh_now; store/sellers/refresh.ts). */

/**
 * SKUs that sellers have asked for, until the mirror has marked them. No key of the SKU: nobody may wait for
 * another's request.
 */
export const refreshRequests = internal.table(
  'refresh_requests',
  {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedAlwaysAsIdentity(),
    sku: key().notNull(),
  },
  (t) => [index('refresh_requests_sku').on(t.sku)],
);

/**
 * Places of those who wait in catalog.refresh_now. One is free where nobody has it, its session is gone, or its time
 * is over.
 */
export const refreshPlaces = internal.table('refresh_places', {
  place: smallint().primaryKey(),
  pid: integer(),
  until: instant('until'),
});

/** Locked while a refresh is paid for. */
export const lockRefreshes = internal.table('lock_refreshes', {});

/**
 * Until when refreshes from SQL are paid for, in epoch microseconds; a sequence, because everybody sees at once what
 * is paid, whatever becomes of the caller's transaction.
 */
export const refreshesPaid = internal.sequence('refreshes_paid', { minValue: 0, startWith: 1 });

/** How many SKUs were asked for from SQL, and how many calls were refused. */
export const refreshesAsked = internal.sequence('refreshes_asked', { minValue: 0, startWith: 1 });
export const refreshesRefused = internal.sequence('refreshes_refused', { minValue: 0, startWith: 1 });
