import type { Sql } from './db.ts';

/** How large the mirrored catalog is, and what has been learned of the partner's limits on live computations. */
export interface CatalogSize {
  readonly skus: number;
  readonly live: number;
  /** Live SKUs a call; null where nothing is learned yet. */
  readonly liveBudget: number | null;
  /** Live computations a minute; null while no ceiling was met. */
  readonly liveCeiling: number | null;
}

/** SKUs that are looked at: those that are gone are not counted. */
export async function readCatalogSize(sql: Sql): Promise<CatalogSize> {
  const [row] = await sql<[CatalogSize]>`
    select k.skus, k.live, s.live_budget::float8 as "liveBudget", p.ceiling_per_minute as "liveCeiling"
    from catalog_internal.sync s, catalog_internal.live_plan p, (
      select count(*)::int as skus, count(*) filter (where price_source = 'live')::int as live
      from catalog.skus where state in ('pending', 'priced')
    ) k`;
  return row;
}
