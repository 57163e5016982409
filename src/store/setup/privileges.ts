import type { Sql } from '../connection/db.ts';
import { QUEUE_SCHEMA } from './occupied.ts';

/* What the mirror's own role may do with what is the mirror's own: all, unless somebody has taken it from it. */

/** The tables of the mirror, partitions by what they are of; others may have tables beside them. */
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
  schema: ['USAGE'],
  table: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  sequence: ['USAGE', 'SELECT', 'UPDATE'],
  function: ['EXECUTE'],
} as const;
type Kind = keyof typeof PRIVILEGES;

/** Something of the mirror's, and what its role may not do with it. */
export interface Lacking {
  readonly kind: Kind;
  /** As GRANT takes it. */
  readonly name: string;
  readonly privileges: readonly (typeof PRIVILEGES)[Kind][number][];
}

/**
 * Which privileges this role lacks on what is the mirror's: of that which is there, and belongs to whom the tables
 * belong to. Of a trigger's function Postgres asks for none, and a procedure only sellers call.
 */
export const readLacking = (sql: Sql): Promise<Lacking[]> =>
  lackingIn(sql, ['catalog', 'catalog_internal'], OWN_TABLES);

/** The same of BullMQ's schema: of all tables there, which change with its versions. */
export const readQueueLacking = (sql: Sql): Promise<Lacking[]> => lackingIn(sql, [QUEUE_SCHEMA], null);

async function lackingIn(
  sql: Sql,
  within: readonly string[],
  tables: readonly string[] | null,
): Promise<Lacking[]> {
  return await sql<Lacking[]>`
    with schemas as (select oid, nspname from pg_namespace where nspname = any (${[...within]}::text[])),
    whose as (
      select relowner as owner from pg_class join pg_namespace n on n.oid = relnamespace
      where nspname = 'catalog' and relname = 'skus'
    ),
    lacking as (
      select 1 as rank, 'schema' as kind, nspname::text as name, p.name as privilege, p.place
      from schemas cross join unnest(${[...PRIVILEGES.schema]}::text[]) with ordinality as p(name, place)
      where not has_schema_privilege(oid, p.name)
      union all
      select 2, 'table', format('%I.%I', n.nspname, c.relname), p.name, p.place
      from pg_class c join schemas n on n.oid = c.relnamespace
        cross join unnest(${[...PRIVILEGES.table]}::text[]) with ordinality as p(name, place)
      where c.relkind in ('r', 'p') and not has_table_privilege(c.oid, p.name)
        and coalesce(n.nspname || '.' || c.relname = any (${tables === null ? null : [...tables]}::text[]),
          c.relowner = (select owner from whose))
      union all
      select 3, 'sequence', format('%I.%I', n.nspname, c.relname), p.name, p.place
      from pg_class c join schemas n on n.oid = c.relnamespace join whose on owner = c.relowner
        cross join unnest(${[...PRIVILEGES.sequence]}::text[]) with ordinality as p(name, place)
      where c.relkind = 'S' and not has_sequence_privilege(c.oid, p.name)
      union all
      select 4, 'function', format('%I.%I(%s)', n.nspname, f.proname, pg_get_function_identity_arguments(f.oid)), p.name, p.place
      from pg_proc f join schemas n on n.oid = f.pronamespace join whose on owner = f.proowner
        cross join unnest(${[...PRIVILEGES.function]}::text[]) with ordinality as p(name, place)
      where f.prokind = 'f' and f.prorettype <> 'trigger'::regtype and not has_function_privilege(f.oid, p.name)
    )
    select kind, name, array_agg(privilege order by place) as privileges
    from lacking group by rank, kind, name order by rank, name`;
}

/** What this role is to the mirror's tables, and lacks on them. */
export interface OwnRights {
  readonly role: string;
  /** Whether they are its own, or those of a role that it belongs to. */
  readonly owns: boolean;
  readonly lacking: readonly Lacking[];
}

export async function readOwnRights(sql: Sql): Promise<OwnRights> {
  const [row] = await sql<[Pick<OwnRights, 'role' | 'owns'>]>`
    select current_user::text as role, exists (
      select from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'catalog' and c.relname = 'skus' and pg_has_role(c.relowner, 'USAGE')
    ) as owns`;
  return { ...row, lacking: row.owns ? await readLacking(sql) : [] };
}

/** So many are named, or granted one by one. */
const NAMED = 3;

/** In words: what is lacking, or null where nothing is. Pure. */
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

/** SQL that gives them to the role. Pure. */
export function grantOf(lacking: readonly Lacking[], role: string): string {
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
