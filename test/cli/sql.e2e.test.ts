import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { tableOf } from '../../src/cli/terminal.ts';
import { NODE_FLAGS } from '../../src/launch.ts';
import { pauseRequests, resumeRequests } from '../../src/store/sellers/pause.ts';
import { eventually, pause } from '../support/eventually.ts';
import { holds, runProgram, startProgram } from '../support/process.ts';
import { createStack, type Stack } from '../support/stack.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

let stack: Stack;
beforeAll(async () => {
  stack = await createStack({ sandbox: { skus: 30, liveShare: 0, ghostShare: 0, seed: 62 } });
  await stack.once();
});
afterAll(() => stack[Symbol.asyncDispose]());

const sql = (...args: string[]) => runProgram(['sql', ...args], { DATABASE_URL: stack.databaseUrl });

test('shows rows below their column names, and how many there are', async () => {
  const { code, stdout, stderr } = await sql(
    "select sku, state from catalog.skus where sku = 'DD1391-100' union all select 'none', null",
  );
  expect({ code, stderr, stdout }).toEqual({
    code: 0,
    stderr: '',
    stdout: 'sku         state\n----------  ------\nDD1391-100  priced\nnone\n(2 rows)',
  });
  expect((await sql('select 1 where false')).stdout).toBe('(0 rows)');
});

test('numbers in arrays and in JSON keep all their digits', async () => {
  const big = '12345678901234567890';
  expect(
    (
      await sql(
        '--json',
        `select array[1::bigint, null, 9007199254740993] a, array[[1.5, 2.50]] n, '{"x": [${big}, 1.0, -2e3]}'::jsonb j, '${big}'::json k`,
      )
    ).stdout,
  ).toBe(`{"a":[1,null,"9007199254740993"],"n":[[1.5,2.5]],"j":{"x":["${big}",1,-2000]},"k":"${big}"}`);
  expect((await sql(`select '{"x": ${big}}'::jsonb as j`)).stdout).toContain(big);
});

test('an empty query returns at once', async () => {
  for (const query of [';', '/* x */', '  -- x'])
    expect(await sql(query)).toMatchObject({ code: 0, stdout: '(0 rows)' });
  expect(await sql('--json', ';')).toMatchObject({ code: 0, stdout: '' });
});

test('EXPLAIN and SHOW return rows, and a statement without rows says so', async () => {
  expect((await sql('/* why */ EXPLAIN (COSTS OFF) SELECT 1')).stdout).toBe(
    'QUERY PLAN\n----------\nResult\n(1 row)',
  );
  expect((await sql('--json', 'SHOW "TimeZone"')).stdout).toMatch(/^{"TimeZone":".+"}$/);
  expect((await sql("SET work_mem = '1MB'")).stdout).toBe('(0 rows)');
  expect((await sql('EXPLAIN ANALYZE DELETE FROM catalog.skus')).stderr).toContain('this command only reads');
});

test('--json prints one object per row, for all rows', async () => {
  const { code, stdout } = await sql('--json', 'select g as n from generate_series(1, 2500) g');
  const rows = stdout.split('\n').map((line) => JSON.parse(line) as { n: number });
  expect([code, rows.length, rows.at(-1)]).toEqual([0, 2500, { n: 2500 }]);
  expect((await sql('select g as n from generate_series(1, 2500) g')).stdout).toMatch(
    /\n1000\n\(1000 rows\)\nonly the first 1000 rows are shown: use LIMIT and OFFSET, or --json$/,
  );
});

describe('a reader that starts late', () => {
  const KB = "select g as n, repeat('x', 1000) as x from generate_series(1, 20000) g";
  /** Starts the program and reads nothing of its output. */
  function unread(...args: string[]) {
    const child = spawn(process.execPath, [...NODE_FLAGS, '--', MAIN, 'sql', ...args], {
      env: { PATH: process.env['PATH'], DATABASE_URL: stack.databaseUrl },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    return { child, exited: once(child, 'exit').then(([code]) => code as number | null) };
  }
  /**
   * Waits until the program's session has been idle for longer than the program waits at its end, or the program
   * is over.
   */
  const waits = (child: ChildProcess) =>
    eventually(
      async () =>
        child.exitCode !== null ||
        (await holds(
          stack.sql,
          `exists (select from pg_stat_activity where datname = current_database() and query like '%repeat(''x'', 1000)%'
            and pid <> pg_backend_pid() and clock_timestamp() - query_start > interval '3 s')`,
        )),
      { what: 'the wait for the reader' },
    );

  test('gets all rows, and no more are fetched than it reads', async () => {
    const { child, exited } = unread('--json', KB);
    await waits(child);
    let lines = 0;
    for await (const chunk of child.stdout) lines += String(chunk).split('\n').length - 1;
    expect([lines, await exited]).toEqual([20_000, 0]);
  });

  test('gets all that was printed at once, although the program is otherwise done', async () => {
    const { child, exited } = unread("select repeat('x', 1000) as x from generate_series(1, 999)");
    await once(child.stdout, 'readable');
    // Longer than the program waits at its end for open output.
    await Promise.race([exited, pause(3000)]);
    let lines = 0;
    for await (const chunk of child.stdout) lines += String(chunk).split('\n').length - 1;
    expect([lines, await exited]).toEqual([1002, 0]);
  });

  test('does not keep a signal from ending the program', async () => {
    const { child, exited } = unread('--json', KB);
    await waits(child);
    child.kill('SIGTERM');
    expect(await exited).toBe(1);
  });
});

test('Ctrl-C also cancels the query', async () => {
  const runs =
    "exists (select from pg_stat_activity where query = 'select pg_sleep(500)' and state = 'active')";
  await using program = startProgram(['sql', 'select pg_sleep(500)'], { DATABASE_URL: stack.databaseUrl });
  await eventually(() => holds(stack.sql, runs), { what: 'the query' });
  expect(await program.end('SIGINT')).toMatchObject({ code: 1 });
  expect(program.stderr).toEqual(['stopped: not all rows were printed']);
  await eventually(async () => !(await holds(stack.sql, runs)), { what: 'its end' });
});

test.each([
  ['delete from catalog.skus', 'this command only reads'],
  ["select catalog.take_request('x')", 'this command only reads'],
  ['select 1; drop schema catalog cascade', 'cannot insert multiple commands'],
  ['select * from catalog.no_such_table', 'relation "catalog.no_such_table" does not exist'],
])('rejects a query that writes, and a second statement: %s', async (query, said) => {
  const skus = async () => (await stack.sql`select from catalog.skus`).length;
  const before = await skus();
  const { code, stderr } = await sql(query);
  expect(code).toBe(1);
  expect(stderr).toContain(said);
  expect(stderr).not.toContain('no tables yet');
  expect(await skus()).toBe(before);
});

test.each(['copy (select 1) to stdout', '/* all */ -- of it\n COPY catalog.skus TO STDOUT'])(
  'rejects COPY: %s',
  async (query) => {
    expect(await sql(query)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining('catalog-mirror export'),
    });
  },
);

test('copes with many comments before a query', async () => {
  expect((await sql(`${'/**/'.repeat(60)}select 7 as n`)).stdout).toBe('n\n-\n7\n(1 row)');
});

test('shows every column that shares a name, and --json rejects such a query', async () => {
  expect((await sql('select 1 as a, 2 as a, 3 as b')).stdout).toMatch(/^a {2}a {2}b\n.*\n1 {2}2 {2}3\n/);
  expect(await sql('--json', 'select 1 as a, 2 as a')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('two columns have the name a'),
  });
});

test('--json writes numbers as numbers if exact, else as text; a table writes them as Postgres does', async () => {
  const query = `select count(*) as n, 1.50 as x, 0.0000001 as tiny, -2.000 as whole, 9007199254740991::bigint as most,
    9007199254740993::bigint as big, -9007199254740993::bigint as least, 0.12345678901234567890 as long, 'NaN'::numeric as nan,
    'infinity'::numeric as endless from catalog.skus where false`;
  expect(JSON.parse((await sql('--json', query)).stdout)).toEqual({
    n: 0,
    x: 1.5,
    tiny: 1e-7,
    whole: -2,
    most: 9007199254740991,
    big: '9007199254740993',
    least: '-9007199254740993',
    long: '0.12345678901234567890',
    nan: 'NaN',
    endless: 'Infinity',
  });
  expect((await sql('select 1.50 as x, 9007199254740993::bigint as big')).stdout).toContain(
    '1.50  9007199254740993',
  );
});

test('dates, timestamps and infinity do not depend on the time zone of the process', async () => {
  const query = `select date '2026-11-21' as day, timestamp '2026-11-21 20:00' as there, 'infinity'::timestamptz as until,
    '2026-11-21 20:00+00'::timestamptz as at`;
  const env = { DATABASE_URL: stack.databaseUrl, TZ: 'Asia/Bangkok' };
  expect(JSON.parse((await runProgram(['sql', '--json', query], env)).stdout)).toEqual({
    day: '2026-11-21',
    there: '2026-11-21 20:00:00',
    until: 'infinity',
    at: '2026-11-21T20:00:00.000Z',
  });
  expect((await runProgram(['sql', query], env)).stdout).toMatch(
    /2026-11-21 {2}2026-11-21 20:00:00 {2}infinity {2}2026-11-21T20:00:00\.000Z/,
  );
});

test('a pause without an end is shown as infinity', async () => {
  await pauseRequests(stack.sql, { forMs: null, by: 'somebody' });
  expect((await sql('--json', 'select * from catalog.sync_status')).stdout).toContain(
    '"paused_until":"infinity"',
  );
  await resumeRequests(stack.sql, 'somebody');
});

test.each([[[]], [['']], [['select', '1']]])('expects one query, in quotes: %j', async (args) => {
  expect(await sql(...args)).toMatchObject({ code: 78, stderr: expect.stringContaining('in quotes') });
});

describe('a table', () => {
  const rows = [{ name: 'long enough', at: new Date(0), more: { a: 1 }, none: null }];

  test('that is wider than the terminal uses a line per column', () => {
    expect(tableOf(rows, 40)).toEqual([
      '- row 1',
      'name  long enough',
      'at    1970-01-01T00:00:00.000Z',
      'more  {"a":1}',
      'none',
    ]);
    expect(tableOf(rows, 60)[2]).toBe('long enough  1970-01-01T00:00:00.000Z  {"a":1}');
    expect(tableOf(rows, null)).toHaveLength(3);
  });

  test('contains nothing that a terminal takes for a command', () => {
    // oxlint-disable-next-line no-control-regex
    expect(tableOf([{ '\u001b[2J': '\u001b]0;x\u0007' }], null).join('')).not.toMatch(/[\u001b\u0007]/);
  });
});
