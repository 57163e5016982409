import { type Sql, transaction, type Tx } from './db.ts';
import { LOCK_NOT_AVAILABLE, sqlState } from './sql-errors.ts';

/*
 * What a transaction may lock, in the order that every transaction follows: the row of `watching`, the row of `sync`,
 * the lock for inserting SKUs, rows of `skus` in order of sku, rows of the ledger in order of sku, the audit, history.
 * Nobody else takes part: catalog.watchlist, which sellers may lock, is read only by store/sellers/watchlist.ts. Rows
 * of `skus` are locked FOR NO KEY UPDATE: such locks exclude one another, but not a seller's foreign key checks (FOR
 * KEY SHARE), which last as long as the seller's transaction. Only a transaction that deletes rows locks them FOR
 * UPDATE, and it waits for nobody.
 */

/** Taken by every transaction that may insert SKUs, before any row of `skus`. */
export const LOCK_NEW_SKUS = 'select catalog_internal.lock_new_skus()';

/** Mutexes. Each is a table in catalog_internal whose lock is held until the end of the transaction. */
export type MutexName = 'pace' | 'counts' | 'schedules';

/** Takes the mutex, and waits for it if necessary. */
export async function waitForLock(tx: Tx, mutex: MutexName): Promise<void> {
  await tx`lock table ${tx(`catalog_internal.lock_${mutex}`)} in exclusive mode`;
}

/** Takes the mutex; rejects if it is taken (`isLockNotAvailable`), and the transaction has then failed. */
export async function lockAtOnce(tx: Tx, mutex: MutexName): Promise<void> {
  await tx`lock table ${tx(`catalog_internal.lock_${mutex}`)} in exclusive mode nowait`;
}

/**
 * Longest wait, in milliseconds, for a lock that a seller may hold, of a process that others wait for. A later call
 * does the rest.
 */
const SELLERS_LOCK_TIMEOUT_MS = 100;

/**
 * Makes the rest of the transaction fail (`isLockNotAvailable`) if a lock takes longer than SELLERS_LOCK_TIMEOUT_MS.
 */
export async function limitLockWaits(tx: Tx): Promise<void> {
  await tx.unsafe(`set local lock_timeout = '${SELLERS_LOCK_TIMEOUT_MS}ms'`);
}

/**
 * Runs `work` in a transaction that holds the one row of `table`, of catalog_internal, and waits for no lock for long.
 * Returns null if it was not done because somebody holds that row or something else that it needs.
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

/** Whether a lock could not be taken, at once or in time. */
export const isLockNotAvailable = (error: unknown): boolean => sqlState(error) === LOCK_NOT_AVAILABLE;

/**
 * Takes the lock for inserting SKUs until the end of the transaction; to be called before any row of `skus` is locked.
 */
export async function lockNewSkus(tx: Tx): Promise<void> {
  await tx.unsafe(LOCK_NEW_SKUS);
}

/** Waits until all changes being written (catalog_internal.lock_changes) are committed: later reads see them. */
export async function awaitChanges(sql: Sql): Promise<void> {
  await transaction(sql, (tx) => tx`lock table catalog_internal.lock_changes in share mode`);
}
