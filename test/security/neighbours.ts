import { inject } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';

/** Keys of the locks with which any role that may connect could once stop the mirror. */
export const LOCKS_OF_OLD = [
  "hashtext('catalog_internal.pace')",
  "hashtext('catalog_internal.changes')",
  "hashtext('catalog_internal.skus')",
  "hashtext('catalog_internal.instance')",
  "hashtext('catalog_internal.catalog_counts')",
  "hashtext('catalog_mirror.schedules')",
  String(0x63_61_74_6d),
];

/** Drops roles, which outlive the database that a test drops. */
export async function dropRoles(...roles: readonly string[]): Promise<void> {
  const admin = connect(inject('postgresUrl'), { max: 1 });
  for (const role of roles) await admin.unsafe(`drop role if exists ${role}`);
  await admin.end();
}

/** Returns the application names of those other than `role` that hold or wait for advisory locks of this database. */
export async function advisoryLocksOf(sql: Sql, role: string): Promise<readonly { readonly name: string }[]> {
  return await sql<{ name: string }[]>`
    select application_name as name from pg_locks l join pg_stat_activity a using (pid)
    where locktype = 'advisory' and l.database = (select oid from pg_database where datname = current_database())
      and usename <> ${role}`;
}
