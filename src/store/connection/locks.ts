import type { Tx } from './db.ts';
import { sqlState } from './sql-errors.ts';

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

/** What only one at a time may do; each has a table in catalog_internal. Held to the end of the transaction. */
export type Turn = 'pace' | 'counts' | 'schedules';

/** Waits for its turn. */
export async function waitForLock(tx: Tx, turn: Turn): Promise<void> {
  await tx`lock table ${tx(`catalog_internal.lock_${turn}`)} in exclusive mode`;
}

/** Rejects where somebody else has the turn (`isLockNotAvailable`); the transaction has then failed. */
export async function lockAtOnce(tx: Tx, turn: Turn): Promise<void> {
  await tx`lock table ${tx(`catalog_internal.lock_${turn}`)} in exclusive mode nowait`;
}

/** SQLSTATE lock_not_available. */
export const isLockNotAvailable = (error: unknown): boolean => sqlState(error) === '55P03';

export async function lockNewSkus(tx: Tx): Promise<void> {
  await tx.unsafe(LOCK_NEW_SKUS);
}
