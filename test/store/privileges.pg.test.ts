import { expect, test } from 'vitest';
import { connect } from '../../src/store/connection/db.ts';
import { OWN_FUNCTIONS } from '../../src/store/setup/own-functions.ts';
import { OWN_TABLES, OWN_VIEWS, readLacking } from '../../src/store/setup/privileges.ts';
import { actingLogins } from '../support/acting-login.ts';
import { useStore } from './support.ts';

const store = useStore();

test('OWN_TABLES contains all tables of the mirror', async () => {
  const tables = await store.sql<{ name: string }[]>`
    select n.nspname || '.' || c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('catalog', 'catalog_internal') and c.relkind in ('r', 'p') and not c.relispartition
    order by 1`;
  expect(tables.map(({ name }) => name)).toEqual([...OWN_TABLES].toSorted());
});

test('OWN_VIEWS contains all views of the mirror', async () => {
  const views = await store.sql<{ name: string }[]>`
    select schemaname || '.' || viewname as name from pg_views where schemaname in ('catalog', 'catalog_internal') order by 1`;
  expect(views.map(({ name }) => name)).toEqual([...OWN_VIEWS].toSorted());
});

test('OWN_FUNCTIONS contains all functions of the mirror', async () => {
  const functions = await store.sql<{ name: string }[]>`
    select distinct n.nspname || '.' || p.proname as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in ('catalog', 'catalog_internal')`;
  expect(functions.map(({ name }) => name).toSorted()).toEqual([...OWN_FUNCTIONS].toSorted());
});

test('a role that may do everything lacks nothing, and what is revoked from it is named', async () => {
  const { sql } = store;
  await using logins = await actingLogins(sql, store.url);
  const role = connect(await logins.login(), { max: 1 });
  try {
    expect(await readLacking(role)).toEqual([]);
    await sql.unsafe(`
      revoke insert, delete on catalog.prices from ${logins.owner};
      revoke select on catalog_internal.tasks from ${logins.owner};
      create table catalog.of_somebody_else (sku text)`);
    expect(await readLacking(role)).toEqual([
      { kind: 'table', name: 'catalog.prices', privileges: ['INSERT', 'DELETE'] },
      { kind: 'table', name: 'catalog_internal.tasks', privileges: ['SELECT'] },
    ]);
  } finally {
    await role.end({ timeout: 2 });
    await sql`drop table if exists catalog.of_somebody_else`;
  }
});
