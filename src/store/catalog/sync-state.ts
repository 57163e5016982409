import type { Sql } from '../connection/db.ts';
import { checkMirror, isOwnMirror, presentServer } from '../connection/own-mirror.ts';
import { REFRESHES_CAME } from '../sellers/refresh.ts';
import { SCOPE_MOVED } from '../sellers/scope.ts';
import { WATCHLIST_MOVED } from '../sellers/watchlist.ts';

/** What is stored about the upstream's catalog and the mirror's position in it. */
export interface SyncState {
  /** When it was read, by Postgres's clock. */
  readonly readAt: Date;
  readonly snapshotId: string | null;
  readonly snapshotGeneratedAt: Date | null;
  readonly manifestAppliedAt: Date | null;
  readonly manifestLines: number | null;
  readonly deltaCheckedAt: Date | null;
  readonly snapshotMovedAt: Date | null;
  readonly livePricedSkuCount: number | null;
  readonly catalogFault: string | null;
  readonly chainBrokenAt: Date | null;
  readonly rejectedSnapshotId: string | null;
  readonly manifestRefused: string | null;
  readonly shrinkConfirmed: boolean;
  readonly liveBudget: number | null;
  readonly catalogState: 'ok' | 'stale' | 'none';
  /** Whether the last delta check is older than allowed, or dated in the future; null before the first baseline. */
  readonly deltaLate: boolean | null;
  /** Since when the manifest route has named a newer snapshot than the delta leads to; null if it does not. */
  readonly deltaBehindSince: Date | null;
  /** Since when the delta is known to stand still after a manifest took its place; null if that is not known. */
  readonly deltaStillSince: Date | null;
  /** Since when the mirror's own snapshot differs from it according to the manifest route, and how. */
  readonly catalogDiffersAt: Date | null;
  readonly catalogDifference: CatalogDifference | null;
  /** Whether each answer of the delta has a token of its own. */
  readonly ownTokens: boolean;
}

export async function readSyncState(sql: Sql): Promise<SyncState> {
  const [row] = await sql<[SyncState]>`
    select clock_timestamp() as "readAt", snapshot_id as "snapshotId", snapshot_generated_at as "snapshotGeneratedAt",
      manifest_applied_at as "manifestAppliedAt", manifest_lines as "manifestLines",
      delta_checked_at as "deltaCheckedAt", snapshot_moved_at as "snapshotMovedAt",
      live_priced_sku_count as "livePricedSkuCount", catalog_fault as "catalogFault",
      chain_broken_at as "chainBrokenAt", rejected_snapshot_id as "rejectedSnapshotId",
      manifest_refused as "manifestRefused", shrink_confirmed as "shrinkConfirmed", live_budget as "liveBudget",
      catalog_internal.catalog_state(s) as "catalogState",
      catalog_internal.delta_is_late(s, g) as "deltaLate",
      case when delta_doubt = 'behind' then behind_since end as "deltaBehindSince",
      delta_still_since as "deltaStillSince",
      catalog_differs_at as "catalogDiffersAt", catalog_difference as "catalogDifference",
      own_tokens as "ownTokens"
    from catalog_internal.sync s, catalog_internal.settings g`;
  return row;
}

/** How the mirror's own snapshot differs from the mirror according to the manifest route. */
export type CatalogDifference =
  /** How many more SKUs, and live SKUs, it announces. */
  { readonly listed: number; readonly live: number } | { readonly rebuilt: true };

/** A snapshot as the manifest route names it. */
export interface NamedSnapshot {
  readonly snapshotId: string;
  readonly generatedAt: Date | null;
}

/** How many named snapshots are remembered: four days of them at one every six hours. */
const NAMED_KEPT = 16;

/** SQL: whether it is the snapshot that was named last. */
const isSeen = (sql: Sql, { snapshotId, generatedAt }: NamedSnapshot) => sql`
  seen_snapshot_id = ${snapshotId} and seen_generated_at is not distinct from ${generatedAt}::timestamptz`;

/**
 * SQL: whether it is the mirror's own snapshot, and its build time is known. Two servers may date it differently; if
 * the later time were stored, the manifest requested because of such a difference would be refused for its age.
 */
const isOwnNamedBefore = (sql: Sql, { snapshotId }: NamedSnapshot) => sql`
  coalesce(snapshot_id = ${snapshotId}, false) and snapshot_generated_at is not null
  -- Not since the delta led to it, though a manifest that was refused may have named it.
  and snapshot_moved_at is null and exists (
    select from jsonb_array_elements(named_snapshots) n where n ->> 'id' = ${snapshotId} and n ->> 'generated' is not null
  )`;

/**
 * SQL: stores which claim was the newest when the newest snapshot was first named. What was asked after the snapshot
 * existed is recognised by claims, because `generated_at` is of another clock and may be when its building began
 * (partner rule 2.7.generated_at), and Postgres's own clock can be set back, while claims only grow. An id with
 * another time is another snapshot. Also stores when the last snapshots were built, and since when this one is named
 * (`seen`).
 */
const seeing = (sql: Sql, { snapshotId, generatedAt }: NamedSnapshot) => sql`
  seen_snapshot_id = ${snapshotId}, seen_generated_at = ${generatedAt},
  seen_claim = case when ${isSeen(sql, { snapshotId, generatedAt })}
    then seen_claim else (select last_value from catalog_internal.claim_numbers) end,
  named_snapshots = (
    select jsonb_agg(entry order by nth) from (
      select 0 as nth, jsonb_build_object('id', ${snapshotId}::text, 'generated', ${generatedAt}::timestamptz, 'named',
        coalesce((select n -> 'named' from jsonb_array_elements(named_snapshots) n where n ->> 'id' = ${snapshotId}), to_jsonb(now())),
        'seen', coalesce((select n -> 'seen' from jsonb_array_elements(named_snapshots) n
          where n ->> 'id' = ${snapshotId} and ${isSeen(sql, { snapshotId, generatedAt })}), to_jsonb(now()))
      ) as entry
      union all
      select nth, entry from jsonb_array_elements(named_snapshots) with ordinality as o (entry, nth) where entry ->> 'id' <> ${snapshotId}
      order by nth limit ${NAMED_KEPT}
    ) kept
  )`;

/** Recognises what was asked after a snapshot existed: its claim is later than `seenClaim`. */
export interface SnapshotSeen {
  readonly seenClaim: string;
  /** When the snapshot was first named, by Postgres's clock. */
  readonly seenAt: Date;
  /** The server of the claim and time (`presentServer`); undefined: whichever server is asked. */
  readonly server?: string;
}

/** Notes the snapshot that an answer of the manifest route names. */
export async function noteSnapshotSeen(sql: Sql, snapshot: NamedSnapshot): Promise<SnapshotSeen> {
  const noted = await sql<SnapshotSeen[]>`
    update catalog_internal.sync set ${seeing(sql, snapshot)} where ${isOwnMirror(sql, sql)}
    returning coalesce(seen_claim, 9223372036854775807) as "seenClaim", (named_snapshots -> 0 ->> 'seen')::timestamptz as "seenAt",
      ${presentServer(sql)} as server`;
  if (noted.length === 0) await checkMirror(sql);
  return noted[0] as SnapshotSeen;
}

/** Why a request was put off, as the outcomes of tasks name it. */
const WAITS = ['spacing', 'window', 'silence', 'probe', 'paused', 'stopping'];
/**
 * Outcomes of the delta's task after which the delta route has the last word on a fault of the catalog: it reported
 * one, or the next request was put off and so has shown nothing.
 */
const OF_THE_DELTA = ['no-snapshot', 'snapshot-stale', ...WAITS];

/**
 * Stores what the manifest route said of the newest snapshot (partner rules 2.7), without any download. That ends a
 * fault of the catalog, unless the delta route had the last word on it: then only a delta does. A later build time of
 * the mirror's own snapshot is not stored, because only that snapshot's manifest makes the mirror newer.
 */
export async function noteCatalogCheck(
  sql: Sql,
  meta: NamedSnapshot & { readonly livePricedSkuCount: number | null },
): Promise<void> {
  const noted = await sql`
    update catalog_internal.sync set
      ${seeing(sql, meta)},
      rebuilds = case when exists (
        select from jsonb_array_elements(named_snapshots) n
        where n ->> 'id' = ${meta.snapshotId} and (n ->> 'generated')::timestamptz = ${meta.generatedAt}
      ) then 0 else rebuilds end,
      snapshot_generated_at = case when ${isOwnNamedBefore(sql, meta)} then snapshot_generated_at
        else coalesce(greatest(snapshot_generated_at, ${meta.generatedAt}), snapshot_generated_at) end,
      live_priced_sku_count = coalesce(${meta.livePricedSkuCount}::int, live_priced_sku_count),
      snapshot_moved_at =
        case when ${meta.generatedAt}::timestamptz is null and snapshot_generated_at is not null then snapshot_moved_at end,
      catalog_checked_at = now(),
      catalog_fault = case when exists (
        select from catalog_internal.tasks
        where task = 'delta' and failures > 0 and outcome = any(${OF_THE_DELTA}::text[])
      ) then catalog_fault end
    where ${isOwnMirror(sql, sql)}`;
  if (noted.count === 0) await checkMirror(sql);
}

/** Notes that a fresh manifest was refused, and why (a short code); shown until one is applied. */
export async function noteManifestRefused(sql: Sql, reason: string): Promise<void> {
  await sql`update catalog_internal.sync set manifest_refused = ${reason}`;
}

/** What `run --once` still waits for; a delta counts only if it began after `since`. */
export interface StillDue {
  readonly baseline: boolean;
  readonly deltaCaughtUp: boolean;
  /** SKUs due now, including those that wait, by reason. */
  readonly due: readonly { reason: string; count: number }[];
}

/** Returns the database's time, from which a one-off run measures its progress. */
export async function databaseNow(sql: Sql): Promise<Date> {
  const [row] = await sql<[{ at: Date }]>`select clock_timestamp() as at`;
  return row.at;
}

/**
 * Returns what keeps the mirror from being caught up, which requires an applied baseline, a successful delta poll
 * begun after `since` (and none requested), and no due SKU. Deferred and erring SKUs count as due (a spare slot may
 * have asked for a deferred one before its time). A live SKU with a future due time does not, nor does one that was
 * answered and waits for a second answer to count. SKUs that sellers have requested but that are not marked yet count
 * as due.
 */
export async function stillDue(sql: Sql, since: Date): Promise<StillDue> {
  const [sync] = await sql<[{ baseline: boolean; delta: boolean }]>`
    select s.manifest_applied_at is not null and s.chain_broken_at is null and m.next_at > clock_timestamp()
        and m.running_until is null as baseline,
      coalesce(d.succeeded_at > ${since} and d.started_at > ${since} and d.started_at >= s.manifest_applied_at, false)
        and d.next_at > clock_timestamp() and d.running_until is null as delta
    from catalog_internal.sync s, catalog_internal.tasks m, catalog_internal.tasks d
    where m.task = 'manifest' and d.task = 'delta'`;
  const due = await sql<{ reason: string; count: number }[]>`
    select coalesce(catalog_internal.put_off_by(d), reason) as reason, count(*)::int as count
    from catalog_internal.due d
    where due_at <= now() and (deferrals > 0 or not catalog_internal.is_waiting(d)) or deferrals > 0 and outside_due_at is null
    group by 1
    union all select 'refresh', 1 where ${sql.unsafe(REFRESHES_CAME)}
    union all select 'watchlist', 1 where ${sql.unsafe(WATCHLIST_MOVED)}
    union all select 'scope', 1 where ${sql.unsafe(SCOPE_MOVED)}
    order by 2 desc`;
  return { baseline: sync.baseline, deltaCaughtUp: sync.delta, due };
}
