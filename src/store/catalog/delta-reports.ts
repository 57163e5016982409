import type { Tx } from '../connection/db.ts';

/** How many SKUs a delta adds, and how many it moves from one `price_source` to the other. */
export interface CrossingCounts {
  readonly newSkus: number;
  readonly crossedToLive: number;
  readonly crossedToSnapshot: number;
}

interface Reporting {
  /** The SKUs that `now_live` names. */
  readonly nowLive: ReadonlySet<string>;
  /** Whether the delta moves the token. */
  readonly moves: boolean;
}

/**
 * Writes what a delta says of SKUs in `changed` and `now_live`, within its transaction, and marks them due (partner
 * rules 4.2.4 to 4.2.7). No SKU may be named twice.
 */
export async function reportChanged(
  tx: Tx,
  reported: readonly string[],
  { nowLive, moves }: Reporting,
): Promise<CrossingCounts> {
  const [counts] = await tx<[CrossingCounts]>`
    with reported as materialized (
      select sku, is_live, case when is_live then 'live' else 'snapshot' end as price_source
      from unnest(${reported as string[]}::text[], ${reported.map((sku) => Number(nowLive.has(sku)))}::int[]::boolean[])
        as r(sku, is_live)
    ),
    before as materialized (
      select r.sku, r.is_live, r.price_source, s.sku is null as is_new, s.state is null or s.state = 'pending' as unpriced,
        s.price_source as was, ${isStillLive(tx)}
        -- A run that broke off has reported it since the token came: this one's token is left as of now (noteLeft).
          and not (${moves} and coalesce(s.reported_at > y.token_at, false)) as still_live
      from reported r cross join catalog_internal.sync y left join catalog.skus s using (sku)
    ),
    written as (
      insert into catalog.skus as s (sku, price_source, in_manifest, reported_at)
      select sku, price_source, true, now() from before where not still_live order by sku
      on conflict (sku) do update set
        price_source = excluded.price_source, hash = null,
        hash_before_live = case when excluded.price_source = 'live' then coalesce(s.hash, s.hash_before_live) end, in_manifest = true,
        reported_at = excluded.reported_at
    ),
    marked as (
      select catalog_internal.mark_due(array_agg(sku), case when unpriced then 'new' else 'changed' end, is_live)
      from before where not still_live group by unpriced, is_live
    )
    -- The last is read so that it runs: Postgres leaves out a SELECT in WITH that nobody reads.
    select
      (select count(*) from before where is_new)::int as "newSkus",
      (select count(*) from before where was = 'snapshot' and is_live)::int as "crossedToLive",
      (select count(*) from before where was = 'live' and not is_live)::int as "crossedToSnapshot",
      (select count(*) from marked)::int as marks`;
  return {
    newSkus: counts.newSkus,
    crossedToLive: counts.crossedToLive,
    crossedToSnapshot: counts.crossedToSnapshot,
  };
}

/**
 * SQL: whether a report `r` repeats what is known of the SKU `s`: that it is listed and live (partner rule 4.2.7: it
 * should not be reported again). Such a report says nothing about a price (partner rule 4.2.6), so the order of live
 * refreshes stays as it is. A SKU that is gone according to its price route may be back, so a report of it counts.
 */
const isStillLive = (tx: Tx) => tx`
  coalesce(r.is_live and s.price_source = 'live' and s.in_manifest and s.state in ('priced', 'pending'), false)
    and exists (select from catalog_internal.due d where d.sku = r.sku)`;

/** Makes tombstones of removed SKUs, and marks them due; writeSkuChanges then deletes their prices. */
export async function reportRemoved(tx: Tx, skus: readonly string[]): Promise<void> {
  await tx`
    insert into catalog.skus as s (sku, state, in_manifest, removed_at, reported_at)
    select sku, 'removed', false, now(), now() from unnest(${skus as string[]}::text[]) as r(sku) order by sku
    on conflict (sku) do update set
      state = 'removed', in_manifest = false, hash = null, hash_before_live = null, removed_at = now(), reported_at = now()`;
  await tx`select catalog_internal.mark_due(${skus as string[]}::text[], 'removed')`;
}
