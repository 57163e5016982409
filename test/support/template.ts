import { prepareTables } from '../../src/queues/postgres-queues.ts';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';

/**
 * Makes the database whose copies the tests begin with, where there is none. Each project of a run sets up by itself:
 * where they share a server, the first makes it and the others wait. It has its name once it is whole, so that one
 * whose `fill` has failed is copied by no later run.
 */
export async function makeTemplate(
  serverUrl: string,
  name: string,
  fill: (url: string) => Promise<void>,
): Promise<void> {
  const admin = connect(serverUrl, { max: 1 });
  const unfinished = `${name}_unfinished`;
  try {
    await admin`select pg_advisory_lock(hashtext(${name}))`;
    if ((await admin`select from pg_database where datname = ${name}`).length > 0) return;
    await admin.unsafe(`drop database if exists ${unfinished} with (force)`);
    await admin.unsafe(`create database ${unfinished}`);
    await fill(Object.assign(new URL(serverUrl), { pathname: `/${unfinished}` }).href);
    await admin.unsafe(`alter database ${unfinished} rename to ${name}`);
  } finally {
    await admin.end();
  }
}

/** The mirror's tables, and those of its queues. */
export async function migrateTemplate(url: string): Promise<void> {
  await migrateDatabase(url);
  await prepareTables(url);
}
