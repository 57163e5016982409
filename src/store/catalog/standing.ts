import { type Sql, scanning } from '../connection/db.ts';
import type { CatalogDifference, NamedSnapshot } from './sync-state.ts';
import { isLeft } from './tokens.ts';

/** What is thought of where the delta leads to: the manifest route names a newer snapshot, or has done so lately. */
export type DeltaDoubt = 'suspected' | 'behind' | 'distrusted';

/** Where the mirror stands when the manifest route names a snapshot. */
export interface CatalogStanding {
  readonly now: Date;
  readonly snapshotId: string | null;
  readonly manifestAppliedAt: Date | null;
  /** When the snapshot of the token was built, by the manifest route; null where it has not said so. */
  readonly tokenGeneratedAt: Date | null;
  /** The same by what the mirror has applied; null: the delta has led to it since. */
  readonly appliedGeneratedAt: Date | null;
  readonly tokenAt: Date | null;
  /** When the named snapshot was named for the first time; where deltas have left its id, with its present time. */
  readonly firstNamedAt: Date;
  /** Whether deltas have left the named snapshot behind, and it was not built again since. */
  readonly hasLeft: boolean;
  readonly chainBroken: boolean;
  readonly doubt: DeltaDoubt | null;
  readonly behindSince: Date | null;
  /** When the first snapshot since the token came was named, or the named one with its present time; null: none was. */
  readonly newerNamedAt: Date | null;
  readonly deltaCheckedAt: Date | null;
  readonly deltaLateAfterMs: number;
  readonly difference: CatalogDifference | null;
  /** Manifests of snapshots that were built again, since a build time last stood still. */
  readonly rebuilds: number;
  /** Manifests that were applied for other counts and listed nothing else, less the times that counts were right. */
  readonly idleManifests: number;
  /** Lines of the last manifest that were rejected or doubled, and by how much it miscounted its live SKUs. */
  readonly unclear: number;
  readonly liveMiscount: number;
}

/** Where the mirror stands; call this before the naming of the snapshot is noted. */
export async function readStanding(sql: Sql, named: NamedSnapshot): Promise<CatalogStanding> {
  const { snapshotId, generatedAt } = named;
  const isOfTime = sql`(n ->> 'generated')::timestamptz is not distinct from ${generatedAt}::timestamptz`;
  const [row] = await sql<[Omit<CatalogStanding, 'hasLeft'>]>`
    select now() as now, snapshot_id as "snapshotId", manifest_applied_at as "manifestAppliedAt",
      (select (n ->> 'generated')::timestamptz from jsonb_array_elements(named_snapshots) n
        where n ->> 'id' = snapshot_id) as "tokenGeneratedAt",
      case when snapshot_moved_at is null then snapshot_generated_at end as "appliedGeneratedAt", token_at as "tokenAt",
      coalesce((select (case when not exists (select from catalog_internal.left_tokens where token = n ->> 'id') then n ->> 'named'
          when ${isOfTime} then n ->> 'seen' end)::timestamptz
        from jsonb_array_elements(named_snapshots) n where n ->> 'id' = ${snapshotId}), now()) as "firstNamedAt",
      (select min(at) from jsonb_array_elements(named_snapshots) n
        cross join lateral (values ((n ->> 'named')::timestamptz),
          (case when n ->> 'id' = ${snapshotId} and ${isOfTime} then (n ->> 'seen')::timestamptz end)) named(at)
        where n ->> 'id' <> snapshot_id and at > token_at) as "newerNamedAt",
      chain_broken_at is not null as "chainBroken", delta_doubt as doubt, behind_since as "behindSince",
      delta_checked_at as "deltaCheckedAt", catalog_internal.delta_late_after(g) * 1000 as "deltaLateAfterMs",
      catalog_difference as difference, rebuilds,
      (select count(*)::int from catalog_internal.idle_manifests) as "idleManifests", manifest_unclear as unclear,
      manifest_live_miscount as "liveMiscount"
    from catalog_internal.sync, catalog_internal.settings g`;
  return { ...row, hasLeft: await isLeft(sql, named) };
}

/** How many SKUs the mirror has as listed, and how many of them as live. Reads the whole catalog. */
export async function countCohorts(sql: Sql): Promise<{ readonly listed: number; readonly live: number }> {
  const [counts] = await scanning(
    sql<[{ listed: number; live: number }]>`
      select count(*)::int as listed, count(*) filter (where price_source = 'live')::int as live
      from catalog.skus where in_manifest`,
  );
  return counts;
}

/** SQL: token and manifest are still those of the standing. */
const asIt = (sql: Sql, { snapshotId, manifestAppliedAt }: CatalogStanding) => sql`
  snapshot_id is not distinct from ${snapshotId}
  and date_trunc('milliseconds', manifest_applied_at) is not distinct from ${manifestAppliedAt}::timestamptz`;

/**
 * Stores the doubt about the delta (null: none), if token and manifest are still those of `standing`. If a distrusted
 * delta is behind again, also stores since when it has stood still, until it moves the token itself.
 */
export async function noteDeltaDoubt(
  sql: Sql,
  standing: CatalogStanding,
  doubt: DeltaDoubt | null,
): Promise<void> {
  await sql`
    update catalog_internal.sync set delta_doubt = ${doubt},
      behind_since = case when ${doubt !== null && doubt !== 'distrusted'} then coalesce(behind_since, now()) end,
      delta_still_since = case when ${doubt === null} then null
        when ${doubt === 'behind'} and delta_doubt = 'distrusted' then coalesce(delta_still_since, now())
        else delta_still_since end
    where ${asIt(sql, standing)}`;
}

/**
 * Stores what the manifest route says of the mirror's snapshot that the mirror does not have; null: nothing. Stores
 * nothing if token or manifest have moved, or if the mirror may have been counted amid a delta, of which a large answer
 * or a run that broke off has applied only a part. Returns whether it was stored.
 */
export async function noteDifference(
  sql: Sql,
  standing: CatalogStanding,
  difference: CatalogDifference | null,
): Promise<boolean> {
  const stored = await sql`
    update catalog_internal.sync set catalog_difference = ${difference === null ? null : sql.json(difference)},
      catalog_differs_at = case when ${difference !== null} then coalesce(catalog_differs_at, now()) end
    where ${asIt(sql, standing)} and exists (
      select from catalog_internal.tasks where task = 'delta' and running_until is null and outcome = 'done'
    )
    returning 1`;
  return stored.length > 0;
}

/** The manifest route's counts are the mirror's: other counts will be believed sooner. */
export async function noteCountsRight(sql: Sql): Promise<void> {
  await sql`
    delete from catalog_internal.idle_manifests
    where applied_at = (select max(applied_at) from catalog_internal.idle_manifests)`;
}
