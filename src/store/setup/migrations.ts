import { ConfigError } from '../../config/config.ts';
import { Misconfigured } from '../../lib/errors.ts';
import { connect, type DatabaseUrl, SCAN_WITHIN_MS, type Sql, pinLaterSettings } from '../connection/db.ts';
import { refusePooling } from '../connection/pooler.ts';
import { MIGRATING_NAME } from '../connection/session.ts';
import { isAnswer, isMadeMeanwhile, storeFailure } from '../connection/sql-errors.ts';
import { type Entry, journal, MIGRATIONS, migrationState } from './journal.ts';
import { MigrationError, migrationFailed } from './migration-error.ts';
import {
  refuseEncoding,
  type Found,
  judgeRoles,
  judgeSchemas,
  type Occupied,
  OccupiedError,
  readFound,
  readRoles,
} from './occupied.ts';

/** Every other statement queues behind a migration that waits for a lock. */
const LOCK_TIMEOUT_MS = 10_000;

export interface MigrateOptions {
  readonly folder?: string;
  /** How long to wait for a table that another session has locked. */
  readonly lockTimeoutMs?: number;
  /** Throws ConfigError if the database must not be migrated. Called before anything is changed; only reads. */
  readonly refuse?: (sql: Sql) => Promise<void>;
  /** Receives the number of pending migrations, before they are applied or another session's are waited for. */
  readonly onPending?: (count: number) => void;
  /** Called before each migration is applied. */
  readonly onStep?: (step: MigrationStep) => void;
}

export interface MigrationStep {
  readonly tag: string;
  /** Starts at 1. */
  readonly number: number;
  readonly of: number;
}

export interface Migrated {
  /** Roles for sellers that do not exist, because this role may not create them. */
  readonly rolesMissing: readonly string[];
  /** Why Postgres refused to grant these roles what they lack, or null. The mirror itself needs none of it. */
  readonly notGranted: Error | null;
}

/**
 * Applies pending migrations in one transaction, one session at a time, so that replicas starting together apply
 * them once. Does not wait if none is pending. Then completes roles and grants, which are missing if a dump was
 * loaded into a new cluster; it does not fail if Postgres refuses that.
 *
 * @throws PoolerError if sessions are not kept
 * @throws OccupiedError before anything is created, if schemas or roles with the mirror's names are somebody else's
 * @throws EncodingError before the first migration, if the database is not in UTF-8
 * @throws MigrationError if a migration fails, or if a later version has migrated the database. Everything is then
 * as it was, except that a new database may have got the empty table of applied migrations.
 */
export async function migrateDatabase(url: DatabaseUrl, options: MigrateOptions = {}): Promise<Migrated> {
  const { folder = MIGRATIONS, lockTimeoutMs = LOCK_TIMEOUT_MS, refuse, onPending, onStep } = options;
  const one = { max: 1, name: MIGRATING_NAME, answerWithinMs: SCAN_WITHIN_MS };
  const sql = connect(url, one);
  const lockSession = connect(url, one);
  let isMigrated = false;
  try {
    await Promise.all([pinLaterSettings(sql), pinLaterSettings(lockSession)]);
    await refusePooling(
      (statement) => sql.unsafe(statement),
      (statement) => lockSession.unsafe(statement),
    );
    const found = await refuseOccupied(sql, folder);
    // A mirror that has run for months continues; doctor reports the encoding.
    if (found.ledger === 'none') await refuseEncoding(sql);
    const pending = await refuseNewer(sql, folder);
    await refuse?.(sql);
    if (pending > 0) {
      onPending?.(pending);
      await alone(sql, lockSession, () => migrate(sql, found, { folder, lockTimeoutMs, onStep }));
    }
    isMigrated = true;
    return await makeRightsWhole(sql, lockSession);
  } catch (error) {
    throw error instanceof MigrationError || error instanceof Misconfigured || error instanceof ConfigError
      ? error
      : await migrationFailed(error, folder, isMigrated);
  } finally {
    await Promise.all([sql.end({ timeout: 5 }), lockSession.end({ timeout: 5 })]);
  }
}

const MAKES_CATALOG = /^\s*(?:--.*\s+)*CREATE SCHEMA "catalog";\s*$/;

interface Applying {
  readonly folder: string;
  readonly lockTimeoutMs: number;
  readonly onStep: MigrateOptions['onStep'];
}

async function migrate(sql: Sql, found: Found, { folder, lockTimeoutMs, onStep }: Applying): Promise<void> {
  const pending = await refuseNewer(sql, folder);
  if (pending === 0) return;
  const steps = (await journal(folder)).slice(-pending);
  // As much to load as half of the program, so only if there is something to migrate. `drizzle()` itself is left
  // out: it imports a driver of its own, which does not exist where the package is installed (ours is bundled).
  const [{ PgDialect }, { PostgresJsSession }, { readMigrationFiles }] = await Promise.all([
    import('drizzle-orm/pg-core/dialect'),
    import('drizzle-orm/postgres-js/session'),
    import('drizzle-orm/migrator'),
  ]);
  await sql`select set_config('lock_timeout', ${`${lockTimeoutMs}ms`}, false)`;
  const config = {
    migrationsFolder: folder,
    migrationsSchema: 'catalog_internal',
    migrationsTable: 'migrations',
  };
  const dialect = new PgDialect();
  const files = readMigrationFiles(config);
  // An administrator has created the schema for the mirror, with its privileges: only its contents are missing.
  if (found.schemas.some(({ schema }) => schema === 'catalog'))
    for (const file of files) file.sql = file.sql.filter((statement) => !MAKES_CATALOG.test(statement));
  const session = new PostgresJsSession<Sql, Record<string, never>, Record<string, never>>(
    sql,
    dialect,
    undefined,
  );
  // Outside of its transaction the library only creates what makeLedger has created.
  session.execute = () => Promise.resolve([] as never);
  await dialect.migrate(inTurn(files, steps, onStep) as unknown as typeof files, session, config);
}

/**
 * Yields the files. The library asks for one after the other, applied or not, and waits for nothing but its
 * statements.
 */
function* inTurn<File extends { readonly folderMillis: number }>(
  files: readonly File[],
  steps: readonly Entry[],
  onStep: MigrateOptions['onStep'],
): Generator<File> {
  for (const file of files) {
    const index = steps.findIndex(({ when }) => when === file.folderMillis);
    const tag = steps[index]?.tag;
    if (tag !== undefined) onStep?.({ tag, number: index + 1, of: steps.length });
    yield file;
  }
}

/**
 * Creates the library's own table if it is missing. If it exists, the right to create it may have been revoked
 * since, and `if not exists` checks that right first.
 */
async function makeLedger(sql: Sql): Promise<void> {
  const [{ schema, ledger }] = await sql<[{ schema: boolean; ledger: boolean }]>`
    select to_regnamespace('catalog_internal') is not null as schema, to_regclass('catalog_internal.migrations') is not null as ledger`;
  if (!schema) await sql`create schema if not exists catalog_internal`;
  if (!ledger)
    await sql`
      create table if not exists catalog_internal.migrations (id serial primary key, hash text not null, created_at bigint)`;
}

const MADE_TRIES = 5;

/**
 * Waits until nobody else migrates, and prevents others from it during `work`: on a connection of its own, by
 * locking the library's own table, which is created here as the library creates it.
 */
async function alone(sql: Sql, lockSession: Sql, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await makeLedger(sql);
      break;
    } catch (error) {
      if (attempt >= MADE_TRIES || !isMadeMeanwhile(error)) throw error;
    }
  }
  await locked(lockSession, work);
}

/** Does the same if the table exists. Nothing is created then, because the right to do so may be gone by now. */
async function locked(lockSession: Sql, work: () => Promise<unknown>): Promise<void> {
  await lockSession.begin(async (tx) => {
    // This connection idles while the other one works.
    await tx`set local idle_in_transaction_session_timeout = 0`;
    // Another session's migrations of a large catalog may take minutes.
    await tx`set local lock_timeout = 0`;
    await tx`lock table catalog_internal.migrations in share update exclusive mode`;
    await work();
  });
}

async function makeRightsWhole(sql: Sql, lockSession: Sql): Promise<Migrated> {
  const { known, whole, rolesMissing } = await readRights(sql);
  if (!known || whole) return { rolesMissing, notGranted: null };
  let notGranted: Error | null = null;
  try {
    await locked(lockSession, () => sql`select catalog_internal.grant_rights()`.execute());
  } catch (error) {
    if (!(error instanceof Error && isAnswer(error)) || storeFailure(error) !== null) throw error;
    notGranted = error;
  }
  return { rolesMissing: (await readRights(sql)).rolesMissing, notGranted };
}

/** Reads whether the roles for sellers and all their rights exist. `known` is false for an earlier version. */
export async function readRights(
  sql: Sql,
): Promise<Pick<Migrated, 'rolesMissing'> & { readonly known: boolean; readonly whole: boolean }> {
  const [{ known, rolesMissing }] = await sql<[{ known: boolean; rolesMissing: string[] }]>`
    select to_regproc('catalog_internal.missing_rights') is not null as known,
      array(select r from unnest(array['catalog_reader', 'catalog_watcher']) r where to_regrole(r) is null) as "rolesMissing"`;
  if (!known) return { known, whole: false, rolesMissing };
  const missing = await sql`select from catalog_internal.missing_rights() limit 1`;
  return { known, whole: rolesMissing.length + missing.length === 0, rolesMissing };
}

/**
 * Reads what prevents the first or any later migration: schemas and roles that have our names but are not ours.
 * Changes nothing.
 */
export async function readOccupied(
  sql: Sql,
  folder = MIGRATIONS,
): Promise<Found & { readonly occupied: readonly Occupied[] }> {
  const entries = await journal(folder);
  const found = await readFound(
    sql,
    entries.map(({ when }) => when),
  );
  // An administrator who has since given a role more does not stop a daemon that has run for months.
  const roles = found.ledger === 'none' ? judgeRoles(await readRoles(sql)) : [];
  return { ...found, occupied: [...judgeSchemas(found), ...roles] };
}

async function refuseOccupied(sql: Sql, folder: string): Promise<Found> {
  const { occupied, ...found } = await readOccupied(sql, folder);
  const [first, ...others] = occupied;
  if (first !== undefined) throw new OccupiedError([first, ...others]);
  return found;
}

/**
 * Returns how many migrations are still to be applied. Throws if a later version has migrated this database: what it
 * changed is unknown here, and writing to it as before could corrupt rows.
 */
async function refuseNewer(sql: Sql, folder: string): Promise<number> {
  const { pending, unknown } = await migrationState(sql, folder);
  if (unknown === 0) return pending;
  throw new MigrationError(
    'database-newer',
    `the database was migrated by a later version of catalog-mirror (migrations that this one does not know: ${unknown})`,
    'run that version again, or restore a backup from before the upgrade',
  );
}
