import type { Sql } from 'postgres';
import { FollowError, isPassing } from './errors.ts';

/*
 * A pooler between a consumer and Postgres. In transaction mode each transaction may get another session, which
 * does not know the statements prepared in the previous one. That includes the driver's COMMIT: Postgres then rolls
 * back, and the driver reports success. In statement mode there are no transactions.
 */

/** The pid by which the driver knows the session that has answered, for cancellations. */
interface Answered {
  readonly state?: { readonly pid: number };
}

/** Returns whether a pooler has answered, which uses pids of its own. `pid` is pg_backend_pid() in the answer. */
export const isByPooler = (rows: object, pid: unknown): boolean =>
  (rows as Answered).state?.pid !== Number(pid);

const TRIES = 3;

/** Throws FollowError of kind `invalid` if transactions are refused but other statements are not. */
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
 * Detects a pooler, and then turns prepared statements off for a client of our own. Returns whether the driver's
 * COMMIT may roll back. Throws FollowError of kind `invalid` if followInto cannot work.
 */
export async function behindPooler(sql: Sql, isOurs: boolean): Promise<{ readonly commits: boolean }> {
  const rows = await sql.unsafe('select pg_catalog.pg_backend_pid()').values();
  if (!isByPooler(rows, rows[0]?.[0])) return { commits: false };
  if (isOurs) Object.assign(sql.options, { prepare: false });
  await refuseStatementMode(sql);
  return { commits: sql.options.prepare };
}
