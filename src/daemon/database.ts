import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { SecretSource } from '../config/secrets.ts';
import type { EmbeddedLog } from '../embedded/reports.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { loginOf } from '../lib/connection-url.ts';
import { createQueueBackend, type QueueBackend } from '../queues/backend.ts';
import { ANSWER_WITHIN_MS, connect, type DatabaseUrl, type Sql } from '../store/connection/db.ts';
import { readConnectionLimit } from '../store/connection/own-session.ts';
import { PoolerError } from '../store/connection/pooler.ts';
import { remedyOf } from '../store/connection/remedies.ts';
import { storeFailure } from '../store/connection/sql-errors.ts';
import { waitForDatabase } from '../store/connection/startup.ts';
import { repairSequencesAtStart } from '../store/history/changes.ts';
import { restoreLostRows } from '../store/ledger/lost-rows.ts';
import { type Account, noteAccount, noteKey, refuseOtherPartner } from '../store/setup/account.ts';
import { registerInstance } from '../store/setup/instance.ts';
import { migrateDatabase } from '../store/setup/migrations.ts';
import { emitLine, type Log } from '../telemetry/log/logger.ts';
import { noticeLines } from '../telemetry/log/store-lines.ts';
import type { Tracing } from '../telemetry/traces/tracing.ts';

/** How many connections to Postgres each part of a daemon may have. */
interface ConnectionCounts {
  readonly pool: number;
  /** For the queues if they are in Postgres; otherwise 0. */
  readonly queues: number;
}

/** The connection that shows that the daemon is alive, and the one of a manifest. A start's migrations use as many. */
const LONE = 2;
/** From this size on, another connection helps the queues more than the pool. */
const ROOMY = 8;

/**
 * Divides DATABASE_POOL_MAX: together the parts open no more connections than that. Its least value, 5, leaves the
 * pool two, so that a statement that waits for a lock does not block all others.
 */
function divideConnections(most: number, queuesInPostgres: boolean): ConnectionCounts {
  const queues = queuesInPostgres ? (most < ROOMY ? 1 : 2) : 0;
  return { pool: most - LONE - queues, queues };
}

/** How long closing waits for statements under way; the work that they belong to has already been stopped. */
const END_WITHIN_SECONDS = 1;

/** Registers what to do at the end, which happens in reverse order. */
export type OnStop = (dispose: () => Promise<unknown>) => void;

const DATABASE_PATIENCE_MS = 60_000;

/** How long a daemon waits for a store that does not respond; shorter in tests. */
export interface Waits {
  /** For an answer to a statement. */
  readonly answerMs: number;
  /** For an answer to a command of the queues, which normally takes milliseconds. */
  readonly queueAnswerMs: number;
}

export const WAITS: Waits = { answerMs: ANSWER_WITHIN_MS, queueAnswerMs: 10_000 };

export interface Database {
  /** Read for every new connection, because the password in DATABASE_URL_FILE may be rotated. */
  readonly url: () => string;
  readonly close: () => Promise<void>;
}

/**
 * Opens the mirror's database: the configured Postgres, or an embedded one of this process, with its files in
 * `dataDir`.
 */
export async function openDatabase(
  config: Pick<Config, 'database'>,
  log: Log,
  dataDir = join(config.database.dataDir, 'postgres'),
): Promise<Database> {
  const configured = config.database.url;
  if (configured !== null) {
    const url = presentUrl(configured, () => log.warn({ event: 'database.other-address' }));
    return { url, close: () => Promise.resolve() };
  }
  // Most daemons have a Postgres of their own and do not need these files.
  const { startEmbeddedPostgres, USUAL_PORT } = await import('../embedded/postgres.ts');
  const embedded = await startEmbeddedPostgres({
    dataDir,
    log: embeddedLines(log),
    port: USUAL_PORT,
  });
  return { url: () => embedded.url, close: () => embedded.stop() };
}

/**
 * Returns a function for the present URL: with the user and password that its file, if any, contains now, and all
 * else as it was first, so that connections of one daemon never lead to two places. `onOther` is called once for
 * each URL that leads elsewhere.
 */
export function presentUrl(source: SecretSource, onOther: () => void = () => {}): () => string {
  const { scheme, place } = loginOf(source.read());
  let known = place;
  return () => {
    source.refresh();
    const { login, place: present } = loginOf(source.read());
    if (present !== known && present !== place) onOther();
    known = present;
    return `${scheme}${login === undefined ? '' : `${login}@`}${place}`;
  };
}

/** Postgres has fewer connections for this role than one daemon may open. */
class TooFewConnections extends Error {
  override readonly name = 'TooFewConnections';
  readonly kind = 'too-few-connections';
  readonly hint =
    'raise the limit (of the role: ALTER ROLE … CONNECTION LIMIT, of the database: ALTER DATABASE … CONNECTION LIMIT, ' +
    "or the server's max_connections), or lower DATABASE_POOL_MAX, down to 5";

  constructor(most: number, left: number | null, cause?: unknown) {
    const there = left === null ? 'none left for this role' : `${left} for this role`;
    super(
      `one daemon opens up to ${most} connections (DATABASE_POOL_MAX), and Postgres has ${there}`,
      cause === undefined ? {} : { cause },
    );
  }
}

/** Runs a part of the start. If Postgres has no connection left for it, the error says how many are needed. */
export async function needingConnections<T>(
  { database }: Pick<Config, 'database'>,
  part: () => Promise<T>,
): Promise<T> {
  try {
    return await part();
  } catch (error) {
    throw storeFailure(error) === 'too-many-connections'
      ? new TooFewConnections(database.poolMax, null, error)
      : error;
  }
}

const tellingOfPooler =
  (log: Log) =>
  (error: unknown): never => {
    if (error instanceof PoolerError) log.error({ event: 'database.pooler', err: error });
    throw error;
  };

interface DatabaseParts {
  readonly log: Log;
  readonly clock: Clock;
  readonly onStop: OnStop;
  readonly giveUp: AbortSignal | undefined;
  readonly waits: Waits;
}

/** Opens Postgres (embedded or by URL) and waits until it answers. */
export async function openMirror(config: Config, { log, clock, onStop, giveUp, waits }: DatabaseParts) {
  const database = await openDatabase(config, log);
  onStop(() => database.close());
  const { poolMax } = config.database;
  const sql = connect(database.url, {
    max: divideConnections(poolMax, config.queues.redisUrl === null).pool,
    onNotice: noticeLines(log, clock),
    answerWithinMs: waits.answerMs,
  });
  onStop(() => sql.end({ timeout: END_WITHIN_SECONDS }));
  let told = false;
  const waitedMs = await waitForDatabase(sql, clock, DATABASE_PATIENCE_MS, {
    signal: giveUp,
    onWait(err, ms) {
      told = true;
      const remedy = remedyOf(err);
      const facts = {
        event: 'database.waiting' as const,
        waitedSeconds: Math.round(ms / 1000),
        patienceSeconds: DATABASE_PATIENCE_MS / 1000,
        ...(err === undefined ? {} : { err }),
      };
      if (remedy === null) log.warn(facts);
      else log.warn({ ...facts, hint: remedy.hint }, remedy.what);
    },
  }).catch(tellingOfPooler(log));
  if (told) log.info({ event: 'database.answers', waitedSeconds: Math.round(waitedMs / 1000) });
  const limit = await readConnectionLimit(sql);
  if (limit !== null && limit < poolMax) throw new TooFewConnections(poolMax, limit);
  return { database, sql };
}

interface QueuesOptions {
  readonly databaseUrl: DatabaseUrl;
  readonly onError: (error: Error) => void;
  readonly onStop: OnStop;
  readonly waits: Waits;
  readonly telemetry: Tracing['queues'];
}

/** Creates and prepares the queues' backend; `onStop` closes it. */
export async function openQueues(
  config: Config,
  { databaseUrl, onError, onStop, waits, telemetry }: QueuesOptions,
): Promise<QueueBackend> {
  const { redisUrl, prefix } = config.queues;
  const backend = createQueueBackend({
    redisUrl: redisUrl === null ? null : presentUrl(redisUrl),
    databaseUrl,
    connections: divideConnections(config.database.poolMax, redisUrl === null).queues,
    answerWithinMs: waits.queueAnswerMs,
    prefix,
    onError,
    telemetry,
  });
  onStop(() => backend.close());
  await backend.prepare();
  return backend;
}

/**
 * Notes whose catalog is mirrored, and logs if the api_key differs from the previous one. Throws ConfigError if the
 * mirror is another partner's.
 */
async function followAccount(config: Config, sql: Sql, log: Log): Promise<void> {
  tellOfKey(log, await noteAccount(sql, accountOf(config)));
}

/**
 * Does the same for a running daemon that has read another key. If the mirror is another account's, the process
 * ends.
 */
export async function followKey(config: Config, sql: Sql, log: Log): Promise<void> {
  tellOfKey(log, await noteKey(sql, accountOf(config)));
}

function tellOfKey(log: Log, how: Awaited<ReturnType<typeof noteAccount>>): void {
  if (how === 'key-replaced') log.warn({ event: 'credential.key-replaced' });
}

const accountOf = ({ partner: { baseUrl, apiKey } }: Config): Account => ({ baseUrl, apiKey: apiKey.read() });

/**
 * Migrates the mirror's tables and registers this instance, whose number it returns. Throws ConfigError, with
 * nothing changed, if the mirror is another partner's.
 */
export async function migrateMirror(
  config: Config,
  sql: Sql,
  databaseUrl: DatabaseUrl,
  { log, onStop }: Pick<DatabaseParts, 'log' | 'onStop'>,
): Promise<string> {
  let begunAt: number | null = null;
  const { notGranted } = await migrateDatabase(databaseUrl, {
    refuse: (migrating) => refuseOtherPartner(migrating, accountOf(config)),
    onPending(pending) {
      begunAt = systemClock.monotonic();
      log.info({ event: 'database.migrating', pending });
    },
  }).catch(tellingOfPooler(log));
  if (begunAt !== null) {
    const durationSeconds = Math.round((systemClock.monotonic() - begunAt) / 1000);
    log.info({ event: 'database.migrated', durationSeconds });
  }
  if (notGranted !== null) log.warn({ event: 'rights.not-granted', err: notGranted });
  const tables = await restoreLostRows(sql);
  if (tables.length > 0) emitLine(log, { event: 'rows.restored', tables, skus: 0 });
  await repairSequencesAtStart(sql);
  const leave = await registerInstance(databaseUrl, systemClock, config.catalog.scope === 'scope', sql);
  onStop(leave);
  await followAccount(config, sql, log);
  return leave.number;
}

function embeddedLines(log: Log): EmbeddedLog {
  return (event, detail) => emitLine(log, { event, ...detail });
}
