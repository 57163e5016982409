import type pg from 'pg';
import type postgres from 'postgres';

/**
 * SQL: until the end of the transaction the session acts as the role that logged in, to which sessions belong. If a
 * session acts as another role (ALTER ROLE … SET role, as dynamic logins have it), Postgres does not show that role
 * when sessions began and what they do, and does not let it end any.
 */
const AS_LOGIN = 'set local role none';

/** Asks in a transaction of its own, as the role that logged in. */
export async function asLogin<T>(
  sql: postgres.Sql,
  ask: (tx: postgres.TransactionSql) => Promise<T>,
): Promise<T> {
  return (await sql.begin(async (tx) => {
    await tx.unsafe(AS_LOGIN);
    return await ask(tx);
  })) as T;
}

/**
 * Postgres may notice only so many milliseconds later that a process has died; until then its session looks alive.
 */
export const DEATH_NOTICED_WITHIN_MS = 10_000;

/** By what pg_stat_activity knows a session. */
export interface OwnSession {
  readonly pid: number;
  /** As Postgres writes it: a Date has no microseconds. */
  readonly began: string;
}

/** The session of this connection, which is to be in no transaction. */
export async function readOwnSession(client: Pick<pg.Client, 'query'>): Promise<OwnSession> {
  // Statements that are sent as one are one transaction.
  const results = (await client.query(`
    ${AS_LOGIN};
    select pid, backend_start::text as began from pg_stat_activity where pid = pg_backend_pid()`)) as unknown;
  const [, { rows }] = results as [unknown, { rows: [OwnSession] }];
  return rows[0];
}

/** Most connections that the role and the database allow to this role; null: as many as the server has. */
export async function readConnectionLimit(sql: postgres.Sql): Promise<number | null> {
  const [row] = await sql<[{ most: number | null }]>`
    select least(
      case when r.rolsuper or r.rolconnlimit < 0 then null else r.rolconnlimit end,
      case when r.rolsuper or d.datconnlimit < 0 then null else d.datconnlimit end) as most
    from pg_roles r join pg_database d on d.datname = current_database()
    where r.rolname = session_user`;
  return row.most;
}
