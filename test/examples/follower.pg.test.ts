import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { answerAsked, found, knownSkus, useStore } from '../store/support.ts';
import { shopOwner } from './shop.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Where .ci/tools unpacks Debian's driver, for the Python that it is made for. */
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

  test('keeps a copy of the prices over its restarts', async () => {
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

  test('needs no more than to read the mirror, and a schema of its own', async () => {
    const url = await shopOwner(store.sql, store.url);
    expect(run(url)).toEqual([]);
    expect(run(url)).toEqual([]);
  });
});
