import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { inject } from 'vitest';

export interface TestDatabase {
  /** Connection URL of the new database, with the server's administrator as user. */
  url: string;
  /** Drops the database, disconnecting everyone who still uses it. */
  drop(): Promise<void>;
}

async function administer(statement: string): Promise<void> {
  const admin = postgres(inject('postgresUrl'), { max: 1, onnotice: () => {} });
  try {
    await admin.unsafe(statement);
  } finally {
    await admin.end();
  }
}

let major: Promise<number> | undefined;

/** Returns the major version of the run's shared server. */
export function serverMajor(): Promise<number> {
  major ??= (async () => {
    const admin = postgres(inject('postgresUrl'), { max: 1 });
    try {
      const [row] = await admin`select current_setting('server_version_num')::int / 10000 as major`;
      return Number(row?.['major']);
    } finally {
      await admin.end();
    }
  })();
  return major;
}

/** The database that the run's setup has migrated, for copying: migrating each of hundreds would take minutes. */
export const MIGRATED = 'migrated';

/**
 * Creates a database with its own name on the run's shared server: empty, migrated, or a copy of another one,
 * which must have no connections. With `named`, it takes the URL of one that was dropped.
 */
export async function createDatabase(
  as: 'empty' | 'migrated' | { readonly copyOf: string; readonly named?: string } = 'empty',
): Promise<TestDatabase> {
  const given = typeof as === 'string' ? undefined : as.named;
  const name =
    given === undefined ? `test_${randomBytes(8).toString('hex')}` : new URL(given).pathname.slice(1);
  const copyOf = typeof as === 'string' ? null : new URL(as.copyOf).pathname.slice(1);
  const template = copyOf ?? (as === 'migrated' ? MIGRATED : 'template1');
  // Copies files: writing each page of the template to the WAL, the default from 15 on, takes six times as long.
  const copied = (await serverMajor()) >= 15 ? 'strategy file_copy' : '';
  await administer(`create database ${name} template ${template} ${copied}`);
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => administer(`drop database if exists ${name} with (force)`) };
}

/**
 * SQL condition for a lock of this database. pg_locks shows those of the whole server, and tables in databases
 * made from the same template have the same OIDs.
 */
export const ofThisDatabase = (sql: postgres.Sql) =>
  sql`database = (select oid from pg_database where datname = current_database())`;
