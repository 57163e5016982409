import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { runProgram } from '../support/process.ts';
import { type Backend, backends, createStack, type Stack } from '../support/stack.ts';
import { expectWhole, untilWhole } from './harness.ts';

/** Removes the setting: the stack's own value is the smallest one allowed. */
const DEFAULT = { DATABASE_POOL_MAX: undefined };

/** Creates a role that may use the stack's database with at most this many connections, and drops it in the end. */
async function limitedRole(stack: Stack, most: number) {
  const url = new URL(stack.databaseUrl);
  const database = url.pathname.slice(1);
  const role = `limited_${randomBytes(4).toString('hex')}`;
  await stack.sql.unsafe(`create role ${role} login password 'few' connection limit ${most}`);
  await stack.sql.unsafe(`grant all on database ${database} to ${role}`);
  Object.assign(url, { username: role, password: 'few' });
  return {
    role,
    url: url.href,
    async [Symbol.asyncDispose]() {
      await stack.sql`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${role}`;
      await stack.sql.unsafe(`drop owned by ${role} cascade; drop role ${role}`);
    },
  };
}

const countOf = async (sql: Sql, role: string): Promise<number> => {
  const [{ n }] = await sql<[{ n: number }]>`
    select count(*)::int as n from pg_stat_activity where usename = ${role} and datname = current_database()`;
  return n;
};

/** Returns the most connections that a role had at once, polled continuously. */
async function mostConnections(stack: Stack, role: string, work: () => Promise<void>): Promise<number> {
  let most = 0;
  const over = new AbortController();
  const counter = connect(stack.databaseUrl, { max: 1 });
  const counting = async () => {
    while (!over.signal.aborted) most = Math.max(most, await countOf(counter, role));
  };
  const counted = counting();
  try {
    await work();
  } finally {
    over.abort();
    await counted;
    await counter.end({ timeout: 1 });
  }
  return most;
}

const cases = backends().flatMap((backend) => [undefined, '5'].map((setting) => [backend, setting] as const));

describe('the connections of a daemon', () => {
  test.concurrent.each(cases)(
    'with queues in %s and DATABASE_POOL_MAX %s never exceed it, from the start through a fill and under load',
    async (backend: Backend, setting) => {
      await using stack = await createStack({
        backend,
        database: 'empty',
        sandbox: { skus: 600, liveShare: 0.05, latencyMs: 20, seed: 151 },
        env: { DELTA_INTERVAL: '1s' },
      });
      const limit = Number(setting ?? 12);
      await using limited = await limitedRole(stack, limit);
      const env = { DATABASE_URL: limited.url, DATABASE_POOL_MAX: String(limit) };
      const most = await mostConnections(stack, limited.role, async () => {
        const app = await stack.start(env);
        await untilWhole(stack.sql, stack.sandbox.world);
        for (let round = 0; round < 3; round += 1) {
          await stack.everythingDue();
          await Promise.all([1, 2, 3, 4].map(() => fetch(`http://127.0.0.1:${app.httpPort}/metrics`)));
          await untilWhole(stack.sql, stack.sandbox.world);
        }
        await expectWhole(stack.sql, stack.sandbox.world);
        await app.stop();
      });
      expect(most).toBeLessThanOrEqual(limit);
      expect(most).toBeGreaterThan(2);
      const refused = stack.logs.filter((line) => JSON.stringify(line).includes('53300'));
      expect(refused).toEqual([]);
    },
  );

  test('may exceed the role’s limit: the start then says how many are needed, and which setting lowers that', async () => {
    await using stack = await createStack({ backend: 'postgres' });
    await using limited = await limitedRole(stack, 11);
    const ran = await runProgram(['run'], { ...stack.env, DATABASE_URL: limited.url, ...DEFAULT });
    expect(ran).toMatchObject({ code: 1 });
    expect(ran.stderr).toMatch(
      /one daemon opens up to 12 connections \(DATABASE_POOL_MAX\), and Postgres has 11/,
    );
    expect(ran.stderr).toMatch(/what to do: .*lower DATABASE_POOL_MAX, down to 5/);
  });

  test('may find no free one at the start, which then says so and how many are needed', async () => {
    await using stack = await createStack({ backend: 'postgres', database: 'empty' });
    await using limited = await limitedRole(stack, 12);
    const others = connect(limited.url, { max: 11 });
    await Promise.all(Array.from({ length: 11 }, () => others`select pg_sleep(0.2)`));
    const ran = await runProgram(['run'], { ...stack.env, DATABASE_URL: limited.url, ...DEFAULT });
    await others.end({ timeout: 1 });
    expect(ran).toMatchObject({ code: 1 });
    expect(ran.stderr).toMatch(
      /one daemon opens up to 12 connections \(DATABASE_POOL_MAX\), and Postgres has none left/,
    );
  });
});
