import { expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { REMEDIES } from '../../src/store/connection/remedies.ts';
import type { MigrationError } from '../../src/store/setup/migration-error.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { createDatabase } from '../support/db.ts';
import { temporaryFolder } from '../support/process.ts';
import { laterVersion, versionBefore } from './support.ts';

/** A database of one test, and a session of the seller's. */
async function databaseOf(as: 'empty' | 'migrated') {
  const database = await createDatabase(as);
  const sql = connect(database.url, { max: 1 });
  onTestFinished(async () => {
    await sql.end({ timeout: 2 });
    await database.drop();
  });
  return { url: database.url, sql };
}

const failing = (migrating: Promise<unknown>): Promise<unknown> =>
  migrating.then(
    () => null,
    (reason: unknown) => reason,
  );

test('a seller who has inserted a promise and then reads what is kept of it is no victim of an upgrade', async () => {
  const { url, sql } = await databaseOf('empty');
  const folder = versionBefore(await temporaryFolder(onTestFinished), '0068_moment_of_a_query');
  await migrateDatabase(url, { folder });
  await sql.begin(async (seller) => {
    // It idles while the other connections work.
    await seller`set local idle_in_transaction_session_timeout = 0`;
    await seller`insert into catalog.watchlist (sku, max_age) values ('A', interval '1 hour')`;
    // Which ends although the seller's transaction does not: it waits for no lock of the watchlist.
    await migrateDatabase(url);
    expect(await seller`select sku from catalog.promises`).toEqual([{ sku: 'A' }]);
  });
});

const STANDING = [
  ['a view', 'create view public.mine as select * from catalog.calibration', 'drop view catalog.calibration'],
  [
    'a materialized view',
    'create materialized view public.mine as select note from catalog.watchlist',
    // Nothing of the mirror's own reads it: Postgres names one of those that do.
    'alter table catalog.watchlist alter column note type varchar',
  ],
  [
    'a table with a column of a table’s rows',
    'create table public.mine (seen catalog.products)',
    'alter table catalog.products add column random float8 not null default random()',
  ],
] as const;

test('of what a seller has built on what a migration makes anew, it is said what that is and what to do, and nothing is lost', async () => {
  const { url, sql } = await databaseOf('migrated');
  for (const [what, theirs, ours] of STANDING) {
    await sql.unsafe(theirs);
    const folder = laterVersion(await temporaryFolder(onTestFinished), ours);
    const error = await failing(migrateDatabase(url, { folder }));
    expect({ what, error }).toMatchObject({ error: { kind: 'migration-failed' } });
    const { hint, cause } = error as MigrationError;
    expect({ what, hint }).toMatchObject({
      hint: expect.stringMatching(/^something of yours.* drop it, start again/) as string,
    });
    // By its DETAIL or its message.
    expect(`${hint} ${String(cause)}`).toContain('mine');
    await sql.unsafe(`drop ${/^create (materialized view|view|table) /.exec(theirs)?.[1]} public.mine`);
  }
});

test('an event trigger that says Postgres cannot do it is told as one, and nobody is to drop what is his', async () => {
  const { url, sql } = await databaseOf('migrated');
  await sql.unsafe(`
    create function public.no_views() returns event_trigger language plpgsql
      as $$ begin raise 'views are made by the DBA' using errcode = 'feature_not_supported'; end $$;
    create event trigger no_views on ddl_command_start when tag in ('CREATE VIEW') execute function public.no_views()`);
  const folder = laterVersion(
    await temporaryFolder(onTestFinished),
    'create view catalog.later as select 1 as one',
  );
  const error = await failing(migrateDatabase(url, { folder }));
  expect(error).toMatchObject({
    kind: 'migration-failed',
    hint: REMEDIES['refused-by-trigger'].hint,
    cause: expect.objectContaining({ message: 'views are made by the DBA' }) as Error,
  });
});

test('a migration that has found by itself what a seller has built says so, and blames no trigger', async () => {
  const { url, sql } = await databaseOf('empty');
  const folder = versionBefore(await temporaryFolder(onTestFinished), '0016_strange_databases');
  await migrateDatabase(url, { folder });
  await sql`create view public.mine as select sku from catalog.current_prices`;
  const error = await failing(migrateDatabase(url));
  expect(error).toMatchObject({
    kind: 'migration-failed',
    hint: expect.stringMatching(/^something of yours.* drop it, start again/) as string,
    cause: expect.objectContaining({ message: expect.stringMatching(/: .*mine\. Keep/) as string }) as Error,
  });
});
