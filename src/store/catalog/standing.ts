import { type Sql, scanning } from '../connection/db.ts';
import type { CatalogDifference, NamedSnapshot } from './sync-state.ts';
import { isLeft } from './tokens.ts';

/**
 * A doubt about the delta: the manifest route names a newer snapshot than the delta leads to, or has done so recently.
 */
export type DeltaDoubt = 'suspected' | 'behind' | 'distrusted';

/** The state of the mirror when the manifest route names a snapshot. */
export interface CatalogStanding {
  readonly now: Date;
  readonly snapshotId: string | null;
  readonly manifestAppliedAt: Date | null;
  /** When the token's snapshot was built, by the manifest route; null if it has not said so. */
  readonly tokenGeneratedAt: Date | null;
  /** The same according to what the mirror has applied; null if a delta has led to the snapshot since. */
  readonly appliedGeneratedAt: Date | null;
  readonly tokenAt: Date | null;
  /** When the snapshot was first named; if deltas have left its id, first named with its present build time. */
  readonly firstNamedAt: Date;
  /** Whether deltas have left the named snapshot behind, and it has not been rebuilt since. */
  readonly hasLeft: boolean;
  readonly chainBroken: boolean;
  readonly doubt: DeltaDoubt | null;
  readonly behindSince: Date | null;
  /** When the first snapshot since the token was named, or the named one with its present build time; null if none. */
  readonly newerNamedAt: Date | null;
  readonly deltaCheckedAt: Date | null;
  readonly deltaLateAfterMs: number;
  readonly difference: CatalogDifference | null;
  /** Manifests of rebuilt snapshots that were applied since a build time last stayed the same. */
  readonly rebuilds: number;
  /** Manifests applied because of differing counts that listed nothing new, less the times that the counts matched. */
  readonly idleManifests: number;
  /** How many lines of the last manifest were rejected or doubled, and by how much it miscounted its live SKUs. */
  readonly unclear: number;
  readonly liveMiscount: number;
}

/** Reads the mirror's state; call this before the naming of the snapshot is noted. */
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

/** Counts the SKUs that the mirror has as listed, and how many of them as live. Reads the whole catalog. */
export async function countCohorts(sql: Sql): Promise<{ readonly listed: number; readonly live: number }> {
  const [counts] = await scanning(
    sql<[{ listed: number; live: number }]>`
      select count(*)::int as listed, count(*) filter (where price_source = 'live')::int as live
      from catalog.skus where in_manifest`,
  );
  return counts;
}

/** SQL: whether token and manifest are still those of the standing. */
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
 * Stores what the mirror lacks of its own snapshot according to the manifest route; null: nothing. Stores nothing if
 * token or manifest have moved, or if the mirror may have been counted in the middle of a delta, of which a large
 * answer or a broken-off run has applied only a part. Returns whether it was stored.
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

/** Notes that the manifest route's counts match the mirror's: later differences will be believed sooner. */
export async function noteCountsRight(sql: Sql): Promise<void> {
  await sql`
    delete from catalog_internal.idle_manifests
    where applied_at = (select max(applied_at) from catalog_internal.idle_manifests)`;
}
