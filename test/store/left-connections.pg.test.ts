import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Baseline } from '../../src/store/catalog/baseline.ts';
import { connect, connectAlone, type Sql } from '../../src/store/connection/db.ts';
import { registerInstance } from '../../src/store/setup/instance.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';

/** A login that may connect but nothing else: it can create no temporary table and use nothing of the mirror. */
const login = `login_${randomBytes(4).toString('hex')}`;

let database: TestDatabase;
let aside: Sql;
let url: string;
beforeAll(async () => {
  database = await createDatabase('migrated');
  aside = connect(database.url, { max: 1 });
  const name = new URL(database.url).pathname.slice(1);
  await aside.unsafe(`
    create role ${login} login password 'x';
    revoke temporary on database "${name}" from public;
    grant execute on function pg_catalog.set_config to ${login}`);
  url = Object.assign(new URL(database.url), { username: login, password: 'x' }).href;
});
afterAll(async () => {
  await aside.unsafe(`drop owned by ${login} cascade; drop role ${login}`);
  await aside.end({ timeout: 2 });
  await database.drop();
});

/*
 * Sessions of these have no timeout (SESSION): those left by failed runs would count against max_connections until
 * the process ends.
 */
test.each([
  ['a manifest whose table Postgres refuses', () => Baseline.open(url)],
  ['a daemon that Postgres lets draw no number', () => registerInstance(url)],
  [
    'a connection whose settings Postgres refuses',
    async () => {
      await aside`revoke execute on function pg_catalog.set_config from public`;
      await aside.unsafe(`revoke execute on function pg_catalog.set_config from ${login}`);
      return await connectAlone(url, { application_name: 'test' });
    },
  ],
])('%s leaves no session behind', async (_, open) => {
  await expect(open()).rejects.toMatchObject({ code: '42501' });
  await eventually(
    async () => {
      expect(await aside`select application_name from pg_stat_activity where usename = ${login}`).toEqual([]);
    },
    { within: 10_000 },
  );
});
