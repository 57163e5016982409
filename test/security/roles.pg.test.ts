import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type Sql, type Tx } from '../../src/store/connection/db.ts';
import { sqlState } from '../../src/store/connection/sql-errors.ts';
import { QUEUE_SCHEMA } from '../../src/store/setup/occupied.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';
import { DECIDED, READ, type Rights, type Role } from './decided-rights.ts';

/*
 * The rights of each role on every object. The objects are read from the system catalogs, so that a new one
 * without a decision here fails.
 */

const ROLES: readonly Role[] = ['catalog_reader', 'catalog_watcher', 'stranger'];
const SCHEMAS = ['catalog', 'catalog_internal', QUEUE_SCHEMA];

let database: TestDatabase;
let sql: Sql;
const stranger = `stranger_${randomBytes(6).toString('hex')}`;

beforeAll(async () => {
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 4 });
  await sql.unsafe(`create role ${stranger} nologin`);
  await sql`insert into catalog.skus (sku, in_manifest) values ('A', true)`;
});

afterAll(async () => {
  await sql.unsafe(`drop role ${stranger}`);
  await sql.end({ timeout: 2 });
  await database.drop();
});

const nameOf = (role: Role) => (role === 'stranger' ? stranger : role);

interface Thing {
  readonly kind: 'table' | 'view' | 'sequence' | 'function' | 'schema';
  readonly schema: string;
  readonly name: string;
  readonly oid: number;
}

async function things(): Promise<readonly Thing[]> {
  return await sql<Thing[]>`
    select case relkind when 'S' then 'sequence' when 'v' then 'view' when 'm' then 'view' else 'table' end as kind,
      n.nspname as schema, format('%s.%s', n.nspname, c.relname) as name, c.oid::int
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = any (${SCHEMAS}) and c.relkind in ('r', 'p', 'f', 'v', 'm', 'S')
    union all
    select 'function', n.nspname, p.oid::regprocedure::text, p.oid::int
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = any (${SCHEMAS})
    union all
    select 'schema', nspname, nspname, oid::int from pg_namespace where nspname = any (${SCHEMAS})`;
}

const RIGHTS: Readonly<Record<Thing['kind'], readonly string[]>> = {
  table: ['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'],
  view: ['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'],
  sequence: ['USAGE', 'SELECT', 'UPDATE'],
  function: ['EXECUTE'],
  schema: ['USAGE', 'CREATE'],
};

/** Returns what the server says that each role may do with an object, with a column of it, or grant to others. */
async function rightsOn({ kind, oid }: Thing): Promise<Rights> {
  const check = {
    table: 'has_table_privilege',
    view: 'has_table_privilege',
    sequence: 'has_sequence_privilege',
    function: 'has_function_privilege',
    schema: 'has_schema_privilege',
  }[kind];
  const ofColumns = ['SELECT', 'INSERT', 'UPDATE', 'REFERENCES'];
  const columns = kind === 'table' || kind === 'view';
  const [version] = await sql<[{ number: number }]>`
    select current_setting('server_version_num')::int as number`;
  const maintain = kind === 'table' && version.number >= 170_000 ? ['MAINTAIN'] : [];
  const asked = [...RIGHTS[kind], ...maintain].flatMap((right) => [right, `${right} WITH GRANT OPTION`]);
  const rows = await sql.unsafe<{ role: Role; right: string }[]>(
    `select role, "right" from unnest($1::text[], $2::text[]) as r(role, name), unnest($3::text[]) as "right"
     where ${check}(r.name, $4::oid, "right") ${columns ? `or split_part("right", ' ', 1) = any ($5) and has_any_column_privilege(r.name, $4::oid, "right")` : 'and $5::text[] is not null'}
     order by 1, 2`,
    [[...ROLES], ROLES.map(nameOf), asked, oid, ofColumns],
  );
  return Object.fromEntries(
    [...Map.groupBy(rows, ({ role }) => role)].map(([role, of]) => [role, of.map(({ right }) => right)]),
  );
}

const keyOf = ({ kind, name }: Thing) => `${kind} ${name}`;

test('every object has a decision, and each role has exactly the rights decided', async () => {
  const all = await things();
  const undecided = all.filter(
    (thing) =>
      DECIDED[keyOf(thing)] === undefined &&
      (thing.schema === 'catalog' || (thing.schema === 'catalog_internal' && thing.kind === 'function')),
  );
  expect(undecided.map(keyOf), 'objects without a decision').toEqual([]);
  const present = new Set(all.map(keyOf));
  expect(
    Object.keys(DECIDED).filter((key) => !present.has(key)),
    'decisions without an object',
  ).toEqual([]);
  expect(all.filter(({ schema }) => schema === QUEUE_SCHEMA).length).toBeGreaterThan(3);
  expect(all.filter(({ schema }) => schema === 'catalog_internal').length).toBeGreaterThan(15);
  const found: Record<string, Rights> = {};
  const decided: Record<string, Rights> = {};
  for (const thing of all) {
    // BullMQ creates its functions executable by everyone; without USAGE on their schema nobody can call them by
    // name.
    if (thing.schema === QUEUE_SCHEMA && thing.kind === 'function') continue;
    found[keyOf(thing)] = await rightsOn(thing);
    decided[keyOf(thing)] = DECIDED[keyOf(thing)] ?? {};
  }
  expect(found).toEqual(decided);
});

test('future tables are readable and nothing more; nothing is granted to everyone', async () => {
  await sql`create table catalog.of_tomorrow (id bigint generated always as identity)`;
  try {
    const tomorrow = (await things()).filter(({ name }) => name.includes('of_tomorrow'));
    expect(await Promise.all(tomorrow.map(rightsOn))).toEqual(
      tomorrow.map(({ kind }) => (kind === 'table' ? { catalog_reader: READ } : {})),
    );
    expect(tomorrow.map(({ kind }) => kind).toSorted()).toEqual(['sequence', 'table']);
  } finally {
    await sql`drop table catalog.of_tomorrow`;
  }
  const toEveryone = await sql`
    select c.oid::regclass::text as what from pg_class c, aclexplode(c.relacl) a
    where c.relnamespace = any (${SCHEMAS}::regnamespace[]) and a.grantee = 0
    union all select attrelid::regclass::text from pg_attribute, aclexplode(attacl) a
    where attrelid in (select oid from pg_class where relnamespace = any (${SCHEMAS}::regnamespace[])) and a.grantee = 0
    union all select nspname from pg_namespace, aclexplode(nspacl) a
    where oid = any (${SCHEMAS}::regnamespace[]) and a.grantee = 0`;
  expect([...toEveryone]).toEqual([]);
});

test('the roles are only groups: no login, no attributes, no memberships', async () => {
  const roles = await sql`
    select rolname, rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls as more,
      exists (select from pg_auth_members m where m.member = r.oid) as member
    from pg_roles r where rolname in ('catalog_reader', 'catalog_watcher') order by 1`;
  expect([...roles]).toEqual([
    { rolname: 'catalog_reader', more: false, member: false },
    { rolname: 'catalog_watcher', more: false, member: false },
  ]);
});

test('every function that runs with the daemon’s rights pins its search_path, with the temporary schema last', async () => {
  const definers = await sql<{ name: string; path: string | null }[]>`
    select p.oid::regprocedure::text as name,
      (select setting from unnest(proconfig) as setting where setting like 'search_path=%') as path
    from pg_proc p where pronamespace = any (${SCHEMAS}::regnamespace[]) and prosecdef order by 1`;
  expect(definers.map(({ name }) => name)).toEqual([
    'catalog.changes(bigint,integer)',
    'catalog.changes_oldest()',
    'catalog.changes_position()',
    'catalog.changes_snapshot(text,integer)',
    'catalog.explain(text)',
    'catalog.hint(text,text)',
    'catalog.movers(interval,integer)',
    'catalog.price_at(text,text,timestamp with time zone)',
    'catalog.prices_at(text,timestamp with time zone)',
    'catalog.product_after(jsonb,text,text,text)',
    'catalog.refresh(text[])',
    'catalog.refresh_begin(text[],interval,text)',
    'catalog.refresh_end(jsonb)',
    'catalog.refresh_wait(jsonb)',
    'catalog.take_request(text)',
    'catalog_internal.believable_until()',
    'catalog_internal.catalog_state(catalog_internal.sync)',
    'catalog_internal.live_ahead()',
    'catalog_internal.present_ceiling(catalog_internal.pace)',
    'catalog_internal.price_beliefs()',
    'catalog_internal.promise_capacity()',
    'catalog_internal.scope_changed()',
    'catalog_internal.seconds_ahead()',
    'catalog_internal.trust_now(timestamp with time zone)',
    'catalog_internal.trust_terms(timestamp with time zone)',
    'catalog_internal.warn_of_promises()',
    'catalog_internal.watch_added()',
    'catalog_internal.watch_changed()',
  ]);
  for (const { name, path } of definers)
    expect([name, path]).toEqual([name, 'search_path=pg_catalog, pg_temp']);
});

/** Runs statements as one of the roles and rolls them back. Returns 'done', or the SQLSTATE of the error. */
async function attempt(role: Role, ...statements: string[]): Promise<string> {
  const undone = new Error('undone');
  const work = async (tx: Tx) => {
    await tx.unsafe(`set local role ${nameOf(role)}`);
    for (const statement of statements) await tx.unsafe(statement);
    throw undone;
  };
  return await sql.begin(work).then(
    () => 'done',
    (error: unknown) => (error === undone ? 'done' : (sqlState(error) ?? String(error))),
  );
}

describe('statements that each role tries', () => {
  const DENIED = '42501';
  const tries: [statement: string, allowed: readonly Role[]][] = [
    ['select * from catalog.skus', ['catalog_reader']],
    ['select * from catalog.prices', ['catalog_reader']],
    ['select * from catalog.products', ['catalog_reader']],
    ['select * from catalog.price_history', ['catalog_reader']],
    ['select * from catalog.changes_snapshot()', ['catalog_reader']],
    ["select catalog.product_after('{}', 'product', '{}', '{}')", ['catalog_reader']],
    ['select * from catalog.product_history', ['catalog_reader']],
    ['select * from catalog.current_prices', ['catalog_reader']],
    ['select * from catalog.sku_trust', ['catalog_reader']],
    ["select * from catalog.lowest_prices('42')", ['catalog_reader']],
    ['select * from catalog.movers()', ['catalog_reader']],
    ['select * from catalog.skus_past_target()', ['catalog_reader']],
    ['select * from catalog.sync_status', ['catalog_reader']],
    ['select * from catalog.delta_audit', ['catalog_reader']],
    ['select * from catalog.changes(0)', ['catalog_reader']],
    ['select catalog.changes_position(), catalog.changes_oldest()', ['catalog_reader']],
    ["select catalog.price_at('A', '9', now())", ['catalog_reader']],
    ["select * from catalog.prices_at('A', now())", ['catalog_reader']],
    ['select * from catalog.daily_prices', ['catalog_reader']],
    ['select catalog_internal.forget_days_ahead()', []],
    ['select * from catalog.watchlist', ['catalog_reader', 'catalog_watcher']],
    ["insert into catalog.watchlist (sku) values ('A')", ['catalog_watcher']],
    ["insert into catalog.watchlist (sku) values ('never heard of')", ['catalog_watcher']],
    ['update catalog.watchlist set weight = 2', ['catalog_watcher']],
    ['delete from catalog.watchlist', ['catalog_watcher']],
    ['select * from catalog.promises', ['catalog_reader', 'catalog_watcher']],
    ["select catalog.take_request('orders')", ['catalog_watcher']],
    ["select catalog.hint('A', 'orders')", ['catalog_watcher']],
    ["select catalog.refresh(array['A'])", ['catalog_watcher']],
    ["select catalog.refresh_begin(array['A'], '1 s', null)", ['catalog_watcher']],
    ['select * from catalog.refresh_wait(null)', ['catalog_watcher']],
    ['select catalog.refresh_end(null)', ['catalog_watcher']],
    ["select catalog_internal.refresh_skus(array['A'])", []],
    ["insert into catalog_internal.refresh_requests (sku) values ('A')", []],
    ['update catalog_internal.refresh_places set pid = null', []],
    ['select * from catalog.hint_sources', ['catalog_reader']],
    ["insert into catalog_internal.hints (sku, source, hinted_at) values ('A', 'orders', now())", []],
    ['truncate catalog.watchlist', []],
    ['select * from catalog.scope', ['catalog_reader', 'catalog_watcher']],
    ["insert into catalog.scope (kind, value) values ('brand', 'Nike')", ['catalog_watcher']],
    ['update catalog.scope set include = false', ['catalog_watcher']],
    ['delete from catalog.scope', ['catalog_watcher']],
    ['truncate catalog.scope', []],
    ["select catalog_internal.apply_scope(array['A'])", []],
    ['create table catalog.mine (id int)', []],
    ['create function catalog.mine() returns int language sql as $$ select 1 $$', []],
    ['create view catalog.mine as select 1', []],
    ['alter table catalog.watchlist disable trigger all', []],
    ['drop trigger watch_added on catalog.watchlist', []],
    ['comment on table catalog.skus is null', []],
    ["insert into catalog.skus (sku, in_manifest) values ('B', true)", []],
    ["update catalog.skus set state = 'priced'", []],
    ['delete from catalog.prices', []],
    ["insert into catalog.price_history (sku, size, observed_at) values ('A', '9', now())", []],
    ["select nextval('catalog_internal.change_positions')", []],
    ["select setval('catalog_internal.dropped_positions', 1)", []],
    ['select * from catalog_internal.price_history_0', []],
    ['select catalog_internal.drop_history_chunk(0)', []],
    ['select * from catalog_internal.due', []],
    ['select * from catalog_internal.settings', []],
    ['select * from catalog_internal.pace_sends', []],
    ['update catalog_internal.pause set resumed_by = current_user', []],
    ['delete from catalog_internal.pace_sends', []],
    ["select catalog_internal.mark_due(array['A'], 'refresh')", []],
    ["select catalog_internal.lane_of('new')", []],
    ["select catalog_internal.past_moves('A', now())", []],
    ['select catalog_internal.catalog_state(null)', []],
    ['select catalog_internal.trust_terms()', []],
    ['select catalog_internal.set_back_clock()', []],
    ['select catalog_internal.seconds_ahead()', []],
    ['select catalog_internal.snapshot_target(null)', []],
    ['select catalog_internal.delta_late_after(null)', []],
    [`select * from ${QUEUE_SCHEMA}.bullmq_job`, []],
    [`create table ${QUEUE_SCHEMA}.mine (id int)`, []],
    ['create schema mine', []],
    ['copy catalog.watchlist to program $$id$$', []],
  ];

  test.each(tries)('%s', async (statement, allowed) => {
    const outcomes: Record<string, string> = {};
    for (const role of ROLES) outcomes[role] = await attempt(role, statement);
    expect(outcomes).toEqual(
      Object.fromEntries(ROLES.map((role) => [role, allowed.includes(role) ? 'done' : DENIED])),
    );
  });

  test('objects in a watcher’s own temporary schema change nothing for the daemon’s functions', async () => {
    const shadows = [
      'create temp table settings (rate_limit int, rate_window float, rate_floor int)',
      'create temp table pace (backoff_until timestamptz)',
      'create temp table pace_sends (sent_at timestamptz, lane text, other_user boolean)',
      'create temp table skus (sku text, in_manifest boolean)',
      'create temp table due (sku text)',
      "create function pg_temp.now() returns timestamptz language sql as $$ select 'epoch'::timestamptz $$",
      'set local search_path = pg_temp, catalog, public',
    ];
    const result = await sql
      .begin(async (tx) => {
        await tx.unsafe('set local role catalog_watcher');
        for (const statement of shadows) await tx.unsafe(statement);
        await tx.unsafe("select catalog.take_request('orders')");
        await tx.unsafe("insert into catalog.watchlist (sku) values ('watched')");
        const [own] = await tx`
          select (select count(*) from pg_temp.pace_sends) + (select count(*) from pg_temp.skus)
            + (select count(*) from pg_temp.due) as rows`;
        await tx.unsafe('reset role');
        await tx.unsafe('select catalog_internal.read_watchlist(false, 10)');
        await tx.unsafe('select catalog_internal.watched_to_ledger(10)');
        const [real] = await tx`
          select (select count(*)::int from catalog_internal.pace_sends where other_user) as sends,
            (select count(*)::int from catalog_internal.due where sku = 'watched' and due_at > now() - interval '1 hour') as due`;
        throw Object.assign(new Error('undone'), { own, real });
      })
      .catch((error: unknown) => error);
    expect(result).toMatchObject({ own: { rows: '0' }, real: { sends: 1, due: 1 } });
  });

  test('a login role that is a member of both has the rights of both', async () => {
    const name = `seller_${randomBytes(6).toString('hex')}`;
    await sql.unsafe(`create role ${name} login password 'x' in role catalog_reader, catalog_watcher`);
    const url = Object.assign(new URL(database.url), { username: name, password: 'x' });
    const own = connect(url.href, { max: 1 });
    try {
      expect(await own`select sku from catalog.skus`).toEqual([{ sku: 'A' }]);
      await own`insert into catalog.watchlist (sku) values ('A')`;
      const seen = await own`delete from catalog.watchlist where sku = 'A' returning sku`;
      expect([...seen]).toEqual([{ sku: 'A' }]);
      await expect(own`delete from catalog.skus`).rejects.toMatchObject({ code: DENIED });
    } finally {
      await own.end();
      await sql.unsafe(`drop role ${name}`);
    }
  });
});
