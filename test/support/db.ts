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

/** The database that the run's setup has migrated, for copies: migrating each of hundreds takes minutes. */
export const MIGRATED = 'migrated';

/** Makes a database with a name of its own on the run's shared server: empty, or as a daemon finds it that has run before. */
export async function createDatabase(as: 'empty' | 'migrated' = 'empty'): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  // Files are copied: writing each page of the template to the log, as by default, takes six times as long.
  await administer(
    `create database ${name} template ${as === 'migrated' ? MIGRATED : 'template1'} strategy file_copy`,
  );
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => administer(`drop database if exists ${name} with (force)`) };
}
