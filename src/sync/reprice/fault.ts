import { isLockNotAvailable } from '../../store/connection/locks.ts';
import {
  isAnswer,
  isConflict,
  isConnectionLost,
  sqlState,
  storeFailure,
} from '../../store/connection/sql-errors.ts';
import { DEFECT, noteCallFault } from '../../store/ledger/call-faults.ts';
import type { StopSignals, SyncContext } from '../context.ts';

/**
 * What an error that ends a bulk call is counted as (callFaults): its SQLSTATE, or DEFECT; null where the judge of
 * health hears of it in another way, or it passes by itself: Postgres is away or takes no writes, somebody holds a
 * lock, the transaction was the victim of a conflict. Pure.
 */
export function faultKind(error: unknown): string | null {
  if (isConnectionLost(error) || storeFailure(error) !== null) return null;
  if (isConflict(error) || isLockNotAvailable(error)) return null;
  return isAnswer(error) ? sqlState(error) : DEFECT;
}

/** Has what `work` throws counted. A fault that cannot be counted is left out: the next one counts as one. */
export async function countingFaults<T>(
  { sql }: Pick<SyncContext, 'sql'>,
  { stopping }: Pick<StopSignals, 'stopping'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const kind = stopping.aborted ? null : faultKind(error);
    if (kind !== null) await noteCallFault(sql, kind).catch(() => {});
    throw error;
  }
}
