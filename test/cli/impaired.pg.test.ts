import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { examine } from '../../src/cli/doctor.ts';
import { connect } from '../../src/store/connection/db.ts';
import { migrateDatabase } from '../../src/store/setup/migrations.ts';
import { versionBefore } from '../migrations/support.ts';
import { dropRoles } from '../security/neighbours.ts';
import { createDatabase } from '../support/db.ts';
import { type GivenMirror, giveMirror } from '../support/given-mirror.ts';
import { advised, runHere } from '../support/run-here.ts';
import { settingsWith } from '../support/settings.ts';

/*
 * If a database is impaired, a command says what is wrong; doing what it prints, word for word, makes the next
 * attempt work or reveals the next problem.
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
  for (const statement of statements)
    await mirror.admin.unsafe(statement.replaceAll('mirror_role', mirror.role));
  return mirror;
}

const QUERY = ['sql', 'select sku from catalog.current_prices'];

describe("what was revoked from the mirror's role, and is given back by what a command prints", () => {
  test.each<[string, string, string[], RegExp]>([
    [
      'a view',
      'revoke select on catalog.current_prices from mirror_role',
      QUERY,
      /^the mirror's role lacks SELECT on catalog\.current_prices\n/,
    ],
    [
      'a table that was given to another role',
      'alter table catalog_internal.pause owner to postgres',
      ['pause'],
      /^the table catalog_internal\.pause belongs to postgres; the mirror's role lacks SELECT, INSERT/,
    ],
    [
      'the first of its tables, given to another role',
      'alter table catalog.skus owner to postgres',
      ['refresh', 'A1'],
      /^the table catalog\.skus belongs to postgres[^]*do: ALTER TABLE catalog\.skus OWNER TO/,
    ],
    [
      'a function that was given to another role',
      'alter function catalog.explain(text) owner to postgres',
      ['show', 'A1'],
      /^the function catalog\.explain\(.*\) belongs to postgres\n/,
    ],
    [
      'a function with the rights of its owner, that was given to a role without any',
      'alter function catalog.changes(bigint, integer) owner to catalog_watcher',
      ['follow', '--from', 'oldest', '--once'],
      /^the function catalog\.changes\(.*\) belongs to catalog_watcher/,
    ],
    [
      'a schema that was given to another role',
      'alter schema catalog_internal owner to postgres',
      ['resume'],
      /^the schema catalog_internal belongs to postgres/,
    ],
    [
      'the schema of the queues, whose sequences are looked at after a restore',
      'revoke usage on schema catalog_queue from mirror_role',
      ['refresh', 'NEW'],
      /^the mirror's role lacks USAGE on schema catalog_queue/,
    ],
    [
      'a schema and a table in it that were given to another role, to `migrate`, too',
      'alter table catalog_internal.call_size owner to postgres; alter schema catalog_internal owner to postgres',
      ['migrate'],
      /is not for this role to read\n/,
    ],
    [
      'many views',
      'revoke select on all tables in schema catalog from mirror_role',
      ['show', 'A1'],
      /, and privileges on \d+ more tables\n/,
    ],
  ])('%s', async (_what, statement, command, said) => {
    const mirror = await spoilt(statement);
    const [first] = await advised(mirror.admin, command, mirror.url);
    expect(first).toMatch(said);
  });

  test('a function that views call as their owner, even if a superuser asks', async () => {
    const mirror = await spoilt(
      'revoke execute on function catalog_internal.pause_holds(catalog_internal.pause) from mirror_role, public',
    );
    const [first] = await advised(mirror.admin, QUERY, mirror.adminUrl);
    expect(first).toContain(`TO "${mirror.role}"`);
  });
});

test('`migrate` names the privilege on the database that its role lacks', async () => {
  const mirror = await spoilt('drop schema catalog, catalog_internal, catalog_queue cascade');
  const name = new URL(mirror.url).pathname.slice(1);
  await mirror.admin.unsafe(`revoke create, temporary on database ${name} from ${mirror.role}, public`);
  const [first] = await advised(mirror.admin, ['migrate'], mirror.url);
  expect(first).toContain(
    `what to do: GRANT CREATE, TEMPORARY ON DATABASE "${name}" TO "${mirror.role}"\n`.trimEnd(),
  );
});

test('a role that may not connect gets the GRANT, with the real names', async () => {
  const mirror = await spoilt();
  const name = new URL(mirror.url).pathname.slice(1);
  await mirror.admin.unsafe(`revoke connect on database ${name} from public`);
  expect(await advised(mirror.admin, ['resume'], mirror.url)).toEqual([
    expect.stringContaining(`GRANT CONNECT ON DATABASE "${name}" TO "${mirror.role}"`),
  ]);
});

describe('a missing part of the mirror is reported as missing', () => {
  test.each<[string, string, string[], number, RegExp]>([
    [
      'a table',
      'drop table catalog_internal.pause cascade',
      ['pause'],
      1,
      /^this database has not all that the mirror/,
    ],
    [
      'a table, of which `migrate` makes none',
      'drop table catalog_internal.daily cascade',
      ['migrate'],
      1,
      /^this database has not all that the mirror[^]*from a backup/,
    ],
    [
      'all that the mirror goes by',
      'drop schema catalog_internal cascade',
      ['refresh', 'A1'],
      78,
      /the schema catalog is a mirror's, and what it goes by is gone[^]*from a backup/,
    ],
    [
      'the same, to `migrate`, which calls it nobody else’s',
      'drop schema catalog_internal cascade',
      ['migrate'],
      78,
      /the schema catalog is a mirror's[^]*from a backup/,
    ],
    [
      'the first row of what was applied, of which the others tell whose it is',
      'delete from catalog_internal.migrations where id = 1; drop table catalog_internal.pause cascade',
      ['pause'],
      1,
      /^this database has not all that the mirror/,
    ],
  ])('%s', async (_what, statement, command, code, said) => {
    const mirror = await spoilt(statement);
    const ran = await runHere(command, mirror.url);
    expect([ran.code, ran.stderr]).toEqual([code, expect.stringMatching(said)]);
    expect(ran.stderr).toContain('what to do: ');
  });

  test("a misspelt name in a user's query is not", async () => {
    const ran = await runHere(['sql', 'select 1 from catalog.nothing'], given.url);
    expect(ran).toMatchObject({ code: 1, stderr: 'relation "catalog.nothing" does not exist' });
  });
});

test('tables of another application are reported as such, not as an earlier version', async () => {
  const mirror = await spoilt(
    'drop schema catalog, catalog_internal, catalog_queue cascade',
    'create schema catalog; create table catalog.skus (code text); create table catalog.products ()',
  );
  for (const command of [['status'], ['show', 'A'], ['refresh', '--all'], QUERY]) {
    const ran = await runHere(command, mirror.url);
    expect([command, ran.code, ran.stderr]).toEqual([
      command,
      78,
      expect.stringMatching(/the schema catalog belongs to postgres and has table catalog\.products/),
    ]);
  }
});

describe('a reader', () => {
  const reader = () => `${given.role}_reader`;
  beforeAll(async () => {
    const admin = connect(given.adminUrl, { max: 1 });
    await admin.unsafe(`create role ${reader()} login password 'x' in role catalog_reader`);
    await admin.end({ timeout: 1 });
  });
  afterAll(() => dropRoles(reader()));

  test('whose privileges a dump did not carry over is told who grants them', async () => {
    const mirror = await spoilt(
      'revoke all on schema catalog from catalog_reader',
      'revoke all on all tables in schema catalog from catalog_reader',
    );
    const url = mirror.as(reader());
    const before = await runHere(QUERY, url);
    expect(before).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(/^catalog_reader lacks privileges/),
    });
    expect(await runHere(['migrate'], mirror.url)).toMatchObject({ code: 0 });
    expect(await runHere(QUERY, url)).toMatchObject({ code: 0 });
  });

  test("does not take a database of another version for another application's", async () => {
    const database = await createDatabase('empty');
    onTestFinished(() => database.drop());
    const folder = temporaryFolder();
    await migrateDatabase(database.url, { folder: versionBefore(folder, '0020_p_right') });
    const url = Object.assign(new URL(database.url), { username: reader(), password: 'x' }).href;
    expect(await runHere(['show', 'A'], url)).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(/^the database is of another version, or somebody has dropped/),
    });
  });

  test('cannot export tables with hidden rows, and is warned that a query may miss rows', async () => {
    const mirror = await spoilt(
      'alter table catalog.products enable row level security',
      'create policy mine on catalog.products for select to mirror_role using (true)',
    );
    const url = mirror.as(reader());
    const out = join(temporaryFolder(), 'products.parquet');
    const query = ['sql', 'select count(*) from catalog.products'];
    expect(await runHere(query, url)).toMatchObject({
      code: 0,
      stderr: 'row-level security may hide rows from this role: catalog.products\n',
    });
    expect(await advised(mirror.admin, ['export', '--what', 'products', '--out', out], url)).toEqual([
      expect.stringMatching(/^row-level security shows this role no row of catalog\.products\n/),
    ]);
    expect(await runHere(query, url)).toMatchObject({ code: 0, stderr: '' });
  });
});

test('rows that policies hide from the mirror itself are not reported as missing', async () => {
  const mirror = await spoilt(
    'alter table catalog.skus enable row level security; alter table catalog.skus force row level security',
    'alter table catalog_internal.sync enable row level security; alter table catalog_internal.sync force row level security',
  );
  for (const command of [['status'], ['refresh', '--all'], ['show', 'A1']])
    expect((await runHere(command, mirror.url)).stderr).toMatch(
      /^row-level security hides rows from the mirror/,
    );
  await advised(mirror.admin, ['show', 'A1'], mirror.url);
});

test("once a table is given back to the mirror's role, its policies hide nothing", async () => {
  const mirror = await spoilt(
    'alter table catalog_internal.pause enable row level security; alter table catalog_internal.pause owner to postgres',
    'grant all on catalog_internal.pause to mirror_role',
  );
  expect(await advised(mirror.admin, ['pause'], mirror.url)).toEqual([
    expect.stringContaining(`ALTER TABLE catalog_internal.pause OWNER TO "${mirror.role}"`),
  ]);
});

describe('doctor prints the statement that ends', () => {
  const failsOf = async (url: string) => {
    const { findings } = await examine(settingsWith({ DATABASE_URL: url }), 0);
    return findings.filter(({ level, check }) => level === 'FAIL' && check !== 'base url');
  };

  test.each(['role ROLE', 'database NAME', 'role ROLE in database NAME'])(
    'read-only transactions, set for: %s',
    async (where) => {
      const mirror = await spoilt();
      const name = new URL(mirror.url).pathname.slice(1);
      const at = where.replace('ROLE', mirror.role).replace('NAME', name);
      await mirror.admin.unsafe(`alter ${at} set default_transaction_read_only = on`);
      const [line, ...more] = await failsOf(mirror.url);
      expect([line?.check, more]).toEqual(['writes', []]);
      await mirror.admin.unsafe(line?.remedy ?? '');
      expect(await failsOf(mirror.url)).toEqual([]);
    },
  );

  test('a lack of CREATE on a schema, without which the history cannot continue', async () => {
    const mirror = await spoilt('revoke create on schema catalog_internal from mirror_role');
    const [line] = await failsOf(mirror.url);
    expect(line).toMatchObject({
      check: 'rights',
      text: expect.stringContaining('CREATE on schema catalog_internal'),
    });
    await mirror.admin.unsafe(line?.remedy ?? '');
    expect(await failsOf(mirror.url)).toEqual([]);
  });
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'impaired-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}
