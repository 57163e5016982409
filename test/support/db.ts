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

/** Makes an empty database with a name of its own on the run's shared server: one for each test file. */
export async function createDatabase(): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await administer(`create database ${name}`);
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => administer(`drop database if exists ${name} with (force)`) };
}
