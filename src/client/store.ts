import type { Sql, TransactionSql } from 'postgres';
import { isMadeMeanwhile } from '../store/connection/sql-errors.ts';
import { FollowError, isWaitEnded, WaitEnded } from './errors.ts';

/** Where a follower's position is kept: a table, with or without a schema before it, and the follower's name. */
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
  /** Creates the table and the row where they are missing. */
  async prepare(sql: Sql, { table, name }: Store, begin: string): Promise<void> {
    const [[there] = []] = (await sql
      .unsafe('select to_regclass($1::text) is not null', [quoted(table)])
      .values()) as boolean[][];
    // Not at once: it needs a right that a follower may do without.
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
   * The position; nobody else applies anything for this follower before the end of the transaction. Throws
   * FollowError of kind `invalid`, and WaitEnded.
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
