import { expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { createDatabase } from '../support/db.ts';
import { temporaryFolder } from '../support/process.ts';
import { versionBefore } from './support.ts';

test('a seller who has inserted a promise and then reads what is kept of it is no victim of an upgrade', async () => {
  const database = await createDatabase('empty');
  const { url } = database;
  const sql = connect(url, { max: 1 });
  onTestFinished(async () => {
    await sql.end({ timeout: 2 });
    await database.drop();
  });
  const folder = versionBefore(await temporaryFolder(onTestFinished), '0068_moment_of_a_query');
  await migrateDatabase(url, { folder });
  await sql.begin(async (seller) => {
    await seller`insert into catalog.watchlist (sku, max_age) values ('A', interval '1 hour')`;
    // Which ends although the seller's transaction does not: it waits for no lock of the watchlist.
    await migrateDatabase(url);
    expect(await seller`select sku from catalog.promises`).toEqual([{ sku: 'A' }]);
  });
});
