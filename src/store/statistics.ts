import { constant, scanning, type Sql } from './connection/db.ts';

/** By how many times a table has more rows than Postgres plans for, and how many rows are few in any case. */
const TIMES_AS_MANY = 10;
const FEW_ROWS = 1000;

/**
 * Analyzes the mirror's tables that have many times as many rows as Postgres plans for, as where they were analyzed
 * while their rows were gone: it takes their pages for empty, and compares each row of a catalog with each. Autovacuum
 * does so within minutes, but where it is off, late, or held up, it may be hours. Tables that were never analyzed, or
 * had no page then, are planned for by their size, and that does. What somebody has locked waits for the next time.
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
