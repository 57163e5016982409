import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { readPostgresFacts } from '../../src/cli/doctor/postgres-facts.ts';
import { connect } from '../../src/store/connection/db.ts';
import { type GivenMirror, spoiltCopy, writtenMirror } from '../support/given-mirror.ts';
import { advised, runHere } from '../support/run-here.ts';

/*
 * What Postgres grants to everybody and an administrator has closed is granted by what a command prints; what he has
 * closed besides is blamed for nothing.
 */

let given: GivenMirror;
beforeAll(async () => {
  given = await writtenMirror();
});
afterAll(() => given[Symbol.asyncDispose]());

const spoilt = (...statements: readonly string[]) => spoiltCopy(given, statements);

const ROLES_ASKED = 'revoke execute on function pg_has_role(oid, text) from public';

test.each<[string, string, string[], RegExp]>([
  ['a function', ROLES_ASKED, ['refresh', 'A1'], /EXECUTE on pg_catalog\.pg_has_role\(oid,text\)\n/],
  ['a function, to `migrate`', ROLES_ASKED, ['migrate'], /GRANT EXECUTE ON FUNCTION pg_catalog\.pg_has_role/],
  [
    'an aggregate and a view, to a query of the user',
    'revoke execute on function sum(double precision) from public; revoke select on pg_policy from public',
    ['sql', 'select sum(price::float8) from catalog.prices'],
    /GRANT EXECUTE ON FUNCTION pg_catalog\.sum\(.*\) TO .*; GRANT SELECT ON TABLE pg_catalog\.pg_policy TO/,
  ],
])('%s', async (_what, statement, command, said) => {
  const mirror = await spoilt(statement);
  expect(await advised(mirror.admin, command, mirror.url)).toEqual([expect.stringMatching(said)]);
});

test('where even that cannot be asked, who reads the message is told what to do with it', async () => {
  const mirror = await spoilt(
    `${ROLES_ASKED}; revoke execute on function has_function_privilege(oid, text) from public`,
  );
  const { code, stderr } = await runHere(['refresh', 'A1'], mirror.url);
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/permission denied[^]*do: as an administrator GRANT/),
  ]);
});

/** As an administrator who hardens a server does it: the mirror needs none of these. */
const HARDENED =
  'revoke execute on function lo_creat(integer), pg_sleep(double precision) from public; create table public.secret (sku text)';

test.each<[string, string[], string[], number, RegExp]>([
  [
    'somebody else’s table, to a query of the user',
    [],
    ['sql', 'select * from public.secret'],
    1,
    /^permission denied for table secret$/,
  ],
  [
    'what a trigger of the seller’s may not write',
    [
      `create function public.noted() returns trigger language plpgsql as $$ begin insert into public.secret values ('x'); return null; end $$`,
      'create trigger noted after update on catalog_internal.due execute function public.noted()',
    ],
    ['refresh', 'A1'],
    1,
    /permission denied for table secret[^]*do: as an administrator GRANT to the mirror's role what the message names/,
  ],
  [
    'what is closed itself',
    [],
    ['sql', 'select pg_sleep(0)'],
    1,
    /lacks what Postgres grants to everybody: EXECUTE on pg_catalog\.pg_sleep\(double precision\)/,
  ],
])(
  'where more is closed, it is not blamed for another refusal: %s',
  async (_what, spoil, command, exit, said) => {
    const mirror = await spoilt(HARDENED, ...spoil);
    const { code, stderr } = await runHere(command, mirror.url);
    expect([code, stderr]).toEqual([exit, expect.stringMatching(said)]);
  },
);

test('but what it grants to nobody is no lack of the mirror’s', async () => {
  const { code, stderr } = await runHere(['sql', "select pg_read_file('x')"], given.url);
  expect([code, stderr]).toEqual([1, 'permission denied for function pg_read_file']);
});

test('doctor judges Postgres without what it tells of locks, where that is closed', async () => {
  const mirror = await spoilt('revoke select on pg_locks from public');
  const sql = connect(mirror.url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 1 }));
  expect(await readPostgresFacts(sql, Date.now)).toMatchObject({ lockHolders: [] });
});
