import type { Sql } from '../connection/db.ts';
import { MIGRATING_NAME } from '../connection/session.ts';

/* What other sessions can see of migrations, whose transaction shows nothing before it commits. */

export interface Migrating {
  /** The session that migrates while others wait for it, or null. */
  readonly other: { readonly pid: number; readonly application: string } | null;
  /** How much of the index that a migration is creating is built, in percent; null if Postgres reports none. */
  readonly indexPercent: number | null;
}

export async function readMigrating(sql: Sql): Promise<Migrating> {
  const [row] = await sql<[Migrating]>`
    with sessions as (
      select pid, application_name from pg_stat_activity
      where datname = current_database() and starts_with(application_name, ${MIGRATING_NAME})
    )
    select (
        select json_build_object('pid', pid, 'application', application_name) from sessions join pg_locks l using (pid)
        where l.granted and l.mode = 'ShareUpdateExclusiveLock' and l.relation = to_regclass('catalog_internal.migrations')
          and l.database = (select oid from pg_database where datname = current_database())
          -- What nobody waits for is this process's own.
          and exists (select from sessions waits where l.pid = any (pg_blocking_pids(waits.pid)))
        limit 1) as other,
      (
        select round(100.0 * p.blocks_done / p.blocks_total)::int
        from sessions join pg_stat_progress_create_index p using (pid) where p.blocks_total > 0 limit 1) as "indexPercent"`;
  return row;
}
