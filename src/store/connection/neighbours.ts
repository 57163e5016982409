import type postgres from 'postgres';

/** Something that others have attached to a table that the mirror writes: it runs within the mirror's statements. */
export interface Neighbour {
  readonly kind: 'trigger' | 'foreign-key';
  readonly name: string;
  /** The mirror's table. */
  readonly table: string;
  /** The trigger's function, or the table that refers to the mirror's. */
  readonly by: string;
  /** Whether an index finds the rows that refer to a deleted key; null for a trigger. */
  readonly indexed: boolean | null;
}

/**
 * Reads other owners' triggers on the mirror's tables, and their foreign keys to them; not on tables that sellers
 * write and the mirror only reads. Triggers and keys copied to partitions count once, for the table.
 */
export async function readNeighbours(sql: postgres.Sql | postgres.TransactionSql): Promise<Neighbour[]> {
  return await sql<Neighbour[]>`
    with ours as (
      select c.oid, n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname in ('catalog', 'catalog_internal')
        and (n.nspname, c.relname) not in (('catalog', 'watchlist'), ('catalog', 'scope'))
    )
    select 'trigger' as kind, t.tgname::text as name, t.tgrelid::regclass::text as "table", t.tgfoid::regproc::text as by,
      null::boolean as indexed
    from pg_trigger t join ours on ours.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
      join pg_namespace n on n.oid = p.pronamespace
    where not t.tgisinternal and t.tgparentid = 0 and t.tgenabled <> 'D'
      and n.nspname not in ('catalog', 'catalog_internal')
    union all
    select 'foreign-key', k.conname::text, k.confrelid::regclass::text, k.conrelid::regclass::text,
      exists (
        select from pg_index i join pg_class x on x.oid = i.indexrelid join pg_am m on m.oid = x.relam
        where i.indrelid = k.conrelid and i.indisvalid and m.amname in ('btree', 'hash')
          and (i.indpred is null or pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', sku.attname))
          and (i.indkey[0] = sku.attnum or (i.indkey::int2[])[0:cardinality(k.conkey) - 1] @> k.conkey)
      )
    from pg_constraint k join ours on ours.oid = k.confrelid
      join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
      -- A SKU has few rows, a size has many.
      left join lateral (
        select mine.attnum, mine.attname
        from pg_attribute theirs join pg_attribute mine
          on mine.attrelid = k.conrelid and mine.attnum = k.conkey[array_position(k.confkey, theirs.attnum)]
        where theirs.attrelid = k.confrelid and theirs.attname = 'sku'
      ) sku on true
    where k.contype = 'f' and k.conparentid = 0 and n.nspname not in ('catalog', 'catalog_internal')
    order by kind, "table", name`;
}

/** Reads the event triggers, with their functions, that run when anybody, including the mirror, creates a table. */
export async function readEventTriggers(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select format('%s (%s)', evtname, evtfoid::regproc) as name from pg_event_trigger
    where evtenabled <> 'D' and evtevent in ('ddl_command_start', 'ddl_command_end') order by evtname`;
  return rows.map(({ name }) => name);
}

export function neighbourText({ kind, name, table, by, indexed }: Neighbour): string {
  return kind === 'trigger'
    ? `trigger ${name} on ${table}`
    : `foreign key ${name} of ${by} to ${table}${indexed === false ? ', without an index on its columns' : ''}`;
}
