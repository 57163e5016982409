import { prepareTables } from '../../src/queues/postgres-queues.ts';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';

/**
 * Creates the database from which the tests' databases are copied, if it does not exist. Each project of a run
 * sets up by itself: if they share a server, the first one creates it and the others wait. It gets its name only
 * once it is complete, so no later run copies one whose `fill` failed.
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

/** Creates the mirror's tables, and those of its queues. */
export async function migrateTemplate(url: string): Promise<void> {
  await migrateDatabase(url);
  await prepareTables(url);
}
