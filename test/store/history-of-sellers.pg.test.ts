import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { eachColumn } from '../../src/declared/metadata.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { prepareHistory, pruneHistory } from '../../src/store/history/retention.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { maintain, newMemory } from '../../src/sync/maintenance.ts';
import { movePrices } from '../follow/changes.ts';
import { settingsWith } from '../support/settings.ts';
import { answerAsked, found, knownSkus, useStore, watchedForHours } from './support.ts';

/* What sellers attach to the history and its first copy: foreign keys to its rows, views, checks and columns. */

const store = useStore();
const DAY = 86_400_000;
const CHUNK = 5_000_000n;
/** The chunk that the test's first change goes into; each test has chunks of its own. */
let first: bigint;

async function enter(chunk: bigint): Promise<void> {
  await store.sql`select setval('catalog_internal.change_positions', ${String(chunk * CHUNK)}, false)`;
  await prepareHistory(store.sql);
}

beforeEach(async () => {
  const { sql } = store;
  const [row] = await sql<[{ at: string }]>`select last_value as at from catalog_internal.change_positions`;
  first = BigInt(row.at) / CHUNK + 1n;
  await enter(first);
  await pruneHistory(sql, { olderThanMs: DAY });
});

/** Makes something of a seller's until the end of the test. */
async function made(make: string, drop: string): Promise<void> {
  onTestFinished(async () => void (await store.sql.unsafe(drop)));
  await store.sql.unsafe(make);
}

const chunks = async () => {
  const rows = await store.sql<{ n: string }[]>`
    select replace(inhrelid::regclass::text, 'catalog_internal.price_history_', '') as n
    from pg_inherits where inhparent = 'catalog.price_history'::regclass`;
  return rows.map(({ n }) => Number(BigInt(n) - first)).toSorted((a, b) => a - b);
};

/** Returns a daemon's connection as a role that owns the history but nothing of the seller's; `said`: its warnings. */
async function daemonOfItsOwn(): Promise<{ role: string; daemon: Sql; said: string[] }> {
  const { sql, url } = store;
  const role = `daemon_${randomBytes(6).toString('hex')}`;
  const own = async (owner: string) =>
    await sql.unsafe(`do $$ declare t regclass; begin
      for t in select 'catalog.price_history'::regclass union all
        select inhrelid::regclass from pg_inherits where inhparent = 'catalog.price_history'::regclass
      loop execute format('alter table %s owner to ${owner}', t); end loop; end $$`);
  await sql.unsafe(`create role ${role} login password 'x'`);
  for (const schema of ['catalog', 'catalog_internal'])
    await sql.unsafe(`grant all on schema ${schema} to ${role}; grant all on all tables in schema ${schema} to ${role};
      grant all on all sequences in schema ${schema} to ${role}; grant all on all functions in schema ${schema} to ${role}`);
  await own(role);
  const said: string[] = [];
  const daemon = connect(Object.assign(new URL(url), { username: role, password: 'x' }).href, {
    max: 1,
    onNotice: ({ message, detail }) => said.push(`${message}: ${detail}`),
  });
  onTestFinished(async () => {
    await daemon.end({ timeout: 2 });
    await own('current_user');
    await sql.unsafe(`drop owned by ${role}; drop role ${role}`);
  });
  return { role, daemon, said };
}

describe('references to the history', () => {
  /** Makes a change of fifty days ago in a chunk of its own, and one of now in the next. */
  async function old(): Promise<void> {
    await movePrices(store.sql, 1);
    await store.sql`update catalog.price_history set observed_at = now() - interval '50 days'`;
    await store.sql`update catalog_internal.change_batches set observed_at = now() - interval '50 days'`;
    await enter(first + 1n);
    await movePrices(store.sql, 1);
  }

  test.each(['', ' on delete cascade', ' on delete set null', ' deferrable initially deferred'])(
    'by a foreign key%s keep no chunk whose rows nothing refers to',
    async (how) => {
      const { sql } = store;
      await old();
      await made(
        `create table public.notes (change bigint references catalog.price_history${how}, note text)`,
        'drop table public.notes',
      );
      expect(await pruneHistory(sql, { olderThanMs: 30 * DAY })).toBe(1);
      expect(await chunks()).toEqual([1, 2]);
      // The foreign key still applies to what is written.
      await expect(sql`insert into public.notes values (1, 'x')`).rejects.toMatchObject({ code: '23503' });
      await sql`insert into public.notes select max(id), 'x' from catalog.price_history`;
    },
  );

  test.each([
    {
      what: 'a row',
      make: `create table public.notes (change bigint references catalog.price_history on delete cascade);
        insert into public.notes select min(id) from catalog.price_history`,
      drop: 'drop table public.notes',
    },
    {
      what: 'a view of the chunk',
      make: 'create view public.notes as select * from CHUNK',
      drop: 'drop view public.notes',
    },
  ])(
    'by $what keep the chunk, which a warning names, and which is dropped once they are gone',
    async ({ make, drop }) => {
      await old();
      const chunk = `catalog_internal.price_history_${first}`;
      const said: string[] = [];
      const daemon = connect(store.url, {
        max: 1,
        onNotice: ({ message, detail }) => said.push(`${message}: ${detail}`),
      });
      onTestFinished(() => daemon.end());
      await store.sql.unsafe(make.replace('CHUNK', chunk));
      for (const _ of [1, 2]) expect(await pruneHistory(daemon, { olderThanMs: 30 * DAY })).toBe(0);
      expect(await chunks()).toEqual([0, 1, 2]);
      expect(said).toEqual([expect.stringContaining('notes'), expect.stringContaining('notes')]);
      expect(said[0]).toContain(chunk);
      await store.sql.unsafe(drop);
      expect(await pruneHistory(daemon, { olderThanMs: 30 * DAY })).toBe(1);
    },
  );

  const OWN_SCHEMA = `create schema shop; create table shop.notes (change bigint references catalog.price_history)`;

  test('from a schema that the daemon may not read keep the chunk, and a warning names the missing privileges', async () => {
    await old();
    await made(OWN_SCHEMA, 'drop schema shop cascade');
    const { role, daemon, said } = await daemonOfItsOwn();
    for (const grant of [`usage on schema shop`, `select on shop.notes`]) {
      expect(await pruneHistory(daemon, { olderThanMs: 30 * DAY })).toBe(0);
      await store.sql.unsafe(`grant ${grant} to ${role}`);
    }
    expect(await chunks()).toEqual([0, 1, 2]);
    expect(said).toHaveLength(2);
    for (const each of said) {
      expect(each).toContain(`catalog_internal.price_history_${first}`);
      expect(each).toContain('shop.notes');
      expect(each).toContain(`grant ${role} USAGE on the schema and SELECT on the table`);
    }
    expect(await pruneHistory(daemon, { olderThanMs: 30 * DAY })).toBe(1);
  });

  test('in rows that row-level security hides from the daemon keep the chunk', async () => {
    await old();
    await made(OWN_SCHEMA, 'drop schema shop cascade');
    const { role, daemon, said } = await daemonOfItsOwn();
    await store.sql.unsafe(`insert into shop.notes select min(id) from catalog.price_history;
      alter table shop.notes enable row level security;
      grant usage on schema shop to ${role}; grant select on shop.notes to ${role}`);
    expect(await pruneHistory(daemon, { olderThanMs: 30 * DAY })).toBe(0);
    expect(said).toEqual([expect.stringContaining('BYPASSRLS')]);
    await store.sql.unsafe(`alter role ${role} bypassrls`);
    expect(await pruneHistory(daemon, { olderThanMs: 30 * DAY })).toBe(0);
    expect(said[1]).toContain('notes_change_fkey of shop.notes');
    await store.sql`delete from shop.notes`;
    expect(await pruneHistory(daemon, { olderThanMs: 30 * DAY })).toBe(1);
  });

  test.each([
    { what: 'a table', of: 'change bigint references catalog.price_history' },
    { what: 'an integer', of: 'change integer references catalog.price_history' },
    {
      what: 'two columns',
      of: 'c text, change bigint, foreign key (c, change) references catalog.price_history (sku, id)',
    },
    {
      what: 'a partitioned table',
      of: 'change bigint references catalog.price_history) partition by hash (change',
      and: 'create table shop.part partition of shop.notes for values with (modulus 1, remainder 0)',
    },
  ])('from $what are detected without locking anybody out', async ({ of, and = '' }) => {
    const { sql } = store;
    await old();
    await sql.unsafe('create unique index own_key on catalog.price_history (sku, id)');
    await made(
      `create schema shop; create table shop.notes (${of}); ${and}`,
      'drop schema shop cascade; drop index catalog.own_key',
    );
    const columns = of.startsWith('c text') ? '(c, change) select sku, id' : '(change) select id';
    await sql.unsafe(`insert into shop.notes ${columns} from catalog.price_history order by id limit 1`);
    const attempt = async () =>
      (await sql`select catalog_internal.drop_history_chunk(${30 * 86_400}) as outcome`)[0];
    await sql.begin(async (reader) => {
      await reader`select from catalog.price_history`;
      expect(await attempt()).toEqual({ outcome: 'referred to' });
      await sql`delete from shop.notes`;
      expect(await attempt()).toEqual({ outcome: 'in use' });
    });
    // A key that is partly null refers to nothing.
    if (of.startsWith('c text'))
      await sql`insert into shop.notes (change) select min(id) from catalog.price_history`;
    expect(await attempt()).toEqual({ outcome: 'dropped' });
  });

  test('are checked again after an hour', async () => {
    await old();
    await watchedForHours(store.sql);
    await made(
      `create table public.notes (change bigint references catalog.price_history);
        insert into public.notes select min(id) from catalog.price_history`,
      'drop table public.notes',
    );
    const memory = newMemory();
    const maintained = async (minute: number) => {
      const clock = { ...systemClock, monotonic: () => minute * 60_000 };
      const ctx = { sql: store.sql, clock, settings: settingsWith() } as unknown as SyncContext;
      const kept = { windowMs: 1000, historyMs: 30 * DAY, dailyMs: 0 };
      return await maintain(ctx, kept, memory);
    };
    await maintained(1);
    await store.sql`delete from public.notes`;
    expect(await maintained(60)).toMatchObject({ counts: { historyChunksDropped: 0 } });
    expect(await maintained(61)).toMatchObject({ counts: { historyChunksDropped: 1 } });
  });
});

test.each([
  ['a check', 'add constraint own check (new_price is null or new_price > 0)', 'drop constraint own'],
  [
    'a check that is not validated',
    'add constraint own check (sku <> size) not valid',
    'drop constraint own',
  ],
  ['a column', "add own text not null default 'x' check (own <> '')", 'drop own'],
  ['a generated column', 'add own text generated always as (sku || size) stored', 'drop own'],
])('%s of the history also applies to chunks made later', async (_, alter, drop) => {
  const { sql } = store;
  await made(`alter table catalog.price_history ${alter}`, `alter table catalog.price_history ${drop}`);
  await enter(first + 3n);
  await movePrices(sql, 1);
  expect(await chunks()).toEqual(expect.arrayContaining([3, 4]));
});

test('a first copy contains the metadata fields, and no column that a seller has added', async () => {
  const { sql } = store;
  await knownSkus(sql, ['A']);
  await answerAsked(
    sql,
    found('A', {}, { ...eachColumn((column) => `a ${column}`), product: '{"a":{"b":1}}' }),
  );
  await made(
    "alter table catalog.products add column mine text default 'mine'",
    'alter table catalog.products drop column mine',
  );
  const copied = await sql<{ field: string; value: string }[]>`
      select field, new_value as value from catalog.changes_snapshot() where kind = 'product'`;
  expect(Object.fromEntries(copied.map(({ field, value }) => [field, value]))).toEqual({
    ...eachColumn((column) => `a ${column}`),
    product: '{"a": {"b": 1}}',
  });
});
