import type pg from 'pg';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { orEnd } from '../connection/answer-limit.ts';
import { connectAlone, type DatabaseUrl, type Queryable, type Sql } from '../connection/db.ts';
import { boundMirror, ownMirror, refuseMirror } from '../connection/own-mirror.ts';
import { DEATH_NOTICED_WITHIN_MS, type OwnSession, readOwnSession } from '../connection/own-session.ts';

/**
 * SQL: a daemon is alive while the connection that its row names exists; an advisory lock could be held by anybody
 * who may connect. If the session belongs to another role (another member of the owning role), Postgres does not
 * show when it began: all that is known is that no session from before the server's start is alive. The same as
 * catalog_internal.session_lives, which a database of an earlier version may lack, because daemons are counted
 * before it is migrated.
 */
export const ALIVE = `exists (
  select from pg_stat_activity a
  where a.pid = i.pid and a.datname = current_database()
    and (a.backend_start = i.backend_start or a.backend_start is null and i.backend_start >= pg_postmaster_start_time())
)`;
/**
 * Registers this connection; again after it was lost, and if another daemon has taken this one for dead meanwhile.
 * Inserts no row if the mirror has since become another account's.
 */
const REGISTER = `
  insert into catalog_internal.instances as i (number, pid, backend_start, scoped)
  select $1::bigint, $2::integer, $3::timestamptz, $4::boolean where ${ownMirror('$5')}
  on conflict (number) do update set pid = excluded.pid, backend_start = excluded.backend_start, scoped = excluded.scoped`;
const RECHECK_MS = 250;
/** Delay before an instance reconnects after its connection was lost, or an attempt failed. */
const RECONNECT_MS = 1000;
/** The connection is otherwise idle: it is queried to notice that it is dead. */
const CHECK_MS = 15_000;

/** Distinguishes claims and runs of this daemon from older ones: all draw their numbers from one sequence. */
interface Instance {
  readonly number: string;
  readonly at: Date;
  /** Whether its MIRROR_SCOPE is `scope`, for others to see; null if unknown. */
  readonly scoped: boolean | null;
  /** The daemon's pool, bound to the mirrored account once that is known; undefined in tests. */
  readonly pool: Sql | undefined;
}

/** Ends a daemon's registration. Of two daemons the one that was started later has the higher number. */
export type Registration = (() => Promise<void>) & { readonly number: string };

/**
 * Registers a running daemon until the returned function is called or the process dies. If no other daemon is alive,
 * the holders of older claims, tasks and the half-open request are dead, so it frees them: after a crash no lease
 * has to run out. If others seem to be alive, it checks again for ten seconds, because they may be dead without
 * Postgres knowing it. If a living daemon has lost its connection at that moment, its late answers are refused as
 * after any lost lease; it reconnects as soon as Postgres answers it.
 */
export async function registerInstance(
  databaseUrl: DatabaseUrl,
  clock: Clock = systemClock,
  scoped: boolean | null = null,
  pool?: Sql,
): Promise<Registration> {
  const connection = await connect(databaseUrl);
  const { client } = connection;
  const { instance, alone } = await orEnd(client, async () => {
    const { rows } = await client.query<Pick<Instance, 'number' | 'at'>>(
      "select nextval('catalog_internal.claim_numbers')::text as number, clock_timestamp() as at",
    );
    const drawn: Instance = { ...(rows as [Pick<Instance, 'number' | 'at'>])[0], scoped, pool };
    return { instance: drawn, alone: await freeWhenAlone(connection, drawn) };
  });
  const leaving = new AbortController();
  const rechecking = alone ? Promise.resolve() : recheck(connection, instance, clock, leaving.signal);
  const current = { connection };
  void stayConnected(current, databaseUrl, instance, clock, leaving.signal);
  const leave = async () => {
    leaving.abort();
    await rechecking;
    const { client: last } = current.connection;
    await last
      .query('delete from catalog_internal.instances where number = $1', [instance.number])
      .catch(() => {});
    await last.end().catch(() => {});
  };
  return Object.assign(leave, { number: instance.number });
}

/** Reconnects after every lost connection until `leaving` aborts; `current` holds the newest one. */
async function stayConnected(
  current: { connection: Connection },
  databaseUrl: DatabaseUrl,
  instance: Instance,
  clock: Clock,
  leaving: AbortSignal,
): Promise<void> {
  await current.connection.ended;
  while (!leaving.aborted) {
    await clock.sleep(RECONNECT_MS, leaving);
    if (leaving.aborted) return;
    const connection = await reconnect(databaseUrl, instance).catch(() => null);
    if (connection === null) continue;
    current.connection = connection;
    if (leaving.aborted) await connection.client.end().catch(() => {});
    await connection.ended;
  }
}

interface Connection {
  readonly client: pg.Client;
  readonly session: OwnSession;
  /** Resolves when the connection is closed, by either side; the daemon then counts as dead. */
  readonly ended: Promise<unknown>;
}

async function connect(databaseUrl: DatabaseUrl): Promise<Connection> {
  const client = await connectAlone(databaseUrl, {
    application_name: 'catalog-mirror instance',
    checkIdleMs: CHECK_MS,
  });
  const ended = new Promise((resolve) => {
    client.once('end', resolve);
  });
  return await orEnd(client, async () => ({ client, session: await readOwnSession(client), ended }));
}

async function register({ client, session }: Connection, { number, scoped, pool }: Instance): Promise<void> {
  const salt = pool === undefined ? null : boundMirror(pool);
  const { rowCount } = await client.query(REGISTER, [number, session.pid, session.began, scoped, salt]);
  if (pool !== undefined && rowCount === 0) refuseMirror(pool);
}

/** Registers again and frees nothing: what is claimed is work of this daemon or of others that are alive. */
async function reconnect(databaseUrl: DatabaseUrl, instance: Instance): Promise<Connection> {
  const connection = await connect(databaseUrl);
  await orEnd(connection.client, () => register(connection, instance));
  return connection;
}

async function recheck(
  connection: Connection,
  instance: Instance,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const until = clock.monotonic() + DEATH_NOTICED_WITHIN_MS;
  try {
    while (clock.monotonic() < until) {
      await clock.sleep(RECHECK_MS, signal);
      if (signal.aborted) return;
      if (await freeWhenAlone(connection, instance)) return;
    }
  } catch {
    // The connection is lost.
  }
}

/**
 * Frees what was claimed before this instance if no other is alive, and registers the instance. Of two that start at
 * once the first is alone.
 */
async function freeWhenAlone(connection: Connection, instance: Instance): Promise<boolean> {
  const { client } = connection;
  await client.query('begin');
  try {
    await client.query('lock table catalog_internal.instances in share row exclusive mode');
    await client.query(`delete from catalog_internal.instances i where not ${ALIVE}`);
    const { rowCount } = await client.query('select from catalog_internal.instances where number <> $1', [
      instance.number,
    ]);
    if (rowCount === 0) await free(client, instance);
    await register(connection, instance);
    await client.query('commit');
    return rowCount === 0;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

async function free(client: pg.Client, instance: Instance): Promise<void> {
  await client.query(
    `with claimed as materialized (
      select sku from catalog_internal.due where claim is not null and claim < $1 order by sku for update
    )
    update catalog_internal.due d set claim = null, held_until = null from claimed c where d.sku = c.sku`,
    [instance.number],
  );
  // Without a baseline a start retries at once, whatever failed before: the cause may have been fixed.
  await client.query(
    `update catalog_internal.tasks set run = null, running_until = null,
      next_at = case when task = 'manifest' and s.manifest_applied_at is null then now() else next_at end
    from catalog_internal.sync s where run < $1 or (run is null and (finished_at is null or finished_at < $2))`,
    [instance.number, instance.at],
  );
  // The result of a half-open request whose sender is dead is never reported.
  await client.query(
    'update catalog_internal.pace set half_open_sent_at = null where half_open_sent_at <= $1',
    [instance.at],
  );
}

/** Counts the daemons that are alive; 0 on a database that is not migrated. */
export async function countDaemons(sql: Queryable): Promise<number> {
  const [{ there }] = await sql<[{ there: boolean }]>`
    select to_regclass('catalog_internal.instances') is not null as there`;
  return there ? (await readDaemons(sql)).daemons : 0;
}

/**
 * Counts the daemons that are alive, and for how many seconds the first of them has been connected: infinite if all
 * connected while Postgres's clock was ahead.
 */
export async function readDaemons(sql: Queryable): Promise<{ daemons: number; daemonSeconds: number }> {
  const [row] = await sql<[{ daemons: number; daemonSeconds: number }]>`
    select count(*)::int as daemons,
      case when count(*) = 0 then 0 else coalesce(
        extract(epoch from clock_timestamp() - min(i.backend_start) filter (where i.backend_start <= clock_timestamp()))::float8, 'infinity'
      ) end as "daemonSeconds"
    from catalog_internal.instances i where ${sql.unsafe(ALIVE)}`;
  return row;
}

/** Whether no living daemon was started after the one with this number. */
export async function isStartedLast(sql: Queryable, number: string): Promise<boolean> {
  const [{ last }] = await sql<[{ last: boolean }]>`
    select not exists (
      select from catalog_internal.instances i where i.number > ${number}::bigint and ${sql.unsafe(ALIVE)}
    ) as last`;
  return last;
}
