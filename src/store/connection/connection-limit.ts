import type { Sql } from './db.ts';

/** Most connections that the role and the database allow to this role; null: as many as the server has. */
export async function readConnectionLimit(sql: Sql): Promise<number | null> {
  const [row] = await sql<[{ most: number | null }]>`
    select least(
      case when r.rolsuper or r.rolconnlimit < 0 then null else r.rolconnlimit end,
      case when r.rolsuper or d.datconnlimit < 0 then null else d.datconnlimit end) as most
    from pg_roles r join pg_database d on d.datname = current_database()
    where r.rolname = session_user`;
  return row.most;
}
