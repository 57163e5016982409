import { doubling } from '../lib/duration.ts';
import type { CatalogStanding, DeltaDoubt } from '../store/catalog/standing.ts';
import type { CatalogDifference } from '../store/catalog/sync-state.ts';
import type { NamedSnapshot } from '../store/catalog/sync-state.ts';

/*
 * What the manifest route says about the newest snapshot, and what that means for a mirror that follows the delta.
 * Pure.
 * The delta may say "nothing new" forever, because it comes from a replica that stands still or from a cache; it
 * may lose SKUs on the way; and a snapshot may be rebuilt under the same id. Only the manifest route shows any of
 * this.
 */

/**
 * Decides whether the named snapshot is newer than the token's. If the manifest route has named both and their
 * build times differ, these decide. Otherwise the token's arrival does: a snapshot built or first named before
 * then is older, or the same one under another name. A snapshot that deltas have left is no evidence, because the
 * manifest route lags behind the delta, unless it has since been rebuilt under its id. Nor are tokens if each
 * answer has its own.
 */
export function isNewer(named: NamedSnapshot, standing: CatalogStanding): boolean {
  const { snapshotId, tokenGeneratedAt, tokenAt, firstNamedAt, hasLeft } = standing;
  const { generatedAt } = named;
  if (named.snapshotId === snapshotId || hasLeft) return false;
  const isBuiltThen = generatedAt?.getTime() === tokenGeneratedAt?.getTime();
  if (generatedAt !== null && tokenGeneratedAt !== null && !isBuiltThen)
    return generatedAt > tokenGeneratedAt;
  if (tokenAt === null) return false;
  return firstNamedAt > tokenAt && (generatedAt === null || isBuiltThen || generatedAt > tokenAt);
}

/**
 * Returns the doubt about the delta after a snapshot is named; null: none. A newer one is named for some minutes
 * after each build, so the delta is behind only if this lasts for `deltaLateAfterMs` while deltas are read that do
 * not lead to it. A delta that was behind, and has not moved since a manifest took its place (`distrusted`), is
 * behind again once it is read after a newer one was named. A broken chain leaves the doubt as it is, because it
 * already means that the delta leads nowhere.
 */
export function doubtAfter(named: NamedSnapshot, standing: CatalogStanding): DeltaDoubt | null {
  const { now, doubt, behindSince, newerNamedAt, deltaCheckedAt, deltaLateAfterMs, chainBroken } = standing;
  if (chainBroken) return doubt;
  if (!isNewer(named, standing)) return doubt === 'distrusted' ? doubt : null;
  if (doubt === 'behind') return doubt;
  if (doubt === 'distrusted') return isAfter(deltaCheckedAt, newerNamedAt) ? 'behind' : doubt;
  if (doubt === null || behindSince === null) return 'suspected';
  const hasLasted = now.getTime() - behindSince.getTime() >= deltaLateAfterMs;
  const isRead = isAfter(deltaCheckedAt, behindSince);
  const isReadNow = deltaCheckedAt !== null && now.getTime() - deltaCheckedAt.getTime() <= deltaLateAfterMs;
  return hasLasted && isRead && isReadNow ? 'behind' : 'suspected';
}

const isAfter = (at: Date | null, other: Date | null) => at !== null && other !== null && at > other;

/** The manifest route's answers are cached for five minutes (partner rules 8). */
const SOONEST_CHECK_MS = 300_000;

/**
 * Returns the milliseconds until the manifest route is asked again after it named a snapshot: fewer if the delta
 * is in doubt. While the delta is distrusted, the manifest route replaces it and is asked as often, but no sooner
 * than after SOONEST_CHECK_MS.
 */
export function nextCheckMs(
  doubt: DeltaDoubt | null,
  { deltaLateAfterMs }: Pick<CatalogStanding, 'deltaLateAfterMs'>,
  { catalogCheckMs, deltaMs }: { readonly catalogCheckMs: number; readonly deltaMs: number },
): number {
  if (doubt === null) return catalogCheckMs;
  return Math.min(
    catalogCheckMs,
    doubt === 'distrusted' ? Math.max(SOONEST_CHECK_MS, deltaMs) : deltaLateAfterMs,
  );
}

/**
 * Decides whether the mirror's own snapshot was rebuilt under its id, with whatever contents. If the build time
 * has changed every time since the last manifest, it may be the time of something else, such as the answer. A
 * later time then counts only after a wait since the last manifest, which doubles from `firstMs` up to `mostMs`.
 */
export function isRebuilt(named: NamedSnapshot, standing: CatalogStanding, waits: Waits): boolean {
  const { snapshotId, tokenGeneratedAt, appliedGeneratedAt, manifestAppliedAt, rebuilds } = standing;
  if (named.snapshotId !== snapshotId || named.generatedAt === null || tokenGeneratedAt === null)
    return false;
  if (manifestAppliedAt === null) return false;
  // An earlier check may have seen the later time without storing it, because a delta was being applied.
  const isLater =
    named.generatedAt > tokenGeneratedAt ||
    (appliedGeneratedAt !== null && named.generatedAt > appliedGeneratedAt);
  return isLater && hasWaited(standing, rebuilds, waits);
}

/** How long to wait after a manifest before asking for another one that probably has nothing new either. */
interface Waits {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** Decides whether the last manifest is long enough ago, after `times` of them had nothing new. */
function hasWaited(
  { now, manifestAppliedAt }: Pick<CatalogStanding, 'now' | 'manifestAppliedAt'>,
  times: number,
  { firstMs, mostMs }: Waits,
): boolean {
  if (times === 0 || manifestAppliedAt === null) return true;
  return now.getTime() - manifestAppliedAt.getTime() >= doubling(firstMs, times, mostMs);
}

/**
 * Decides whether counts are compared. If manifests fetched because of different counts listed nothing different,
 * the counts may belong to the answer and not to the snapshot: they are then compared as rarely as isRebuilt
 * accepts a later time. While a difference is noted, each check compares again.
 */
export const isCompared = (standing: CatalogStanding, waits: Waits): boolean =>
  standing.difference !== null || hasWaited(standing, standing.idleManifests, waits);

/** How far counts may differ without meaning anything: this many SKUs, or this part of all, whichever is more. */
const COUNT_SLACK = 5;
const COUNT_SLACK_PART = 0.0001;

/**
 * Returns how many more SKUs and live SKUs the manifest route counts in the mirror's snapshot than the mirror
 * lists (negative: fewer); null if that is within COUNT_SLACK plus what the last manifest left unclear. If all
 * SKUs are live, there is an incident (partner rules 2.7), which is judged elsewhere, so only the SKUs are
 * compared.
 */
export function differenceOf(
  named: { readonly skuCount: number | null; readonly livePricedSkuCount: number | null },
  counted: { readonly listed: number; readonly live: number },
  { unclear, liveMiscount }: Pick<CatalogStanding, 'unclear' | 'liveMiscount'>,
): CatalogDifference | null {
  const { skuCount, livePricedSkuCount } = named;
  const most = unclear + Math.max(COUNT_SLACK, Math.floor(COUNT_SLACK_PART * (skuCount ?? 0)));
  const listed = skuCount === null ? 0 : skuCount - counted.listed;
  const isOfIncident = livePricedSkuCount === null || livePricedSkuCount === skuCount;
  const live = isOfIncident ? 0 : livePricedSkuCount - liveMiscount - counted.live;
  return Math.abs(listed) > most || Math.abs(live) > most ? { listed, live } : null;
}
