import type { Sql, TransactionSql } from 'postgres';
import { isMadeMeanwhile } from '../store/connection/sql-errors.ts';
import { FollowError, isWaitEnded, WaitEnded } from './errors.ts';

/**
 * Where a follower continues, as it is stored: one text, opaque to whoever stores it. `123`: the changes after
 * position 123. `123/SKU`: a first copy that contains all SKUs up to this one, and then the changes after position
 * 123. `123-150/SKU`, and `123-150` once the copy is complete: what was read of the copy may reflect changes up to
 * 150, which a database that is restored in the meantime may not contain.
 */
export type Place =
  /** A first copy has not begun. */
  | { readonly at: 'start' }
  /** From the newest change on. */
  | { readonly at: 'now' }
  | { readonly at: 'copy'; readonly position: string; readonly afterSku: string; readonly seen?: string }
  | { readonly at: 'changes'; readonly position: string; readonly seen?: string };

const WRITTEN = /^(\d{1,19})(?:-(\d{1,19}))?(?:(\/)(.*))?$/s;

/** Largest bigint of Postgres. */
const LARGEST = 2n ** 63n - 1n;

/** Parses what `writePlace` has written, or what a user begins with. Throws FollowError of kind `invalid`. */
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

/** Formats a place as text for `readPlace`. */
export function writePlace(place: Place): string {
  if (place.at === 'start' || place.at === 'now') return place.at;
  const { position, seen } = place;
  // From there on, the position alone says as much.
  const behind = seen === undefined || BigInt(seen) <= BigInt(position) ? position : `${position}-${seen}`;
  return place.at === 'copy' ? `${behind}/${place.afterSku}` : behind;
}

/** Where a follower's position is stored: a table, optionally with a schema, and the follower's name. */
export interface Store {
  readonly table: string;
  readonly name: string;
}

const quoted = (table: string): string =>
  table
    .split('.')
    .map((part) => `"${part.replaceAll('"', '""')}"`)
    .join('.');

export const keepPosition = {
  /** Creates the table and the row if they are missing. */
  async prepare(sql: Sql, { table, name }: Store, begin: string): Promise<void> {
    const [[there] = []] = (await sql
      .unsafe('select to_regclass($1::text) is not null', [quoted(table)])
      .values()) as boolean[][];
    // Only if needed: `create` requires a right that a follower can do without.
    if (there !== true)
      await sql
        .unsafe(`create table if not exists ${quoted(table)} (name text primary key, position text not null)`)
        .catch((error: unknown) => {
          if (!isMadeMeanwhile(error)) throw error;
        });
    await sql.unsafe(
      `insert into ${quoted(table)} (name, position) values ($1::text, $2::text) on conflict do nothing`,
      [name, begin],
    );
  },

  /**
   * Returns the position and locks it: nobody else applies anything for this follower before the end of the
   * transaction. Throws FollowError of kind `invalid`, and WaitEnded.
   */
  async lock(tx: TransactionSql, { table, name }: Store): Promise<string> {
    const rows = await tx
      .unsafe(`select position::text from ${quoted(table)} where name = $1::text for update`, [name])
      .values()
      .catch((error: unknown) => {
        if (!isWaitEnded(error)) throw error;
        throw new WaitEnded(`another process has the position of ${name} in ${table}`, { cause: error });
      });
    const position: unknown = rows[0]?.[0];
    if (typeof position !== 'string')
      throw new FollowError('invalid', `${table} has no row of ${name} any longer`, 'follow anew');
    return position;
  },

  async save(tx: TransactionSql, { table, name }: Store, position: string): Promise<void> {
    await tx.unsafe(`update ${quoted(table)} set position = $2::text where name = $1::text`, [
      name,
      position,
    ]);
  },
};
