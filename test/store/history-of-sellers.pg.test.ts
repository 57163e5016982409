import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { prepareHistory, pruneHistory } from '../../src/store/history/retention.ts';
import { movePrices } from '../follow/changes.ts';
import { useStore } from './support.ts';

/* What sellers put upon the history: foreign keys to its rows, views, checks and columns of their own. */

const store = useStore();
const DAY = 86_400_000;
const CHUNK = 5_000_000n;
/** The chunk that the test's first change goes into: each test has chunks of its own. */
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

/** What a seller makes until the end of the test. */
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

describe('what refers to the history', () => {
  /** A change of fifty days ago in a chunk of its own, and one of now in the next. */
  async function old(): Promise<void> {
    await movePrices(store.sql, 1);
    await store.sql`update catalog.price_history set observed_at = now() - interval '50 days'`;
    await store.sql`update catalog_internal.change_batches set observed_at = now() - interval '50 days'`;
    await enter(first + 1n);
    await movePrices(store.sql, 1);
  }

  test.each(['', ' on delete cascade', ' on delete set null', ' deferrable initially deferred'])(
    'a foreign key%s keeps no chunk whose rows nothing refers to',
    async (how) => {
      const { sql } = store;
      await old();
      await made(
        `create table public.notes (change bigint references catalog.price_history${how}, note text)`,
        'drop table public.notes',
      );
      expect(await pruneHistory(sql, { olderThanMs: 30 * DAY })).toBe(1);
      expect(await chunks()).toEqual([1, 2]);
      // It goes on to hold for what is written.
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
  ])('$what keeps its chunk, which is said by name, and dropped once it is gone', async ({ make, drop }) => {
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
])('%s of the history is on the chunks that are made after it, too', async (_, alter, drop) => {
  const { sql } = store;
  await made(`alter table catalog.price_history ${alter}`, `alter table catalog.price_history ${drop}`);
  await enter(first + 3n);
  await movePrices(sql, 1);
  expect(await chunks()).toEqual(expect.arrayContaining([3, 4]));
});
