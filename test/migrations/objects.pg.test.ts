import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql, type Tx } from '../../src/store/connection/db.ts';
import { MIGRATIONS } from '../../src/store/setup/journal.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';

/*
 * drizzle/objects contains the present form of each view and function, for people to read and to paste into
 * migrations. Here it is compared with what the migrations create.
 */

const FOLDER = join(MIGRATIONS, 'objects');
const SCHEMAS = ['catalog', 'catalog_internal'];

interface Source {
  /** As `objects` names it: 'view catalog.sku_trust'. */
  readonly name: string;
  readonly text: string;
}

const sources: readonly Source[] = ['view', 'function'].flatMap((kind) =>
  globSync(`${kind}s/*.sql`, { cwd: FOLDER })
    .toSorted()
    .map((file) => ({
      name: `${kind} ${basename(file, '.sql')}`,
      text: readFileSync(join(FOLDER, file), 'utf8'),
    })),
);

/** Returns the text of a file with one word replaced by another. */
function edited(name: string, word: string, by: string): string {
  const text = sources.find((source) => source.name === name)?.text ?? '';
  expect(text).toContain(word);
  return text.replace(word, by);
}

let database: TestDatabase;
let sql: Sql;
/** As the migrations create them. */
let migrated: Record<string, string>;
/** As they are after each file was run on top of the migrations. */
let rerun: Record<string, string>;

beforeAll(async () => {
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 1 });
  migrated = await objects(sql);
  rerun = await objectsAfter(async (tx) => {
    for (const { text } of sources) await tx.unsafe(text);
  });
});

afterAll(async () => {
  await sql.end({ timeout: 2 });
  await database.drop();
});

/** Describes each view, function and trigger of the two schemas completely, in one text each. */
async function objects(tx: Sql | Tx): Promise<Record<string, string>> {
  const rows = await tx<{ name: string; form: string }[]>`
    with rights as (
      select p.oid, 'pg_proc'::regclass as of, p.proowner as owner, coalesce(proacl, acldefault('f', proowner)) as acl from pg_proc p
      union all select c.oid, 'pg_class', relowner, coalesce(relacl, acldefault('r', relowner)) from pg_class c
    ), granted as (
      select r.oid, of, jsonb_build_array(owner::regrole, jsonb_agg(jsonb_build_array(
        grantor::regrole, case when grantee <> 0 then grantee::regrole::text end, privilege_type, is_grantable)
        order by grantee, privilege_type, grantor)) as rights
      from rights r, aclexplode(acl) group by r.oid, of, owner
    )
    select format('view %s.%s', nspname, relname) as name,
      jsonb_pretty(jsonb_build_array(pg_get_viewdef(c.oid), reloptions, rights, obj_description(c.oid, 'pg_class'), (
        select jsonb_agg(jsonb_build_array(attname, format_type(atttypid, atttypmod), attacl::text, col_description(c.oid, attnum)) order by attnum)
        from pg_attribute where attrelid = c.oid and attnum > 0
      ))) as form
    from pg_class c join pg_namespace n on n.oid = relnamespace
    left join granted g on g.oid = c.oid and g.of = 'pg_class'::regclass
    where nspname = any (${SCHEMAS}) and relkind in ('v', 'm')
    union all
    select format('function %s.%s', nspname, proname),
      string_agg(jsonb_pretty(jsonb_build_array(pg_get_functiondef(p.oid), provolatile, proparallel, rights, obj_description(p.oid, 'pg_proc'))), ';')
    from pg_proc p join pg_namespace n on n.oid = pronamespace
    left join granted g on g.oid = p.oid and g.of = 'pg_proc'::regclass
    where nspname = any (${SCHEMAS}) group by 1
    union all
    select format('trigger %s of %s', tgname, tgrelid::regclass),
      jsonb_pretty(jsonb_build_array(pg_get_triggerdef(t.oid), tgenabled, obj_description(t.oid, 'pg_trigger')))
    from pg_trigger t join pg_class c on c.oid = tgrelid join pg_namespace n on n.oid = relnamespace
    where nspname = any (${SCHEMAS}) and not tgisinternal
    order by 1`;
  return Object.fromEntries(rows.map(({ name, form }) => [name, form]));
}

/** Returns the objects after `work`, which is rolled back. */
async function objectsAfter(work: (tx: Tx) => Promise<unknown>): Promise<Record<string, string>> {
  const undone = new Error('undone');
  let found: Record<string, string> = {};
  await sql
    .begin(async (tx) => {
      await work(tx);
      found = await objects(tx);
      throw undone;
    })
    .catch((error: unknown) => {
      if (error !== undone) throw error;
    });
  return found;
}

/** Applies all of them in an order in which each finds what it needs. */
async function makeAll(tx: Tx): Promise<void> {
  for (let left = sources; left.length > 0;) {
    const failures: { readonly source: Source; readonly error: unknown }[] = [];
    for (const source of left)
      await tx
        .savepoint((inner) => inner.unsafe(source.text))
        .catch((error: unknown) => failures.push({ source, error }));
    if (failures.length === left.length)
      throw new Error(`cannot be made: ${failures.map(({ source }) => source.name).join(', ')}`, {
        cause: failures[0]?.error,
      });
    left = failures.map(({ source }) => source);
  }
}

/** Drops every view and function, and the triggers with them. */
async function dropAll(tx: Tx): Promise<void> {
  const drops = await tx<{ statement: string }[]>`
    select format('drop routine if exists %s cascade', oid::regprocedure) as statement from pg_proc
    where pronamespace = any (${SCHEMAS}::regnamespace[])
    union all
    select format('drop view if exists %s cascade', oid::regclass) from pg_class
    where relnamespace = any (${SCHEMAS}::regnamespace[]) and relkind = 'v'`;
  await tx.unsafe(drops.map(({ statement }) => statement).join(';'));
}

test('each view and function has exactly one file, and each file its view or function', () => {
  const made = Object.keys(migrated).filter((name) => !name.startsWith('trigger '));
  expect(sources.map(({ name }) => name).toSorted()).toEqual(made.toSorted());
  const inFiles = sources.map(({ text }) =>
    [...text.matchAll(/^create or replace (view|function|procedure) ([\w.]+)/gim)]
      .map(([, kind, name]) => `${kind?.toLowerCase() === 'view' ? 'view' : 'function'} ${name}`)
      .join(' and '),
  );
  expect(inFiles).toEqual(sources.map(({ name }) => name));
});

test.each(sources)('$name is as its file defines it', ({ name }) => {
  expect(rerun[name]).toBe(migrated[name]);
});

test('the files alone create everything: definitions, triggers, comments and rights', async () => {
  expect(Object.keys(await objectsAfter(dropAll))).toEqual([]);
  const made = await objectsAfter(async (tx) => {
    await dropAll(tx);
    await makeAll(tx);
  });
  expect(made).toEqual(migrated);
});

describe('a difference is detected', () => {
  const POSITION = 'function catalog.changes_position';
  const AUDIT = 'view catalog.delta_audit';
  const differences: [what: string, name: string, statement: string][] = [
    ['in the volatility of a function', POSITION, 'alter function catalog.changes_position() volatile'],
    [
      'in the settings of a function',
      POSITION,
      'alter function catalog.changes_position() reset search_path',
    ],
    [
      'in the rights on a function',
      POSITION,
      'grant execute on function catalog.changes_position() to public',
    ],
    ['in the comment on a function', POSITION, "comment on function catalog.changes_position() is 'x'"],
    ['in the rights on a view', AUDIT, 'grant select on catalog.delta_audit to catalog_watcher'],
    ['in the comment on a view', AUDIT, 'comment on view catalog.delta_audit is null'],
    ['in the comment on a column', AUDIT, "comment on column catalog.delta_audit.since is 'x'"],
    ['in the options of a view', AUDIT, 'alter view catalog.delta_audit set (security_barrier)'],
    ['in the text of a view', AUDIT, edited(AUDIT, 'IS NULL', 'IS NOT NULL')],
    ['in the text of a function', POSITION, edited(POSITION, 'greatest(', 'least(')],
    [
      'in a trigger',
      'trigger watch_added of catalog.watchlist',
      'alter table catalog.watchlist disable trigger watch_added',
    ],
  ];
  test.each(differences)('%s', async (_, name, statement) => {
    const after = await objectsAfter((tx) => tx.unsafe(statement));
    expect(Object.keys(migrated).filter((key) => migrated[key] !== after[key])).toEqual([name]);
  });
});

test("no function resolves names by its caller's search path, and every trigger fires on replicas too", async () => {
  const taken = await sql<{ name: string }[]>`
    select oid::regprocedure::text as name from pg_proc
    where pronamespace = any (${SCHEMAS}::regnamespace[]) and prosqlbody is null
      and not coalesce(proconfig @> array['search_path=pg_catalog, pg_temp'], false)
      -- With a setting of its own it could not commit: it names everything with its schema (test/store/refresh-now.pg.test.ts).
      and oid <> 'catalog.refresh_now(text[], interval)'::regprocedure
    union all
    select tgname from pg_trigger join pg_class c on c.oid = tgrelid
    where relnamespace = any (${SCHEMAS}::regnamespace[]) and not tgisinternal and tgenabled <> 'A'`;
  expect([...taken]).toEqual([]);
});
