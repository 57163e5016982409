import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { countDaemons } from '../../src/store/setup/instance.ts';
import { eventually } from '../support/eventually.ts';
import { gateTo, through } from '../support/net.ts';
import { type Program, runProgram, startProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

let stack: Stack;
let env: Record<string, string>;

beforeAll(async () => {
  stack = await createStack({ sandbox: { skus: 60, liveShare: 0.1, ghostShare: 0, seed: 71 } });
  env = { DATABASE_URL: stack.databaseUrl };
});
afterAll(() => stack[Symbol.asyncDispose]());

async function headline(): Promise<[number | null, string]> {
  const { code, stdout, stderr } = await runProgram(['status'], env);
  expect(stderr).toBe('');
  return [code, stdout.split('\n')[0] ?? ''];
}

test('the exit code is 0 if healthy, 1 if degraded, and 2 on an empty mirror or when nothing moves', async () => {
  const { sql } = stack;
  expect((await runProgram(['migrate'], env)).code).toBe(0);
  expect(await headline()).toEqual([
    2,
    'broken: no baseline yet, and no daemon is running; start one with `catalog-mirror run`',
  ]);
  expect(await countDaemons(sql)).toBe(0);
  const daemons = [await stack.start(), await stack.start()];
  await stack.caughtUp();
  const json = await runProgram(['status', '--json'], env);
  expect([json.code, JSON.parse(json.stdout)]).toMatchObject([
    0,
    { state: 'healthy', reasons: [], daemons: 2 },
  ]);
  await Promise.all(daemons.map((daemon) => daemon.stop()));
  expect(await countDaemons(sql)).toBe(0);

  await sql`update catalog_internal.sync set catalog_fault = '0012'`;
  expect(await headline()).toEqual([
    1,
    expect.stringMatching(/^degraded: the catalog is stale; SKUs are refreshed by age; /),
  ]);
  await sql`update catalog_internal.sync set catalog_fault = null`;
  await sql`update catalog_internal.tasks set next_at = now() - interval '2 hours' where task = 'delta'`;
  expect(await headline()).toEqual([
    2,
    'broken: no daemon is running, the delta is overdue by 2.0h; start one with `catalog-mirror run`',
  ]);
  await sql`update catalog_internal.tasks set next_at = now() + interval '1 hour' where task = 'delta'`;
});

const looks = (program: Program) =>
  program.stdout.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as { state: string });

describe.concurrent('--watch', () => {
  test.each(['SIGINT', 'SIGTERM'] as const)(
    'refreshes again and again until %s ends it with exit code 0',
    async (signal) => {
      await using watching = startProgram(['status', '--json', '--watch', '0.1'], env);
      await eventually(() => looks(watching).length >= 3, { what: 'some refreshes' });
      expect(await watching.end(signal)).toMatchObject({ code: 0, signal: null });
      expect(watching.stderr).toEqual([]);
      expect(looks(watching).every((one) => one.state === 'healthy')).toBe(true);
    },
  );

  test('outlives a Postgres that goes away and comes back, and reports it meanwhile', async () => {
    await using gate = await gateTo(stack.databaseUrl);
    gate.open();
    await using watching = startProgram(['status', '--json', '--watch=0.1'], {
      DATABASE_URL: through(stack.databaseUrl, gate),
    });
    const last = () => looks(watching).at(-1)?.state;
    await eventually(() => last() === 'healthy', { what: 'a refresh' });
    gate.shut();
    await eventually(() => last() === 'broken', { what: 'the loss' });
    gate.open();
    await eventually(() => last() === 'healthy', { what: 'the return' });
    expect(await watching.end('SIGINT')).toMatchObject({ code: 0 });
  });

  test('accepts only seconds', async () => {
    for (const wrong of ['--watch=soon', '--watch=0']) {
      const { code, stderr } = await runProgram(['status', wrong], env);
      expect([wrong, code]).toEqual([wrong, 78]);
      expect(stderr).toContain('--watch: expected seconds');
    }
  });
});
