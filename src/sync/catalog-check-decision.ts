import { doubling } from '../lib/duration.ts';
import type { CatalogStanding, DeltaDoubt } from '../store/catalog/standing.ts';
import type { CatalogDifference } from '../store/catalog/sync-state.ts';
import type { NamedSnapshot } from '../store/catalog/sync-state.ts';

/*
 * What the manifest route's word on the newest snapshot means for the mirror that follows the delta. Pure.
 *
 * The delta may say "nothing new" forever, from a replica that stands still or a cache in front of it; it may lose SKUs
 * on its way; and a snapshot may be built again under its name. The manifest route is what shows it.
 */

/**
 * Whether the named snapshot is newer than that of the token. By what the manifest route has told of both; of a token
 * that it has not named, by when the token came: what was built, or was named, before then is older, or the same by
 * another name. A manifest route that lags behind the delta, which has left what that names, and tokens that are of
 * each answer's own, are no evidence; but what was built again after deltas had left its id is.
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
 * What is to be thought of the delta after a snapshot is named. A newer one is named for some minutes after each is
 * built: only where that lasts, while deltas are read that do not lead to it, is the delta behind. One that has been
 * behind, and has not moved since a manifest took its place, is so again once it was read after a newer one was named.
 * A broken chain says for itself that it leads nowhere.
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

/** The manifest route's answers are kept for five minutes (partner rules 8). */
const SOONEST_CHECK_MS = 300_000;

/**
 * In how many milliseconds the manifest route is asked again after a snapshot is named: soon where the delta may not
 * be what it says. While it is distrusted, the manifest route takes its place, and is asked as often as it would be.
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
 * Whether the mirror's own snapshot was built again, with whatever it has now. Where no build time has stood still
 * since the last one, they may be of something else than the build, such as the answer: then the next one counts the
 * later after the last manifest, `firstMs` at first and `mostMs` at most.
 */
export function isRebuilt(named: NamedSnapshot, standing: CatalogStanding, waits: Waits): boolean {
  const { snapshotId, tokenGeneratedAt, appliedGeneratedAt, manifestAppliedAt, rebuilds } = standing;
  if (named.snapshotId !== snapshotId || named.generatedAt === null || tokenGeneratedAt === null)
    return false;
  if (manifestAppliedAt === null) return false;
  // A check before this one may have named it, and not have stored that, as a delta ran.
  const isLater =
    named.generatedAt > tokenGeneratedAt ||
    (appliedGeneratedAt !== null && named.generatedAt > appliedGeneratedAt);
  return isLater && hasWaited(standing, rebuilds, waits);
}

/** How long after a manifest the next may be asked for that is likely to have nothing new, either. */
interface Waits {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** Whether the last manifest is long enough ago, where so many had nothing new. */
function hasWaited(
  { now, manifestAppliedAt }: Pick<CatalogStanding, 'now' | 'manifestAppliedAt'>,
  times: number,
  { firstMs, mostMs }: Waits,
): boolean {
  if (times === 0 || manifestAppliedAt === null) return true;
  return now.getTime() - manifestAppliedAt.getTime() >= doubling(firstMs, times, mostMs);
}

/**
 * Whether counts are to be compared. Where manifests that were asked for other counts have listed nothing else, they
 * may be of the answer and not of the snapshot: then as rarely as in isRebuilt, but what differs does so until a
 * manifest is applied.
 */
export const isCompared = (standing: CatalogStanding, waits: Waits): boolean =>
  standing.difference !== null || hasWaited(standing, standing.idleManifests, waits);

/** SKUs by which counts may differ without a meaning, as a number and as a part of all: the larger counts. */
const COUNT_SLACK = 5;
const COUNT_SLACK_PART = 0.0001;

/**
 * By how many SKUs and live SKUs the manifest route says that the mirror's snapshot has more than the mirror lists;
 * null where that is next to nothing, or what the last manifest did not make clear. Where everything is live, an
 * incident is (partner rules 2.7), which is judged elsewhere.
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
