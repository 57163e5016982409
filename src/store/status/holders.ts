import { formatAge } from '../../lib/duration.ts';
import { connect, type Sql, urlOf } from '../connection/db.ts';
import { isLockNotAvailable } from '../connection/locks.ts';
import { MIGRATING_NAME } from '../connection/session.ts';

/** A session that the mirror waits for: it holds a lock, and is not the mirror's own, or is frozen. */
export interface LockHolder {
  readonly pid: number;
  readonly role: string | null;
  /** Its application_name; empty if it has none. */
  readonly application: string;
  /** How long a session of the mirror has waited for it, or, if none has for long, how long it has been locked. */
  readonly seconds: number;
  /** The locked table; null if something else is locked. */
  readonly table: string | null;
  /** How long its transaction has been open; null if this role may not see that. */
  readonly heldSeconds: number | null;
  /** The kind of its last statement, as in `LOCK TABLE`, never its contents; null if this role may not see that. */
  readonly command: string | null;
}

/** Shorter waits are normal. */
const TELL_AFTER_SECONDS = 1;

/**
 * Which tables' locks count although nobody waits for them at this moment, if others cannot work beside them: those
 * of the tables that only the mirror uses, or of all its tables, for a caller that has just failed to get a lock.
 */
type Unwaited = 'ledger' | 'all';
const SCHEMAS: Readonly<Record<Unwaited, readonly string[]>> = {
  ledger: ['catalog_internal'],
  all: ['catalog_internal', 'catalog'],
};

/**
 * Reads who has kept sessions of this role, or of logins that may act as it, waiting, longest first. In a queue of
 * waiting sessions, which may include others', the one at its end blocks them all. Some tables are locked again and
 * again, but never for long, so whoever has one locked counts, too. A session of the mirror's own is not named while
 * it is at work. What this role may not see of another's session (its state, its statement) is null.
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

/** Describes a holder: who it is, what it locks, since when, and the kind of its last statement. */
export function holderText({ pid, role, application, table, heldSeconds, command }: LockHolder): string {
  const named = application === '' ? '' : `, application ${application}`;
  const last = [
    heldSeconds === null ? '' : `, in a transaction of ${formatAge(heldSeconds)}`,
    command === null ? '' : `${heldSeconds === null ? ', and' : ''} whose last statement is ${command}`,
  ].join('');
  return `process ${pid} of Postgres (role ${role ?? 'unknown'}${named}) holds a lock${table === null ? '' : ` on ${table}`}${last}`;
}

/** Returns how to end a wait for its lock. */
export const holderRemedy = ({ pid }: LockHolder): string =>
  `have it commit, or run as its role: select pg_terminate_backend(${pid})`;

/** A wait for a lock that somebody else holds timed out. */
export class Locked extends Error {
  override readonly name = 'Locked';
  readonly kind = 'locked';
  readonly hint: string;

  constructor(holder: LockHolder, cause: unknown) {
    super(holderText(holder), { cause });
    this.hint = holderRemedy(holder);
  }
}

/**
 * Reads the same on a connection of its own, because the whole pool may be waiting. Rejects if Postgres cannot be
 * asked.
 */
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

/** Reads the same; empty if Postgres cannot be asked. */
const readLockHoldersAside = (sql: Sql, unwaited?: Unwaited): Promise<LockHolder[]> =>
  askLockHoldersAside(sql, unwaited).catch(() => []);

/** Returns the error, or, if it says that a lock was not available in time, one that names the holder. */
export async function namingHolder(sql: Sql, error: unknown): Promise<unknown> {
  if (!isLockNotAvailable(error) || error instanceof Locked) return error;
  const [holder] = await readLockHoldersAside(sql, 'all');
  return holder === undefined ? error : new Locked(holder, error);
}

const WATCH_EVERY_MS = 2000;

/**
 * Runs work of a start that may wait for locks. Meanwhile reads the holders again and again, on a connection of its
 * own, and passes them to `onHeld`; the error names the holder if the work fails for it. Asks nothing if the work is
 * quick.
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

/**
 * Whoever keeps Postgres from vacuuming rows that the mirror has updated since: each statement reads all of these
 * again.
 */
export interface SnapshotHolder {
  readonly kind: 'session' | 'prepared' | 'slot';
  readonly pid: number | null;
  readonly role: string | null;
  /** Its application_name, or the name of the prepared transaction or of the slot. */
  readonly name: string;
  /** Null if Postgres does not say, as for a slot. */
  readonly seconds: number | null;
  /** How many transactions there have been since. */
  readonly transactions: number;
  /** Row versions of the ledger that are not vacuumed, by Postgres's estimate: each call leaves up to 200. */
  readonly deadVersions: number;
}

/** How long a report or a dump may take. */
const LONG_SECONDS = 600;
/** The same bound if the time is unknown. */
const LONG_TRANSACTIONS = 20_000;

/**
 * Reads who has held a long snapshot for the most transactions; null if there is no long one. Roles outside of
 * pg_read_all_stats see neither since when another role's session has held one nor the session's kind: such a
 * session counts by transactions, and one without a database counts as a standby's.
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

export function snapshotHolderText({ kind, pid, role, name, seconds, transactions }: SnapshotHolder): string {
  const who = {
    session: `process ${pid} of Postgres (role ${role ?? 'unknown'}${name === '' ? '' : `, application ${name}`})`,
    prepared: `the prepared transaction ${name} (role ${role ?? 'unknown'})`,
    slot: `the replication slot ${name}`,
  }[kind];
  return `${who} has held a snapshot for ${seconds === null ? `${transactions} transactions` : formatAge(seconds)}`;
}
