import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { inject } from 'vitest';

export interface TestDatabase {
  /** Connection URL of the fresh database, with the server's administrator as user. */
  url: string;
  /** Drops the database, cutting off whoever is still connected to it. */
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

/** The major version of the run's shared server. */
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

/** The database that the run's setup has migrated, for copies: migrating each of hundreds takes minutes. */
export const MIGRATED = 'migrated';

/**
 * Makes a database with a name of its own on the run's shared server: empty, as a daemon finds it that has run
 * before, or a copy of another one, to which nobody may be connected; `named`: with the URL of one that is gone.
 */
export async function createDatabase(
  as: 'empty' | 'migrated' | { readonly copyOf: string; readonly named?: string } = 'empty',
): Promise<TestDatabase> {
  const given = typeof as === 'string' ? undefined : as.named;
  const name =
    given === undefined ? `test_${randomBytes(8).toString('hex')}` : new URL(given).pathname.slice(1);
  const copyOf = typeof as === 'string' ? null : new URL(as.copyOf).pathname.slice(1);
  const template = copyOf ?? (as === 'migrated' ? MIGRATED : 'template1');
  // Files are copied: writing each page of the template to the log, as by default from 15 on, takes six times as long.
  const copied = (await serverMajor()) >= 15 ? 'strategy file_copy' : '';
  await administer(`create database ${name} template ${template} ${copied}`);
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => administer(`drop database if exists ${name} with (force)`) };
}

/**
 * SQL: a lock of this database. pg_locks shows those of the whole server, and in databases that were made of the same
 * template a table has the same number in each.
 */
export const ofThisDatabase = (sql: postgres.Sql) =>
  sql`database = (select oid from pg_database where datname = current_database())`;
