import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { connect, connectAlone } from '../../src/store/connection/db.ts';
import { waitForDatabase } from '../../src/store/connection/startup.ts';
import { eventually } from '../support/eventually.ts';
import { useStore } from './support.ts';

const store = useStore();

const sleeping = async (seconds: number) =>
  (
    await store.sql`
      select from pg_stat_activity
      where query like ${`%pg_sleep(${seconds})%`} and state = 'active' and pid <> pg_backend_pid()`
  ).length;

test('statements of a pool end with their client, on its first connection and on later ones', async () => {
  const sql = connect(store.url, { max: 2 });
  await waitForDatabase(sql, systemClock, 10_000);
  const left = [1, 2].map(() => sql.unsafe('select pg_sleep(71)').catch(() => {}));
  await eventually(async () => expect(await sleeping(71)).toBe(2));
  await sql.end({ timeout: 0 });
  await Promise.all(left);
  await eventually(async () => expect(await sleeping(71)).toBe(0), { within: 30_000 });
});

test('a statement of a dedicated connection ends with it', async () => {
  const client = await connectAlone(store.url, { application_name: 'alone' });
  onTestFinished(() => client.end().catch(() => {}));
  const left = client.query('select pg_sleep(72)').catch(() => {});
  await eventually(async () => expect(await sleeping(72)).toBe(1));
  client.connection.stream.destroy();
  await left;
  await eventually(async () => expect(await sleeping(72)).toBe(0), { within: 30_000 });
});
