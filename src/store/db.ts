import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import type { Clock } from '../lib/clock.ts';

export type Sql = postgres.Sql;
export type Tx = postgres.TransactionSql;
/** A pool or a transaction: whatever statements can be sent to. */
export type Queryable = Sql | Tx;

/** SQLSTATEs after which the whole transaction may simply be run again: serialization failure, deadlock. */
const RETRYABLE = new Set(['40001', '40P01']);
const MIGRATION_LOCK = 0x6361_746d;
const TRANSACTION_TRIES = 5;

/** A pool of connections to the seller's Postgres. Times come back as Date, int8 as string. Connects lazily. */
export function connect(url: string, options: { max?: number; name?: string } = {}): Sql {
  return postgres(url, {
    max: options.max ?? 12,
    onnotice: () => {},
    connect_timeout: 10,
    connection: { application_name: options.name ?? 'catalog-mirror', TimeZone: 'UTC' },
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
 * `work` must therefore have no effect but its statements.
 */
export async function transaction<T>(sql: Sql, work: (tx: Tx) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return (await sql.begin(work)) as T;
    } catch (error) {
      const state = sqlState(error);
      if (attempt >= TRANSACTION_TRIES || state === null || !RETRYABLE.has(state)) throw error;
    }
  }
}

/** Resolves once Postgres answers a query; rejects when `timeoutMs` has passed, with the last reason as its cause. */
export async function waitForDatabase(
  sql: Sql,
  clock: Clock,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const end = clock.monotonic() + timeoutMs;
  for (;;) {
    try {
      await Promise.race([sql`select 1`, aborted(signal)]);
      return;
    } catch (error) {
      if (clock.monotonic() >= end || signal?.aborted) {
        throw new Error('Postgres does not answer', { cause: error });
      }
    }
    await clock.sleep(250, signal);
  }
}

/** Rejects when the signal aborts, and never without one. */
async function aborted(signal: AbortSignal | undefined): Promise<never> {
  signal?.throwIfAborted();
  return await new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/** Folder of the migrations: `drizzle/` beside `src/` and, in the built package, beside `dist/`. */
const migrationsFolder = fileURLToPath(new URL('../../drizzle', import.meta.url));

/**
 * Applies pending migrations in one transaction, under an advisory lock, so that replicas starting together apply them
 * once. Needs a direct connection (no transaction pooler).
 */
export async function migrateDatabase(url: string): Promise<void> {
  const sql = connect(url, { max: 1, name: 'catalog-mirror migrate' });
  try {
    await sql`select pg_advisory_lock(${MIGRATION_LOCK})`;
    // drizzle changes the client it is given (Date and JSON parameters throw afterwards): this one is for it alone.
    await migrate(drizzle(sql), {
      migrationsFolder,
      migrationsSchema: 'catalog_internal',
      migrationsTable: 'migrations',
    });
  } finally {
    await sql.end({ timeout: 5 });
  }
}
