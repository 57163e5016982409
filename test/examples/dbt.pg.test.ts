import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { useStore } from '../store/support.ts';

const store = useStore();

const SOURCES = z.strictObject({
  version: z.literal(2),
  sources: z.array(
    z.strictObject({
      name: z.string(),
      schema: z.string(),
      description: z.string(),
      tables: z.array(
        z.strictObject({
          name: z.string(),
          description: z.string(),
          loaded_at_field: z.string().optional(),
          freshness: z.unknown().optional(),
          columns: z.array(z.strictObject({ name: z.string(), data_tests: z.array(z.string()).optional() })),
        }),
      ),
    }),
  ),
});

test('examples/dbt/sources.yml names existing tables and views, each with all its columns', async () => {
  const text = readFileSync(new URL('../../examples/dbt/sources.yml', import.meta.url), 'utf8');
  const { sources } = SOURCES.parse(parse(text));
  const [source] = sources;
  const { schema, tables } = source ?? { schema: '', tables: [] };
  expect(tables.length).toBeGreaterThan(3);
  for (const { name, columns, loaded_at_field: loadedAt } of tables) {
    const rows = await store.sql<{ column: string }[]>`
      select column_name as column from information_schema.columns
      where table_schema = ${schema} and table_name = ${name} order by ordinal_position`;
    const there = rows.map(({ column }) => column);
    expect({ name, columns: columns.map((column) => column.name) }).toEqual({ name, columns: there });
    if (loadedAt !== undefined) expect(there).toContain(loadedAt);
  }
});
