import type pg from 'pg';
import type postgres from 'postgres';

/**
 * SQL: makes the session act, until the end of the transaction, as the role that logged in, which owns the session. If
 * it acts as another role (ALTER ROLE … SET role, common with dynamic logins), Postgres does not show when sessions
 * began and what they do, and does not let it end any.
 */
const AS_LOGIN = 'set local role none';

/** Runs `ask` in a transaction of its own, as the role that logged in. */
export async function asLogin<T>(
  sql: postgres.Sql,
  ask: (tx: postgres.TransactionSql) => Promise<T>,
): Promise<T> {
  return (await sql.begin(async (tx) => {
    await tx.unsafe(AS_LOGIN);
    return await ask(tx);
  })) as T;
}

/** How much later Postgres may notice that a process has died, in milliseconds; until then its session seems alive. */
export const DEATH_NOTICED_WITHIN_MS = 10_000;

/** What identifies a session in pg_stat_activity. */
export interface OwnSession {
  readonly pid: number;
  /** As text of Postgres: a Date has no microseconds. */
  readonly began: string;
}

/** Reads the session of this connection, which must not be in a transaction. */
export async function readOwnSession(client: Pick<pg.Client, 'query'>): Promise<OwnSession> {
  // Statements sent together form one transaction.
  const results = (await client.query(`
    ${AS_LOGIN};
    select pid, backend_start::text as began from pg_stat_activity where pid = pg_backend_pid()`)) as unknown;
  const [, { rows }] = results as [unknown, { rows: [OwnSession] }];
  return rows[0];
}

/** Returns how many connections the role and the database allow to this role; null if only the server limits them. */
export async function readConnectionLimit(sql: postgres.Sql): Promise<number | null> {
  const [row] = await sql<[{ most: number | null }]>`
    select least(
      case when r.rolsuper or r.rolconnlimit < 0 then null else r.rolconnlimit end,
      case when r.rolsuper or d.datconnlimit < 0 then null else d.datconnlimit end) as most
    from pg_roles r join pg_database d on d.datname = current_database()
    where r.rolname = session_user`;
  return row.most;
}
