import { describe, type onTestFinished, test } from 'vitest';
import type { Sql } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { eventually } from '../support/eventually.ts';
import { moveMarket } from '../support/market.ts';
import { expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram, temporaryFolder } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { ALL, applied, everything, fillMirror, laterVersion } from './support.ts';

const SANDBOX = { skus: 120, ghostShare: 0.02, mislistedShare: 0.02 };

type Standing = 'an empty database' | 'a filled mirror';
const STANDINGS: readonly Standing[] = ['an empty database', 'a filled mirror'];

async function standing(as: Standing): Promise<Stack> {
  if (as === 'an empty database')
    return await createStack({ backend: 'postgres', sandbox: SANDBOX, database: 'empty' });
  const stack = await createStack({ sandbox: SANDBOX });
  await fillMirror(stack.sql, stack.sandbox.world);
  return stack;
}

/** Returns the folder of a later version whose migration cannot be applied twice. */
const later = async (onEnd: typeof onTestFinished, statements = NEXT) =>
  laterVersion(await temporaryFolder(onEnd), statements);

const NEXT = `
    alter table catalog.skus add column looked_after_by text;
--> statement-breakpoint
    create table catalog_internal.counted as select count(*) as skus from catalog.skus;
--> statement-breakpoint
    create or replace function catalog.changes_oldest() returns bigint
    language sql stable security definer set search_path = pg_catalog, pg_temp as 'select -1::bigint';`;

/** Returns how many migrating sessions wait for a lock of this kind. */
async function waiting(sql: Sql, lock: 'relation' | 'advisory'): Promise<number> {
  const sessions = await sql`
    select from pg_stat_activity where datname = current_database() and application_name = 'catalog-mirror migrate'
      and wait_event_type = 'Lock' and wait_event = ${lock}`;
  return sessions.length;
}

describe.concurrent('migrations', () => {
  test('that replicas run at the same moment are applied once, and change nothing when run again', async ({
    expect,
  }) => {
    await using stack = await standing('an empty database');
    await Promise.all(Array.from({ length: 16 }, () => migrateDatabase(stack.databaseUrl)));
    expect(await applied(stack.sql)).toBe(ALL);
    await fillMirror(stack.sql, stack.sandbox.world);
    const before = await everything(stack.sql);
    await migrateDatabase(stack.databaseUrl);
    expect(await applied(stack.sql)).toBe(ALL);
    expect(await everything(stack.sql)).toEqual(before);
  });

  test('are applied by one session at a time: another waits for it and finds nothing left to do', async ({
    expect,
    onTestFinished,
  }) => {
    await using stack = await standing('a filled mirror');
    const { sql } = stack;
    const folder = await later(onTestFinished);
    const told: number[] = [];
    const both = await sql.begin(async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await tx`lock table catalog.skus in access share mode`;
      const migrating = [1, 2].map(() =>
        migrateDatabase(stack.databaseUrl, { folder, onPending: (count) => told.push(count) }),
      );
      const settled = Promise.allSettled(migrating);
      await eventually(async () => (await waiting(sql, 'relation')) === 2, {
        what: 'one to wait for the table, and the other for it',
      });
      // Both report it while they wait, not afterwards.
      expect(told).toEqual([1, 1]);
      return { settled };
    });
    expect((await both.settled).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    expect(await applied(sql)).toBe(ALL + 1);
    await migrateDatabase(stack.databaseUrl, { folder, onPending: (count) => told.push(count) });
    expect(told).toEqual([1, 1]);
  });

  test('of two daemons that start at once on an empty database are applied once, and both fill it', async ({
    expect,
  }) => {
    await using stack = await standing('an empty database');
    expect(await Promise.all([stack.start(), stack.start()])).toHaveLength(2);
    await stack.caughtUp();
    expect(await applied(stack.sql)).toBe(ALL);
    await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
    const said = () => stack.logs.map(({ event }) => event).filter((event) => event.startsWith('database.m'));
    const both = ['database.migrated', 'database.migrated', 'database.migrating', 'database.migrating'];
    expect(said().toSorted()).toEqual(both);
    await stack.start();
    expect(said()).toHaveLength(both.length);
  });
});

interface Kept {
  readonly history: { id: string }[];
  readonly corrections: { id: string }[];
  readonly firstSeen: { sku: string }[];
  readonly watched: { sku: string }[];
}

/** Returns the rows that no migration and no daemon may change. */
async function kept(sql: Sql, before?: Kept): Promise<Kept> {
  const upTo = (rows?: { id: string }[]) => rows?.at(-1)?.id ?? String(Number.MAX_SAFE_INTEGER);
  return {
    history: await sql`
      select id, sku, size, old_price, new_price, observed_at from catalog.price_history
      where id <= ${upTo(before?.history)} order by id`,
    corrections: await sql`
      select * from catalog.product_history where id <= ${upTo(before?.corrections)} order by id`,
    firstSeen: await sql`
      select sku, first_seen_at from catalog.skus where sku = any(${before?.firstSeen.map(({ sku }) => sku) ?? []})
        or ${before === undefined} order by sku`,
    watched: await sql`select * from catalog.watchlist where note = 'mine' order by sku`,
  };
}

/** Keeps the daemons busy, beside a seller who reads prices and edits the watchlist, until it is stopped. */
function underLoad(stack: Stack) {
  const { sql, sandbox } = stack;
  let rounds = 0;
  const stopped = new AbortController();
  const work = async () => {
    for (; !stopped.signal.aborted; rounds += 1) {
      moveMarket(sandbox.world, rounds);
      await stack.everythingDue();
      await sql`select count(*) from catalog.current_prices where actionable`;
      await sql`insert into catalog.watchlist (sku, weight) select sku, 2 from catalog.skus on conflict do nothing`;
      await sql`delete from catalog.watchlist where note is null`;
    }
  };
  const failures: unknown[] = [];
  const done = work().catch((error: unknown) => failures.push(error));
  return {
    async more(count: number) {
      const from = rounds;
      await eventually(() => failures.length > 0 || rounds >= from + count, { what: 'the load to go on' });
    },
    async stop() {
      stopped.abort();
      await done;
      return failures;
    },
  };
}

describe.concurrent('a later version', () => {
  test('migrates a mirror under load: running daemons continue, every row stays, the backlog is processed', async ({
    expect,
    onTestFinished,
  }) => {
    await using stack = await standing('a filled mirror');
    const { sql, sandbox } = stack;
    const before = await kept(sql);
    const folder = await later(onTestFinished);
    const answers = async () => {
      const [row] = await sql<[{ newest: string }]>`
        select last_value as newest from catalog_internal.claim_numbers`;
      return Number(row.newest);
    };
    await Promise.all([stack.start(), stack.start()]);
    const load = underLoad(stack);
    await load.more(3);
    await Promise.all([1, 2].map(() => migrateDatabase(stack.databaseUrl, { folder })));
    const claims = await answers();
    await load.more(3);
    await eventually(async () => (await answers()) > claims, { what: 'the daemons to claim more' });
    expect(await load.stop()).toEqual([]);
    expect(await applied(sql)).toBe(ALL + 1);
    expect(
      await sql`select catalog.changes_oldest() as oldest, looked_after_by from catalog.skus limit 1`,
    ).toEqual([{ oldest: '-1', looked_after_by: null }]);
    await stack.caughtUp();
    await stack.everythingDue();
    await stack.caughtUp();
    expect(await kept(sql, before)).toEqual(before);
    await expectMirrorIsTrue(sql, sandbox.world);
    await expectHistoryIsAChain(sql);
  });

  test('has migrated a database: run, migrate and doctor of this one refuse it, and change nothing', async ({
    expect,
    onTestFinished,
  }) => {
    await using stack = await standing('an empty database');
    const { sql } = stack;
    await migrateDatabase(stack.databaseUrl, {
      folder: await later(
        onTestFinished,
        'alter table catalog_internal.due add column must_be_given integer not null',
      ),
    });
    const before = await everything(sql);
    const ran = await Promise.all(['run', 'migrate'].map((command) => runProgram([command], stack.env)));
    for (const { code, stderr } of ran)
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(/migrated by a later version.*\n.*what to do: run that version/),
      });
    expect(await everything(sql)).toEqual(before);
    expect(await runProgram(['doctor'], stack.env)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/FAIL.*migrations.*later version/),
    });
  });
});

describe.concurrent('a migration that fails', () => {
  const BROKEN = `
    alter table catalog.skus add column half_done integer default 1;
--> statement-breakpoint
    delete from catalog.price_history;
--> statement-breakpoint
    alter table catalog.prices drop column no_such_column;`;

  test.for(STANDINGS)('half-way leaves %s as it was, and says where and why', async (as, context) => {
    const { expect, onTestFinished } = context;
    await using stack = await standing(as);
    const { sql } = stack;
    const before = { all: await everything(sql), applied: await applied(sql) };
    const folder = await later(onTestFinished, BROKEN);
    const failed = await migrateDatabase(stack.databaseUrl, { folder }).catch((error: unknown) => error);
    expect(failed).toMatchObject({
      kind: 'migration-failed',
      message: expect.stringContaining('in 9999_next'),
      hint: expect.any(String),
      cause: { message: expect.stringContaining('no_such_column') },
    });
    expect({ all: await everything(sql), applied: await applied(sql) }).toEqual(before);
    await migrateDatabase(stack.databaseUrl, { folder: await later(onTestFinished) });
    expect(await applied(sql)).toBe(ALL + 1);
  });

  test.for(STANDINGS)(
    'because its connection is killed leaves %s as it was, and the next start succeeds',
    async (as, { expect, onTestFinished }) => {
      await using stack = await standing(as);
      const { sql } = stack;
      const before = { all: await everything(sql), applied: await applied(sql) };
      const folder = await later(onTestFinished, 'select pg_sleep(60)');
      const failing = migrateDatabase(stack.databaseUrl, { folder }).catch((error: unknown) => error);
      await eventually(
        async () => {
          const killed = await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name = 'catalog-mirror migrate' and wait_event = 'PgSleep'`;
          return killed.length > 0;
        },
        { what: 'the migration to be under way' },
      );
      expect(await failing).toMatchObject({ kind: 'migration-failed' });
      expect({ all: await everything(sql), applied: await applied(sql) }).toEqual(before);
      await stack.once();
      expect(await applied(sql)).toBe(ALL);
      await expectHistoryIsAChain(sql);
    },
  );

  test('because another session keeps a table locked gives up in time, and the next migration succeeds', async ({
    expect,
    onTestFinished,
  }) => {
    await using stack = await standing('a filled mirror');
    const { sql } = stack;
    const folder = await later(onTestFinished);
    const before = await everything(sql);
    await sql.begin(async (tx) => {
      // A slow machine migrates for longer than sessions of the mirror may be idle here.
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await tx`lock table catalog.skus in access share mode`;
      const failed = await migrateDatabase(stack.databaseUrl, { folder, lockTimeoutMs: 200 }).catch(
        (error: unknown) => error,
      );
      expect(failed).toMatchObject({
        kind: 'migration-failed',
        message: expect.stringContaining('in 9999_next'),
        cause: { message: expect.stringContaining('lock timeout') },
      });
    });
    expect(await everything(sql)).toEqual(before);
    await migrateDatabase(stack.databaseUrl, { folder });
    expect(await applied(sql)).toBe(ALL + 1);
  });

  test('makes run and migrate say so and exit 1', async ({ expect }) => {
    await using stack = await standing('an empty database');
    // An administrator forbids the creation of views.
    await stack.sql.unsafe(`
      create function public.no_views() returns event_trigger language plpgsql as $$ begin raise exception 'no views here'; end $$;
      create event trigger no_views on ddl_command_start when tag in ('CREATE VIEW') execute function public.no_views()`);
    const ran = await Promise.all(['run', 'migrate'].map((command) => runProgram([command], stack.env)));
    for (const { code, stderr } of ran)
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(/migrating the database failed in 0000_baseline.*\n.*no views here/),
      });
    expect(await applied(stack.sql)).toBe(0);
  });
});
