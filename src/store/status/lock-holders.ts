import type { Sql } from '../connection/db.ts';

/** Somebody whom the mirror waits for: a session that holds a lock, and is not of the mirror or is frozen. */
export interface LockHolder {
  readonly pid: number;
  readonly role: string | null;
  /** Its application_name; empty where it gives none. */
  readonly application: string;
  /** How long a session of the mirror has waited for it, or the watchlist could not be read. */
  readonly seconds: number;
  /** The table, or null where it is no table that is locked. */
  readonly table: string | null;
}

/** A wait shorter than this is everyday life. */
const TELL_AFTER_SECONDS = 1;

/**
 * Who has kept sessions of this role, or of logins that may act as it, waiting, longest first. At the end of a queue
 * of waiting sessions, others' among them, stands the one that holds them all up. The watchlist is asked for again
 * and again, and never for long: whoever has it locked counts too. What a role may not see of another's session (its
 * state, its statement) is not asked for.
 */
export async function readLockHolders(sql: Sql): Promise<LockHolder[]> {
  return await sql<LockHolder[]>`
    with recursive waiting as (
      select l.pid, l.relation, extract(epoch from clock_timestamp() - l.waitstart)::float8 as seconds
      from pg_locks l join pg_stat_activity a using (pid) join pg_roles r on r.oid = a.usesysid
      where not l.granted and a.datname = current_database()
        and (r.rolname = current_user or (not r.rolsuper and pg_has_role(r.oid, current_user, 'MEMBER')))
        and l.waitstart < clock_timestamp() - make_interval(secs => ${TELL_AFTER_SECONDS})
    ),
    queue as (
      select blocker as pid, w.seconds, w.relation from waiting w, unnest(pg_blocking_pids(w.pid)) as blocker
      union
      select blocker, q.seconds, q.relation from queue q, unnest(pg_blocking_pids(q.pid)) as blocker
    ),
    holding as (
      select distinct on (pid) pid, seconds, relation from (
        select q.pid, q.seconds, q.relation from queue q
        where not exists (select from pg_locks l where l.pid = q.pid and not l.granted)
        union all
        select l.pid, extract(epoch from clock_timestamp() - a.xact_start)::float8, l.relation
        from pg_locks l join pg_stat_activity a using (pid)
        where l.granted and l.mode = 'AccessExclusiveLock' and l.pid <> pg_backend_pid()
          and l.database = (select oid from pg_database where datname = current_database())
          and l.relation = to_regclass('catalog.watchlist')
          and coalesce(a.xact_start < clock_timestamp() - make_interval(secs => ${TELL_AFTER_SECONDS}), true)
      ) found order by pid, seconds desc nulls last
    )
    select h.pid, a.usename::text as role, coalesce(a.application_name, '') as application, coalesce(h.seconds, 0) as seconds,
      h.relation::regclass::text as "table"
    from holding h join pg_stat_activity a using (pid) order by h.seconds desc`;
}

/** A holder in words: who it is, and what it holds up. */
export function holderText({ pid, role, application, table }: LockHolder): string {
  const named = application === '' ? '' : `, application ${application}`;
  return `process ${pid} of Postgres (role ${role ?? 'unknown'}${named}) holds a lock${table === null ? '' : ` on ${table}`}`;
}
