import { constant, scanning, type Sql } from './connection/db.ts';

/** A grown table has more than this many times the rows Postgres plans for; fewer rows count as FEW_ROWS. */
const TIMES_AS_MANY = 10;
const FEW_ROWS = 1000;

/**
 * Analyzes those tables of the mirror that have many times the rows Postgres plans for, for example because they were
 * analyzed while empty: Postgres then takes their pages for empty and compares each row of a catalog with each.
 * Autovacuum corrects that within minutes, but may be off, late or blocked for hours. Tables that were never analyzed,
 * or had no page then, are planned by their size, which is good enough. A locked table waits for the next call.
 * Returns the names of the tables.
 */
export async function analyzeGrown(sql: Sql): Promise<string[]> {
  const grown = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name from pg_class c
    where c.relkind = 'r' and c.relnamespace in ('catalog'::regnamespace, 'catalog_internal'::regnamespace)
      and c.reltuples >= 0 and c.relpages > 0
      and pg_stat_get_live_tuples(c.oid) > ${constant(sql, TIMES_AS_MANY)} * greatest(c.reltuples, ${constant(sql, FEW_ROWS)})
      and pg_has_role(c.relowner, 'usage')
    order by c.relname`;
  const names = grown.map(({ name }) => name);
  if (names.length > 0) await scanning(sql.unsafe(`analyze (skip_locked) ${names.join(', ')}`));
  return names;
}
