import type { ISql } from 'postgres';
import { type Change, changeOf } from './change.ts';
import { readingError } from './errors.ts';
import { type Place, readPlace, writePlace } from './position.ts';

/** Changes in the order of their commits, and where to go on from once they are applied. */
export interface Batch {
  readonly changes: readonly Change[];
  /** Write it down with what you did with the changes; `position` of the next call takes it. */
  readonly position: string;
  /** True: a part of the first copy, whose rows are the state of SKUs as if they had just appeared. */
  readonly isCopy: boolean;
}

/** How many rows a SKU has at least, about: of its state, its product and its sizes. */
const ROWS_PER_SKU = 10;

// By `sql.unsafe`, whose parameters are text: they need no types that the client may have changed.
// Times as numeric, of which a session writes all digits.
const COLUMNS = `position::text, kind, sku, size, old_price, new_price, field, old_value, new_value, meaning_changed,
  (extract(epoch from observed_at) * 1000)::text`;

/**
 * Reads the next batch, of `most` changes at most; a batch of a first copy has as many whole SKUs as that are about,
 * one at least. No changes and another position: the first copy is complete, or has begun in an empty mirror. Throws
 * FollowError, and what the driver throws.
 */
export async function readBatch(sql: ISql, from: string, most: number): Promise<Batch> {
  const place = readPlace(from);
  try {
    if (place.at === 'changes') return await changesAfter(sql, place, most);
    if (place.at === 'copy') return await piece(sql, place, most);
    // Before the piece is read: what is committed in between comes twice rather than never.
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
 * Rows of a function of the feed. Where a copy has shown what came after the position, they are only read of a
 * database that has it, too: in one statement, or it could be replaced in between.
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

/** The position of the first piece stays: what happened to its SKUs since is among the changes after it. */
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
