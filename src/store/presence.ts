import pg from 'pg';
import { postgresConnection } from '../lib/tls.ts';
import type { Sql } from './db.ts';

/** Each daemon holds this lock, shared, for as long as it lives: who gets it alone is the only one. */
const PRESENCE_LOCK = "hashtext('catalog_internal.presence')";

/**
 * Says that a daemon is here until the returned function is called or the process dies. The first one to come finds out
 * that way that whoever holds claims, tasks and the probe is dead, and frees them: after a crash nobody waits for leases to run out.
 * Should a living daemon have lost its connection at that moment, its late answers are refused as after any lost lease.
 */
export async function announcePresence(databaseUrl: string): Promise<() => Promise<void>> {
  const { url, ssl } = postgresConnection(databaseUrl);
  const client = new pg.Client({
    connectionString: url,
    ssl,
    application_name: 'catalog-mirror presence',
    keepAlive: true,
  });
  // Losing the connection loses the lock; the leases then do what they are for.
  client.on('error', () => {});
  await client.connect();
  const { rows } = await client.query<{ alone: boolean }>(
    `select pg_try_advisory_lock(${PRESENCE_LOCK}) as alone`,
  );
  if (rows[0]?.alone === true) {
    await client.query(
      'update catalog_internal.due set claim = null, held_until = null where claim is not null',
    );
    // Where no baseline stands, a start is a new try, whatever the failures before it: something may have been put right.
    await client.query(`
      update catalog_internal.tasks set run = null, running_until = null,
        next_at = case when task = 'manifest' and s.manifest_applied_at is null then now() else next_at end
      from catalog_internal.sync s`);
    // A probe whose sender is dead tells nobody anything.
    await client.query(
      'update catalog_internal.pace set probe_sent_at = null where probe_sent_at is not null',
    );
  }
  await client.query(`select pg_advisory_lock_shared(${PRESENCE_LOCK})`);
  if (rows[0]?.alone === true) await client.query(`select pg_advisory_unlock(${PRESENCE_LOCK})`);
  return () => client.end().catch(() => {});
}

/** How many daemons are here now. */
export async function countDaemons(sql: Sql): Promise<number> {
  const [{ daemons }] = await sql<[{ daemons: number }]>`
    select count(distinct pid)::int as daemons from pg_locks
    where locktype = 'advisory' and objsubid = 1 and mode = 'ShareLock' and granted
      and database = (select oid from pg_database where datname = current_database())
      and ((classid::bigint << 32) | objid::bigint) = ${sql.unsafe(PRESENCE_LOCK)}::bigint`;
  return daemons;
}
