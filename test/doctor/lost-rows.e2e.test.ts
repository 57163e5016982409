import { expect, test } from 'vitest';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { runProgram } from '../support/process.ts';
import { createStack } from '../support/stack.ts';

test.each(['account', 'sync', 'tasks'])(
  'doctor says that the rows of %s are missing, and what recreates them',
  async (table) => {
    await using stack = await createStack({ backend: 'postgres', sandbox: { skus: 20, seed: 79 } });
    await migrateDatabase(String(stack.env['DATABASE_URL']));
    await stack.sql`delete from ${stack.sql(`catalog_internal.${table}`)}`;
    const { code, stdout } = await runProgram(['doctor', '--requests', '0'], stack.env);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      new RegExp(
        `^FAIL postgres .*gone: catalog_internal\\.${table}[^]*\`catalog-mirror migrate\` makes them anew`,
        'm',
      ),
    );
    await runProgram(['migrate'], stack.env);
    expect((await runProgram(['doctor', '--requests', '0'], stack.env)).code).toBe(0);
  },
);
