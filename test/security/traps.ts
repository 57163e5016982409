import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type { Sql } from '../../src/store/connection/db.ts';

/*
 * What others on the server can put in the way of a session that does not qualify names: functions and operators
 * in `public` that fit better than Postgres's own, and settings of the role.
 */

const ROOT = join(import.meta.dirname, '../..');
const SOURCES = ['src/**/*.ts', 'drizzle/**/*.sql', 'node_modules/bullmq/dist/esm/postgres/sql-scripts.js'];
/** Types of parameters, columns and literals. An exact match in `public` is preferred to a cast. */
const TYPES = [
  'text',
  'name',
  'integer',
  'bigint',
  'smallint',
  'numeric',
  'real',
  'double precision',
  'boolean',
  'timestamptz',
  'interval',
  'jsonb',
  'regclass',
  'text[]',
  'integer[]',
];
const OPERATORS = [
  '=',
  '<>',
  '<',
  '<=',
  '>',
  '>=',
  '+',
  '-',
  '*',
  '/',
  '%',
  '||',
  '->',
  '->>',
  '@>',
  '&&',
  '~',
];

/** Returns the names in the sources that look like function calls. */
function calledNames(): string[] {
  const texts = SOURCES.flatMap((glob) => globSync(glob, { cwd: ROOT })).map((file) =>
    readFileSync(join(ROOT, file), 'utf8'),
  );
  return [...new Set(texts.flatMap((text) => [...text.matchAll(/\b([a-z_][a-z0-9_]*)\s*\(/g)]))].map(
    ([, name = '']) => name,
  );
}

/**
 * Creates traps in `public`, as a role without any grant: a function for each Postgres function that the sources
 * call, with one and two arguments of each type, and operators between all types. Each counts its calls in
 * `public.sprung`. Returns the number of functions.
 */
export async function setTraps(sql: Sql, stranger: string): Promise<number> {
  await sql.unsafe(`
    set role ${stranger};
    create sequence public.sprung;
    grant all on sequence public.sprung to public;`);
  const [row] = await sql<[{ traps: string }]>`
    select count(*) as traps from (
      select distinct proname, pronargs from pg_proc
      where pronamespace = 'pg_catalog'::regnamespace and proname = any (${calledNames()}) and pronargs in (1, 2)
    ) called, unnest(${TYPES}::text[]) first, unnest(case pronargs when 2 then ${TYPES}::text[] else array[''] end) second`;
  await sql.unsafe(`
    do $traps$
    declare
      types constant text[] := '{${TYPES.map((type) => `"${type}"`).join()}}';
      body constant text := 'language plpgsql as ''begin perform nextval(''''public.sprung''''); return null; end''';
      called record;
      first text;
      second text;
      operator text;
    begin
      for called in
        select distinct proname as name, pronargs as arguments from pg_proc
        where pronamespace = 'pg_catalog'::regnamespace and pronargs in (1, 2)
          and proname = any ('{${calledNames().join()}}'::text[])
      loop
        foreach first in array types loop
          if called.arguments = 1 then
            execute format('create function public.%I(%s) returns text %s', called.name, first, body);
            continue;
          end if;
          foreach second in array types loop
            execute format('create function public.%I(%s, %s) returns text %s', called.name, first, second, body);
          end loop;
        end loop;
      end loop;
      foreach first in array types loop
        foreach second in array types loop
          execute format('create function public.between_all(%s, %s) returns boolean %s', first, second, body);
          foreach operator in array '{${OPERATORS.map((operator) => `"${operator}"`).join()}}'::text[] loop
            execute format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.between_all)', operator, first, second);
          end loop;
        end loop;
      end loop;
    end $traps$;
    reset role;`);
  return Number(row.traps);
}

/** Returns how often a trap was called since the traps were set. */
export async function sprung(sql: Sql): Promise<number> {
  const [row] = await sql<[{ times: number }]>`
    select case when is_called then last_value else 0 end::int as times from public.sprung`;
  return row.times;
}

interface Setting {
  readonly name: string;
  readonly vartype: 'bool' | 'enum' | 'integer' | 'real';
  readonly is: string;
  readonly min: string | null;
  readonly enumvals: readonly string[] | null;
}

/**
 * Not drawn: the mirror follows `default_transaction_read_only`, and Postgres does not accept every value in the
 * range of the others.
 */
const DECIDED = [
  'default_transaction_read_only',
  'default_toast_compression',
  'synchronous_commit',
  'vacuum_buffer_usage_limit',
];

/** Texts, which cannot be drawn from a range. */
const TEXTS: Readonly<Record<string, readonly string[]>> = {
  search_path: ['public', 'public, pg_catalog', '"$user", public'],
  DateStyle: ['SQL, DMY', 'German', 'Postgres, MDY'],
  TimeZone: ['Asia/Bangkok', 'America/St_Johns'],
  client_encoding: ['LATIN1', 'SQL_ASCII'],
  'plpgsql.extra_errors': ['all', 'strict_multi_assignment', 'too_many_rows'],
};

/**
 * Draws statements that change each setting that a role may change: switches are flipped, enumerations get another
 * value, numbers their smallest effective one. `session_replication_role` is what a superuser could set for any
 * role.
 */
export async function drawSettings(sql: Sql, role: string): Promise<fc.Arbitrary<string[]>> {
  const settings = await sql<Setting[]>`
    select name, vartype, setting as is, min_val as min, enumvals from pg_settings
    where context = 'user' and vartype <> 'string' and name not like 'transaction_%' and name <> all (${DECIDED})
    order by name`;
  const numbers = settings.map((one) => fc.tuple(fc.constant(one.name), valueOf(one)));
  const texts = Object.entries(TEXTS).map(([name, values]) =>
    fc.tuple(fc.constant(name), fc.constantFrom(...values)),
  );
  return fc
    .tuple(...numbers, ...texts, fc.constant(['session_replication_role', 'replica'] as const))
    .map((drawn) => drawn.map(([name, value]) => `alter role ${role} set ${name} = ${textOf(name, value)}`));
}

/** Returns the value as SQL. A list must not be quoted as a whole. */
const textOf = (name: string, value: string): string => (name === 'search_path' ? value : `'${value}'`);

function valueOf({ vartype, is, min, enumvals }: Setting): fc.Arbitrary<string> {
  if (vartype === 'bool') return fc.constant(is === 'on' ? 'off' : 'on');
  if (vartype === 'enum') return fc.constantFrom(...(enumvals ?? []).filter((value) => value !== is));
  // If the smallest value switches the setting off, the next one is used.
  const least = Number(min ?? 0);
  return fc.constant(String(least <= 0 ? Math.max(1, least) : least));
}
