import type { Sql } from '../../store/connection/db.ts';
import { OWN_TABLES, OWN_VIEWS } from '../../store/setup/privileges.ts';
import { hiddenText, noForceOf, readHiddenRows } from '../../store/setup/row-security.ts';
import { type CheckResult, fail, warn } from './check.ts';

/** What somebody has switched off or removed of the mirror's own objects: statements succeed, but do or see less. */
export interface Damage {
  /** Tables of which the mirror's role sees and writes only what a policy permits. */
  readonly hidden: readonly string[];
  /** Tables whose rows only their owner sees: row-level security without a policy. */
  readonly closed: readonly string[];
  /** Triggers of the mirror that do not run. */
  readonly disabled: readonly OnTable[];
  /** Views of the mirror that no longer exist. */
  readonly gone: readonly string[];
  /** Triggers of others that run before a row of the mirror is written, and can return NULL, which omits the row. */
  readonly dropping: readonly (OnTable & { readonly source: string })[];
}

/** A trigger and its table, quoted if SQL needs it. */
interface OnTable {
  readonly name: string;
  readonly table: string;
}

export const UNDAMAGED: Damage = { hidden: [], closed: [], disabled: [], gone: [], dropping: [] };

export async function readDamage(sql: Sql): Promise<Damage> {
  const hidden = await readHiddenRows(sql, OWN_TABLES, true);
  const [row] = await sql<[Omit<Damage, 'hidden'>]>`
    with tables as (
      select c.oid, t.name, c.relrowsecurity, row_security_active(c.oid) as active
      from unnest(${[...OWN_TABLES]}::text[]) as t(name)
        join pg_namespace n on n.nspname = split_part(t.name, '.', 1)
        join pg_class c on c.relnamespace = n.oid and c.relname = split_part(t.name, '.', 2)
    ),
    triggers as (
      select quote_ident(t.tgname) as name, tables.name as "table", t.tgenabled, t.tgtype & 3 = 3 as is_before_row, p.prosrc as source,
        n.nspname in ('catalog', 'catalog_internal') as own
      from tables join pg_trigger t on t.tgrelid = tables.oid
        join pg_proc p on p.oid = t.tgfoid join pg_namespace n on n.oid = p.pronamespace
      where not t.tgisinternal
    )
    select
      array(
        select name from tables
        where relrowsecurity and not active and name like 'catalog.%'
          and not exists (select from pg_policy where polrelid = tables.oid)
        order by name) as closed,
      (
        select coalesce(json_agg(json_build_object('name', name, 'table', "table") order by "table", name), '[]')
        from triggers where own and tgenabled in ('D', 'R')) as disabled,
      (
        select coalesce(
          json_agg(json_build_object('name', name, 'table', "table", 'source', source) order by "table", name), '[]')
        from triggers where not own and is_before_row and tgenabled <> 'D'
          and source ~* '\\mreturn\\s+null\\M') as dropping,
      array(
        select name from unnest(${[...OWN_VIEWS]}::text[]) as v(name)
        where not exists (
          select from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where n.nspname = split_part(v.name, '.', 1) and c.relname = split_part(v.name, '.', 2))
        order by 1) as gone`;
  return { ...row, hidden: hidden.map(({ table }) => table) };
}

const named = (triggers: readonly OnTable[]): string =>
  triggers.map(({ name, table }) => `${name} on ${table}`).join(', ');

/** Returns the SQL that lets a trigger run as the mirror created it. */
const enablingOf = ({ name, table }: OnTable): string => `ALTER TABLE ${table} ENABLE ALWAYS TRIGGER ${name}`;

/** Returns whether a trigger's function returns nothing but NULL, judging by its source. */
function dropsAll({ source }: { readonly source: string }): boolean {
  const returned = source.matchAll(/\breturn\s+(\w+)/gi);
  return [...returned].every(([, what]) => what?.toLowerCase() === 'null');
}

/** Reports triggers that omit rows without an error. If one also returns other values, its source shows which rows. */
function droppingLines(dropping: Damage['dropping']): CheckResult[] {
  const all = dropping.filter(dropsAll);
  const some = dropping.filter((trigger) => !dropsAll(trigger));
  const remedy = "return NEW (of DELETE: OLD) for the mirror's role, or let the trigger run AFTER";
  return [
    ...(all.length === 0
      ? []
      : [fail('triggers', `leave out rows that the mirror writes, without an error: ${named(all)}`, remedy)]),
    ...(some.length === 0
      ? []
      : [
          warn(
            'triggers',
            `may leave out rows that the mirror writes, without an error: ${named(some)}`,
            remedy,
          ),
        ]),
  ];
}

/** Returns doctor's lines about damage; none if there is none. Pure. */
export function damageLines({ hidden, closed, disabled, gone, dropping }: Damage): CheckResult[] {
  return [
    ...droppingLines(dropping),
    ...(hidden.length === 0 ? [] : [fail('row security', hiddenText(hidden), noForceOf(hidden))]),
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
            `do not run, without which followers miss changes and lists are not heeded: ${named(disabled)}`,
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
