import type pg from 'pg';
import { type Clock, systemClock } from '../lib/clock.ts';
import { connectAlone, type Sql } from './db.ts';

/** Each daemon holds this lock, shared, for as long as it lives: who gets it alone is the only one. */
const PRESENCE_LOCK = "hashtext('catalog_internal.presence')";
/** Postgres may notice only some seconds later that a process is dead, and until then that process seems to be here. */
const DEAD_FOR_SURE_MS = 10_000;
const RECHECK_MS = 250;
/** So long after its connection was lost, or could not be made again, a daemon tries to be here again. */
const COME_BACK_MS = 1000;
const BE_HERE = `select pg_advisory_lock_shared(${PRESENCE_LOCK})`;

/** What tells the claims and runs of this daemon from older ones: both draw their numbers from one sequence. */
interface Birth {
  readonly number: string;
  readonly at: Date;
}

/**
 * Says that a daemon is here until the returned function is called or the process dies. Who is the only one knows
 * that way that whoever holds older claims, tasks and the half-open request is dead, and frees them: after a crash nobody waits for leases to run out.
 * Where others seem to be here it checks again for ten seconds, for they may be dead without Postgres knowing it.
 * Should a living daemon have lost its connection at that moment, its late answers are refused as after any lost lease; it is here
 * again as soon as Postgres answers it.
 */
export async function announcePresence(
  databaseUrl: string,
  clock: Clock = systemClock,
): Promise<() => Promise<void>> {
  const line = await dial(databaseUrl);
  const { client } = line;
  const { rows } = await client.query<Birth>(
    "select nextval('catalog_internal.claim_numbers')::text as number, clock_timestamp() as at",
  );
  const [birth] = rows as [Birth];
  const alone = await freeWhenAlone(client, birth);
  await client.query(BE_HERE);
  if (alone) await client.query(`select pg_advisory_unlock(${PRESENCE_LOCK})`);
  const leaving = new AbortController();
  const rechecking = alone ? Promise.resolve() : recheck(client, birth, clock, leaving.signal);
  const here = { line };
  void stay(here, databaseUrl, clock, leaving.signal);
  return async () => {
    leaving.abort();
    await rechecking;
    await here.line.client.end().catch(() => {});
  };
}

/** Comes back as often as the connection is lost, until `leaving` aborts; `here` has the newest one. */
async function stay(
  here: { line: Line },
  databaseUrl: string,
  clock: Clock,
  leaving: AbortSignal,
): Promise<void> {
  await here.line.ended;
  while (!leaving.aborted) {
    await clock.sleep(COME_BACK_MS, leaving);
    if (leaving.aborted) return;
    const line = await comeBack(databaseUrl).catch(() => null);
    if (line === null) continue;
    here.line = line;
    if (leaving.aborted) await line.client.end().catch(() => {});
    await line.ended;
  }
}

interface Line {
  readonly client: pg.Client;
  /** Resolves when the connection is closed, by whomever; the lock is then lost. */
  readonly ended: Promise<unknown>;
}

async function dial(databaseUrl: string): Promise<Line> {
  const client = await connectAlone(databaseUrl, {
    application_name: 'catalog-mirror presence',
    keepAlive: true,
    connectionTimeoutMillis: 10_000,
  });
  const ended = new Promise((resolve) => {
    client.once('end', resolve);
  });
  return { client, ended };
}

/** Takes the lock again, and frees nothing: what is claimed is this daemon's own work or that of others that live. */
async function comeBack(databaseUrl: string): Promise<Line> {
  const line = await dial(databaseUrl);
  try {
    await line.client.query(BE_HERE);
  } catch (error) {
    await line.client.end().catch(() => {});
    throw error;
  }
  return line;
}

async function recheck(client: pg.Client, birth: Birth, clock: Clock, signal: AbortSignal): Promise<void> {
  const until = clock.monotonic() + DEAD_FOR_SURE_MS;
  try {
    while (clock.monotonic() < until) {
      await clock.sleep(RECHECK_MS, signal);
      if (signal.aborted) return;
      if (await freeWhenAlone(client, birth)) {
        await client.query(`select pg_advisory_unlock(${PRESENCE_LOCK})`);
        return;
      }
    }
  } catch {
    // The connection is lost, and the lock with it.
  }
}

/** Frees what was claimed before this birth, if nobody else is here; the lock is then held alone, and to be given back. */
async function freeWhenAlone(client: pg.Client, birth: Birth): Promise<boolean> {
  const { rows } = await client.query<{ alone: boolean }>(
    `select pg_try_advisory_lock(${PRESENCE_LOCK}) as alone`,
  );
  if (rows[0]?.alone !== true) return false;
  await client.query(
    'update catalog_internal.due set claim = null, held_until = null where claim is not null and claim < $1',
    [birth.number],
  );
  // Where no baseline stands, a start is a new try, whatever the failures before it: something may have been put right.
  await client.query(
    `update catalog_internal.tasks set run = null, running_until = null,
      next_at = case when task = 'manifest' and s.manifest_applied_at is null then now() else next_at end
    from catalog_internal.sync s where run < $1 or (run is null and (finished_at is null or finished_at < $2))`,
    [birth.number, birth.at],
  );
  // A half-open request whose sender is dead tells nobody anything.
  await client.query(
    'update catalog_internal.pace set half_open_sent_at = null where half_open_sent_at <= $1',
    [birth.at],
  );
  return true;
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
