import type { Sql } from 'postgres';
import { FollowError, isPassing } from './errors.ts';

/*
 * A pooler between a consumer and Postgres. In transaction mode each transaction may have another session, which does
 * not know what was prepared in the one before: not even the COMMIT of the driver, which then rolls back what it was
 * to commit, and says that it has. In statement mode there are no transactions.
 */

/** The number by which the driver knows the session that has answered, for its cancellations. */
interface Answered {
  readonly state?: { readonly pid: number };
}

/** Whether a pooler has answered, which has numbers of its own. `pid`: what pg_backend_pid() was in the answer. */
export const isByPooler = (rows: object, pid: unknown): boolean =>
  (rows as Answered).state?.pid !== Number(pid);

const TRIES = 3;

/** Throws FollowError of kind `invalid` where transactions are refused, and nothing else is. */
async function refuseStatementMode(sql: Sql): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    try {
      await sql.begin((tx) => tx.unsafe('select'));
      return;
    } catch (error) {
      if (!isPassing(error)) throw error;
      await sql.unsafe('select');
      if (tried < TRIES) continue;
      throw new FollowError(
        'invalid',
        'a pooler in statement mode is between, which takes no transactions',
        'connect to the server itself, or to a pooler in session or transaction mode',
        error,
      );
    }
  }
}

/**
 * Has a client of our own prepare nothing where a pooler is between. Returns whether a COMMIT of the driver may roll
 * back. Throws FollowError of kind `invalid` where followInto cannot be.
 */
export async function behindPooler(sql: Sql, isOurs: boolean): Promise<{ readonly commits: boolean }> {
  const rows = await sql.unsafe('select pg_catalog.pg_backend_pid()').values();
  if (!isByPooler(rows, rows[0]?.[0])) return { commits: false };
  if (isOurs) Object.assign(sql.options, { prepare: false });
  await refuseStatementMode(sql);
  return { commits: sql.options.prepare };
}
