import { escapeIdentifier } from 'pg';
import { Misconfigured } from '../../lib/errors.ts';
import type { Sql } from '../connection/db.ts';

/*
 * Who owns the schemas and roles that have the mirror's names. This is checked before anything is created or
 * changed.
 */

/** BullMQ's schema, if the queues are in Postgres. */
export const QUEUE_SCHEMA = 'catalog_queue';
/** The schemas that the mirror creates, or BullMQ for it. */
export const OUR_SCHEMAS = ['catalog', 'catalog_internal', QUEUE_SCHEMA];

/** A schema with one of the mirror's names, as it was found. */
export interface FoundSchema {
  readonly schema: string;
  readonly owner: string;
  /** Whether this role is the owner, a member of the owner, or a superuser. */
  readonly belongs: boolean;
  /** The same without a superuser's right to act as anybody. */
  readonly own: boolean;
  /** The same for most objects in it: some may have been given away together with the schema. */
  readonly objectsBelong: boolean;
  /**
   * How many objects it contains, besides the table of applied migrations; the first of them, by kind and name; and
   * their owners.
   */
  readonly count: number;
  readonly objects: readonly string[];
  readonly owners: readonly string[];
}

/** What must be known before anything is created. */
export interface Found {
  /** The role of this session. */
  readonly role: string;
  readonly schemas: readonly FoundSchema[];
  /**
   * The table of applied migrations: it is missing or empty; contains a migration of the mirror; contains something
   * else; or this role may not read it.
   */
  readonly ledger: 'none' | 'ours' | 'foreign' | 'hidden';
  /** Whether the mirror's first table exists. */
  readonly skus: boolean;
  /** Whether the mirror's tables exist. If no migration is recorded, a dump without rows was loaded. */
  readonly bare: boolean;
  /** Whether the schema catalog contains the mirror's tables that sellers read. */
  readonly shown: boolean;
  /** Whether BullMQ's table of its version exists. */
  readonly queueTables: boolean;
}

export type OccupiedKind = 'schema-of-another' | 'mirror-incomplete' | 'ledger-hidden' | 'role-of-another';

/** Something with a name of the mirror's that is not, or no longer, the mirror's. */
export interface Occupied {
  readonly kind: OccupiedKind;
  readonly text: string;
  readonly remedy: string;
}

/** Something that belongs to somebody else has a name that the mirror needs. Nothing was created or changed. */
export class OccupiedError extends Misconfigured {
  override readonly name = 'OccupiedError';
  readonly kind: OccupiedKind;

  constructor([first, ...others]: readonly [Occupied, ...Occupied[]], cause?: unknown) {
    const all = [first, ...others];
    const remedies = [...new Set(all.map(({ remedy }) => remedy))];
    super(
      ['nothing was made or changed in the database:', ...all.map(({ text }) => `  ${text}`)].join('\n'),
      remedies.join('; '),
      cause,
    );
    this.kind = first.kind;
  }
}

const ELSEWHERE = 'give the mirror a database of its own: CREATE DATABASE …, and name it in DATABASE_URL';

/** Returns the schemas that are in the mirror's way, each with its owner and contents. Pure. */
export function judgeSchemas({ role, schemas, ledger, skus, bare, shown, queueTables }: Found): Occupied[] {
  if (ledger === 'none' && schemas.every(({ belongs }) => belongs)) {
    if (bare) return [WITHOUT_ROWS];
    if (shown) return [WITHOUT_INTERNAL];
  }
  // An owner may do everything with an object, unless a script has revoked that.
  if (ledger === 'hidden' && schemas.every(({ belongs, objectsBelong }) => belongs || objectsBelong))
    return [unreadable(role)];
  const judged = schemas.flatMap((found): Occupied[] => {
    const isQueue = found.schema === QUEUE_SCHEMA;
    const isKnown = isQueue ? queueTables : ledger === 'ours';
    const isTrusted = isKnown ? found.belongs : found.own;
    const hasOthers = isKnown ? false : found.count > 0;
    if (isTrusted && !hasOthers) return [];
    const isGivenAway = isKnown && found.objectsBelong;
    const remedy = isGivenAway
      ? `ALTER SCHEMA ${found.schema} OWNER TO ${escapeIdentifier(role)}`
      : remedyFor(found, hasOthers);
    return [{ kind: 'schema-of-another', text: describe(found), remedy }];
  });
  if (ledger === 'foreign')
    judged.push({
      kind: 'schema-of-another',
      text: "the table catalog_internal.migrations has none of the mirror's migrations: it is another application's",
      remedy: ELSEWHERE,
    });
  if (ledger === 'ours' && !skus && judged.length === 0) judged.push(incomplete(schemas));
  return judged;
}

const BEGIN_ANEW = 'or, to begin anew, drop catalog, catalog_internal and catalog_queue with CASCADE';

const WITHOUT_INTERNAL: Occupied = {
  kind: 'mirror-incomplete',
  text: "the schema catalog is a mirror's, and what it goes by is gone from the schema catalog_internal",
  remedy: `load catalog and catalog_internal from a backup; ${BEGIN_ANEW}`,
};

const WITHOUT_ROWS: Occupied = {
  kind: 'mirror-incomplete',
  text: "the schemas catalog and catalog_internal are a mirror's, and without its rows, as pg_dump --schema-only leaves them",
  remedy: `load them with their rows; ${BEGIN_ANEW}`,
};

function unreadable(role: string): Occupied {
  const to = escapeIdentifier(role);
  return {
    kind: 'ledger-hidden',
    text: 'the table catalog_internal.migrations, which says whose the schemas are, is not for this role to read',
    remedy:
      `GRANT USAGE ON SCHEMA catalog_internal TO ${to}; GRANT SELECT ON catalog_internal.migrations TO ${to}; ` +
      '`catalog-mirror doctor` says which privileges it lacks besides',
  };
}

function describe({ schema, owner, count, objects, owners }: FoundSchema): string {
  const more = count > objects.length ? `, and ${count - objects.length} more` : '';
  const others = owners.filter((name) => name !== owner);
  const whose = others.length === 0 ? '' : ` (of ${owners.join(', ')})`;
  return `the schema ${schema} belongs to ${owner} and ${count === 0 ? 'is empty' : `has ${objects.join(', ')}${more}${whose}`}`;
}

function remedyFor({ schema, own, belongs, owner }: FoundSchema, hasOthers: boolean): string {
  if (!own && !belongs)
    return `if it is this mirror's, connect as ${owner} or a member of it that inherits its privileges; if not, ${ELSEWHERE}`;
  if (hasOthers) return `${ELSEWHERE}; or rename what is there: ALTER SCHEMA ${schema} RENAME TO …`;
  return `ALTER SCHEMA ${schema} OWNER TO the mirror's role, or drop the schema`;
}

function incomplete(schemas: readonly FoundSchema[]): Occupied {
  const catalog = schemas.find(({ schema }) => schema === 'catalog');
  const now = catalog === undefined ? 'there is no schema catalog any more' : describe(catalog);
  return {
    kind: 'mirror-incomplete',
    text: `the mirror was migrated here, and its table catalog.skus is gone: ${now}`,
    remedy:
      'load the schemas catalog and catalog_internal from a backup; or, to begin anew, drop both with CASCADE',
  };
}

/**
 * Reads what `judgeSchemas` needs. `known` identifies the mirror's migrations: when each was written, in epoch
 * milliseconds. Changes nothing.
 */
export async function readFound(sql: Sql, known: readonly number[]): Promise<Found> {
  const found = await readOnce(sql, known);
  // Another daemon may have finished its first migration in between: the schemas were read before it, the ledger
  // after.
  return found.ledger === 'ours' && !found.skus ? await readOnce(sql, known) : found;
}

/** Reads the schemas first: a daemon that is migrating commits tables and ledger together. */
async function readOnce(sql: Sql, known: readonly number[]): Promise<Found> {
  const schemas = await readSchemas(sql);
  // Avoids to_regclass, which fails for a schema that this role may not use.
  const [there] = await sql<
    [
      Pick<Found, 'role' | 'skus' | 'bare' | 'shown'> & {
        kind: string | null;
        readable: boolean;
        queue: boolean;
      },
    ]
  >`
    with relations as (
      select c.oid, nspname || '.' || relname as name, relkind::text as kind, has_schema_privilege(n.oid, 'USAGE') as usable
      from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = any (${OUR_SCHEMAS})
    )
    select current_user::text as role, (select kind from relations where name = 'catalog_internal.migrations') as kind,
      exists (
        select from relations where name = 'catalog_internal.migrations' and usable and has_table_privilege(oid, 'SELECT')
      ) as readable,
      exists (select from relations where name = 'catalog.skus') as skus,
      (select count(*) = 3 from relations where name in ('catalog.skus', 'catalog_internal.due', 'catalog_internal.sync')) as bare,
      (
        select count(*) = 5 from relations
        where name in ('catalog.skus', 'catalog.prices', 'catalog.products', 'catalog.price_history', 'catalog.watchlist')
      ) as shown,
      exists (
        select from relations join pg_attribute on attrelid = oid
        where name = ${`${QUEUE_SCHEMA}.migration`} and attname = 'version'
      ) as queue`;
  const { kind, readable, queue: queueTables, ...found } = there;
  const read = async () => {
    if (kind === null) return 'none';
    if (!readable) return 'hidden';
    return kind === 'r' ? await readLedger(sql, known) : 'foreign';
  };
  return { ...found, schemas, ledger: await read(), queueTables };
}

/** Reads the rows as JSON, because another application's table of this name may have any columns. */
async function readLedger(sql: Sql, known: readonly number[]): Promise<Found['ledger']> {
  const [{ rows, ours, shaped }] = await sql<[{ rows: boolean; ours: boolean; shaped: boolean }]>`
    select exists (select from catalog_internal.migrations) as rows,
      exists (select from catalog_internal.migrations m where to_jsonb(m) ->> 'created_at' = any (${known.map(String)}::text[])) as ours,
      (
        select count(*) = 3 from pg_attribute
        where attrelid = 'catalog_internal.migrations'::regclass and attname in ('id', 'hash', 'created_at')
      ) as shaped`;
  if (rows) return ours && shaped ? 'ours' : 'foreign';
  return shaped ? 'none' : 'foreign';
}

/** How many objects of an occupied schema the message names. */
const NAMED = 6;
const LEDGER = 'catalog_internal.migrations';

async function readSchemas(sql: Sql): Promise<readonly FoundSchema[]> {
  return await sql<FoundSchema[]>`
    with objects as (
      select d.refobjid as schema, i.type || ' ' || i.identity as name,
        coalesce(c.relowner, p.proowner, t.typowner, e.extowner) as owner
      from pg_depend d
        cross join lateral pg_identify_object(d.classid, d.objid, 0) i
        left join pg_class c on d.classid = 'pg_class'::regclass and c.oid = d.objid
        left join pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
        left join pg_type t on d.classid = 'pg_type'::regclass and t.oid = d.objid
        left join pg_extension e on d.classid = 'pg_extension'::regclass and e.oid = d.objid
      -- Not what goes with it, such as default privileges, and not what comes with an extension, which is named itself.
      where d.refclassid = 'pg_namespace'::regclass and d.deptype = 'n' and i.identity <> ${LEDGER}
        and not exists (
          select from pg_depend m where m.classid = d.classid and m.objid = d.objid and m.deptype = 'e'
        )
        -- Nor the sequence of the table of applied migrations, whatever its name: Postgres adds a number to it
        -- where daemons make that table at the same moment.
        and not exists (
          select from pg_depend o cross join lateral pg_identify_object(o.refclassid, o.refobjid, 0) l
          where o.classid = d.classid and o.objid = d.objid and o.deptype = 'a' and l.identity = ${LEDGER}
        )
    )
    select n.nspname::text as schema, pg_get_userbyid(n.nspowner)::text as owner,
      pg_has_role(n.nspowner, 'USAGE') as belongs,
      n.nspowner = r.oid or not r.rolsuper and pg_has_role(n.nspowner, 'USAGE') as own,
      count(o.name)::int as count,
      coalesce((array_agg(o.name order by o.name) filter (where o.name is not null))[1:${NAMED}], '{}') as objects,
      coalesce(array_agg(distinct pg_get_userbyid(o.owner)::text) filter (where o.owner is not null), '{}') as owners,
      2 * count(*) filter (where pg_has_role(o.owner, 'USAGE')) > count(o.name) as "objectsBelong"
    from pg_roles r, pg_namespace n left join objects o on o.schema = n.oid
    where r.rolname = current_user and n.nspname = any (${OUR_SCHEMAS})
    group by n.oid, n.nspname, n.nspowner, r.oid, r.rolsuper order by 1`;
}

/** A role with one of the mirror's role names, as it was found. */
export interface FoundRole {
  readonly role: string;
  /** What it may do beyond reading or watching, in words: SUPERUSER, …. */
  readonly powers: readonly string[];
  readonly canLogin: boolean;
  /** Who is a member of it. */
  readonly members: readonly string[];
}

/** Returns the roles for sellers that would give their members more than the mirror intends. Pure. */
export function judgeRoles(roles: readonly FoundRole[]): Occupied[] {
  return roles
    .filter(({ powers }) => powers.length > 0)
    .map(({ role, powers }) => ({
      kind: 'role-of-another',
      text: `the role ${role} exists and is more than a reader of the mirror: ${powers.join(', ')}; whoever is given it, gets that too`,
      remedy: `take it away (${takeAway(role, powers)}), or rename that role: ALTER ROLE ${role} RENAME TO …`,
    }));
}

function takeAway(role: string, powers: readonly string[]): string {
  const attributes = powers.filter((power) => /^[A-Z]+$/.test(power)).map((power) => `NO${power}`);
  return attributes.length === 0
    ? 'REVOKE, or another role in DATABASE_URL'
    : `ALTER ROLE ${role} ${attributes.join(' ')}`;
}

/** Reads the roles with the mirror's role names, and what they may do beyond reading. */
export async function readRoles(sql: Sql): Promise<readonly FoundRole[]> {
  return await sql<FoundRole[]>`
    select rolname::text as role, rolcanlogin as "canLogin",
      array_remove(array[
        case when rolsuper then 'SUPERUSER' end, case when rolcreaterole then 'CREATEROLE' end,
        case when rolcreatedb then 'CREATEDB' end, case when rolreplication then 'REPLICATION' end,
        case when rolbypassrls then 'BYPASSRLS' end,
        case when rolname = current_user then 'it is the role of the mirror itself'
          when not rolsuper and pg_has_role(oid, current_user, 'MEMBER') then 'a member of ' || current_user end
      ], null) as powers,
      array(
        select pg_get_userbyid(member)::text from pg_auth_members
        where roleid = r.oid and member <> (select oid from pg_roles where rolname = current_user) order by 1
      ) as members
    from pg_roles r where rolname in ('catalog_reader', 'catalog_watcher') order by 1`;
}

/**
 * The only encoding in which Postgres can store everything that a partner may write, and knows where a character
 * ends.
 */
const ENCODING = 'UTF8';

async function readEncoding(sql: Sql): Promise<string> {
  const [{ encoding }] = await sql<
    [{ encoding: string }]
  >`select current_setting('server_encoding') as encoding`;
  return encoding;
}

/** Returns what is wrong with an encoding, and what to do, or null. Pure. */
export function encodingProblem(encoding: string): { readonly what: string; readonly hint: string } | null {
  if (encoding === ENCODING) return null;
  return {
    what: `the database has the encoding ${encoding}, in which not every name and size can be stored`,
    hint: `use another one: CREATE DATABASE … ENCODING '${ENCODING}' TEMPLATE template0`,
  };
}

/** Nothing was created. */
class EncodingError extends Misconfigured {
  override readonly name = 'EncodingError';
  readonly kind = 'encoding';
}

/** Throws EncodingError if the database's encoding cannot store everything. */
export async function refuseEncoding(sql: Sql): Promise<void> {
  const problem = encodingProblem(await readEncoding(sql));
  if (problem !== null) throw new EncodingError(problem.what, problem.hint);
}
