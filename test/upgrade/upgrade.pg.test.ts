import { describe, test } from 'vitest';
import { migrateDatabase, type Sql } from '../../src/store/db.ts';
import { expectHistoryIsAChain, expectMirrorIsTrue } from '../support/oracle.ts';
import { moveMarket } from '../support/market.ts';
import { runProgram, temporaryFolder, until } from '../support/process.ts';
import { createStack } from '../support/stack.ts';
import { ALL, fillFormer, fillRunning, migrationsIn, rowsOf, schemaOf } from './former.ts';

const SANDBOX = { skus: 120, ghostShare: 0.02, mislistedShare: 0.02 };

/** A database as the version with the first `count` migrations left it. */
async function formerStack(count: number, onEnd: Parameters<typeof temporaryFolder>[0]) {
  const stack = await createStack({ sandbox: SANDBOX, database: 'empty' });
  await migrateDatabase(stack.databaseUrl, { folder: migrationsIn(await temporaryFolder(onEnd), count) });
  await fillFormer(stack.sql, stack.sandbox.world);
  if (count > 1) await fillRunning(stack.sql, stack.sandbox.world);
  return stack;
}

interface Kept {
  readonly history: { id: string }[];
  readonly corrections: { id: string }[];
  readonly firstSeen: { sku: string }[];
  readonly watched: { sku: string }[];
}

/** Rows that no upgrade and no daemon may touch. */
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
    watched: await sql`select * from catalog.watchlist order by sku`,
  };
}

describe.concurrent('an upgrade under a backlog', () => {
  for (let count = 1; count < ALL; count += 1) {
    test(`from the first ${count} migrations: two daemons start at once, rows stay, the backlog is worked off`, async ({
      expect,
      onTestFinished,
    }) => {
      await using stack = await formerStack(count, onTestFinished);
      const { sql, sandbox } = stack;
      const before = await kept(sql);
      moveMarket(sandbox.world, 0);
      const apps = await Promise.all([stack.start(), stack.start()]);
      expect(apps).toHaveLength(2);
      await stack.caughtUp();
      expect(await kept(sql, before)).toEqual(before);
      const migrations = await sql`select from catalog_internal.migrations`;
      expect(migrations).toHaveLength(ALL);
      await stack.everythingDue();
      await stack.caughtUp();
      await expectMirrorIsTrue(sql, sandbox.world);
      await expectHistoryIsAChain(sql);
    });
  }

  test('replicas that migrate at the same moment do it once', async ({ expect, onTestFinished }) => {
    await using stack = await formerStack(2, onTestFinished);
    await Promise.all(Array.from({ length: 4 }, () => migrateDatabase(stack.databaseUrl)));
    expect(await stack.sql`select from catalog_internal.migrations`).toHaveLength(ALL);
  });
});

describe.concurrent('a migration that fails', () => {
  const BROKEN = `
    alter table catalog.skus add column half_done integer default 1;
--> statement-breakpoint
    delete from catalog.price_history;
--> statement-breakpoint
    alter table catalog.prices drop column no_such_column;`;

  test('half-way leaves schema and rows as they were, and says where and why', async ({
    expect,
    onTestFinished,
  }) => {
    await using stack = await formerStack(3, onTestFinished);
    const before = { rows: await rowsOf(stack.sql), schema: await schemaOf(stack.sql) };
    const folder = migrationsIn(await temporaryFolder(onTestFinished), ALL, BROKEN);
    const failed = await migrateDatabase(stack.databaseUrl, { folder }).catch((error: unknown) => error);
    expect(failed).toMatchObject({
      kind: 'migration-failed',
      message: expect.stringContaining('in 9999_next'),
      hint: expect.any(String),
      cause: { message: expect.stringContaining('no_such_column') },
    });
    expect({ rows: await rowsOf(stack.sql), schema: await schemaOf(stack.sql) }).toEqual(before);
    await migrateDatabase(stack.databaseUrl);
    expect(await stack.sql`select from catalog_internal.migrations`).toHaveLength(ALL);
  });

  test('because its connection is killed leaves everything as it was, and the next start succeeds', async ({
    expect,
    onTestFinished,
  }) => {
    await using stack = await formerStack(3, onTestFinished);
    const { sql } = stack;
    const before = { rows: await rowsOf(sql), schema: await schemaOf(sql) };
    const folder = migrationsIn(await temporaryFolder(onTestFinished), ALL, 'select pg_sleep(60)');
    const failing = migrateDatabase(stack.databaseUrl, { folder }).catch((error: unknown) => error);
    await until('the migration to be under way', async () => {
      const killed = await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name = 'catalog-mirror migrate' and wait_event = 'PgSleep'`;
      return killed.length > 0;
    });
    expect(await failing).toMatchObject({ kind: 'migration-failed' });
    expect({ rows: await rowsOf(sql), schema: await schemaOf(sql) }).toEqual(before);
    await stack.once();
    await expectHistoryIsAChain(sql);
  });

  test('because another session keeps a table locked gives up in time, and the next start succeeds', async ({
    expect,
    onTestFinished,
  }) => {
    await using stack = await formerStack(3, onTestFinished);
    const { sql } = stack;
    const before = { rows: await rowsOf(sql), schema: await schemaOf(sql) };
    await sql.begin(async (tx) => {
      await tx`lock table catalog.skus in access share mode`;
      const failed = await migrateDatabase(stack.databaseUrl, { lockTimeoutMs: 200 }).catch(
        (error: unknown) => error,
      );
      expect(failed).toMatchObject({
        kind: 'migration-failed',
        message: expect.stringContaining('in 0005_incident_audit_rank'),
        cause: { message: expect.stringContaining('lock timeout') },
      });
    });
    expect({ rows: await rowsOf(sql), schema: await schemaOf(sql) }).toEqual(before);
    await migrateDatabase(stack.databaseUrl);
    expect(await sql`select from catalog_internal.migrations`).toHaveLength(ALL);
  });

  test('makes the program say so and exit 1', async ({ expect, onTestFinished }) => {
    await using stack = await formerStack(3, onTestFinished);
    // Somebody has made by hand what the migration is about to make.
    await stack.sql`create table catalog_internal.delta_audit (id integer)`;
    const ran = await Promise.all(['run', 'migrate'].map((command) => runProgram([command], stack.env)));
    for (const { code, stderr } of ran) {
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(
          /migrating the database failed in 0005_incident_audit_rank.*\n.*delta_audit.*already exists/,
        ),
      });
    }
  });
});

describe.concurrent('a database that a later version has migrated', () => {
  test('is refused by run, migrate and doctor, and left as it is', async ({ expect, onTestFinished }) => {
    await using stack = await createStack({ sandbox: SANDBOX, database: 'empty' });
    const folder = migrationsIn(
      await temporaryFolder(onTestFinished),
      ALL,
      'alter table catalog_internal.due add column must_be_given integer not null',
    );
    await migrateDatabase(stack.databaseUrl, { folder });
    const before = { rows: await rowsOf(stack.sql), schema: await schemaOf(stack.sql) };
    const ran = await Promise.all(['run', 'migrate'].map((command) => runProgram([command], stack.env)));
    for (const { code, stderr } of ran) {
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(/migrated by a later version.*\n.*what to do: run that version/),
      });
    }
    expect({ rows: await rowsOf(stack.sql), schema: await schemaOf(stack.sql) }).toEqual(before);
    const doctor = await runProgram(['doctor'], stack.env);
    expect(doctor).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/FAIL.*migrations.*later version/),
    });
  });
});
