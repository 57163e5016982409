import type { Sql } from '../../src/store/connection/db.ts';

/* Right prices must also be said to be right: caution that never ends is no use to a seller. */

/** A SKU whose prices are not actionable, and the mirror's reason. */
interface HeldBack {
  readonly sku: string;
  readonly source: string | null;
  readonly doubt: string | null;
  readonly right: number | null;
}

/**
 * How long a mirror at rest may still doubt its prices: reports, repeated refreshes and doubts have waits of their
 * own.
 */
export const HELD_BACK_MS = 3 * 3_600_000;

/**
 * Returns priced SKUs that are not actionable although nothing is due. A SKU judged by its rate of moves, like
 * live SKUs and those whose move a delta has left out, may be unlikely to be right: that is no doubt.
 */
export async function readHeldBack(sql: Sql): Promise<readonly HeldBack[]> {
  return await sql<HeldBack[]>`
    select t.sku, t.price_source as source, t.doubt, t.p_right as right
    from catalog.sku_trust t join catalog_internal.due d using (sku)
    where t.state = 'priced' and not t.actionable
      and exists (select from catalog.prices p where p.sku = t.sku and p.price is not null) and (
      t.doubt is not null
      or t.in_manifest and t.price_source = 'snapshot' and coalesce(d.missed_moves, 0) = 0
    )`;
}
