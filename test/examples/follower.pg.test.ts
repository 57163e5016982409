import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { answerAsked, found, knownSkus, useStore } from '../store/support.ts';
import { shopOwner } from './shop.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Where .ci/tools unpacks Debian's driver, for the Python that it is built for. */
const FETCHED = join(ROOT, '.ci/.tools/python3/dist-packages');
const environment = { ...process.env, ...(existsSync(FETCHED) && { PYTHONPATH: FETCHED }) };
const python = ['python3', '/usr/bin/python3'].find(
  (each) => spawnSync(each, ['-c', 'import psycopg2'], { env: environment }).status === 0,
);

describe.skipIf(python === undefined)('examples/follower.py (needs psycopg2)', () => {
  const store = useStore();

  function run(url = store.url): string[] {
    const { status, stderr } = spawnSync(python ?? '', [join(ROOT, 'examples/follower.py'), '--once'], {
      env: { ...environment, DATABASE_URL: url },
      encoding: 'utf8',
    });
    return status === 0 ? [] : [stderr];
  }

  const lines = async (table: string) =>
    (
      await store.sql.unsafe(
        `select concat_ws(' ', sku, size, price) as line from ${table} where price is not null order by 1`,
      )
    ).map((row) => String(row['line']));

  test('keeps a copy of the prices across its restarts', async () => {
    await store.sql`drop schema if exists shop cascade`;
    expect(run()).toEqual([]);
    await knownSkus(store.sql, ['A', 'B', 'C']);
    await answerAsked(store.sql, found('A', { 8: 80, 9: 90 }), found('B', { 9: 70 }));
    for (const results of [[], [found('A', { 8: 85 }), found('C', { 5: 50 })], [found('B', {})]]) {
      if (results.length > 0) await answerAsked(store.sql, ...results);
      expect(run()).toEqual([]);
      expect(await lines('shop.offers')).toEqual(await lines('catalog.prices'));
    }
    expect((await lines('shop.offers')).length).toBe(2);
  });

  test('stops at a database that lacks what its copy already contains', async () => {
    const { sql } = store;
    await sql`drop schema if exists shop cascade`;
    await knownSkus(sql, ['A', 'B']);
    await answerAsked(sql, found('A', { 9: 90 }), found('B', { 9: 70 }));
    const [{ begun }] = await sql<[{ begun: string }]>`select catalog.changes_position() as begun`;
    await sql.unsafe(`create schema shop;
      create table shop.position (one boolean primary key default true, position bigint, copied_to text);
      create table shop.offers (sku text, size text, price integer, primary key (sku, size));
      insert into shop.position values (true, ${begun}, '')`);
    await answerAsked(sql, found('A', { 9: 95 }));
    // One piece is copied, and nothing after it can be.
    await sql`create function shop.broken() returns trigger language plpgsql as $$ begin raise exception 'broken'; end $$`;
    await sql`
      create trigger broken after update of copied_to on shop.position for each row
      when (old.copied_to is null) execute function shop.broken()`;
    expect(run()).toHaveLength(1);
    const [{ seen }] = await sql<[{ seen: string }]>`select seen from shop.position`;
    expect(BigInt(seen)).toBeGreaterThan(BigInt(begun));
    // As if the database were from an earlier time.
    await sql`update shop.position set seen = seen + 1`;
    expect(run()).toEqual([expect.stringContaining('of another history')]);
    await sql`update shop.position set seen = seen - 1`;
    await sql`drop trigger broken on shop.position`;
    expect(run()).toEqual([]);
    expect(await lines('shop.offers')).toEqual(await lines('catalog.prices'));
    const [end] = await sql`select seen from shop.position`;
    expect(end?.['seen']).toBeNull();
  });

  test('knows the size_type of each SKU, even after a correction and in copies made without it', async () => {
    const { sql } = store;
    const typed = (
      sku: string,
      size_map_size_type: string | null,
      prices: Record<string, number> = { 9: 90 },
    ) => found(sku, prices, { size_map_size_type });
    const offers = async () =>
      (
        await sql`select concat_ws(' ', sku, size, price, size_type) as line from shop.offers left join shop.size_types using (sku) order by 1`
      ).map(({ line }) => String(line));
    await sql`drop schema if exists shop cascade`;
    await knownSkus(sql, ['A', 'B', 'C', 'D']);
    await answerAsked(sql, typed('A', 'US'), typed('B', null), typed('C', 'US'));
    expect(run()).toEqual([]);
    expect(await offers()).toEqual(['A 9 90 US', 'B 9 90', 'C 9 90 US']);
    // The same numbers on the same keys, and different ones.
    await answerAsked(
      sql,
      typed('A', 'EU'),
      typed('B', 'UK'),
      typed('C', 'EU', { 9: 95, 10: 80 }),
      typed('D', 'US'),
    );
    expect(run()).toEqual([]);
    const corrected = ['A 9 90 EU', 'B 9 90 UK', 'C 10 80 EU', 'C 9 95 EU', 'D 9 90 US'];
    expect(await offers()).toEqual(corrected);
    await sql`drop table shop.size_types`;
    await answerAsked(sql, typed('D', 'US', { 9: 85 }));
    expect(run()).toEqual([]);
    expect(await offers()).toEqual([...corrected.slice(0, -1), 'D 9 85 US']);
    await sql`delete from catalog.skus where sku = 'D'`;
    expect(run()).toEqual([]);
    expect(await sql`select from shop.size_types where sku = 'D'`).toHaveLength(0);
    expect(await offers()).toEqual(corrected.slice(0, -1));
  });

  test('needs only read access to the mirror, and a schema of its own', async () => {
    const url = await shopOwner(store.sql, store.url);
    expect(run(url)).toEqual([]);
    expect(run(url)).toEqual([]);
  });
});
