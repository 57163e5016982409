import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { applyAnswer } from '../../src/store/answer/apply.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { serverMajor } from '../support/db.ts';
import { claimAll, found, knownSkus, REFRESH, mark, useStore } from './support.ts';

const store = useStore();

/** The tables that every refresh writes. */
const TABLES = ['catalog.skus', 'catalog.prices', 'catalog.products', 'catalog_internal.due'];

test('tables have the storage settings that docs/internals.md lists', async () => {
  const text = readFileSync(new URL('../../docs/internals.md', import.meta.url), 'utf8');
  const lines = [...text.matchAll(/^\| `(catalog\w*\.\w+)` \| (`\w+=.*?) \|/gm)];
  const said = lines.map(([, table = '', settings = '']) => `${table}: ${settings.replaceAll('`', '')}`);
  const rows = await store.sql<{ stored: string }[]>`
    select oid::regclass || ': ' || array_to_string(array(select unnest(reloptions) order by 1), ' ') as stored
    from pg_class where relkind = 'r' and reloptions is not null and relnamespace::regnamespace::text in ('catalog', 'catalog_internal')`;
  expect(said.toSorted()).toEqual(rows.map(({ stored }) => stored).toSorted());
});

/** Returns the bytes of each table including its indexes. */
async function bytesOf(sql: Sql): Promise<Record<string, number>> {
  const rows = await sql<{ name: string; bytes: number }[]>`
    select name, pg_total_relation_size(name::regclass)::float8 as bytes from unnest(${TABLES}::text[]) as name`;
  return Object.fromEntries(rows.map(({ name, bytes }) => [name, bytes]));
}

async function updatesOfSkus(sql: Sql): Promise<{ all: number; hot: number }> {
  await sql`select pg_stat_force_next_flush()`;
  const [row] = await sql<[{ all: number; hot: number }]>`
    select n_tup_upd::int as all, n_tup_hot_upd::int as hot from pg_stat_user_tables
    where schemaname = 'catalog' and relname = 'skus'`;
  return row;
}

test('refreshes, however many, grow no table while vacuum runs as often as autovacuum would', async ({
  skip,
}) => {
  skip((await serverMajor()) < 15, 'statistics come with a delay before Postgres 15');
  // One connection, because each reports its own writes to the statistics.
  const sql = connect(store.url, { max: 1 });
  const skus = Array.from({ length: 1000 }, (_, i) => `SKU-${i}`);
  await knownSkus(sql, skus);
  const look = async (round: number) => {
    // In pieces, with a vacuum after each, as autovacuum would run after a twentieth of a larger catalog.
    for (let at = 0; at < skus.length; at += 100) {
      const some = skus.slice(at, at + 100);
      await mark(sql, some);
      const claim = await claimAll(sql);
      const moved = (i: number) => (round + i) % 100 === 0;
      const results = some.map((sku, i) =>
        found(
          sku,
          Object.fromEntries(
            Array.from({ length: 8 }, (_, size) => [String(size), 100 + size + (moved(i) ? round : 0)]),
          ),
        ),
      );
      await applyAnswer(sql, claim, results, REFRESH);
      await sql.unsafe(`vacuum ${TABLES.join(', ')}`);
    }
  };
  await look(0);
  await look(1);
  const before = { bytes: await bytesOf(sql), skus: await updatesOfSkus(sql) };
  for (let round = 2; round < 6; round += 1) await look(round);
  const after = { bytes: await bytesOf(sql), skus: await updatesOfSkus(sql) };
  expect(TABLES.filter((table) => (after.bytes[table] ?? 0) > 1.3 * (before.bytes[table] ?? 0))).toEqual([]);
  const updates = after.skus.all - before.skus.all;
  expect(updates).toBeGreaterThanOrEqual(4 * skus.length);
  expect((after.skus.hot - before.skus.hot) / updates).toBeGreaterThanOrEqual(0.95);
  await sql.end({ timeout: 2 });
});
