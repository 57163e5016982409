import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { connect } from '../../src/store/connection/db.ts';
import { waitForDatabase } from '../../src/store/connection/startup.ts';
import { registerInstance } from '../../src/store/setup/instance.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { PATIENCE_MS } from '../support/eventually.ts';
import { query, startHere, temporaryFolder } from './harness.ts';

// Here, because the embedded Postgres certainly has transaction_timeout (PostgreSQL 17).
test("a role's transaction_timeout cuts off no migration, no transaction of a pool and no daemon", async () => {
  const { url } = await startHere(join(await temporaryFolder(), 'pg'));
  await query(url, "alter role postgres set transaction_timeout = '50ms'");
  await migrateDatabase(url);
  const leave = await registerInstance(url);
  const sql = connect(url, { max: 3 });
  await waitForDatabase(sql, systemClock, PATIENCE_MS);
  const slow = () =>
    sql.begin((tx) => tx`select pg_sleep(0.2), current_setting('transaction_timeout') as most`);
  for (const [row] of await Promise.all([slow(), slow(), slow()])) expect(row).toMatchObject({ most: '0' });
  await sql.end();
  await leave();
});
