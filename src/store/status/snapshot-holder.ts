import { formatAge } from '../../lib/duration.ts';
import type { Sql } from '../connection/db.ts';

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
 * Who has held a snapshot for longest, where that is long; null where nobody has. Of sessions of
 * other roles, those who are no members of pg_read_all_stats see neither since when nor of which kind they are: they
 * count by transactions, and one without a database as a standby's.
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
