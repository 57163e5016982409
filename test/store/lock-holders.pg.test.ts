import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { readMigrating } from '../../src/store/setup/migrating.ts';
import { holderText, Locked, namingHolder, readLockHolders } from '../../src/store/status/holders.ts';
import { actingLogins } from '../support/acting-login.ts';
import { ofThisDatabase } from '../support/db.ts';
import { eventually } from '../support/eventually.ts';
import { useStore } from './support.ts';

const store = useStore();

/** Opens a session of a separate role with these privileges and this application name. */
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

test('the holder of a lock on the watchlist is named, even if nobody waits for it', async () => {
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
    expect(holderText({ ...(holders[0] as (typeof holders)[0]), heldSeconds: 240 })).toBe(
      `process ${holders[0]?.pid} of Postgres (role ${role}, application pricing-tool) holds a lock on catalog.watchlist, in a transaction of 4m whose last statement is LOCK TABLE`,
    );
  });
  expect(await readLockHolders(store.sql)).toEqual([]);
});

test('a session that waits in between is not named, because it blocks nobody once the first is done', async () => {
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

test('the session at the end of a queue of waiting ones is named, with how long it has been waited for', async () => {
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

test('the holder that a login acting as another role waits for is named to logins that act the same way', async () => {
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

const untilHeld = (tx: Pick<Sql, 'unsafe'>) => tx.unsafe('select pg_sleep(1.1)');

test.each([
  ['a table of the ledger in exclusive mode', 'lock table catalog_internal.due in exclusive mode', 1],
  ['it in a mode that nobody minds', 'lock table catalog_internal.due in row exclusive mode', 0],
  ["a seller's table", 'lock table catalog.skus in exclusive mode', 0],
])('the session that locks %s is named without anybody waiting: %s', async (_, lock, named) => {
  const { sql } = await neighbour('psql', 'superuser');
  await sql.begin(async (tx) => {
    await tx.unsafe(lock);
    await untilHeld(tx);
    const holders = await readLockHolders(store.sql);
    expect(holders).toHaveLength(named);
    for (const holder of holders) {
      expect(holder).toMatchObject({ application: 'psql', table: 'catalog_internal.due', command: 'SELECT' });
      expect(holder.heldSeconds).toBeGreaterThan(1);
    }
  });
});

/** A working session ends its work as soon as somebody holds this advisory lock. */
const WORKED = 4_300_000;
const WORKING = `do $$ begin
  while not exists (select from pg_locks where locktype = 'advisory' and objid = ${WORKED}) loop
    perform pg_sleep(0.01);
  end loop;
end $$`;

test('a session of the mirror is named only if it is frozen', async () => {
  const own = connect(store.url, { max: 1, name: 'catalog-mirror' });
  onTestFinished(() => own.end({ timeout: 1 }));
  await own.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`;
    await tx`lock table catalog_internal.due in exclusive mode`;
    const working = tx.unsafe(WORKING).execute();
    await store.sql`select pg_sleep(1.2)`;
    expect(await readLockHolders(store.sql)).toEqual([]);
    await store.sql.begin(async (told) => {
      await told`select pg_advisory_xact_lock(${WORKED})`;
      await working;
    });
    // Idle only since just now: for all we know it continues at once.
    const holders = await eventually(async () => {
      const since = performance.now();
      await tx`select`;
      const found = await readLockHolders(store.sql);
      expect(performance.now() - since, 'asked in time').toBeLessThan(1000);
      return found;
    });
    expect(holders).toEqual([]);
    await store.sql`select pg_sleep(1.2)`;
    expect(await readLockHolders(store.sql)).toMatchObject([{ pid: await pidOf(tx) }]);
  });
});

test('the session that blocks migrating is named once nothing works there any more', async () => {
  const open = () => {
    const sql = connect(store.url, { max: 1, name: 'catalog-mirror migrate' });
    onTestFinished(() => sql.end({ timeout: 1 }));
    return sql;
  };
  const [keeper, worker, another] = [open(), open(), open()];
  const lock = 'lock table catalog_internal.migrations in share update exclusive mode';
  let waits: Promise<unknown> = Promise.resolve();
  await keeper.begin(async (tx) => {
    await tx`set local idle_in_transaction_session_timeout = 0`;
    await tx.unsafe(lock);
    const working = worker.unsafe(WORKING).execute();
    waits = another.begin(async (waiting) => {
      await waiting`set local lock_timeout = 0`;
      await waiting.unsafe(lock);
    });
    await eventually(async () => {
      const waiting = await store.sql`
        select from pg_locks where not granted and waitstart < clock_timestamp() - interval '1.1 seconds'
          and ${ofThisDatabase(store.sql)}`;
      return waiting.length > 0;
    });
    expect(await readLockHolders(store.sql)).toEqual([]);
    const keeping = { pid: await pidOf(tx), application: 'catalog-mirror migrate' };
    expect(await readMigrating(store.sql)).toEqual({ other: keeping, indexPercent: null });
    await store.sql.begin(async (told) => {
      await told`select pg_advisory_xact_lock(${WORKED})`;
      await working;
    });
    await store.sql`select pg_sleep(1.2)`;
    expect(await readLockHolders(store.sql)).toMatchObject([keeping]);
  });
  await waits;
});

test("a program of the same role that is not the mirror's is named even at work", async () => {
  const psql = connect(store.url, { max: 1, name: 'psql' });
  onTestFinished(() => psql.end({ timeout: 1 }));
  await psql.begin(async (tx) => {
    await tx`lock table catalog_internal.due in exclusive mode`;
    const working = tx`select pg_sleep(2)`.execute();
    await store.sql`select pg_sleep(1.2)`;
    expect(await readLockHolders(store.sql)).toMatchObject([{ application: 'psql' }]);
    await working;
  });
});

test('the error of a session that waited in vain names the holder of the lock', async () => {
  const { role, sql } = await neighbour('psql', 'superuser');
  await sql.begin(async (tx) => {
    await tx`lock table catalog.skus in access exclusive mode`;
    await untilHeld(tx);
    const waiting = store.sql.begin(async (own) => {
      await own`set local lock_timeout = '10ms'`;
      await own`select count(*) from catalog.skus`;
    });
    const error = await waiting.then(
      () => null,
      (failed: unknown) => failed,
    );
    const named = await namingHolder(store.sql, error);
    expect(named).toBeInstanceOf(Locked);
    expect(String(named)).toContain(`(role ${role}, application psql) holds a lock on catalog.skus`);
    expect(named).toMatchObject({
      hint: expect.stringContaining('pg_terminate_backend') as string,
      cause: error,
    });
    const other = new Error('another one');
    expect(await namingHolder(store.sql, other)).toBe(other);
  });
});
