import type { Sql } from '../../store/connection/db.ts';
import { OWN_TABLES, OWN_VIEWS } from '../../store/setup/privileges.ts';
import { type CheckResult, fail, warn } from './check.ts';

/** What somebody has switched or taken away of the mirror's own: statements succeed, and do or see less. */
export interface Damage {
  /** Tables of which the mirror's role sees and writes only what a policy lets it. */
  readonly hidden: readonly string[];
  /** Tables of which nobody but their owner sees a row: row-level security without a policy. */
  readonly closed: readonly string[];
  /** Triggers of the mirror that do not run, each as `name on table`. */
  readonly disabled: readonly string[];
  /** Views of the mirror that are gone. */
  readonly gone: readonly string[];
}

export const UNDAMAGED: Damage = { hidden: [], closed: [], disabled: [], gone: [] };

export async function readDamage(sql: Sql): Promise<Damage> {
  const [row] = await sql<[Damage]>`
    with tables as (
      select c.oid, t.name, c.relrowsecurity, row_security_active(c.oid) as active
      from unnest(${[...OWN_TABLES]}::text[]) as t(name)
        join pg_namespace n on n.nspname = split_part(t.name, '.', 1)
        join pg_class c on c.relnamespace = n.oid and c.relname = split_part(t.name, '.', 2)
    )
    select
      array(
        select name from tables
        -- A policy for all that lets this role see and write every row hides none, unless another one restricts it.
        where active and (exists (select from pg_policy where polrelid = tables.oid and not polpermissive)
          or not exists (
            select from pg_policy p
            where p.polrelid = tables.oid and p.polpermissive and p.polcmd = '*' and pg_get_expr(p.polqual, p.polrelid) = 'true'
              and coalesce(pg_get_expr(p.polwithcheck, p.polrelid), 'true') = 'true'
              and exists (select from unnest(p.polroles) of where of = 0 or pg_has_role(of, 'USAGE'))))
        order by name) as hidden,
      array(
        select name from tables
        where relrowsecurity and not active and name like 'catalog.%'
          and not exists (select from pg_policy where polrelid = tables.oid)
        order by name) as closed,
      array(
        select format('%I on %s', t.tgname, tables.name)
        from tables join pg_trigger t on t.tgrelid = tables.oid
          join pg_proc p on p.oid = t.tgfoid join pg_namespace n on n.oid = p.pronamespace
        where t.tgenabled in ('D', 'R') and n.nspname in ('catalog', 'catalog_internal')
        order by 1) as disabled,
      array(
        select name from unnest(${[...OWN_VIEWS]}::text[]) as v(name)
        where not exists (
          select from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = split_part(v.name, '.', 1) and c.relname = split_part(v.name, '.', 2))
        order by 1) as gone`;
  return row;
}

/** SQL that lets a trigger run as the mirror has made it. */
function enablingOf(trigger: string): string {
  const [name = '', table = ''] = trigger.split(' on ');
  return `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${name}`;
}

/** The lines of doctor about it; none where nothing is. Pure. */
export function damageLines({ hidden, closed, disabled, gone }: Damage): CheckResult[] {
  return [
    ...(hidden.length === 0
      ? []
      : [
          fail(
            'row security',
            `row-level security hides rows from the mirror, or refuses them: ${hidden.join(', ')}`,
            hidden.map((table) => `ALTER TABLE ${table} NO FORCE ROW LEVEL SECURITY`).join('; '),
          ),
        ]),
    ...(closed.length === 0
      ? []
      : [
          warn(
            'row security',
            `is on without a policy, so the mirror's readers see no row: ${closed.join(', ')}`,
            `${closed.map((table) => `ALTER TABLE ${table} DISABLE ROW LEVEL SECURITY`).join('; ')}; or create policies`,
          ),
        ]),
    ...(disabled.length === 0
      ? []
      : [
          fail(
            'own triggers',
            `do not run, without which followers miss changes and lists are not heeded: ${disabled.join(', ')}`,
            disabled.map(enablingOf).join('; '),
          ),
        ]),
    ...(gone.length === 0
      ? []
      : [
          fail(
            'views',
            `somebody has dropped ${gone.join(', ')}`,
            'put them back from a backup (`pg_restore --schema-only`), or from drizzle/objects/views of the repository',
          ),
        ]),
  ];
}
