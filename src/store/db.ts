import pg from 'pg';
import postgres from 'postgres';
import type { Clock } from '../lib/clock.ts';
import { NO_TRANSACTION_TIMEOUT, sessionConnection } from './session.ts';

export type Sql = postgres.Sql;
export type Tx = postgres.TransactionSql;
/** A pool or a transaction: whatever statements can be sent to. */
export type Queryable = Sql | Tx;

/** SQLSTATEs after which the whole transaction may simply be run again: serialization failure, deadlock. */
const RETRYABLE = new Set(['40001', '40P01']);
const TRANSACTION_TRIES = 5;
/** So soon a connection is tried again when Postgres was away for long; the driver's own 20 s leave too much undone. */
const RECONNECT_MOST_SECONDS = 2;

export type Notice = postgres.Notice;

export interface ConnectOptions {
  readonly max?: number;
  readonly name?: string;
  /** Called with the server's notices; they are dropped otherwise. */
  readonly onNotice?: (notice: Notice) => void;
}

/**
 * A pool of connections to the seller's Postgres. Times come back as Date, int8 as string. Connects lazily. Throws where
 * the driver is not the patched one: as published, it runs statements of a lost transaction inside another's.
 */
export function connect(url: string, options: ConnectOptions = {}): Sql {
  if (!('settlesWhatIsLost' in postgres))
    throw new Error('postgres.js is without ops/patches: run npm ci with scripts, or npm run prepare');
  const { url: bare, ssl, options: settings } = sessionConnection(url);
  return postgres(bare, {
    ssl,
    max: options.max ?? 12,
    onnotice: options.onNotice ?? (() => {}),
    connect_timeout: 10,
    backoff: (failures) => Math.min(RECONNECT_MOST_SECONDS, 0.1 * 2 ** failures) * (0.5 + Math.random() / 2),
    connection: {
      application_name: options.name ?? 'catalog-mirror',
      options: settings,
    },
  });
}

/** SQLSTATE of a database error (also where a library has wrapped it), or null. */
export function sqlState(error: unknown): string | null {
  for (let e = error; e instanceof Error; e = e.cause) {
    if ('code' in e && typeof e.code === 'string') return e.code;
  }
  return null;
}

/**
 * Runs `work` in one transaction, again from its start when Postgres chose it as a deadlock's or a conflict's victim.
 * `work` must therefore have no effect but its statements. Those that it hands to `last` it has sent and does not wait for:
 * COMMIT is sent behind them in the same round trip, and where one of them fails, it commits nothing.
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
      await Promise.all(sent);
      return result;
    } catch (error) {
      const state = sqlState(error);
      if (attempt >= TRANSACTION_TRIES || state === null || !RETRYABLE.has(state)) throw error;
    }
  }
}

const LOST = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'CONNECTION_CLOSED', 'CONNECTION_DESTROYED']);

/** Errors after which the connection is closed: the server says FATAL, or the driver has seen the end of it. */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const fatal = 'severity' in error && (error.severity === 'FATAL' || error.severity === 'PANIC');
  return fatal || LOST.has(sqlState(error) ?? '');
}

/** Why Postgres takes no writes although it answers: nothing is wrong with the statement, and waiting helps. */
export const STORE_FAILURES = ['disk-full', 'out-of-memory', 'too-many-connections', 'read-only'] as const;
export type StoreFailure = (typeof STORE_FAILURES)[number];

const FAILURES: Readonly<Record<string, StoreFailure>> = {
  '53100': 'disk-full',
  '53200': 'out-of-memory',
  '53300': 'too-many-connections',
  '25006': 'read-only',
};

/** The failure of the store that an error reports, or null. */
export function storeFailure(error: unknown): StoreFailure | null {
  return FAILURES[sqlState(error) ?? ''] ?? null;
}

/** Classes of SQLSTATEs by which Postgres, or a trigger or constraint of somebody's, rejects the rows themselves. */
const REJECTED = /^(21|22|23|44|54|P0)[0-9A-Z]{3}$/;

/** Why these rows are never stored, however often it is tried: the SQLSTATE and what rejects them. No value of theirs. */
export function rejection(error: unknown): { readonly state: string; readonly by: string } | null {
  const state = sqlState(error);
  if (state === null || !REJECTED.test(state)) return null;
  const { schema_name, table_name, constraint_name } = error as Partial<postgres.PostgresError>;
  const table = table_name === undefined ? null : `${schema_name}.${table_name}`;
  const by = [constraint_name, table].filter((name) => name !== undefined && name !== null).join(' of ');
  return { state, by: by === '' ? 'a trigger or a limit' : by };
}

/** SQLSTATEs that no waiting will change: the role or its password is wrong. */
const REFUSED = new Set(['28000', '28P01']);
/** Nor these: the server's certificate is not one to be trusted, or not for this host. */
const UNTRUSTED = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_HAS_EXPIRED',
  'CERT_SIGNATURE_FAILURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);

const TELL_AFTER_MS = 1000;
const TELL_EVERY_MS = 20_000;

/**
 * Resolves once Postgres answers a query; rejects when `timeoutMs` has passed or `signal` aborts, with the last reason as
 * its cause, and at once when Postgres refuses the role or its
 * certificate is not trusted. `onWait` gets the last reason (undefined: no answer at all so far) after one second,
 * and then every twenty. Returns the milliseconds that it took.
 */
export async function waitForDatabase(
  sql: Sql,
  clock: Clock,
  timeoutMs: number,
  options: {
    readonly signal?: AbortSignal | undefined;
    readonly onWait?: (reason: unknown, waitedMs: number) => void;
  } = {},
): Promise<number> {
  const { signal, onWait } = options;
  const settled = new AbortController();
  const over = AbortSignal.any([settled.signal, ...(signal === undefined ? [] : [signal])]);
  let reason: unknown;
  const startedAt = clock.monotonic();
  const waited = () => clock.monotonic() - startedAt;
  const telling = async () => {
    await clock.sleep(TELL_AFTER_MS, over);
    while (!over.aborted) {
      onWait?.(reason, waited());
      await clock.sleep(TELL_EVERY_MS, over);
    }
  };
  const inTime = clock.sleep(timeoutMs, over).then(() => {
    throw new Error('Postgres does not answer', { cause: reason });
  });
  const answered = async () => {
    while (!over.aborted) {
      try {
        await sql`select 1`;
        keepArrayTypes(sql);
        await withoutTransactionTimeout(sql);
        return;
      } catch (error) {
        if (REFUSED.has(sqlState(error) ?? ''))
          throw new Error('Postgres rejects the login: check user, password and database in DATABASE_URL', {
            cause: error,
          });
        if (UNTRUSTED.has(sqlState(error) ?? ''))
          throw new Error(
            'the certificate of Postgres is not trusted: check sslmode and sslrootcert in DATABASE_URL',
            { cause: error },
          );
        reason = error;
      }
      await clock.sleep(250, over);
    }
  };
  const told = telling();
  try {
    await Promise.race([answered(), inTime]);
    return waited();
  } finally {
    settled.abort();
    await told;
  }
}

/**
 * The pool's first connection has asked for the array types, for all of them. postgres.js would ask again on each new
 * connection, in a promise that nobody holds: a connection lost at that moment would end the process.
 */
function keepArrayTypes(sql: Sql): void {
  (sql.options as { fetch_types: boolean }).fetch_types = false;
}

/** For this connection and those that the pool opens later; to ask each for its version would be a round trip each. */
export async function withoutTransactionTimeout(sql: Sql): Promise<void> {
  const { connection } = sql.options;
  const [known] = await sql.unsafe(NO_TRANSACTION_TIMEOUT);
  const pin = ' -c transaction_timeout=0';
  const settings = String(connection['options']);
  if (known !== undefined && !settings.endsWith(pin)) connection['options'] = settings + pin;
}

/** A connection of its own through the `pg` driver, not of the pool. Throws where Postgres does not answer or refuses. */
export async function connectAlone(databaseUrl: string, options: pg.ClientConfig): Promise<pg.Client> {
  const { url: connectionString, ...session } = sessionConnection(databaseUrl);
  const client = new pg.Client({ connectionString, ...session, ...options });
  // An idle connection that breaks emits; the next statement reports it.
  client.on('error', () => {});
  await client.connect();
  await client.query(NO_TRANSACTION_TIMEOUT);
  return client;
}
