import { type Sql, transaction, type Tx } from './db.ts';
import { LOCK_NOT_AVAILABLE, sqlState } from './sql-errors.ts';

/*
 * What a transaction may lock, in the order in which everyone takes it: the row of `watching`, the row of `sync`, the
 * lock of those who insert SKUs, rows of `skus` in order of sku, rows of the ledger in order of sku, the audit,
 * history. Nobody else takes part: catalog.watchlist, which sellers may lock, is read by nothing but
 * store/sellers/watchlist.ts. Rows of `skus` are locked FOR NO KEY UPDATE, which excludes one another and no foreign
 * key of a seller's (FOR KEY SHARE), for as long as that transaction is open; FOR UPDATE only by who deletes them,
 * and that waits for nobody.
 */

/** Taken by every transaction that may insert SKUs, before any row of `skus`. */
export const LOCK_NEW_SKUS = 'select catalog_internal.lock_new_skus()';

/** Locks for what one at a time may do: each is a table in catalog_internal, held to the end of the transaction. */
export type MutexName = 'pace' | 'counts' | 'schedules';

/** Waits until nobody holds it, and takes it. */
export async function waitForLock(tx: Tx, mutex: MutexName): Promise<void> {
  await tx`lock table ${tx(`catalog_internal.lock_${mutex}`)} in exclusive mode`;
}

/** Takes it; rejects where somebody else holds it (`isLockNotAvailable`): the transaction has then failed. */
export async function lockAtOnce(tx: Tx, mutex: MutexName): Promise<void> {
  await tx`lock table ${tx(`catalog_internal.lock_${mutex}`)} in exclusive mode nowait`;
}

/**
 * Milliseconds that a process on which others wait will wait for a lock that a seller may hold; a later call does what
 * is not done then.
 */
const SELLERS_LOCK_TIMEOUT_MS = 100;

/** From here on the transaction fails (`isLockNotAvailable`) if it waits longer than that for a lock. */
export async function limitLockWaits(tx: Tx): Promise<void> {
  await tx.unsafe(`set local lock_timeout = '${SELLERS_LOCK_TIMEOUT_MS}ms'`);
}

/**
 * Does `work` in a transaction that holds the one row of `table`, of catalog_internal, and waits for no lock for
 * long. Null where it was not done, because somebody holds that row or something else that is needed.
 */
export async function whenFree<T>(
  sql: Sql,
  table: 'scoping' | 'watching',
  work: (tx: Tx) => Promise<T>,
): Promise<T | null> {
  try {
    return await transaction(sql, async (tx) => {
      const [free] = await tx`select from ${tx(`catalog_internal.${table}`)} for update skip locked`;
      if (free === undefined) return null;
      await limitLockWaits(tx);
      return await work(tx);
    });
  } catch (error) {
    if (isLockNotAvailable(error)) return null;
    throw error;
  }
}

/** Whether a lock was not to be had, at once or in time. */
export const isLockNotAvailable = (error: unknown): boolean => sqlState(error) === LOCK_NOT_AVAILABLE;

/** Takes the lock of those who insert SKUs, to the end of the transaction; before any row of `skus`. */
export async function lockNewSkus(tx: Tx): Promise<void> {
  await tx.unsafe(LOCK_NEW_SKUS);
}

/**
 * Waits until whoever writes changes at the moment has committed them (catalog_internal.lock_changes): they are seen
 * from then on.
 */
export async function awaitChanges(sql: Sql): Promise<void> {
  await transaction(sql, (tx) => tx`lock table catalog_internal.lock_changes in share mode`);
}
