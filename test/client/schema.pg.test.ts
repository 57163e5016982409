import {
  getTableColumns,
  getTableName,
  getViewName,
  getViewSelectedFields,
  is,
  type Column,
} from 'drizzle-orm';
import { PgColumn, PgTable, type PgView } from 'drizzle-orm/pg-core';
import { expect, test } from 'vitest';
import { CHANGE_COLUMNS } from '../../src/client/change.ts';
import * as exported from '../../src/client/schema.ts';
import { useStore } from '../store/support.ts';

/* The package declares exactly the part of schema catalog that sellers may read. */

const store = useStore();

interface Declared {
  readonly name: string;
  readonly columns: readonly Column[];
}

const declared: readonly Declared[] = Object.values(exported).map((thing) =>
  is(thing, PgTable)
    ? { name: getTableName(thing), columns: Object.values(getTableColumns(thing)) }
    : {
        name: getViewName(thing as PgView),
        columns: Object.values(getViewSelectedFields(thing as PgView)).filter((column) =>
          is(column, PgColumn),
        ),
      },
);

test('every table and view that sellers may read is declared with its columns and their types', async () => {
  const rows = await store.sql<{ name: string; columns: string[] }[]>`
    select c.relname as name, array_agg(a.attname || ' ' || format_type(a.atttypid, null) order by a.attname) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'catalog'::regnamespace and c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition
      and (has_table_privilege('catalog_reader', c.oid, 'select') or has_table_privilege('catalog_watcher', c.oid, 'select'))
    group by 1 order by 1`;
  const typed = (column: Column) => `${column.name} ${column.getSQLType().replace(' COLLATE "C"', '')}`;
  const ours = declared.map(({ name, columns }) => ({ name, columns: columns.map(typed).toSorted() }));
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
  expect(ours.toSorted(byName)).toEqual(
    rows.map(({ name, columns }) => ({ name, columns: columns.toSorted() })).toSorted(byName),
  );
});

test('columns of tables are declared as not null exactly if they are', async () => {
  const rows = await store.sql<{ name: string }[]>`
    select c.relname || '.' || a.attname as name from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = 'catalog'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and a.attnum > 0 and not a.attisdropped and a.attnotnull order by 1`;
  const tables = Object.values(exported).filter((thing) => is(thing, PgTable));
  const ours = tables.flatMap((table) =>
    Object.values(getTableColumns(table))
      .filter(({ notNull }) => notNull)
      .map(({ name }) => `${getTableName(table)}.${name}`),
  );
  expect(ours.toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
});

test('both functions of the feed have the columns of a change', async () => {
  const rows = await store.sql<{ columns: string[] }[]>`
    select array(select name from unnest(proargnames, proargmodes) as a(name, mode) where mode = 't') as columns
    from pg_proc where oid in ('catalog.changes(bigint, integer)'::regprocedure, 'catalog.changes_snapshot(text, integer)'::regprocedure)`;
  expect(rows.map(({ columns }) => columns)).toEqual([[...CHANGE_COLUMNS], [...CHANGE_COLUMNS]]);
});
