import pg from 'pg';
import postgres from 'postgres';
import { parseJson } from '../../lib/json.ts';
import { type AnswerLimit, dropUnanswered, endSoon, orEnd } from './answer-limit.ts';
import { type StatementAtWork, watchWork, type WorkWatch } from './at-work.ts';
import { endingDropped } from './dropped-sessions.ts';
import { asLogin, readOwnSession } from './own-session.ts';
import type { Ask } from './pooler.ts';
import {
  applicationName,
  CLIENT_CHECK,
  CLIENT_CHECK_PIN,
  LATER_SETTINGS,
  loneUrl,
  sessionConnection,
  sessionUrl,
} from './session.ts';
import { isAnswer, isConflict, sqlState, storeFailure, type Way } from './sql-errors.ts';

export type Sql = postgres.Sql;
export type Tx = postgres.TransactionSql;
/** A pool or a transaction: anything that takes statements. */
export type Queryable = Sql | Tx;

/** How often a transaction is tried if it is the victim of a conflict. */
export const TRANSACTION_TRIES = 5;
/** Longest wait between two attempts to connect while Postgres is away; the driver's own 20 s delay too much. */
const RECONNECT_MAX_SECONDS = 2;

export type Notice = postgres.Notice;

/** DATABASE_URL, or a function called for each new connection, because a password may be rotated. */
export type DatabaseUrl = string | (() => string);

const present = (url: DatabaseUrl): string => (typeof url === 'string' ? url : url());

/**
 * Longest time that Postgres may leave a statement of the daemon or its queues unanswered. Then the connection counts
 * as dead, whatever the network says: its host may have vanished, or a NAT or proxy forgotten it. Longer than
 * `lock_timeout`, so that Postgres itself reports a lock.
 */
export const ANSWER_WITHIN_MS = 30_000;
/** The same for statements that scan the catalog, compare a manifest with it or migrate. */
export const SCAN_WITHIN_MS = 1_800_000;
/** Longest time that opening a connection may take, including TLS and login. */
export const CONNECT_WITHIN_MS = 10_000;
/** TCP first probes an idle connection after this time, and then every second. */
export const KEEP_ALIVE_MS = 10_000;

export interface ConnectOptions {
  readonly max?: number;
  readonly name?: string;
  /** Called with the server's notices; they are dropped otherwise. */
  readonly onNotice?: (notice: Notice) => void;
  /**
   * How long Postgres may send nothing on a statement; then its connection is closed, unless Postgres says, on another
   * connection, that it is at work on the statement. Without it: no limit.
   */
  readonly answerWithinMs?: number;
  /** How long a statement may take while Postgres is at work on it; `SCAN_WITHIN_MS` by default. */
  readonly workWithinMs?: number;
}

/**
 * Returns a pool that connects to the seller's Postgres lazily. Times are returned as Date, int8 as string. Throws if
 * the driver is not the patched one: as published, it runs statements of a lost transaction inside another's.
 */
export function connect(url: DatabaseUrl, options: ConnectOptions = {}): Sql {
  if (!('settlesWhatIsLost' in postgres))
    throw new Error('postgres.js is without ops/patches: run npm ci with scripts, or npm run prepare');
  const presentUrl = present(url);
  const { url: bare, options: settings, ...connection } = sessionConnection(presentUrl);
  const { name = 'catalog-mirror', answerWithinMs, workWithinMs = SCAN_WITHIN_MS } = options;
  const work = watchWork({ open: () => connect(url, { max: 1, name }), pool: () => sql, workWithinMs });
  const sql: Sql = postgres(bare, {
    ...connection,
    max: options.max ?? 12,
    onnotice: options.onNotice ?? (() => {}),
    connect_timeout: CONNECT_WITHIN_MS / 1000,
    keep_alive: KEEP_ALIVE_MS / 1000,
    ...(answerWithinMs !== undefined && {
      answer_timeout: answerWithinMs / 1000,
      ondropped: endingDropped(() => sql, answerWithinMs),
      isworking: work.isWorking,
    }),
    ...(typeof url === 'function' && { pass: () => presentPassword(sql, url) }),
    backoff: (failures) => Math.min(RECONNECT_MAX_SECONDS, 0.1 * 2 ** failures) * (0.5 + Math.random() / 2),
    types: { json: JSON_TYPE },
    connection: {
      application_name: applicationName(name, presentUrl),
      options: settings,
    },
  });
  URLS.set(sql, url);
  WORK.set(sql, work);
  return sql;
}

/** Parses like the driver (json and jsonb), except for keys that contain escapes. */
const JSON_TYPE = { to: 114, from: [114, 3802], serialize: JSON.stringify, parse: parseJson };

const WORK = new WeakMap<Sql, WorkWatch>();

/** Returns this pool's statements that have exceeded its limit for an answer while Postgres is at work on them. */
export const statementsAtWork = (sql: Sql): readonly StatementAtWork[] => WORK.get(sql)?.present() ?? [];

/** The URL that each pool was opened with. */
const URLS = new WeakMap<Sql, DatabaseUrl>();

/** Returns the present URL of a pool that `connect` opened; null for any other pool. */
export function urlOf(sql: Sql): string | null {
  const url = URLS.get(sql);
  return url === undefined ? null : present(url);
}

/** Describes the pool's connections; those by a Unix socket count as not clear, because they cannot use TLS. */
export const wayOf = ({ options }: Sql): Way => ({
  role: options.user,
  database: options.database,
  isClear: !options.ssl && !options.path,
});

/** Runs `work` with two new connections to this pool's database, each sending one statement at a time. */
export async function askingTwo<T>(sql: Sql, work: (idle: Ask, busy: Ask) => Promise<T>): Promise<T> {
  const url = URLS.get(sql);
  if (url === undefined) throw new Error('not a pool of ours');
  const [idle, busy] = [connect(url, { max: 1 }), connect(url, { max: 1 })];
  try {
    return await work(
      (statement) => idle.unsafe(statement),
      (statement) => busy.unsafe(statement),
    );
  } finally {
    await Promise.all([idle.end({ timeout: 1 }), busy.end({ timeout: 1 })]);
  }
}

/** Returns the password for a new connection. A changed user takes effect only with the connection after it. */
function presentPassword(sql: Sql, url: () => string): string {
  // The driver parses URLs in its own way. An error would reach nobody, so no file is read.
  const { user, pass } = postgres(sessionUrl(url()), { max: 1 }).options;
  Object.assign(sql.options, { user });
  return typeof pass === 'string' ? pass : '';
}

/**
 * Ends the pool's sessions that take no writes, each as soon as it is idle, so that new ones start with Postgres's
 * present settings. A session that began read-only stays so, and so does one on a server that has become a standby
 * while the host name leads to another.
 */
export function leaveReadOnly(sql: Sql): void {
  const leave = async () => {
    await asLogin(
      sql,
      (tx) => tx`
      select pg_terminate_backend(pg_backend_pid()) where current_setting('transaction_read_only') = 'on'`,
    ).catch(() => {});
  };
  // Concurrent transactions use one connection each.
  for (let n = 0; n < sql.options.max; n += 1) void leave();
}

/** Returns how long this pool waits for an answer. */
export function answerLimitOf(sql: Sql): { readonly answerWithinMs?: number } {
  const { answer_timeout: seconds } = sql.options as { answer_timeout?: number | null };
  return seconds === undefined || seconds === null ? {} : { answerWithinMs: seconds * 1000 };
}

/**
 * Watches a lone connection whose statements may take any time: if a statement exceeds its limit, asks through a pool
 * whether Postgres is at work on it, and repeats that. If it is not, the session is ended and the connection lost. A
 * session whose activity Postgres does not show (readAtWork in at-work.ts) counts as at work while it is in a
 * transaction, because none stays idle in one for long (SESSION).
 */
export async function askAfter(client: LoneClient, sql: Sql): Promise<void> {
  const { pid, began } = await readOwnSession(client);
  // Postgres also calls a session active during a COPY that waits for rows, or while nobody reads its answer.
  client.answers.isWorking = async () => {
    const [found] = await asLogin(
      sql,
      (tx) => tx<{ ended: boolean | null }[]>`
      select case
        when coalesce(state, 'disabled') = 'disabled'
          then case when not exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'virtualxid') then false end
        when state = 'active' and wait_event_type is distinct from 'Client' then null
        else pg_terminate_backend(pid) end as ended
      from pg_stat_activity a where pid = ${pid} and coalesce(backend_start::text = ${began}, true)`,
    );
    return found?.ended === null;
  };
}

/** Marks a statement that scans the catalog: Postgres may take longer before the connection counts as dead. */
export function scanning<Rows extends readonly postgres.MaybeRow[]>(
  query: postgres.PendingQuery<Rows>,
): postgres.PendingQuery<Rows> {
  // These are the driver's own options of a statement; a tagged template cannot take them.
  Object.assign((query as unknown as { options: object }).options, {
    answer_timeout: SCAN_WITHIN_MS / 1000,
  });
  return query;
}

/**
 * SQL: numbers that never change for this statement, as part of its text. When Postgres makes its generic plan, it
 * does not know the values of parameters; if the plan therefore seems costly, it plans the statement anew each time.
 */
export function constant(sql: Queryable, ...numbers: readonly number[]) {
  if (!numbers.every(Number.isFinite)) throw new RangeError(`no numbers: ${numbers.join(', ')}`);
  return sql.unsafe(numbers.join(', '));
}

/**
 * SQL: a value that Postgres learns only when it executes the statement. If a parameter's value makes a plan cheaper,
 * as null or an empty array does, Postgres would plan the statement anew each time.
 */
export const unplanned = (
  sql: Queryable,
  value: boolean | number | string | null | readonly (number | string | null)[],
  type: string,
) => sql`(select ${value as string}::${sql.unsafe(type)})`;

/**
 * Runs `work` in one transaction, and again from its start if Postgres chose it as the victim of a deadlock or
 * conflict. So `work` must have no effect but its statements. Statements that it passes to `last` are sent, but not
 * waited for: COMMIT follows them in the same round trip, and if one of them fails, nothing is committed.
 */
export async function transaction<T>(
  sql: Sql,
  work: (tx: Tx, last: (sent: Promise<unknown>) => void) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const sent: Promise<unknown>[] = [];
    const last = (statements: Promise<unknown>) => {
      // If the connection is lost, COMMIT fails, too, and its error arrives first.
      statements.catch(() => {});
      sent.push(statements);
    };
    try {
      const result = (await sql.begin((tx) => work(tx, last))) as T;
      // Postgres does not report COMMIT of a failed transaction as an error: it rolls back.
      await allSent(sent);
      return result;
    } catch (error) {
      await freeNotifications(sql, error);
      if (attempt >= TRANSACTION_TRIES || !isConflict(error)) throw error;
    }
  }
}

/** SQLSTATE of every statement after the one that made the transaction fail. */
const FAILED_BEFORE = '25P02';

/**
 * Sends statements of a transaction at once and in this order, and waits for all, like Promise.all. Rejects with the
 * error of the statement that failed, whichever error arrives first: later statements only report that the transaction
 * has failed, and a group of statements settles later than a single one.
 */
export async function allSent<const T extends readonly unknown[]>(
  statements: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const ended = await Promise.allSettled(statements);
  const errors = ended.flatMap((one): unknown[] => (one.status === 'rejected' ? [one.reason] : []));
  if (errors.length > 0) throw errors.find((error) => sqlState(error) !== FAILED_BEFORE) ?? errors[0];
  return ended.map((one) => (one.status === 'fulfilled' ? one.value : null)) as {
    -readonly [K in keyof T]: Awaited<T[K]>;
  };
}

/**
 * After a transaction that had no room for its notification, makes Postgres drop notifications that no session waits
 * for any more. Postgres does so only after a notification that fits, or when asked how full its queue is: otherwise a
 * full queue stays full after the session that blocked it is gone.
 */
export async function freeNotifications(sql: Sql, error: unknown): Promise<void> {
  if (storeFailure(error) !== 'notify-queue-full') return;
  await sql`select pg_notification_queue_usage()`.catch(() => {});
}

/** Applies LATER_SETTINGS to later connections, too: asking each for its version would cost a round trip each. */
export async function pinLaterSettings(sql: Sql): Promise<void> {
  const { connection } = sql.options;
  for (const { pin } of await sql.unsafe<{ pin: string }[]>(LATER_SETTINGS)) {
    const settings = String(connection['options']);
    if (!settings.includes(pin)) connection['options'] = settings + pin;
  }
}

/** Does the same with CLIENT_CHECK, by which Postgres checks, if its system can, whether a client still waits. */
export async function endingLeftStatements(sql: Sql): Promise<void> {
  const { connection } = sql.options;
  try {
    await sql.unsafe(CLIENT_CHECK);
  } catch (error) {
    if (isAnswer(error)) return;
    throw error;
  }
  const settings = String(connection['options']);
  if (!settings.includes(CLIENT_CHECK_PIN)) connection['options'] = settings + CLIENT_CHECK_PIN;
}

export interface LoneClient extends pg.Client {
  /** May be changed at any time; applies to later statements. */
  readonly answers: AnswerLimit;
}

export interface LoneOptions {
  readonly application_name: string;
  /** How often to query an idle connection, so that its loss is noticed. */
  readonly checkIdleMs?: number;
  /** How long Postgres may leave a statement unanswered, from the first on; `ANSWER_WITHIN_MS` by default. */
  readonly answerWithinMs?: number;
}

/**
 * Opens a connection outside of the pool, with the `pg` driver. It is lost, with an error, when Postgres leaves a
 * statement unanswered for too long. Throws if Postgres does not answer or refuses.
 */
export async function connectAlone(url: DatabaseUrl, options: LoneOptions): Promise<LoneClient> {
  const { checkIdleMs, answerWithinMs = ANSWER_WITHIN_MS, ...given } = options;
  const presentUrl = present(url);
  const { ssl, options: settings } = sessionConnection(presentUrl);
  const client = new pg.Client({
    connectionString: loneUrl(presentUrl),
    ssl,
    options: settings,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    ...given,
    application_name: applicationName(given.application_name, presentUrl),
  });
  // An idle connection that breaks emits an error; the next statement reports it.
  client.on('error', () => {});
  const answers: AnswerLimit = { withinMs: answerWithinMs, isWorking: null };
  const isBusy = dropUnanswered(client, answers);
  endSoon(client);
  await client.connect().catch((error: unknown) => {
    // The driver's own timeout has no code.
    throw error instanceof Error && sqlState(error) === null
      ? Object.assign(error, { code: 'CONNECT_TIMEOUT' })
      : error;
  });
  await orEnd(client, async () => {
    await client.query(LATER_SETTINGS);
    await client.query(CLIENT_CHECK).catch((error: unknown) => {
      if (!isAnswer(error)) throw error;
    });
  });
  if (checkIdleMs !== undefined) {
    const check = () => (isBusy() ? undefined : void client.query('select').catch(() => {}));
    const checking = setInterval(check, checkIdleMs);
    client.once('end', () => clearInterval(checking));
  }
  return Object.assign(client, { answers });
}
