import { afterAll, beforeAll, expect, test } from 'vitest';
import { paceLimits } from '../../src/pace/policy.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { storeSettings } from '../../src/store/setup/sql-settings.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { runProgram } from '../support/process.ts';
import { settingsWith } from '../support/settings.ts';

/** Settings of the daemon, all different from the defaults. */
const DAEMON = {
  LIVE_INTERVAL: '2m',
  SWEEP_INTERVAL: '13h',
  METADATA_INTERVAL: '3d',
  DELTA_INTERVAL: '5s',
  PARTNER_RATE_SHARE: '0.95',
  BULK_MAX_SKUS: '37',
  BULK_LIVE_BUDGET: '7',
};

interface Plan {
  readonly input: object;
  readonly settings: object;
}

let database: TestDatabase;
let sql: Sql;
beforeAll(async () => {
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 1 });
  await sql`insert into catalog.skus (sku, in_manifest, state, price_source, priced_at)
    select 'S' || n, true, 'priced', case when n <= 40 then 'live' else 'snapshot' end, now() from generate_series(1, 400) n`;
  const settings = settingsWith(DAEMON);
  await storeSettings(sql, settings, paceLimits(settings));
});
afterAll(async () => {
  await sql.end({ timeout: 2 });
  await database.drop();
});

const plan = (args: readonly string[], env: object = {}) =>
  runProgram(['plan', ...args], { DATABASE_URL: database.url, ...env });
const planned = async (args: readonly string[], env?: object) =>
  JSON.parse((await plan([...args, '--json'], env)).stdout) as Plan;

test("the plan of a mirror uses its daemon's settings, and names those that differ in this environment", async () => {
  const { input, settings } = await planned([]);
  expect(input).toMatchObject({
    skus: 400,
    liveMinutes: 2,
    sweepMinutes: 13 * 60,
    metadataMinutes: 3 * 1440,
    deltaMinutes: 5 / 60,
    bulkMaxSkus: 37,
    liveBudget: 7,
    requestsPerMinute: 187,
  });
  expect(settings).toEqual({
    of: 'daemon',
    otherHere: expect.arrayContaining(Object.keys(DAEMON)) as object,
  });
  const { stdout } = await plan([]);
  expect(stdout).toContain('LIVE_INTERVAL (2m)');
  expect(stdout).toMatch(/this environment has others: LIVE_INTERVAL, .*PARTNER_RATE_SHARE/);
  const alike = await plan([], DAEMON);
  expect(alike).toMatchObject({ code: 0, stderr: '' });
  expect(alike.stdout).not.toContain('this environment');
});

test('with --skus the plan uses the settings of this environment, and mentions no daemon', async () => {
  const { input, settings } = await planned(['--skus', '400'], { LIVE_INTERVAL: '9m' });
  expect(input).toMatchObject({ liveMinutes: 9, bulkMaxSkus: 100, requestsPerMinute: 118 });
  expect(settings).toEqual({ of: 'environment', otherHere: [] });
});
