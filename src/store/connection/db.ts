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
/** A pool or a transaction: whatever statements can be sent to. */
export type Queryable = Sql | Tx;

/** How often a transaction is tried that is the victim of a conflict. */
export const TRANSACTION_TRIES = 5;
/** Longest wait between two attempts to connect while Postgres is away; the driver's own 20 s leave too much undone. */
const RECONNECT_MAX_SECONDS = 2;

export type Notice = postgres.Notice;

/**
 * DATABASE_URL, or a function that returns its present value, because a password may be rotated. The function is called
 * for each connection that is made.
 */
export type DatabaseUrl = string | (() => string);

const present = (url: DatabaseUrl): string => (typeof url === 'string' ? url : url());

/**
 * Longest time without a word of Postgres on a statement of the daemon, or of its queues. Then the connection counts
 * as dead, whatever the network says: a host that vanished, a NAT or proxy that forgot it. Longer than
 * `lock_timeout`, so that Postgres itself tells of a lock.
 */
export const ANSWER_WITHIN_MS = 30_000;
/** The same for statements that scan the catalog, compare a manifest with it or migrate. */
export const SCAN_WITHIN_MS = 1_800_000;
/** Longest time that making a connection may take, TLS and login included. */
export const CONNECT_WITHIN_MS = 10_000;
/** An idle connection is first probed by TCP after this time, and then every second. */
export const KEEP_ALIVE_MS = 10_000;

export interface ConnectOptions {
  readonly max?: number;
  readonly name?: string;
  /** Called with the server's notices; they are dropped otherwise. */
  readonly onNotice?: (notice: Notice) => void;
  /**
   * How long Postgres may say nothing to a statement; a connection whose statement waits longer is closed, unless
   * Postgres says, on another connection, that it is at work on it. Without it: for ever.
   */
  readonly answerWithinMs?: number;
  /** How long a statement may take that Postgres is at work on; `SCAN_WITHIN_MS`. */
  readonly workWithinMs?: number;
}

/**
 * Opens a pool of connections to the seller's Postgres, lazily. Times come back as Date, int8 as string. Throws if the
 * driver is not the patched one: as published, it runs statements of a lost transaction inside another's.
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

/** As the driver has it (json and jsonb), but for keys with escapes. */
const JSON_TYPE = { to: 114, from: [114, 3802], serialize: JSON.stringify, parse: parseJson };

const WORK = new WeakMap<Sql, WorkWatch>();

/** Statements of this pool that have taken longer than it waits for an answer, and that Postgres is at work on. */
export const statementsAtWork = (sql: Sql): readonly StatementAtWork[] => WORK.get(sql)?.present() ?? [];

/** What each pool was opened with. */
const URLS = new WeakMap<Sql, DatabaseUrl>();

/** The present value of the URL that a pool of ours was opened with; null for any other. */
export function urlOf(sql: Sql): string | null {
  const url = URLS.get(sql);
  return url === undefined ? null : present(url);
}

/** Which way the pool's connections go; by a Unix socket they could have no TLS. */
export const wayOf = ({ options }: Sql): Way => ({
  role: options.user,
  database: options.database,
  isClear: !options.ssl && !options.path,
});

/** Runs `work` with two connections of its own to where this pool connects, each sending one statement at a time. */
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

/** The password for a connection that is being made. A user that has changed, too, is what the next one logs in as. */
function presentPassword(sql: Sql, url: () => string): string {
  // The driver reads URLs in its own way. Nobody hears an error from here: no file is read.
  const { user, pass } = postgres(sessionUrl(url()), { max: 1 }).options;
  Object.assign(sql.options, { user });
  return typeof pass === 'string' ? pass : '';
}

/**
 * Ends the pool's sessions that take no writes, each as soon as it has nothing else to do, so that new ones begin as
 * Postgres has them begin by then. A session that began read-only stays so, and so does one of a server that is a
 * standby by now while the host name leads to another.
 */
export function leaveReadOnly(sql: Sql): void {
  const leave = async () => {
    await asLogin(
      sql,
      (tx) => tx`
      select pg_terminate_backend(pg_backend_pid()) where current_setting('transaction_read_only') = 'on'`,
    ).catch(() => {});
  };
  // Transactions at the same time have a connection each.
  for (let n = 0; n < sql.options.max; n += 1) void leave();
}

/** How long this pool waits for an answer. */
export function answerLimitOf(sql: Sql): { readonly answerWithinMs?: number } {
  const { answer_timeout: seconds } = sql.options as { answer_timeout?: number | null };
  return seconds === undefined || seconds === null ? {} : { answerWithinMs: seconds * 1000 };
}

/**
 * For a connection of its own whose statements may take any time: when a statement has taken as long as it may, and
 * then again and again, asks through a pool whether Postgres is at work on it. If it is not, its session is ended and
 * the connection lost. Postgres does not show the activity of another login's session (after a rotation), or of any
 * with track_activities off: then being in a transaction counts as work, because no session stays idle in one for long
 * (SESSION).
 */
export async function askAfter(client: LoneClient, sql: Sql): Promise<void> {
  const { pid, began } = await readOwnSession(client);
  // In a COPY that waits for its rows, or with an answer that nobody takes, Postgres calls itself active, too.
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

/** For a statement that scans the catalog: Postgres may be silent for longer before the connection counts as dead. */
export function scanning<Rows extends readonly postgres.MaybeRow[]>(
  query: postgres.PendingQuery<Rows>,
): postgres.PendingQuery<Rows> {
  // The driver's own options of a statement, which a tagged template has no place for.
  Object.assign((query as unknown as { options: object }).options, {
    answer_timeout: SCAN_WITHIN_MS / 1000,
  });
  return query;
}

/**
 * SQL: numbers that are the same whenever this statement runs, as part of its text. Of a parameter Postgres does not
 * know the value when it makes the plan that it keeps; where that makes the plan look costly, it plans the statement
 * anew each time.
 */
export function constant(sql: Queryable, ...numbers: readonly number[]) {
  if (!numbers.every(Number.isFinite)) throw new RangeError(`no numbers: ${numbers.join(', ')}`);
  return sql.unsafe(numbers.join(', '));
}

/**
 * SQL: a value that Postgres meets only when it executes the statement. Where the value of a parameter makes a plan
 * cheaper, as null or no elements do, it would plan the statement anew each time.
 */
export const unplanned = (
  sql: Queryable,
  value: boolean | number | string | null | readonly (number | string | null)[],
  type: string,
) => sql`(select ${value as string}::${sql.unsafe(type)})`;

/**
 * Runs `work` in one transaction, and again from its start if Postgres chose it as the victim of a deadlock or
 * conflict. `work` must therefore have no effect but its statements. Statements that it passes to `last` are sent, but
 * not waited for: COMMIT follows them in the same round trip, and if one of them fails, nothing is committed.
 */
export async function transaction<T>(
  sql: Sql,
  work: (tx: Tx, last: (sent: Promise<unknown>) => void) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const sent: Promise<unknown>[] = [];
    const last = (statements: Promise<unknown>) => {
      // With a connection that is lost COMMIT fails, too, and is heard of first.
      statements.catch(() => {});
      sent.push(statements);
    };
    try {
      const result = (await sql.begin((tx) => work(tx, last))) as T;
      // COMMIT of a transaction that has failed is no error to Postgres, which rolls it back.
      await allSent(sent);
      return result;
    } catch (error) {
      await freeNotifications(sql, error);
      if (attempt >= TRANSACTION_TRIES || !isConflict(error)) throw error;
    }
  }
}

/** What Postgres says of each statement of a transaction that has failed before. */
const FAILED_BEFORE = '25P02';

/**
 * Sends statements of a transaction in one go and in this order, and waits for all, as Promise.all does. Rejects with
 * the error of the statement that failed, whichever error arrives first: statements behind it only report that the
 * transaction has failed, and a group of statements is heard of later than a single one.
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
 * for any more. Postgres does so only behind a notification that fits, or when asked how full its queue is: a full
 * queue stays full after the session that kept it so is gone.
 */
export async function freeNotifications(sql: Sql, error: unknown): Promise<void> {
  if (storeFailure(error) !== 'notify-queue-full') return;
  await sql`select pg_notification_queue_usage()`.catch(() => {});
}

/** Makes LATER_SETTINGS on later connections, too: asking each for its version would be a round trip each. */
export async function pinLaterSettings(sql: Sql): Promise<void> {
  const { connection } = sql.options;
  for (const { pin } of await sql.unsafe<{ pin: string }[]>(LATER_SETTINGS)) {
    const settings = String(connection['options']);
    if (!settings.includes(pin)) connection['options'] = settings + pin;
  }
}

/** The same for CLIENT_CHECK: Postgres checks, if its system can, whether a client still waits for its statement. */
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
  /** May be changed at any time, for the statements to come. */
  readonly answers: AnswerLimit;
}

export interface LoneOptions {
  readonly application_name: string;
  /** Asks Postgres something so often, for a connection that has nothing else to say and is to be known as lost. */
  readonly checkIdleMs?: number;
  /** How long Postgres may say nothing to a statement, from the first on; `ANSWER_WITHIN_MS`. */
  readonly answerWithinMs?: number;
}

/**
 * A connection of its own through the `pg` driver, not of the pool; lost, with an error, when Postgres says nothing
 * to a statement for as long as it may. Throws where Postgres does not answer or refuses.
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
  // An idle connection that breaks emits; the next statement reports it.
  client.on('error', () => {});
  const answers: AnswerLimit = { withinMs: answerWithinMs, isWorking: null };
  const isBusy = dropUnanswered(client, answers);
  endSoon(client);
  await client.connect().catch((error: unknown) => {
    // The driver gives the end of its patience no code.
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
