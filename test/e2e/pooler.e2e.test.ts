import { describe, expect, test } from 'vitest';
import { refusingSettings, through } from '../support/net.ts';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { hasPgBouncer, pgBouncer } from '../support/pgbouncer.ts';
import { runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';

const OPTIONS = { ignore_startup_parameters: 'options' };
const nothingMade = async ({ sql }: Awaited<ReturnType<typeof createStack>>) =>
  expect([...(await sql`select nspname from pg_namespace where nspname like 'catalog%'`)]).toEqual([]);

describe.concurrent('through a pooler that accepts no settings', () => {
  test.each<[string, Record<string, string>]>([
    [
      'Amazon RDS Proxy',
      {
        S: 'FATAL',
        V: 'FATAL',
        C: '0A000',
        M: "Feature not supported: RDS Proxy currently doesn't support command-line options.",
      },
    ],
    ['Neon', { S: 'ERROR', C: 'XX000', M: 'unsupported startup parameter in options: search_path' }],
  ])(
    '%s: is reported with exit code 78 before anything is created',
    { timeout: 120_000 },
    async (_name, fields) => {
      await using stack = await createStack({ backend: 'postgres', database: 'empty', sandbox: { skus: 5 } });
      await using pooler = await refusingSettings(stack.databaseUrl, fields);
      const env = { ...stack.env, DATABASE_URL: through(stack.databaseUrl, pooler) };
      const said = expect.stringMatching(
        /rejects what a session starts with\n {2}because: .* options/,
      ) as string;
      const migrated = await runProgram(['migrate'], env);
      expect(migrated).toMatchObject({ code: 78, stderr: said });
      const run = await runProgram(['run', '--once'], env);
      expect(run).toMatchObject({ code: 78, stderr: said });
      expect(run.stdout).toContain('"event":"database.pooler"');
      const doctor = await runProgram(['doctor', '--requests', '0'], env);
      expect(doctor.code).toBe(1);
      expect(doctor.stdout).toContain('rejects what a session starts with');
      await nothingMade(stack);
    },
  );
});

describe.skipIf(!hasPgBouncer())('through PgBouncer', () => {
  test.each<[string, Record<string, string | number>, RegExp]>([
    ['transaction mode', { ...OPTIONS, pool_mode: 'transaction' }, /a pooler in transaction mode/],
    [
      'transaction mode with one connection to the server',
      { ...OPTIONS, pool_mode: 'transaction', default_pool_size: 1 },
      /a pooler in transaction mode/,
    ],
    [
      'transaction mode that takes each connection in turn',
      { ...OPTIONS, pool_mode: 'transaction', server_round_robin: 1, min_pool_size: 3 },
      /a pooler in transaction mode/,
    ],
    // If two statements in a row reach two processes, nothing more is checked: that happens in both modes.
    ['statement mode', { ...OPTIONS, pool_mode: 'statement' }, /a pooler in (?:statement|transaction) mode/],
    [
      'session mode that rejects the settings',
      { pool_mode: 'session' },
      /rejects what a session starts with/,
    ],
    ['session mode that drops the settings', { ...OPTIONS, pool_mode: 'session' }, /drops .*: search_path/],
  ])(
    '%s is reported with exit code 78 before anything is created',
    { timeout: 120_000 },
    async (_name, settings, said) => {
      await using stack = await createStack({ backend: 'postgres', database: 'empty', sandbox: { skus: 5 } });
      await using pooler = await pgBouncer(stack.databaseUrl, settings);
      const env = { ...stack.env, DATABASE_URL: pooler.url };
      for (const args of [['migrate'], ['run', '--once']]) {
        const { code, stderr } = await runProgram(args, env);
        expect({ args, code, stderr }).toMatchObject({
          args,
          code: 78,
          stderr: expect.stringMatching(said) as string,
        });
        expect(stderr).toContain('what to do: ');
      }
      const doctor = await runProgram(['doctor', '--requests', '0'], env);
      expect(doctor.code).toBe(1);
      expect(doctor.stdout).toMatch(said);
      await nothingMade(stack);
    },
  );

  test(
    'session mode works completely once the role has the settings: queues in Postgres',
    { timeout: 180_000 },
    async () => {
      await using stack = await createStack({
        backend: 'postgres',
        database: 'empty',
        sandbox: { skus: 120, seed: 9 },
      });
      const settings = { ...OPTIONS, pool_mode: 'session', default_pool_size: 40 };
      await using first = await pgBouncer(stack.databaseUrl, settings);
      const { stderr } = await runProgram(['migrate'], { ...stack.env, DATABASE_URL: first.url });
      const statements = /have the pooler reconnect: (.*)$/m.exec(stderr)?.[1]?.split('; ') ?? [];
      expect(statements.length).toBeGreaterThan(3);
      for (const statement of statements) await stack.sql.unsafe(statement);
      // Earlier sessions keep the settings that they started with.
      await using pooler = await pgBouncer(stack.databaseUrl, settings);
      const env = { ...stack.env, DATABASE_URL: pooler.url };
      const app = await stack.start({ DATABASE_URL: pooler.url });
      await stack.caughtUp();
      stack.sandbox.world.step(60);
      stack.sandbox.world.buildSnapshot();
      await app.wake('delta');
      await stack.everythingDue();
      await stack.caughtUp();
      await expectMirrorIsTrue(stack.sql, stack.sandbox.world);
      const doctor = await runProgram(['doctor', '--requests', '0'], env);
      expect(doctor.stdout).not.toContain('postgres pooler');
      await app.stop();
      expect(stack.logs.filter(({ level }) => level === 'error')).toEqual([]);
    },
  );
});
