import type { Sql } from '../connection/db.ts';
import { carried } from '../connection/sql-errors.ts';

/* What Postgres lets everybody use after installation, but an administrator who hardens a server may have closed. */

/** A function or view of pg_catalog that this role may not use although, by default, everybody may. */
export interface Closed {
  readonly privilege: 'EXECUTE' | 'SELECT';
  /** In the form that GRANT takes. */
  readonly name: string;
  /** Without schema and arguments, as Postgres names it in a refusal. */
  readonly bare: string;
}

/**
 * Reads what in pg_catalog is closed to this role but was open when the server was created. Calls as few functions
 * as possible, because any of them may be closed.
 */
export async function readClosed(sql: Sql): Promise<Closed[]> {
  const rows = await sql<Closed[]>`
    select 'EXECUTE' as privilege, p.oid::regprocedure::text as name, p.proname::text as bare
    from pg_proc p left join pg_init_privs i on i.objoid = p.oid and i.classoid = 'pg_proc'::regclass
    where p.pronamespace = 'pg_catalog'::regnamespace and p.proacl is not null and i.objoid is null
      and not has_function_privilege(p.oid, 'EXECUTE')
    union all
    select 'SELECT', c.oid::regclass::text, c.relname::text
    from pg_class c join pg_init_privs i on i.objoid = c.oid and i.classoid = 'pg_class'::regclass and i.objsubid = 0
    where c.relnamespace = 'pg_catalog'::regnamespace and i.initprivs::text ~ '[{,]=r'
      and not has_table_privilege(c.oid, 'SELECT')`;
  return rows.map(({ privilege, name, bare }) => ({ privilege, name: `pg_catalog.${name}`, bare }));
}

/** The function within Postgres, the same from 14 to 18, that refuses objects that were not granted, but not rows. */
const REFUSES_OBJECTS = 'aclcheck_error';

/** Whether the error is about an object that was not granted. */
export const refusesObject = (error: unknown): boolean => carried(error, 'routine') === REFUSES_OBJECTS;

/**
 * Whether the error is about one of these: an administrator may have closed others that nobody needs here. Postgres
 * names the object only in the message, and translates its name into no language.
 */
export function isOf(error: unknown, closed: readonly Closed[]): boolean {
  if (!refusesObject(error)) return false;
  let refusal = error;
  while (refusal instanceof Error && !('routine' in refusal)) refusal = refusal.cause;
  const words = new Set(refusal instanceof Error ? refusal.message.split(/[^\w$]+/) : []);
  return closed.some(({ bare }) => words.has(bare));
}

const NAMED = 3;

/** Describes what is closed; the list is not empty. Pure. */
export function closedText(closed: readonly Closed[]): string {
  const named = closed.slice(0, NAMED).map(({ privilege, name }) => `${privilege} on ${name}`);
  const more = closed.length - named.length;
  return `this role lacks what Postgres grants to everybody: ${named.join(', ')}${more > 0 ? `, and ${more} more` : ''}`;
}

/** Returns SQL that grants it to this role only. Pure. */
export function closedRemedy(closed: readonly Closed[], role: string): string {
  const grantOf = (privilege: Closed['privilege'], what: string): string[] => {
    const names = closed.filter((one) => one.privilege === privilege).map(({ name }) => name);
    return names.length === 0 ? [] : [`GRANT ${privilege} ON ${what} ${names.join(', ')} TO ${role}`];
  };
  return [...grantOf('EXECUTE', 'FUNCTION'), ...grantOf('SELECT', 'TABLE')].join('; ');
}
