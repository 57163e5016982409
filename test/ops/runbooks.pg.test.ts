import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { createDatabase, type TestDatabase } from '../support/db.ts';

const RUNBOOKS = new URL('../../ops/runbooks/', import.meta.url);

const statements = readdirSync(RUNBOOKS).flatMap((file) =>
  [...readFileSync(new URL(file, RUNBOOKS), 'utf8').matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(
    ([, text = ''], at): [string, string] => [`${file} ${at + 1}`, text],
  ),
);

let database: TestDatabase;
let sql: Sql;
beforeAll(async () => {
  database = await createDatabase('migrated');
  sql = connect(database.url, { max: 1 });
});
afterAll(async () => {
  await sql.end({ timeout: 2 });
  await database.drop();
});

test('the runbooks contain statements to run', () => expect(statements.length).toBeGreaterThan(15));

test.each(statements)('%s runs read-only, as a reader unless it names the owner', async (_, text) => {
  const owner = text.startsWith('-- as the owner of the schema\n');
  await sql.begin('read only', async (tx) => {
    if (!owner) await tx.unsafe('set local role catalog_reader');
    await tx.unsafe(text);
  });
  expect(owner).toBe(text.includes('catalog_internal.'));
});

test('nothing-actionable.md explains every possible doubt about a priced SKU', async () => {
  const [{ meaning }] = await sql<[{ meaning: string }]>`
    select col_description('catalog.sku_trust'::regclass, (
      select attnum from pg_attribute where attrelid = 'catalog.sku_trust'::regclass and attname = 'doubt'
    )) as meaning`;
  const states = new Set(['pending', 'not_found', 'removed']);
  const doubts = [...meaning.matchAll(/\b([a-z]+(?:[_-][a-z]+)*) \(/g)].map(([, doubt = '']) => doubt);
  const book = readFileSync(new URL('nothing-actionable.md', RUNBOOKS), 'utf8');
  const rows = [...book.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(
    ([, cell = '']) => cell.match(/[\w-]+/g) ?? [],
  );
  expect(rows).toContain('clock');
  const told = doubts.filter((doubt) => !states.has(doubt));
  expect(told.length).toBeGreaterThan(8);
  expect(told.filter((doubt) => !rows.includes(doubt))).toEqual([]);
});
