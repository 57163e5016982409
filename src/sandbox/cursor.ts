/** Where a row stands in a list that runs from the newest to the oldest. */
export interface Keyset {
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Tells rows of the same millisecond apart. */
  readonly seq: number;
}

/** One page of a list, and the cursor of the next; null = there is none. */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly nextCursor: string | null;
}

/**
 * The page of `rows` (in any order) that a cursor stands before; null for a cursor that this endpoint did not give out
 * (partner rules 4.3.1 to 4.3.3). A row that comes while a client pages is on no later page, and shifts none.
 */
export function pageOf<T extends Keyset>(
  rows: readonly T[],
  { endpoint, cursor, size }: { endpoint: string; cursor: string | null; size: number },
): Page<T> | null {
  const from = cursor === null ? null : decode(endpoint, cursor);
  if (cursor !== null && from === null) return null;
  const rest = rows.filter((row) => from === null || newestFirst(from, row) < 0).toSorted(newestFirst);
  const page = rest.slice(0, size);
  const last = page.at(-1);
  const more = rest.length > page.length && last !== undefined;
  return { rows: page, nextCursor: more ? encode(endpoint, last) : null };
}

function newestFirst(left: Keyset, right: Keyset): number {
  return right.createdAt - left.createdAt || right.seq - left.seq;
}

function encode(endpoint: string, { createdAt, seq }: Keyset): string {
  return Buffer.from(JSON.stringify([endpoint, createdAt, seq])).toString('base64');
}

function decode(endpoint: string, cursor: string): Keyset | null {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64').toString('utf8'));
  } catch {
    return null;
  }
  if (!Array.isArray(parts)) return null;
  const [, createdAt, seq] = parts as unknown[];
  const keyset = { createdAt: Number(createdAt), seq: Number(seq) };
  // Only what `encode` would give out for this endpoint: reading base64 forgives, and a token is whole or it is none.
  return encode(endpoint, keyset) === cursor ? keyset : null;
}
