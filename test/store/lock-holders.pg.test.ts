import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { holderText, readLockHolders } from '../../src/store/status/lock-holders.ts';
import { actingLogins } from '../support/acting-login.ts';
import { eventually } from '../support/eventually.ts';
import { useStore } from './support.ts';

const store = useStore();

/** A session of a role of its own, with these rights, that names itself. */
async function neighbour(application: string, rights: string): Promise<{ role: string; sql: Sql }> {
  const role = `neighbour_${randomBytes(6).toString('hex')}`;
  await store.sql.unsafe(`create role ${role} login password 'x' ${rights}`);
  const url = new URL(store.url);
  url.username = role;
  url.password = 'x';
  const sql = connect(url.href, { max: 1, name: application });
  onTestFinished(async () => {
    await sql.end({ timeout: 2 });
    await store.sql.unsafe(`drop role ${role}`);
  });
  return { role, sql };
}

const pidOf = async (sql: Pick<Sql, 'unsafe'>) =>
  ((await sql.unsafe('select pg_backend_pid() as pid'))[0] as unknown as { pid: number }).pid;

test('nobody is named while nobody waits', async () => {
  await store.sql.begin(async (tx) => {
    await tx`lock table catalog.skus in access exclusive mode`;
    expect(await readLockHolders(store.sql)).toEqual([]);
  });
});

test('who has the watchlist locked is named, although nobody is left waiting for it', async () => {
  const { role, sql } = await neighbour('pricing-tool', 'in role catalog_watcher');
  await sql.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`;
    await tx`lock table catalog.watchlist in access exclusive mode`;
    const holders = await eventually(async () => {
      const found = await readLockHolders(store.sql);
      expect(found).toHaveLength(1);
      return found;
    });
    expect(holders).toMatchObject([
      { pid: await pidOf(tx), role, application: 'pricing-tool', table: 'catalog.watchlist' },
    ]);
    expect(holderText(holders[0] as (typeof holders)[0])).toBe(
      `process ${holders[0]?.pid} of Postgres (role ${role}, application pricing-tool) holds a lock on catalog.watchlist`,
    );
  });
  expect(await readLockHolders(store.sql)).toEqual([]);
});

test('who waits in between is not named: it holds up nobody, once the one at the end is done', async () => {
  const first = await neighbour('first', 'superuser');
  const between = await neighbour('between', 'superuser');
  const waiting: Promise<unknown>[] = [];
  await first.sql.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`;
    await tx`lock table catalog.skus in row exclusive mode`;
    waiting.push(between.sql.begin((other) => other`lock table catalog.skus in access exclusive mode`));
    await eventually(async () => {
      const waiting = await store.sql`
        select from pg_locks join pg_stat_activity using (pid) where not granted and datname = current_database()`;
      return waiting.length > 0;
    });
    waiting.push(store.sql.unsafe('select count(*) from catalog.skus').execute());
    const holders = await eventually(async () => {
      const found = await readLockHolders(store.sql);
      expect(found.length).toBeGreaterThan(0);
      return found;
    });
    expect(holders.map(({ application }) => application)).toEqual(['first']);
  });
  await Promise.allSettled(waiting);
});

test('at the end of a queue of sessions that wait stands the one that is named, with how long it is waited for', async () => {
  const { role, sql } = await neighbour('', 'superuser');
  const waiting: Promise<unknown>[] = [];
  await sql.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`;
    await tx`select from catalog_internal.sync for update`;
    await tx`lock table catalog.skus in access exclusive mode`;
    for (const statement of [
      'select count(*) from catalog.skus',
      'select from catalog_internal.sync for update',
    ])
      waiting.push(store.sql.unsafe(statement).execute(), store.sql.unsafe(statement).execute());
    const holders = await eventually(async () => {
      const found = await readLockHolders(store.sql);
      expect(found[0]?.seconds).toBeGreaterThan(1);
      return found;
    });
    expect(holders).toMatchObject([{ pid: await pidOf(tx), role }]);
  });
  await Promise.all(waiting);
});

test('whom a login waits for that acts as another role is named, to the logins that act so', async () => {
  await using acting = await actingLogins(store.sql, store.url);
  const waiting = connect(await acting.login(), { max: 1 });
  const asking = connect(await acting.login(), { max: 1 });
  const { role, sql } = await neighbour('seller', 'superuser');
  let waits: Promise<unknown> = Promise.resolve();
  await sql.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`;
    await tx`lock table catalog.skus in access exclusive mode`;
    waits = waiting`select count(*) from catalog.skus`.execute();
    const holders = await eventually(async () => {
      const found = await readLockHolders(asking);
      expect(found).toHaveLength(1);
      return found;
    });
    expect(holders).toMatchObject([
      { pid: await pidOf(tx), role, application: 'seller', table: 'catalog.skus' },
    ]);
  });
  await waits;
  await Promise.all([waiting.end(), asking.end()]);
});
