import { formatAge } from '../../lib/duration.ts';
import { connect, type Sql, urlOf } from '../connection/db.ts';
import { isLockNotAvailable } from '../connection/locks.ts';
import { MIGRATING_NAME } from '../connection/session.ts';

/** Somebody whom the mirror waits for: a session that holds a lock, and is not of the mirror or is frozen. */
export interface LockHolder {
  readonly pid: number;
  readonly role: string | null;
  /** Its application_name; empty where it gives none. */
  readonly application: string;
  /** How long a session of the mirror has waited for it, or what nobody waits for for long has been locked. */
  readonly seconds: number;
  /** The table, or null where it is no table that is locked. */
  readonly table: string | null;
  /** For how long its transaction has been open; null where that is not shown. */
  readonly heldSeconds: number | null;
  /** What its last statement does, as in `LOCK TABLE`: never what is in it; null where that is not shown. */
  readonly command: string | null;
}

/** A wait shorter than this is everyday life. */
const TELL_AFTER_SECONDS = 1;

/**
 * Where a lock counts that others cannot work beside, although nobody waits for it at this moment: in the tables that
 * nobody but the mirror has to do with, or in all of its tables, for whoever has just failed to get one.
 */
type Unwaited = 'ledger' | 'all';
const SCHEMAS: Readonly<Record<Unwaited, readonly string[]>> = {
  ledger: ['catalog_internal'],
  all: ['catalog_internal', 'catalog'],
};

/**
 * Who has kept sessions of this role, or of logins that may act as it, waiting, longest first. In a queue of waiting
 * sessions, others' among them, the one at its end holds them all up. Some tables are asked for again and again, but
 * never for long, so whoever has one locked counts, too. A session of the mirror's own is not named while it is at
 * work. What a role may not see of another's session (its state, its statement) is null.
 */
export async function readLockHolders(sql: Sql, unwaited: Unwaited = 'ledger'): Promise<LockHolder[]> {
  return await sql<LockHolder[]>`
    with recursive own as (
      select a.pid, a.state = 'active' and a.wait_event_type is distinct from 'Client'
        or a.state_change > clock_timestamp() - make_interval(secs => ${TELL_AFTER_SECONDS})
        -- What keeps others from migrating idles while another session of its process is at work.
        or starts_with(a.application_name, ${MIGRATING_NAME}) and exists (
          select from pg_stat_activity m
          where m.datname = a.datname and m.usesysid = a.usesysid and m.application_name = a.application_name
            and m.state = 'active' and m.wait_event_type is distinct from 'Client' and not a.pid = any (pg_blocking_pids(m.pid))
        ) as at_work
      from pg_stat_activity a join pg_roles r on r.oid = a.usesysid
      where a.datname = current_database()
        and (r.rolname = current_user or (not r.rolsuper and pg_has_role(r.oid, current_user, 'MEMBER')))
    ),
    waiting as (
      select l.pid, l.relation, extract(epoch from clock_timestamp() - l.waitstart)::float8 as seconds
      from pg_locks l join own using (pid)
      where not l.granted and l.waitstart < clock_timestamp() - make_interval(secs => ${TELL_AFTER_SECONDS})
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
          join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
        where l.granted and l.pid <> pg_backend_pid()
          and l.database = (select oid from pg_database where datname = current_database())
          and coalesce(a.xact_start < clock_timestamp() - make_interval(secs => ${TELL_AFTER_SECONDS}), true)
          and case when (n.nspname, c.relname) = ('catalog', 'watchlist') then l.mode = 'AccessExclusiveLock'
            else n.nspname = any (${[...SCHEMAS[unwaited]]}) and c.relkind in ('r', 'p')
              and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') end
      ) found order by pid, seconds desc nulls last
    )
    select h.pid, a.usename::text as role, coalesce(a.application_name, '') as application, coalesce(h.seconds, 0) as seconds,
      h.relation::regclass::text as "table", extract(epoch from clock_timestamp() - a.xact_start)::float8 as "heldSeconds",
      upper(substring(a.query from '(?i)^\\s*((?:(?:lock|alter|create|drop|truncate|reindex|refresh)\\s+)?[a-z]+)')) as command
    from holding h join pg_stat_activity a using (pid)
    where not exists (
      select from own where own.pid = a.pid and coalesce(own.at_work, true) and a.application_name like 'catalog-mirror%')
    order by h.seconds desc`;
}

/** A holder in words: who it is, what it holds up, since when, and what its last statement does. */
export function holderText({ pid, role, application, table, heldSeconds, command }: LockHolder): string {
  const named = application === '' ? '' : `, application ${application}`;
  const last = [
    heldSeconds === null ? '' : `, in a transaction of ${formatAge(heldSeconds)}`,
    command === null ? '' : `${heldSeconds === null ? ', and' : ''} whose last statement is ${command}`,
  ].join('');
  return `process ${pid} of Postgres (role ${role ?? 'unknown'}${named}) holds a lock${table === null ? '' : ` on ${table}`}${last}`;
}

/** What ends a wait for its lock. */
export const holderRemedy = ({ pid }: LockHolder): string =>
  `have it commit, or run as its role: select pg_terminate_backend(${pid})`;

/** A lock that somebody else holds was waited for in vain. */
export class Locked extends Error {
  override readonly name = 'Locked';
  readonly kind = 'locked';
  readonly hint: string;

  constructor(holder: LockHolder, cause: unknown) {
    super(holderText(holder), { cause });
    this.hint = holderRemedy(holder);
  }
}

/** The same on a connection of its own: all of the pool may be waiting. Rejects where Postgres cannot be asked. */
export async function askLockHoldersAside(sql: Sql, unwaited?: Unwaited): Promise<LockHolder[]> {
  const url = urlOf(sql);
  if (url === null) return [];
  const aside = connect(url, { max: 1 });
  try {
    return await readLockHolders(aside, unwaited);
  } finally {
    void aside.end({ timeout: 0 });
  }
}

/** The same, empty where Postgres cannot be asked. */
const readLockHoldersAside = (sql: Sql, unwaited?: Unwaited): Promise<LockHolder[]> =>
  askLockHoldersAside(sql, unwaited).catch(() => []);

/** The error, or one that names who holds the lock, where it says that a lock was not to be had in time. */
export async function namingHolder(sql: Sql, error: unknown): Promise<unknown> {
  if (!isLockNotAvailable(error) || error instanceof Locked) return error;
  const [holder] = await readLockHoldersAside(sql, 'all');
  return holder === undefined ? error : new Locked(holder, error);
}

const WATCH_EVERY_MS = 2000;

/**
 * Does work of a start that may wait for locks: who holds one is told to `onHeld` again and again meanwhile, on a
 * connection of its own, and named by the error with which it fails. Nothing is asked where it takes no time.
 */
export async function tellingOfLocks<T>(
  sql: Sql,
  onHeld: (holders: readonly LockHolder[]) => void,
  work: () => Promise<T>,
): Promise<T> {
  let last: LockHolder | undefined;
  const watch = async () => {
    const holders = await readLockHoldersAside(sql);
    last = holders[0] ?? last;
    onHeld(holders);
  };
  const watching = setInterval(() => void watch(), WATCH_EVERY_MS);
  try {
    return await work();
  } catch (error) {
    const named = await namingHolder(sql, error);
    throw named === error && last !== undefined && isLockNotAvailable(error)
      ? new Locked(last, error)
      : named;
  } finally {
    clearInterval(watching);
  }
}

/** Whoever keeps Postgres from vacuuming what the mirror has updated since: each statement reads all of that again. */
export interface SnapshotHolder {
  readonly kind: 'session' | 'prepared' | 'slot';
  readonly pid: number | null;
  readonly role: string | null;
  /** Its application_name, or the name of the prepared transaction or of the slot. */
  readonly name: string;
  /** Null where Postgres does not say, as of a slot. */
  readonly seconds: number | null;
  /** How many transactions there were since. */
  readonly transactions: number;
  /** Versions of the ledger's rows that are not vacuumed, as Postgres estimates: each call leaves up to 200. */
  readonly deadVersions: number;
}

/** As long as a report or a dump may take. */
const LONG_SECONDS = 600;
/** The same where its time is not known. */
const LONG_TRANSACTIONS = 20_000;

/**
 * Who has held a long snapshot for most transactions; null: there is no long one. Roles outside of pg_read_all_stats
 * see neither since when another role's session holds one nor its kind: such a session counts by transactions, and one
 * without a database counts as a standby's.
 */
export async function readSnapshotHolder(
  sql: Sql,
  longSeconds = LONG_SECONDS,
  longTransactions = LONG_TRANSACTIONS,
): Promise<SnapshotHolder | null> {
  const [holder] = await sql<SnapshotHolder[]>`
    select *, coalesce(pg_stat_get_dead_tuples(to_regclass('catalog_internal.due')), 0)::float8 as "deadVersions" from (
      select 'session' as kind, pid, usename::text as role, coalesce(application_name, '') as name,
        extract(epoch from clock_timestamp() - xact_start)::float8 as seconds, age(coalesce(backend_xmin, backend_xid)) as transactions
      from pg_stat_activity
      where coalesce(backend_xmin, backend_xid) is not null and pid <> pg_backend_pid()
        and (
          datname = current_database() and backend_type = 'client backend'
          or backend_type = 'walsender'
          -- Not what Postgres does by itself, such as autovacuum: that is nobody's.
          or backend_type is null and usesysid is not null and coalesce(datname = current_database(), true)
        )
      union all
      select 'prepared', null, owner::text, gid, extract(epoch from clock_timestamp() - prepared)::float8, age(transaction)
      from pg_prepared_xacts where database = current_database()
      union all
      select 'slot', active_pid, null, slot_name::text, null, age(xmin) from pg_replication_slots where xmin is not null
    ) holders
    where seconds > ${longSeconds} or seconds is null and transactions > ${longTransactions}
    order by transactions desc limit 1`;
  return holder ?? null;
}

/** The holder in words. */
export function snapshotHolderText({ kind, pid, role, name, seconds, transactions }: SnapshotHolder): string {
  const who = {
    session: `process ${pid} of Postgres (role ${role ?? 'unknown'}${name === '' ? '' : `, application ${name}`})`,
    prepared: `the prepared transaction ${name} (role ${role ?? 'unknown'})`,
    slot: `the replication slot ${name}`,
  }[kind];
  return `${who} has held a snapshot for ${seconds === null ? `${transactions} transactions` : formatAge(seconds)}`;
}
