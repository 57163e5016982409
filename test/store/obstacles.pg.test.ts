import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { readPostgresFacts } from '../../src/cli/doctor/postgres-facts.ts';
import { judgePostgres } from '../../src/cli/doctor/postgres.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { runTask } from '../../src/queues/task-run.ts';
import { connect } from '../../src/store/connection/db.ts';
import { obstacleOf, remedyOf } from '../../src/store/connection/remedies.ts';
import { rejection } from '../../src/store/connection/sql-errors.ts';
import { waitForDatabase } from '../../src/store/connection/startup.ts';
import { serverMajor } from '../support/db.ts';
import { useStore } from './support.ts';

/* Settings in Postgres that make the mirror's statements fail, as Postgres reports them. */

const store = useStore();

const errorOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => null,
    (error: unknown) => error,
  );

async function failures() {
  const facts = await readPostgresFacts(store.sql, Date.now);
  const lines = judgePostgres(facts, { url: null, queues: 'redis', poolMax: 5 });
  return lines.filter(({ level }) => level === 'FAIL');
}

test('an event trigger that raises is named by doctor, with its message', async () => {
  const { sql } = store;
  await sql.unsafe(`
    create function public.no_ddl() returns event_trigger language plpgsql as $$ begin raise exception 'no DDL here'; end $$;
    create event trigger no_changes on ddl_command_start execute function public.no_ddl()`);
  try {
    expect(obstacleOf(await errorOf(sql`create temporary table t (a int)`))).toBe('refused-by-trigger');
    expect(await failures()).toEqual([
      {
        level: 'FAIL',
        check: 'writes',
        text: "rejected: a trigger that is not the mirror's refuses what it does: no DDL here (P0001)",
        remedy: expect.stringContaining(
          'ALTER EVENT TRIGGER … DISABLE: no_changes (public.no_ddl)',
        ) as string,
      },
    ]);
  } finally {
    await sql.unsafe('drop event trigger no_changes; drop function public.no_ddl()');
  }
  expect(await failures()).toEqual([]);
});

test('published tables without a replica identity, which cannot be changed, are named by doctor', async () => {
  const { sql } = store;
  await sql.unsafe(`
    alter table catalog.skus replica identity nothing; alter table catalog.products replica identity nothing;
    create publication everything for all tables`);
  try {
    const error = await errorOf(sql`update catalog.skus set state = state`);
    expect(obstacleOf(error)).toBe('replica-identity');
    expect(await failures()).toMatchObject([
      {
        check: 'replica identity',
        remedy:
          'ALTER TABLE catalog.products REPLICA IDENTITY DEFAULT; ALTER TABLE catalog.skus REPLICA IDENTITY DEFAULT',
      },
    ]);
    await sql.unsafe(`alter publication everything set (publish = 'insert')`);
    expect(await failures()).toEqual([]);
  } finally {
    await sql.unsafe(`
      drop publication everything;
      alter table catalog.skus replica identity default; alter table catalog.products replica identity default`);
  }
});

const PRICES = {
  'a row filter by what is no key': 'where (price > 100)',
  'a list of columns without a part of the key': '(size, price)',
};

test.skipIf((await serverMajor()) < 15).each(Object.entries(PRICES))(
  'a publication with %s is named by doctor: the table’s rows cannot be changed',
  async (_, published) => {
    const { sql } = store;
    await sql.unsafe(`create publication prices for table catalog.prices ${published}`);
    try {
      const error = await errorOf(sql`delete from catalog.prices`);
      expect(obstacleOf(error)).toBe('replica-identity');
      expect(remedyOf(error)?.hint).toContain('doctor');
      expect(rejection(error)?.by).toContain('a publication');
      expect(await failures()).toMatchObject([
        {
          check: 'replica identity',
          text: expect.stringMatching(/catalog\.prices \(prices: .*replica identity\.\)$/) as string,
          remedy: expect.stringMatching(/^of catalog\.prices, .*REPLICA IDENTITY FULL/) as string,
        },
      ]);
    } finally {
      await sql.unsafe('drop publication prices');
    }
  },
);

test('a task that waits for a lock in vain reports a lock, and no fault', async () => {
  const { sql } = store;
  const runner = { sql, clock: systemClock, signal: new AbortController().signal, report: () => {} };
  await sql.begin(async (tx) => {
    await tx`lock table catalog.products`;
    const outcome = await runTask(runner, 'maintenance', async () => {
      await sql.begin(async (other) => {
        await other`set local lock_timeout = '1ms'`;
        await other`select from catalog.products`;
      });
      throw new Error('the lock was free');
    });
    expect(outcome).toMatchObject({
      kind: 'failed',
      because: 'locked',
      hint: expect.stringContaining('store.locked') as string,
    });
  });
});

test('too large temporary files and a read-only session are distinguished by the setting', async () => {
  const { sql } = store;
  const inSession = async (setting: string, statement: string) =>
    await errorOf(
      sql.begin(async (tx) => (await tx.unsafe(`set local ${setting}`), await tx.unsafe(statement))),
    );
  await sql`create sequence if not exists public.numbers`;
  const sorted = `set local work_mem = '64kB'; select count(*) from (select g from generate_series(1, 100000) g order by -g offset 1) s`;
  expect(obstacleOf(await inSession('temp_file_limit = 0', sorted))).toBe('temp-file-limit');
  expect(obstacleOf(await inSession('transaction_read_only = on', `select nextval('public.numbers')`))).toBe(
    'read-only',
  );
});

test('a role without connections left is distinguished from a server without any', async () => {
  const { sql, url } = store;
  const role = `few_${randomBytes(4).toString('hex')}`;
  await sql.unsafe(`create role ${role} login password 'x' connection limit 0`);
  const pool = connect(Object.assign(new URL(url), { username: role, password: 'x' }).href, { max: 1 });
  onTestFinished(async () => {
    await pool.end({ timeout: 2 });
    await sql.unsafe(`drop role ${role}`);
  });
  const hint = expect.stringMatching(/^raise its limit \(ALTER ROLE … CONNECTION LIMIT/) as string;
  expect(remedyOf(await errorOf(pool`select 1`))).toMatchObject({ hint });
  const away = await errorOf(waitForDatabase(pool, systemClock, 1000));
  expect(away).toMatchObject({ message: 'the role in DATABASE_URL has no connection left', hint });
});
