import type { Sql } from '../connection/db.ts';
import { carried } from '../connection/sql-errors.ts';

/* What Postgres lets everybody use as it is installed, and an administrator who hardens a server may have closed. */

/** A function or a view of pg_catalog that this role may not use, and others may, too, unless somebody changed it. */
export interface Closed {
  readonly privilege: 'EXECUTE' | 'SELECT';
  /** As GRANT takes it. */
  readonly name: string;
  /** Without schema and arguments, as Postgres names it in a refusal. */
  readonly bare: string;
}

/**
 * What of pg_catalog is closed to this role and was not when the server was made. Asks for as few functions as it can,
 * because any of them may be among those.
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

/** The function of Postgres, the same from 14 to 18, that refuses what a role was not granted, and no rows. */
const REFUSES_OBJECTS = 'aclcheck_error';

/** Whether the error is of an object that was not granted. */
export const refusesObject = (error: unknown): boolean => carried(error, 'routine') === REFUSES_OBJECTS;

/**
 * Whether the error is of one of these: an administrator may have closed others that nobody needs here. Postgres names
 * what it refuses in the message alone, and in no language otherwise than it is called.
 */
export function isOf(error: unknown, closed: readonly Closed[]): boolean {
  if (!refusesObject(error)) return false;
  let refusal = error;
  while (refusal instanceof Error && !('routine' in refusal)) refusal = refusal.cause;
  const words = new Set(refusal instanceof Error ? refusal.message.split(/[^\w$]+/) : []);
  return closed.some(({ bare }) => words.has(bare));
}

const NAMED = 3;

/** In words: what is closed, of which there is at least one. Pure. */
export function closedText(closed: readonly Closed[]): string {
  const named = closed.slice(0, NAMED).map(({ privilege, name }) => `${privilege} on ${name}`);
  const more = closed.length - named.length;
  return `this role lacks what Postgres grants to everybody: ${named.join(', ')}${more > 0 ? `, and ${more} more` : ''}`;
}

/** SQL that gives it to the role alone. Pure. */
export function closedRemedy(closed: readonly Closed[], role: string): string {
  const grantOf = (privilege: Closed['privilege'], what: string): string[] => {
    const names = closed.filter((one) => one.privilege === privilege).map(({ name }) => name);
    return names.length === 0 ? [] : [`GRANT ${privilege} ON ${what} ${names.join(', ')} TO ${role}`];
  };
  return [...grantOf('EXECUTE', 'FUNCTION'), ...grantOf('SELECT', 'TABLE')].join('; ');
}
