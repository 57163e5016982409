import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type GivenMirror, giveMirror } from '../support/given-mirror.ts';
import { advised, runHere } from '../support/run-here.ts';

/*
 * If an administrator has revoked what Postgres grants to everybody, a command prints the GRANT that it needs;
 * what else he has revoked is not blamed.
 */

let given: GivenMirror;
beforeAll(async () => {
  given = await giveMirror();
  await given.admin`insert into catalog.skus (sku, in_manifest, state) values ('A1', true, 'not_found')`;
  // Makes it a mirror that was written to: its copies check all sequences before their first write.
  await given.admin`select catalog_internal.lock_changes()`;
  // A database that is copied must have no connections.
  await given.admin.end({ timeout: 1 });
});
afterAll(() => given[Symbol.asyncDispose]());

/** Returns a copy of the mirror, impaired by these statements. */
async function spoilt(...statements: readonly string[]): Promise<GivenMirror> {
  const mirror = await giveMirror(given);
  onTestFinished(() => mirror[Symbol.asyncDispose]());
  for (const statement of statements) await mirror.admin.unsafe(statement);
  return mirror;
}

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

test('if not even the privilege can be looked up, the message says what to do', async () => {
  const mirror = await spoilt(
    `${ROLES_ASKED}; revoke execute on function has_function_privilege(oid, text) from public`,
  );
  const { code, stderr } = await runHere(['refresh', 'A1'], mirror.url);
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/permission denied[^]*do: as an administrator GRANT/),
  ]);
});

/** The statements of an administrator who hardens a server; the mirror needs none of what they revoke. */
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
  'other revoked privileges are not blamed for a rejected statement: %s',
  async (_what, spoil, command, exit, said) => {
    const mirror = await spoilt(HARDENED, ...spoil);
    const { code, stderr } = await runHere(command, mirror.url);
    expect([code, stderr]).toEqual([exit, expect.stringMatching(said)]);
  },
);

test('a function that Postgres grants to nobody is not reported as lacking', async () => {
  const { code, stderr } = await runHere(['sql', "select pg_read_file('x')"], given.url);
  expect([code, stderr]).toEqual([1, 'permission denied for function pg_read_file']);
});
