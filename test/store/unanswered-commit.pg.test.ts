import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { isConnectionLost } from '../../src/store/connection/sql-errors.ts';
import { createDatabase } from '../support/db.ts';
import { through } from '../support/net.ts';
import { atCommit } from '../support/postgres-wire.ts';
import { proxyTo } from '../support/proxy.ts';
import { baseline, line } from './manifest.ts';

/*
 * The connection of a manifest is lost at COMMIT. Two databases of one server share its transaction numbers, so
 * the other one stands for a promoted standby: its transaction with that number is something else, not this
 * manifest.
 */

test.each([
  ['the same server counts as merged', 'same'],
  ['another server is not read there', 'other'],
])('a manifest whose COMMIT was carried out, but not answered, on %s', async (_, where) => {
  const [database, other] = [await createDatabase('migrated'), await createDatabase('migrated')];
  const proxy = await proxyTo(database.url);
  const committing = atCommit(/manifest_applied_at = now\(\)/, 'after COMMIT, before its answer');
  proxy.watch(committing.watcher);
  const url = () => (committing.hits() > 0 && where === 'other' ? other.url : through(database.url, proxy));
  const sql = connect(database.url, { max: 1 });
  try {
    const merging = baseline(url, [line('A')]);
    if (where === 'same') expect((await merging).applied).toMatchObject({ added: 1 });
    else await expect(merging).rejects.toSatisfy(isConnectionLost);
    expect(committing.hits()).toBe(1);
    expect(await sql`select snapshot_id from catalog_internal.sync`).toEqual([{ snapshot_id: 'm1' }]);
  } finally {
    await sql.end({ timeout: 2 });
    await proxy[Symbol.asyncDispose]();
    for (const one of [database, other]) await one.drop();
  }
});
