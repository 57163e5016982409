import { shownJson } from '../lib/json.ts';
import type { Page, Change } from '../store/history/feed.ts';

/** Changes that are delivered together, as lines of JSON. */
export interface Batch {
  readonly lines: readonly string[];
  readonly first: bigint;
  readonly last: bigint;
  /** Time of the last change. */
  readonly at: Date;
  /** The position to store once it is delivered. */
  readonly to: bigint;
  /** Of the first copy: the SKU to store with it if this is the end of a page; null keeps the stored one. */
  readonly copiedTo: string | null;
  readonly copy: boolean;
  /** The first batch of a copy: what the receiver has from before is no longer valid. */
  readonly copyBegins?: boolean;
}

export interface Limits {
  readonly changes: number;
  /** Bytes of all lines together. A single change may exceed it. */
  readonly bytes: number;
}

/** Returns the bytes of a batch's lines, including their newlines. Pure. */
export const bytesOf = ({ lines }: Pick<Batch, 'lines'>): number =>
  lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);

/** Returns whether a batch is larger than now allowed; it was sent before under other limits. Pure. */
export const exceeds = (batch: Pick<Batch, 'lines'>, limits: Limits): boolean =>
  batch.lines.length > 1 && (batch.lines.length > limits.changes || bytesOf(batch) > limits.bytes);

/**
 * Cuts a page into batches, in order, each as large as the limits allow. `endAt` is the position at which the first
 * batch ends, whatever the limits say, because it was sent that way before. The last batch records how far the page
 * was read. Pure.
 */
export function cut(
  page: Pick<Page, 'changes' | 'readTo' | 'copiedTo'>,
  limits: Limits,
  endAt: bigint | null = null,
): Batch[] {
  const batches: Batch[] = [];
  let lines: string[] = [];
  let bytes = 0;
  let begin = 0;
  const end = (at: number) => {
    const [first, last] = [page.changes[begin], page.changes[at - 1]];
    if (first === undefined || last === undefined || at <= begin) return;
    const isEnd = at === page.changes.length;
    batches.push({
      lines,
      first: first.position,
      last: last.position,
      at: last.observedAt,
      to: isEnd ? page.readTo : last.position,
      copiedTo: isEnd ? page.copiedTo : null,
      copy: isCopy,
    });
    [lines, bytes, begin] = [[], 0, at];
  };
  // All changes of a first copy have the same position; cutting it again gives the same batches.
  const isCopy = page.copiedTo !== null;
  let resumed =
    !isCopy && endAt !== null && page.changes.some(({ position }) => position <= endAt) ? endAt : null;
  for (const [at, change] of page.changes.entries()) {
    const line = lineOf(change);
    const size = Buffer.byteLength(line) + 1;
    const isFull = lines.length >= limits.changes || (lines.length > 0 && bytes + size > limits.bytes);
    if (resumed === null ? isFull : change.position > resumed) {
      end(at);
      resumed = null;
    }
    lines.push(line);
    bytes += size;
  }
  end(page.changes.length);
  return batches;
}

/** Returns a position for JSON: a number while every reader reads it exactly, from 2^53 on its digits as text. */
export function shownPosition(position: bigint): number | string {
  return position <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(position) : String(position);
}

/**
 * Returns a change as a line of JSON without newline: the columns of catalog.changes, and `copy` in a first copy.
 * Pure.
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
