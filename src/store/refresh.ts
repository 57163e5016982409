import { type Sql, transaction } from './db.ts';
import { lockNewSkus, lockWatchlist } from './locks.ts';
import { requestTask } from './tasks.ts';

/** Marks SKUs due now, ahead of everything; unknown ones are mirrored from now on. Returns how many. */
export async function refreshSkus(sql: Sql, skus: readonly string[]): Promise<number> {
  const wanted = [...new Set(skus)];
  return await transaction(sql, async (tx) => {
    await lockWatchlist(tx);
    await lockNewSkus(tx);
    await tx`select from catalog.skus where sku = any(${wanted}) order by sku for update`;
    await tx`
      insert into catalog.skus (sku, in_manifest) select sku, false from unnest(${wanted}::text[]) as w(sku) order by sku
      on conflict do nothing`;
    const [row] = await tx<[{ marked: number }]>`
      select catalog_internal.mark_due(${wanted}::text[], 'refresh')::int as marked`;
    return row.marked;
  });
}

/**
 * Makes every known SKU due now, oldest first and after what is urgent: for its price ('sweep', 'live') or only for
 * its metadata. Waits of deferred SKUs are kept. Returns how many.
 */
export async function refreshAll(sql: Sql, what: 'prices' | 'metadata'): Promise<number> {
  const marked = await sql`
    update catalog_internal.due d set
      due_at = now(), generation = generation + 1,
      reason = case when ${what} = 'metadata' then 'metadata' else d.reason end,
      lane = case when ${what} = 'metadata' then catalog_internal.lane_of('metadata') else d.lane end
    where due_at > now()`;
  return marked.count;
}

/** Asks for a new baseline at once; `acceptShrink` confirms that it may list far fewer SKUs than before. */
export async function refreshManifest(sql: Sql, acceptShrink = false): Promise<void> {
  if (acceptShrink) await sql`update catalog_internal.sync set shrink_confirmed = true`;
  await requestTask(sql, 'manifest');
}
