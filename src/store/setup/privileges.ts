import type { Sql } from '../connection/db.ts';

/* What the mirror's own role may do with the mirror's own tables: all, unless somebody has taken it from it. */

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

const PRIVILEGES = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] as const;

/** A table of the mirror, and what its role may not do with it. */
export interface Lacking {
  readonly table: string;
  readonly privileges: readonly (typeof PRIVILEGES)[number][];
}

/** Which privileges this role lacks on the mirror's tables: of those that are there. */
export async function readLacking(sql: Sql): Promise<Lacking[]> {
  return await sql<Lacking[]>`
    select t.name as "table", array_agg(p.name order by p.place) as privileges
    from unnest(${[...OWN_TABLES]}::text[]) as t(name)
      join pg_namespace n on n.nspname = split_part(t.name, '.', 1)
      join pg_class c on c.relnamespace = n.oid and c.relname = split_part(t.name, '.', 2)
      cross join unnest(${[...PRIVILEGES]}::text[]) with ordinality as p(name, place)
    where not has_table_privilege(c.oid, p.name)
    group by t.name order by t.name`;
}

/** So many are named, or granted one by one. */
const NAMED = 3;

/** In words: what is lacking, or null where nothing is. Pure. */
export function lackingText(lacking: readonly Lacking[]): string | null {
  if (lacking.length === 0) return null;
  const named = lacking
    .slice(0, NAMED)
    .map(({ table, privileges }) => `${privileges.join(', ')} on ${table}`);
  const more = lacking.length > NAMED ? `, and privileges on ${lacking.length - NAMED} more tables` : '';
  return `the mirror's role lacks ${named.join(', ')}${more}`;
}

/** SQL that gives them to the role. Pure. */
export function grantOf(lacking: readonly Lacking[], role: string): string {
  if (lacking.length > NAMED)
    return `GRANT ${PRIVILEGES.join(', ')} ON ALL TABLES IN SCHEMA catalog, catalog_internal TO ${role}`;
  return lacking
    .map(({ table, privileges }) => `GRANT ${privileges.join(', ')} ON ${table} TO ${role}`)
    .join('; ');
}
