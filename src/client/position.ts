import { FollowError } from './errors.ts';

/**
 * Where a follower stands, as it is written down: what to read next. One text, so that whoever keeps it needs to know
 * nothing of it. `123`: the changes after position 123. `123/SKU`: a first copy that has all SKUs up to this one, and
 * then the changes after position 123. `123-150/SKU`, and `123-150` once the copy is over: what was read of the copy
 * may tell of changes up to there, which a database that is restored meanwhile may not have.
 */
export type Place =
  /** A first copy has not begun. */
  | { readonly at: 'start' }
  /** From the newest change on. */
  | { readonly at: 'now' }
  | { readonly at: 'copy'; readonly position: string; readonly afterSku: string; readonly seen?: string }
  | { readonly at: 'changes'; readonly position: string; readonly seen?: string };

const WRITTEN = /^(\d{1,19})(?:-(\d{1,19}))?(?:(\/)(.*))?$/s;

/** What a bigint of Postgres has. */
const LARGEST = 2n ** 63n - 1n;

/** Reads what `writePlace` has written, or what a user begins with. Throws FollowError of kind `invalid`. */
export function readPlace(text: string | bigint): Place {
  const written = String(text);
  if (written === 'start' || written === 'now') return { at: written };
  const [, position, seen, slash, afterSku = ''] = WRITTEN.exec(written) ?? [];
  if (position === undefined || [position, seen ?? '0'].some((digits) => BigInt(digits) > LARGEST))
    throw new FollowError(
      'invalid',
      `not a position: ${JSON.stringify(written.slice(0, 80))}`,
      "use 'start', 'now', or the position of a batch",
    );
  const behind = { position, ...(seen !== undefined && { seen }) };
  return slash === undefined ? { at: 'changes', ...behind } : { at: 'copy', ...behind, afterSku };
}

/** A place as text, for `readPlace`. */
export function writePlace(place: Place): string {
  if (place.at === 'start' || place.at === 'now') return place.at;
  const { position, seen } = place;
  // From there on the position says as much.
  const behind = seen === undefined || BigInt(seen) <= BigInt(position) ? position : `${position}-${seen}`;
  return place.at === 'copy' ? `${behind}/${place.afterSku}` : behind;
}
