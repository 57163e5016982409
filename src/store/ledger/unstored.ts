import type { Sql } from '../connection/db.ts';
import { type Claim, lockingClaim } from './due.ts';

/**
 * An answer about the SKUs of a claim cannot be stored: what the mirror holds of one of them may be known to be wrong,
 * so all are due until an answer is stored, those too that came along in spare slots. Call this before the claim is
 * given back. One that is alone is it: a re-price is due, whatever it was asked for, as where the delta has left out a
 * move. That is no report: what the next answer has is judged as if nobody had told of it.
 */
export async function markUnstored(sql: Sql, claim: Claim): Promise<void> {
  const skus = claim.skus.map(({ sku }) => sku);
  await sql`
    with claimed as materialized (${lockingClaim(sql, claim, skus)})
    update catalog_internal.due d set due_at = least(d.due_at, clock_timestamp()),
      -- While due for these, a price is judged by its probability (view catalog.sku_trust).
      reason = case when ${skus.length === 1} and d.reason in ('live', 'again', 'metadata') then 'missed' else d.reason end
    from claimed c join catalog.skus s using (sku)
    where d.sku = c.sku and s.state = 'priced' and d.outside_due_at is null`;
}
