import type { Queryable, Tx } from '../connection/db.ts';
import { isLockNotAvailable, limitLockWaits } from '../connection/locks.ts';
import { LOCK_NOT_AVAILABLE, rejection } from '../connection/sql-errors.ts';
import { quarantine, type Quarantined } from '../quarantine.ts';

/** Deletes all prices of SKUs, with a line in their history. */
export const deletePrices = (tx: Queryable, skus: readonly string[]) => tx`
  with gone as (delete from catalog.prices where sku = any(${skus as string[]}) returning sku, size, price)
  insert into catalog.price_history (sku, size, old_price, new_price, observed_at, size_type_changed)
  select sku, size, price, null, now(), false from gone where price is not null order by sku, size`;

/** Takes the numbers from prices that cannot be deleted. Nobody's key moves, so no foreign key objects. */
const emptyPrices = (tx: Queryable, sku: string) => tx`
  with held as materialized (select sku, size, price from catalog.prices where sku = ${sku} and num_nonnulls(price, entry) > 0),
  emptied as (
    update catalog.prices p set price = null, entry = null, changed_at = now() from held h where p.sku = h.sku and p.size = h.size
  )
  insert into catalog.price_history (sku, size, old_price, new_price, observed_at, size_type_changed)
  select sku, size, price, null, now(), false from held where price is not null order by size`;

/** Why somebody's foreign key, trigger or lock keeps prices from being deleted; null where that is not why. */
const objection = (error: unknown): string | null => {
  const rejected = isLockNotAvailable(error)
    ? { state: LOCK_NOT_AVAILABLE, by: 'the lock of another session' }
    : rejection(error);
  return rejected === null ? null : `SQLSTATE ${rejected.state}, by ${rejected.by}`;
};

/** Whether deletePricesAround may do what has failed so. */
export const isObjected = (error: unknown): boolean => objection(error) !== null;

/**
 * Deletes the prices of SKUs, where somebody's foreign key, trigger or lock objects to some: those stay, without
 * their numbers where that is possible, and their SKUs are put into quarantine. With the lock of changes held, as the
 * last step of a transaction (writeChanges).
 */
export async function deletePricesAround(tx: Tx, skus: readonly string[]): Promise<void> {
  // What is checked at the end of the transaction is to be seen here.
  await tx`set constraints all immediate`;
  // Of a seller, on one of the prices: whoever writes changes waits meanwhile.
  await limitLockWaits(tx);
  await quarantine(tx, 'store', await keptOf(tx, skus));
  await tx`select catalog_internal.notify_changes()`;
}

/** Deletes prices in halves, down to those that are kept. */
async function keptOf(tx: Tx, skus: readonly string[]): Promise<Quarantined[]> {
  const problem = await attempt(tx, (inner) => deletePrices(inner, skus));
  const [first] = skus;
  if (problem === null || first === undefined) return [];
  if (skus.length > 1) {
    const half = skus.length >> 1;
    return [...(await keptOf(tx, skus.slice(0, half))), ...(await keptOf(tx, skus.slice(half)))];
  }
  await attempt(tx, (inner) => emptyPrices(inner, first));
  const sample = `Postgres refuses to delete the prices of a removed SKU: ${problem}`;
  return [{ reason: 'not-deleted', sku: first, sample }];
}

/** Does it, or nothing where somebody objects, and says why. */
async function attempt(tx: Tx, work: (inner: Tx) => Promise<unknown>): Promise<string | null> {
  // The driver never releases its own savepoints, and thousands within one another are slow.
  await tx`savepoint attempt`;
  const problem = await tx.savepoint(work).then(
    () => null,
    (error: unknown) => {
      const objected = objection(error);
      if (objected === null) throw error;
      return objected;
    },
  );
  await tx`release savepoint attempt`;
  return problem;
}
