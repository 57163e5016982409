import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { expectMirrorIsTrue } from '../support/oracle.ts';
import { runProgram } from '../support/process.ts';
import { backends, createStack, type Stack } from '../support/stack.ts';
import { dropRoles } from './neighbours.ts';
import { drawSettings, setTraps, sprung } from './traps.ts';

/**
 * Gives the database PostgreSQL 14's default rights, and creates a plain role for the mirror and one without a
 * grant.
 */
async function asPlainRole(stack: Stack) {
  const { sql } = stack;
  const name = randomBytes(6).toString('hex');
  const [owner, stranger] = [`owner_${name}`, `stranger_${name}`];
  const url = new URL(stack.databaseUrl);
  const database = url.pathname.slice(1);
  await sql.unsafe(`
    create role ${owner} login password 'of the owner';
    create role ${stranger};
    grant create on database ${database} to ${owner};
    grant create on schema public to public;
    alter role ${owner} in database ${database} set search_path = public`);
  url.username = owner;
  url.password = 'of the owner';
  return { owner, stranger, url: url.href };
}

test.for(backends())(
  'functions, operators and settings of others interfere with no statement: queues in %s',
  { timeout: 180_000 },
  async (backend) => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));
    const roles: string[] = [];
    onTestFinished(() => dropRoles(...roles));
    await using stack = await createStack({ backend, database: 'empty', sandbox: { skus: 150, seed: 3 } });
    const { sql, sandbox } = stack;
    const { owner, stranger, url } = await asPlainRole(stack);
    roles.push(owner, stranger);
    expect(await setTraps(sql, stranger)).toBeGreaterThan(5000);
    const [settings = []] = fc.sample(await drawSettings(sql, owner), { numRuns: 1, seed });
    expect(settings.length).toBeGreaterThan(50);
    for (const statement of settings) await sql.unsafe(statement);

    const app = await stack.start({ DATABASE_URL: url });
    await stack.caughtUp();
    sandbox.world.step(60);
    sandbox.world.buildSnapshot();
    await app.wake('delta');
    await stack.everythingDue();
    await stack.caughtUp();
    await expectMirrorIsTrue(sql, sandbox.world);
    const env = { ...stack.env, DATABASE_URL: url };
    const [sku] = await sql<[{ sku: string }]>`select sku from catalog.prices limit 1`;
    for (const args of [['refresh', sku.sku], ['refresh', '--all'], ['status'], ['plan'], ['migrate']]) {
      const { code, stdout, stderr } = await runProgram(args, env);
      expect({
        seed,
        args,
        code,
        stdout: code === 0 ? '' : stdout,
        stderr: code === 0 ? '' : stderr,
      }).toEqual({
        seed,
        args,
        code: 0,
        stdout: '',
        stderr: '',
      });
    }
    const { stdout } = await runProgram(['doctor', '--requests', '0'], env);
    expect(stdout).toMatch(/^OK +creators +others may create: PUBLIC in schema public;/m);
    await stack.caughtUp();
    expect(stack.logs.filter(({ level }) => level === 'error')).toEqual([]);
    expect(await sprung(sql)).toBe(0);
  },
);

test.for(['catalog', 'catalog_internal', 'catalog_queue'])(
  'a schema %s that another role owns is refused, and nothing is created in it',
  async (schema) => {
    const roles: string[] = [];
    onTestFinished(() => dropRoles(...roles));
    await using stack = await createStack({ backend: 'postgres', database: 'empty', sandbox: { skus: 5 } });
    const { sql } = stack;
    const { owner, stranger, url } = await asPlainRole(stack);
    roles.push(owner, stranger);
    await sql.unsafe(
      `create schema ${schema} authorization ${stranger}; grant all on schema ${schema} to public`,
    );
    const env = { ...stack.env, DATABASE_URL: url };
    for (const args of [['migrate'], ['run', '--once']]) {
      const { code, stdout, stderr } = await runProgram(args, env);
      expect({ args, code }).toEqual({ args, code: 78 });
      expect(stdout + stderr).toContain(`the schema ${schema} belongs to ${stranger} and is empty`);
    }
    const made = await sql`select relname from pg_class where relnamespace = ${schema}::regnamespace`;
    expect([...made]).toEqual([]);
    const { code, stdout } = await runProgram(['doctor', '--requests', '0'], env);
    expect(code).toBe(1);
    expect(stdout).toContain(`the schema ${schema} belongs to ${stranger}`);
  },
);
