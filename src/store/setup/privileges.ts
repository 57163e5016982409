import type { Sql } from '../connection/db.ts';
import { QUEUE_SCHEMA } from './occupied.ts';
import { OWN_FUNCTIONS } from './own-functions.ts';

/* What the mirror's own role may do with the mirror's objects: everything, unless somebody has revoked it. */

/** The mirror's tables, partitions under their parent's name. Others may have tables beside them. */
export const OWN_TABLES = [
  'catalog.daily_prices',
  'catalog.price_history',
  'catalog.prices',
  'catalog.product_history',
  'catalog.products',
  'catalog.scope',
  'catalog.skus',
  'catalog.watchlist',
  'catalog_internal.account',
  'catalog_internal.beliefs',
  'catalog_internal.calibration_hours',
  'catalog_internal.call_size',
  'catalog_internal.catalog_counts',
  'catalog_internal.change_batches',
  'catalog_internal.clock',
  'catalog_internal.daily',
  'catalog_internal.dead_letters',
  'catalog_internal.delta_audit',
  'catalog_internal.due',
  'catalog_internal.followers',
  'catalog_internal.hint_sources',
  'catalog_internal.hints',
  'catalog_internal.history_chunks',
  'catalog_internal.history_milestones',
  'catalog_internal.idle_manifests',
  'catalog_internal.instances',
  'catalog_internal.learned_names',
  'catalog_internal.left_tokens',
  'catalog_internal.lineage',
  'catalog_internal.live_backlog',
  'catalog_internal.live_calls',
  'catalog_internal.live_ceiling',
  'catalog_internal.live_lines',
  'catalog_internal.live_plan',
  'catalog_internal.live_rates',
  'catalog_internal.lock_changes',
  'catalog_internal.lock_counts',
  'catalog_internal.lock_new_skus',
  'catalog_internal.lock_pace',
  'catalog_internal.lock_refreshes',
  'catalog_internal.lock_schedules',
  'catalog_internal.lock_scope',
  'catalog_internal.mass_move',
  'catalog_internal.migrations',
  'catalog_internal.muted_members',
  'catalog_internal.odd_moves',
  'catalog_internal.pace',
  'catalog_internal.pace_sends',
  'catalog_internal.pause',
  'catalog_internal.position_gaps',
  'catalog_internal.position_shifts',
  'catalog_internal.promise_cases',
  'catalog_internal.promising',
  'catalog_internal.quarantine',
  'catalog_internal.random_looks',
  'catalog_internal.refresh_places',
  'catalog_internal.refresh_requests',
  'catalog_internal.refused_tasks',
  'catalog_internal.releases',
  'catalog_internal.samples',
  'catalog_internal.scope_changes',
  'catalog_internal.scope_passes',
  'catalog_internal.scope_pending',
  'catalog_internal.scope_rules',
  'catalog_internal.scoping',
  'catalog_internal.settings',
  'catalog_internal.sync',
  'catalog_internal.tasks',
  'catalog_internal.unread_lines',
  'catalog_internal.unreported_moves',
  'catalog_internal.waiting_hints',
  'catalog_internal.watch_changes',
  'catalog_internal.watched',
  'catalog_internal.watching',
] as const;

/** The views that sellers read. */
export const OWN_VIEWS = [
  'catalog.calibration',
  'catalog.current_prices',
  'catalog.delta_audit',
  'catalog.hint_sources',
  'catalog.promises',
  'catalog.sku_trust',
  'catalog.sync_status',
] as const;

const PRIVILEGES = {
  schema: ['USAGE', 'CREATE'],
  table: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  sequence: ['USAGE', 'SELECT', 'UPDATE'],
  function: ['EXECUTE'],
} as const;
type Kind = keyof typeof PRIVILEGES;

/** An object of the mirror, and what the mirror's role may not do with it. */
export interface Lacking {
  readonly kind: Kind;
  /** In the form that GRANT takes. */
  readonly name: string;
  readonly privileges: readonly (typeof PRIVILEGES)[Kind][number][];
}

/** An object of the mirror that belongs to another role, of which the mirror's role is no member. */
export interface Misowned {
  readonly kind: 'schema' | 'table' | 'function' | 'procedure';
  /** In the form that ALTER takes. */
  readonly name: string;
  readonly owner: string;
}

const OWN_SCHEMAS = ['catalog', 'catalog_internal'];
export const OWN_RELATIONS: readonly string[] = [...OWN_TABLES, ...OWN_VIEWS];

/** Up to this many tables of another application may have the mirror's names by chance. */
const NAMED_BY_CHANCE = 5;

/**
 * SQL: who owns most of the mirror's tables, because single ones may have been given to another role; and the role
 * as which the mirror's statements run: that owner, if this role is a member of it. Views and functions have only
 * the owner's rights.
 */
const whose = (sql: Sql) => sql`
  select owner, coalesce(pg_has_role(owner, 'USAGE'), false) as owns,
    case when pg_has_role(owner, 'USAGE') then owner else r.oid end as acting
  from pg_roles r, (
    select case when count(*) > ${NAMED_BY_CHANCE} then mode() within group (order by relowner) end as owner
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname || '.' || c.relname = any (${[...OWN_TABLES]}::text[])
  ) as most
  where r.rolname = current_user`;

/**
 * Reads which privileges this role, or the owner that it is a member of, lacks on the mirror's objects, as far as
 * they exist and belong to the owner of the tables. Trigger functions need no privilege, and only sellers call
 * procedures.
 */
export const readLacking = (sql: Sql): Promise<Lacking[]> => lackingIn(sql, OWN_SCHEMAS, OWN_RELATIONS);

/** Reads the same for all tables in BullMQ's schema, which change with its versions. */
export const readQueueLacking = (sql: Sql): Promise<Lacking[]> => lackingIn(sql, [QUEUE_SCHEMA], null);

async function lackingIn(
  sql: Sql,
  within: readonly string[],
  relations: readonly string[] | null,
): Promise<Lacking[]> {
  return await sql<Lacking[]>`
    with schemas as (select oid, nspname from pg_namespace where nspname = any (${[...within]}::text[])),
    whose as (${whose(sql)}),
    lacking as (
      select 1 as rank, 'schema' as kind, nspname::text as name, p.name as privilege, p.place
      from schemas cross join whose cross join unnest(${[...PRIVILEGES.schema]}::text[]) with ordinality as p(name, place)
      where not has_schema_privilege(acting, oid, p.name)
      union all
      select 2, 'table', format('%I.%I', n.nspname, c.relname), p.name, p.place
      from pg_class c join schemas n on n.oid = c.relnamespace cross join whose
        cross join unnest(${[...PRIVILEGES.table]}::text[]) with ordinality as p(name, place)
      where (c.relkind in ('r', 'p') or c.relkind = 'v' and p.name = 'SELECT') and not has_table_privilege(acting, c.oid, p.name)
        and coalesce(n.nspname || '.' || c.relname = any (${relations === null ? null : [...relations]}::text[]),
          c.relowner = owner)
      union all
      select 3, 'sequence', format('%I.%I', n.nspname, c.relname), p.name, p.place
      from pg_class c join schemas n on n.oid = c.relnamespace join whose on owner = c.relowner
        cross join unnest(${[...PRIVILEGES.sequence]}::text[]) with ordinality as p(name, place)
      where c.relkind = 'S' and not has_sequence_privilege(acting, c.oid, p.name)
      union all
      select 4, 'function', format('%I.%I(%s)', n.nspname, f.proname, pg_get_function_identity_arguments(f.oid)), p.name, p.place
      from pg_proc f join schemas n on n.oid = f.pronamespace join whose on owner = f.proowner
        cross join unnest(${[...PRIVILEGES.function]}::text[]) with ordinality as p(name, place)
      where f.prokind = 'f' and f.prorettype <> 'trigger'::regtype and not has_function_privilege(acting, f.oid, p.name)
    )
    select kind, name, array_agg(privilege order by place) as privileges
    from lacking group by rank, kind, name order by rank, name`;
}

/**
 * Reads which schemas, tables, views and functions of the mirror belong to a role that this one is no member of. If
 * most are its own, somebody has given the others away, or loaded them from a dump under another role.
 */
async function readMisowned(sql: Sql): Promise<Misowned[]> {
  return await sql<Misowned[]>`
    select 'schema' as kind, quote_ident(nspname) as name, pg_get_userbyid(nspowner)::text as owner
    from pg_namespace where nspname = any (${[...OWN_SCHEMAS]}::text[]) and not pg_has_role(nspowner, 'USAGE')
    union all
    select 'table', format('%I.%I', n.nspname, c.relname), pg_get_userbyid(c.relowner)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname || '.' || c.relname = any (${[...OWN_RELATIONS]}::text[]) and not pg_has_role(c.relowner, 'USAGE')
    union all
    select case prokind when 'p' then 'procedure' else 'function' end,
      format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)),
      pg_get_userbyid(p.proowner)
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname || '.' || p.proname = any (${[...OWN_FUNCTIONS]}::text[]) and not pg_has_role(p.proowner, 'USAGE')
    order by 1, 2`;
}

export interface OwnRights {
  readonly role: string;
  /** Who owns most of them; null if there are none. */
  readonly owner: string | null;
  /** Whom to grant what is lacking: the owner, if this role is a member of it. */
  readonly acting: string;
  /** Whether they belong to it, or to a role that it is a member of. */
  readonly owns: boolean;
  readonly lacking: readonly Lacking[];
  readonly misowned: readonly Misowned[];
}

export async function readOwnRights(sql: Sql): Promise<OwnRights> {
  const [row] = await sql<[Pick<OwnRights, 'role' | 'owner' | 'acting' | 'owns'>]>`
    select current_user::text as role, pg_get_userbyid(owner)::text as owner, pg_get_userbyid(acting)::text as acting, owns
    from (${whose(sql)}) as whose`;
  return row.owns
    ? { ...row, lacking: await readLacking(sql), misowned: await readMisowned(sql) }
    : { ...row, lacking: [], misowned: [] };
}

/** How many objects are named, or granted one by one. */
const NAMED = 3;

/** Describes what is lacking; null if nothing is. Pure. */
export function lackingText(lacking: readonly Lacking[]): string | null {
  if (lacking.length === 0) return null;
  const named = lacking
    .slice(0, NAMED)
    .map(
      ({ kind, name, privileges }) =>
        `${privileges.join(', ')} on ${kind === 'table' ? '' : `${kind} `}${name}`,
    );
  const others = lacking.slice(NAMED);
  const kinds = new Set(others.map(({ kind }) => kind));
  const what = kinds.size === 1 ? `${[...kinds].join('')}s` : 'objects';
  const more = others.length > 0 ? `, and privileges on ${others.length} more ${what}` : '';
  return `the mirror's role lacks ${named.join(', ')}${more}`;
}

function grantOf(lacking: readonly Lacking[], role: string): string {
  const kinds = Object.keys(PRIVILEGES) as Kind[];
  return kinds.flatMap((kind) => grantsOf(kind, lacking, role)).join('; ');
}

function grantsOf(kind: Kind, lacking: readonly Lacking[], role: string): string[] {
  const those = lacking.filter((one) => one.kind === kind);
  const what = kind.toUpperCase();
  const schemas = [...new Set(those.map(({ name }) => name.split('.')[0]))];
  if (those.length > NAMED)
    return [
      `GRANT ${PRIVILEGES[kind].join(', ')} ON ALL ${what}S IN SCHEMA ${schemas.join(', ')} TO ${role}`,
    ];
  return those.map(
    ({ name, privileges }) =>
      `GRANT ${privileges.join(', ')} ON ${kind === 'table' ? '' : `${what} `}${name} TO ${role}`,
  );
}

type Rights = Pick<OwnRights, 'lacking' | 'misowned'>;

/** Describes what is lacking and what belongs to other roles; null if all is as the mirror created it. Pure. */
export function rightsText({ lacking, misowned }: Rights): string | null {
  const named = misowned
    .slice(0, NAMED)
    .map(({ kind, name, owner }) => `the ${kind} ${name} belongs to ${owner}`);
  const more = misowned.length - named.length;
  const texts = [
    ...(named.length === 0 ? [] : [`${named.join(', ')}${more > 0 ? `, and ${more} more to others` : ''}`]),
    ...[lackingText(lacking)].filter((text) => text !== null),
  ];
  return texts.length === 0 ? null : texts.join('; ');
}

/** Returns SQL that gives all of that to the role: ownership first, because privileges come with it. Pure. */
export function rightsRemedy({ lacking, misowned }: Rights, role: string): string {
  const owned = misowned.map(({ kind, name }) => `ALTER ${kind.toUpperCase()} ${name} OWNER TO ${role}`);
  return [...owned, ...(lacking.length === 0 ? [] : [grantOf(lacking, role)])].join('; ');
}
