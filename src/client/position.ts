import { FollowError } from './errors.ts';

/**
 * Where a follower stands, as it is written down: what to read next. One text, so that whoever keeps it needs to know
 * nothing of it. `123`: the changes after position 123. `123/SKU`: a first copy that has all SKUs up to this one, and
 * then the changes after position 123.
 */
export type Place =
  /** A first copy has not begun. */
  | { readonly at: 'start' }
  /** From the newest change on. */
  | { readonly at: 'now' }
  | { readonly at: 'copy'; readonly position: string; readonly afterSku: string }
  | { readonly at: 'changes'; readonly position: string };

/** Reads what `writePlace` has written, or what a user begins with. Throws FollowError of kind `invalid`. */
export function readPlace(text: string | bigint): Place {
  const written = String(text);
  if (written === 'start' || written === 'now') return { at: written };
  const [, position, slash, afterSku = ''] = /^(\d{1,19})(?:(\/)(.*))?$/s.exec(written) ?? [];
  if (position === undefined)
    throw new FollowError(
      'invalid',
      `not a position: ${JSON.stringify(written.slice(0, 80))}`,
      "use 'start', 'now', or the position of a batch",
    );
  return slash === undefined ? { at: 'changes', position } : { at: 'copy', position, afterSku };
}

/** A place as text, for `readPlace`. */
export function writePlace(place: Place): string {
  if (place.at === 'copy') return `${place.position}/${place.afterSku}`;
  return place.at === 'changes' ? place.position : place.at;
}
