import type { Queryable } from '../connection/db.ts';

/** A table of which policies hide rows from this role. */
export interface HiddenRows {
  readonly table: string;
  /** No policy permits this role anything, so it sees no row. */
  readonly all: boolean;
}

/**
 * Returns those of the tables whose rows row-level security may hide from this role or, if `writing`, refuse. A
 * policy that lets it see (and write) every row hides none, unless another policy is restrictive. Statements succeed
 * all the same, but see less.
 */
export async function readHiddenRows(
  sql: Queryable,
  tables: readonly string[],
  writing: boolean,
): Promise<HiddenRows[]> {
  return await sql<HiddenRows[]>`
    with active as (
      select c.oid, t.name
      from unnest(${[...tables]}::text[]) as t(name)
        join pg_namespace n on n.nspname = split_part(t.name, '.', 1)
        join pg_class c on c.relnamespace = n.oid and c.relname = split_part(t.name, '.', 2)
      where row_security_active(c.oid)
    ),
    policies as (
      -- One without USING shows no row.
      select polrelid, polpermissive and polqual is not null as permits,
        pg_get_expr(polqual, polrelid) = 'true' and coalesce(pg_get_expr(polwithcheck, polrelid), 'true') = 'true' as of_all
      from pg_policy
      where polcmd = any (case when ${writing} then array['*'] else array['*', 'r'] end::"char"[])
        and exists (select from unnest(polroles) as of where of = 0 or pg_has_role(of, 'USAGE'))
    )
    select name as "table", not exists (select from policies where polrelid = active.oid and permits) as "all"
    from active
    where not exists (select from policies where polrelid = active.oid and permits and of_all)
      or exists (select from pg_policy where polrelid = active.oid and not polpermissive)
    order by name`;
}

/** What that means for the mirror's own role, and what ends it. Pure. */
export const hiddenText = (tables: readonly string[]): string =>
  `row-level security hides rows from the mirror, or refuses them: ${tables.join(', ')}`;
export const noForceOf = (tables: readonly string[]): string =>
  tables.map((table) => `ALTER TABLE ${table} NO FORCE ROW LEVEL SECURITY`).join('; ');
