import { escapeIdentifier } from 'pg';
import type postgres from 'postgres';
import { isUnchangeable, WRONG_STATE } from './sql-errors.ts';

/** A table of the mirror whose rows Postgres does not let change, because publications include their changes. */
export interface Unchangeable {
  readonly table: string;
  /** Whether nothing identifies its rows; otherwise a row filter or column list needs more than what does. */
  readonly isUnidentified: boolean;
  readonly publications: readonly string[];
  /** What Postgres says about it. */
  readonly said: string;
}

/**
 * Reads these tables by asking for the plan of an UPDATE and a DELETE, which Postgres refuses like the statement
 * itself. Tables without a key, such as those that are locks, are left out because their rows never change. Changes
 * nothing.
 */
export async function readUnchangeable(sql: postgres.Sql): Promise<Unchangeable[]> {
  const published = await sql<(Pick<Unchangeable, 'table' | 'publications'> & { readonly key: string })[]>`
    select c.oid::regclass::text as "table", array_agg(distinct p.pubname::text) as publications, min(a.attname) as key
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
      join pg_class root on root.oid = coalesce(pg_partition_root(c.oid), c.oid)
      join pg_publication_tables t on t.schemaname = n.nspname and t.tablename in (c.relname, root.relname)
      join pg_publication p on p.pubname = t.pubname and (p.pubupdate or p.pubdelete)
      join pg_index i on i.indrelid = c.oid and i.indisprimary
      join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
    where n.nspname in ('catalog', 'catalog_internal') and c.relkind = 'r'
    group by c.oid order by "table"`;
  const found: Unchangeable[] = [];
  for (const { key, ...one } of published) {
    const refusal =
      (await refusalOf(
        sql,
        `explain update ${one.table} set ${escapeIdentifier(key)} = default where false`,
      )) ?? (await refusalOf(sql, `explain delete from ${one.table} where false`));
    if (refusal !== null) found.push({ ...one, ...refusal });
  }
  return found;
}

async function refusalOf(
  sql: postgres.Sql,
  statement: string,
): Promise<Pick<Unchangeable, 'isUnidentified' | 'said'> | null> {
  try {
    await sql.unsafe(statement);
    return null;
  } catch (error) {
    if (!isUnchangeable(error)) return null;
    const { code, message, detail } = error as postgres.PostgresError;
    return { isUnidentified: code === WRONG_STATE, said: detail ?? message };
  }
}
