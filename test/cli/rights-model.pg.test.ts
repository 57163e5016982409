import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import {
  OWN_TABLES,
  OWN_VIEWS,
  readOwnRights,
  rightsRemedy,
  rightsText,
} from '../../src/store/setup/privileges.ts';
import { noForceOf, readHiddenRows } from '../../src/store/setup/row-security.ts';
import { type GivenMirror, giveMirror } from '../support/given-mirror.ts';
import { advised } from '../support/run-here.ts';
import { runs } from '../support/soak.ts';

/*
 * Whatever is revoked from the mirror's role, commands print what gives back the privileges they need: an
 * administrator who runs just that, repeatedly, gets them to work.
 */

let given: GivenMirror;
let functions: readonly string[];
beforeAll(async () => {
  given = await giveMirror();
  await given.admin`insert into catalog.skus (sku, in_manifest, state) values ('A1', true, 'not_found')`;
  const rows = await given.admin<{ name: string }[]>`
    select p.oid::regprocedure::text as name from pg_proc p join pg_namespace n on n.oid = pronamespace
    where nspname in ('catalog', 'catalog_internal') and prokind = 'f' order by 1`;
  functions = rows.map(({ name }) => name);
});
afterAll(() => given[Symbol.asyncDispose]());

const PRIVILEGES = fc.subarray(['select', 'insert', 'update', 'delete'], { minLength: 1 });
const SCHEMAS = fc.constantFrom('catalog', 'catalog_internal');
const TABLES = fc.constantFrom(...OWN_TABLES);

/** SQL that takes something away from the role. */
const taken = fc.oneof(
  fc.tuple(PRIVILEGES, TABLES).map(([which, table]) => `revoke ${which.join(', ')} on ${table} from ROLE`),
  fc
    .tuple(PRIVILEGES, SCHEMAS)
    .map(([which, schema]) => `revoke ${which.join(', ')} on all tables in schema ${schema} from ROLE`),
  fc.constantFrom(...OWN_VIEWS).map((view) => `revoke select on ${view} from ROLE`),
  fc
    .constantFrom('usage', 'update', 'select')
    .map((which) => `revoke ${which} on all sequences in schema catalog_internal from ROLE`),
  fc
    .nat()
    .map((n) => `revoke execute on function ${functions[n % functions.length] ?? ''} from ROLE, public`),
  fc.nat().map((n) => `alter function ${functions[n % functions.length] ?? ''} owner to postgres`),
  SCHEMAS.map((schema) => `revoke execute on all functions in schema ${schema} from ROLE, public`),
  fc
    .tuple(fc.constantFrom('usage', 'create', 'all'), SCHEMAS)
    .map(([which, schema]) => `revoke ${which} on schema ${schema} from ROLE`),
  fc
    .tuple(TABLES, fc.boolean())
    .map(
      ([table, granted]) =>
        `alter table ${table} owner to postgres${granted ? `; grant all on ${table} to ROLE` : ''}`,
    ),
  SCHEMAS.map((schema) => `alter schema ${schema} owner to postgres`),
  TABLES.map(
    (table) =>
      `alter table ${table} enable row level security; alter table ${table} force row level security`,
  ),
);

const command = fc.constantFrom(
  'show A1',
  'pause --for 1h',
  'resume',
  'refresh A1',
  'refresh --all',
  'refresh --manifest',
  'refresh --accept',
  'follow --list',
  'migrate',
);

/** Maximal number of attempts of a command: some problems show only after others are solved. */
const MOST = 4;

test('doing what a command prints, word for word, makes it work in the end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(taken, { minLength: 1, maxLength: 3 }), command, async (all, line) => {
      for (const one of all) await given.admin.unsafe(one.replaceAll('ROLE', given.role));
      const said = await advised(given.admin, line.split(' '), given.url);
      expect(said.length).toBeLessThanOrEqual(MOST);
      await restore();
    }),
    { numRuns: runs(12, 150), endOnFailure: true },
  );
}, 300_000);

/** Gives back the rest, which the command did not need, by what doctor would print. */
async function restore(): Promise<void> {
  const sql = connect(given.url, { max: 1 });
  try {
    for (let most = MOST; most > 0; most -= 1) {
      const rights = await readOwnRights(sql);
      const hidden = (await readHiddenRows(sql, OWN_TABLES, true)).map(({ table }) => table);
      if (rightsText(rights) === null && hidden.length === 0) return;
      await given.admin.unsafe(`${rightsRemedy(rights, given.role)}; ${noForceOf(hidden)}`);
    }
    expect(await readOwnRights(sql)).toMatchObject({ lacking: [], misowned: [] });
  } finally {
    await sql.end({ timeout: 1 });
  }
}
