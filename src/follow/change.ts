import { shownJson } from '../lib/json.ts';
import type { Change } from '../store/history/feed.ts';

/** A position as JSON has it: a number as long as every reader reads it exactly, from 2^53 on its digits as text. */
export function shownPosition(position: bigint): number | string {
  return position <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(position) : String(position);
}

/**
 * A change as one line of JSON, without its end: the columns of catalog.changes, and `copy` where it is of the first
 * copy. Pure.
 */
export function lineOf(change: Change): string {
  return shownJson({
    position: shownPosition(change.position),
    kind: change.kind,
    sku: change.sku,
    size: change.size,
    old_price: change.oldPrice,
    new_price: change.newPrice,
    field: change.field,
    old_value: change.oldValue,
    new_value: change.newValue,
    meaning_changed: change.meaningChanged,
    observed_at: change.observedAt.toISOString(),
    ...(change.copy && { copy: true }),
  });
}
