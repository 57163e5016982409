import { expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { versionBefore } from '../migrations/support.ts';
import { createDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { runProgram, startProgram, temporaryFolder } from '../support/process.ts';

test('commands name a database of an earlier version as such, and do not call it broken', async () => {
  const database = await createDatabase('empty');
  onTestFinished(() => database.drop());
  await migrateDatabase(database.url, { folder: versionBefore(await temporaryFolder(), '0020_p_right') });
  for (const command of [
    'status',
    'status --json',
    'status --watch',
    'plan',
    'show A',
    'refresh --all',
    'pause',
    'resume',
    'follow --list',
  ]) {
    const { code, stdout, stderr } = await runProgram(command.split(' '), { DATABASE_URL: database.url });
    expect([command, code, stdout, stderr]).toEqual([
      command,
      78,
      '',
      expect.stringMatching(
        /^the database is of an earlier version\n {2}because: .*\n {2}what to do: .*`catalog-mirror migrate`/,
      ) as string,
    ]);
  }
});

test('commands name a database of a later version as such if it lacks what they read', async () => {
  const database = await createDatabase('migrated');
  onTestFinished(() => database.drop());
  const sql = connect(database.url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 1 }));
  await sql`insert into catalog_internal.migrations (hash, created_at) values ('later', 9999999999999)`;
  await sql`alter table catalog_internal.sync rename column manifest_applied_at to moved_elsewhere`;
  for (const command of [
    ['status', '--json'],
    ['sql', 'SELECT gone FROM catalog.skus'],
  ]) {
    const { code, stdout, stderr } = await runProgram(command, { DATABASE_URL: database.url });
    expect([command, code, stdout, stderr]).toEqual([
      command,
      78,
      '',
      expect.stringMatching(/^the database is of a later version\n/) as string,
    ]);
  }
});

test('--watch waits for the tables of a mirror that is just starting', async () => {
  const database = await createDatabase('empty');
  onTestFinished(() => database.drop());
  await using watching = startProgram(['status', '--watch', '0.2'], { DATABASE_URL: database.url });
  const shows = (text: string) =>
    eventually(() => {
      expect(watching.stdout.join('\n')).toContain(text);
    });
  await shows('the mirror has no tables yet');
  await migrateDatabase(database.url);
  await shows('no baseline');
  expect(await watching.end('SIGINT')).toMatchObject({ code: 0 });
});

test('a column that no version has is reported only as missing', async () => {
  const database = await createDatabase('migrated');
  onTestFinished(() => database.drop());
  const ran = await runProgram(['sql', 'select nothing from catalog.skus'], { DATABASE_URL: database.url });
  expect(ran).toMatchObject({ code: 1, stderr: 'column "nothing" does not exist' });
});

test('follow does not take a database without tables for an earlier version', async () => {
  const database = await createDatabase('empty');
  onTestFinished(() => database.drop());
  const { code, stderr } = await runProgram(['follow', '--once'], { DATABASE_URL: database.url });
  expect([code, stderr]).toEqual([78, expect.stringMatching(/^the mirror has no tables yet\n/)]);
});
