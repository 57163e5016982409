import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forgetDriverVariables } from '../../src/own-environment.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { runProgram } from '../support/process.ts';

/**
 * Variables that the Postgres drivers read; each driver reads some of libpq's, and some that libpq does not have.
 */
const THEIRS = {
  PGTARGETSESSIONATTRS: 'standby',
  PGSSLNEGOTIATION: 'direct',
  PGOPTIONS: '-c statement_timeout=1',
  PGMAX_LIFETIME: '1',
  PGREPLICATION: 'database',
  PGAPPNAME: 'psql',
  NODE_PG_FORCE_NATIVE: '1',
};

let database: TestDatabase;
let env: { readonly DATABASE_URL: string };
beforeAll(async () => {
  database = await createDatabase('migrated');
  env = { DATABASE_URL: database.url };
});
afterAll(() => database.drop());

describe('variables of the drivers of Postgres', () => {
  test.each([
    ...Object.entries(THEIRS),
    ['PGTARGETSESSIONATTRS', 'any'],
    ['PGTARGETSESSIONATTRS', 'prefer-standby'],
  ])('%s=%s changes nothing', async (name, value) => {
    const asked = await runProgram(['sql', 'SELECT 1 AS one'], { ...env, [name]: value });
    expect(asked).toMatchObject({ code: 0, stderr: '' });
    // Uses both drivers.
    expect(await runProgram(['migrate'], { ...env, [name]: value })).toMatchObject({ code: 0 });
  });

  test('do not affect a command that needs no database either', async () => {
    expect(await runProgram(['--version'], THEIRS)).toMatchObject({ code: 0, stderr: '' });
  });

  test('supply what DATABASE_URL leaves out', async () => {
    const { hostname, port, username, password, pathname } = new URL(database.url);
    const PG = {
      PGHOST: hostname,
      PGPORT: port,
      PGUSER: decodeURIComponent(username),
      PGPASSWORD: decodeURIComponent(password),
    };
    const asked = await runProgram(['migrate'], { DATABASE_URL: `postgres://${pathname}`, ...PG });
    expect(asked).toMatchObject({ code: 0 });
  });

  test('are forgotten, except for those of other programs', () => {
    const kept = { PATH: '/bin', DATABASE_URL: 'postgres://h/d', PGHOST: 'h', PGPORT: '1', PGPASSWORD: 'p' };
    const all: NodeJS.ProcessEnv = { ...kept, ...THEIRS };
    forgetDriverVariables(all);
    expect(all).toEqual(kept);
  });
});
