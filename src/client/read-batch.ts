import type { ISql } from 'postgres';
import { type Change, changeOf } from './change.ts';
import { readingError } from './errors.ts';
import { type Place, readPlace, writePlace } from './position.ts';

/** Changes in the order of their commits, and where to continue once they are applied. */
export interface Batch {
  readonly changes: readonly Change[];
  /** Store it together with what you did with the changes; pass it as `position` to the next call. */
  readonly position: string;
  /** True for a part of the first copy, whose rows are the state of SKUs as if they had just appeared. */
  readonly isCopy: boolean;
}

/** Rough minimum of rows per SKU: of its state, its product and its sizes. */
const ROWS_PER_SKU = 10;

// Read by `sql.unsafe`, whose parameters are text: they need no types that the client may have changed.
// Times are numeric, because a session prints all digits of that type.
const COLUMNS = `position::text, kind, sku, size, old_price, new_price, field, old_value, new_value, meaning_changed,
  (extract(epoch from observed_at) * 1000)::text`;

/**
 * Reads the next batch of at most `most` changes. A batch of a first copy contains about as many, as whole SKUs and
 * at least one. No changes with a new position mean that the first copy is complete, or has begun in an empty
 * mirror. Throws FollowError, and what the driver throws.
 */
export async function readBatch(sql: ISql, from: string, most: number): Promise<Batch> {
  const place = readPlace(from);
  try {
    if (place.at === 'changes') return await changesAfter(sql, place, most);
    if (place.at === 'copy') return await piece(sql, place, most);
    // Before the first part is read: a change that is committed in between then comes twice rather than never.
    const [[position] = []] = (await sql
      .unsafe('select catalog.changes_position()::text')
      .values()) as string[][];
    const now = String(position);
    return place.at === 'now'
      ? batchOf([], { at: 'changes', position: now })
      : await piece(sql, { position: now, afterSku: '' }, most);
  } catch (error) {
    throw readingError(error, from);
  }
}

const batchOf = (changes: readonly Change[], next: Place, isCopy = false): Batch => ({
  changes,
  position: writePlace(next),
  isCopy,
});

interface Reading {
  readonly position: string;
  readonly seen?: string | undefined;
}

const readingOf = ({ position, seen }: Reading) => ({ position, ...(seen !== undefined && { seen }) });

/**
 * Returns rows of a function of the feed. If a copy has shown what came after the position, reads only from a
 * database that contains that too. Both happen in one statement, because the database could be replaced in between.
 */
async function rowsOf(
  sql: ISql,
  call: string,
  given: readonly string[],
  { seen }: Reading,
): Promise<Change[]> {
  const [from, values] =
    seen === undefined
      ? [call, given]
      : [
          `(select count(*) from catalog.changes($3::text::bigint, 1)) checked(n) left join ${call} on checked.n >= 0`,
          [...given, seen],
        ];
  const rows: unknown[][] = await sql.unsafe(`select ${COLUMNS} from ${from}`, [...values]).values();
  return rows.filter(([position]) => position !== null).map(changeOf);
}

async function changesAfter(sql: ISql, { position, seen }: Reading, most: number): Promise<Batch> {
  const given = [position, String(most)];
  const behind = readingOf({ position, seen });
  const changes = await rowsOf(sql, 'catalog.changes($1::text::bigint, $2::text::integer)', given, behind);
  return batchOf(changes, { at: 'changes', ...behind, position: changes.at(-1)?.position ?? position });
}

/**
 * Reads the next part of a first copy. The position stays the one of its first part: what has happened to its SKUs
 * since is among the changes after it.
 */
async function piece(
  sql: ISql,
  place: Reading & { readonly afterSku: string },
  most: number,
): Promise<Batch> {
  const given = [place.afterSku, String(Math.ceil(most / ROWS_PER_SKU))];
  const changes = await rowsOf(sql, 'catalog.changes_snapshot($1::text, $2::text::integer)', given, place);
  const last = changes.at(-1);
  const { position } = place;
  if (last === undefined) return batchOf([], { at: 'changes', ...readingOf(place) });
  return batchOf(changes, { at: 'copy', position, afterSku: last.sku, seen: last.position }, true);
}
