import type { Sql } from '../connection/db.ts';

/** What calls have taught about their size (sync/reprice/call-size.ts). */
export interface CallSize {
  /** Counts the changes: of calls side by side one makes the next. */
  readonly step: number;
  /** Most SKUs of a call; null: as many as are configured. */
  readonly size: number | null;
  /** The least size that is known to fail; null while none is. */
  readonly failing: number | null;
  /**
   * Size of a call that failed, while none of as many SKUs has worked since: it may have failed for one of its SKUs.
   */
  readonly suspected: number | null;
  /** The most SKUs with which a call has worked since a size failed. */
  readonly proven: number;
  /** Calls filled to `size` that worked since it was last changed, and how many of them a larger size waits for. */
  readonly worked: number;
  readonly patience: number;
}

/** SQL: an UPDATE that stores the size of calls, unless another call has changed it meanwhile. */
export function storingCallSize(sql: Sql, size: CallSize | null) {
  return sql`
    update catalog_internal.call_size set step = ${size?.step ?? 0}::int, size = ${size?.size ?? null}::int,
      failing = ${size?.failing ?? null}::int, suspected = ${size?.suspected ?? null}::int, proven = ${size?.proven ?? 0}::int,
      worked = ${size?.worked ?? 0}::int, patience = ${size?.patience ?? 0}::int
    where step = ${size?.step ?? 0}::int - 1 and ${size !== null}`;
}
