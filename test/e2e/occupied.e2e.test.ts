import { expect, test } from 'vitest';
import { runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';

test('every command refuses a database whose schema catalog belongs to another application, and changes nothing', async () => {
  await using stack = await createStack({ backend: 'postgres', database: 'empty', sandbox: { skus: 5 } });
  const { sql, env, sandbox } = stack;
  await sql.unsafe(`
    create schema catalog;
    create table catalog.products (id int primary key, title text);
    create table catalog.skus (code text primary key);
    insert into catalog.skus values ('shirt-1');`);
  const seen = async () =>
    await sql`select oid, relname, relnamespace, relfilenode from pg_class where oid > 16383 order by oid`;
  const before = await seen();
  for (const args of [['migrate'], ['run', '--once'], ['run']]) {
    const { code, stdout, stderr } = await runProgram(args, env);
    expect({ args, code, stdout }).toEqual({ args, code: 78, stdout: '' });
    expect(stderr).toMatch(
      /^nothing was made or changed in the database:\n {2}the schema catalog belongs to \S+ and has table catalog\.products, table catalog\.skus$/m,
    );
    expect(stderr).toMatch(/^ {2}what to do: give the mirror a database of its own/m);
  }
  const doctor = await runProgram(['doctor', '--json'], env);
  expect(doctor.code).toBe(1);
  const { checks } = JSON.parse(doctor.stdout) as {
    checks: { check: string; level: string; text: string }[];
  };
  expect(checks).toContainEqual(
    expect.objectContaining({
      check: 'schemas',
      level: 'FAIL',
      text: expect.stringContaining('table catalog.skus') as string,
    }),
  );
  expect(checks.filter(({ check }) => check === 'postgres')).toMatchObject([{ level: 'OK' }]);
  expect(sandbox.counts('*')).toBe(0);
  expect(await seen()).toEqual(before);
  expect([...(await sql`select code from catalog.skus`)]).toEqual([{ code: 'shirt-1' }]);
});
