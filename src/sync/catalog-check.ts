import type { ManifestMeta } from '../partner/answers.ts';
import { PartnerError } from '../partner/errors.ts';
import {
  countCohorts,
  noteCountsRight,
  noteDeltaDoubt,
  noteDifference,
  readStanding,
  type CatalogStanding,
} from '../store/catalog/standing.ts';
import {
  type CatalogDifference,
  noteCatalogCheck,
  readSyncState,
  type SyncState,
} from '../store/catalog/sync-state.ts';
import { requestTask, type TaskRun } from '../store/ledger/tasks.ts';
import {
  differenceOf,
  doubtAfter,
  isCompared,
  isNewer,
  isRebuilt,
  nextCheckMs,
} from './catalog-check-decision.ts';
import type { SyncContext } from './context.ts';
import { weighCounts } from './live/weigh-incident.ts';
import { isAwaited, isCounted, judgeOffer } from './manifest-decision.ts';
import { askManifest, catalogFailed } from './manifest.ts';
import { postponedBy, type TaskOutcome } from './outcome.ts';

/**
 * Asks the manifest route for its metadata only: how old the newest snapshot is, how much of it is live-priced (partner
 * rules 4.2.10, 2.7), and whether the mirror, as deltas have made it, matches it. If the mirror differs, or the delta
 * is behind or late, the manifest task is requested, which downloads the whole file.
 */
export async function checkCatalog(
  ctx: SyncContext,
  run: TaskRun,
  signal?: AbortSignal,
): Promise<TaskOutcome> {
  const nextInMs = ctx.settings.intervals.catalogCheckMs;
  const { manifestAppliedAt } = await readSyncState(ctx.sql);
  if (manifestAppliedAt === null) {
    return { kind: 'postponed', nextInMs: Math.min(nextInMs, 60_000), because: 'no baseline yet' };
  }
  const answered = await askManifest(ctx, run, signal);
  // An answer that a cache has kept for too long says nothing about the present.
  const asked =
    answered.kind === 'answer' && answered.value.isOld
      ? { kind: 'error' as const, error: new PartnerError('cached-answer', 'manifest'), beganBackoff: false }
      : answered;
  if (asked.kind === 'wait') return postponedBy(asked, run);
  if (asked.kind === 'error') {
    const { nextInMs: retry, ...outcome } = await catalogFailed(ctx, run, asked);
    return { ...outcome, nextInMs: Math.min(retry, nextInMs) };
  }
  const { generatedAt, livePricedSkuCount, skuCount } = asked.value;
  const state = await readSyncState(ctx.sql);
  const standing = await readStanding(ctx.sql, asked.value);
  await noteCatalogCheck(ctx.sql, asked.value);
  const isBelieved = isCounted(asked.value, state, ctx.settings.catalog.manifestMinShare);
  if (isBelieved) await weighCounts(ctx, asked.value, { miscount: standing.liveMiscount });
  const isBehind = await judgeDelta(ctx, asked.value, standing);
  const differs =
    judgeOffer(asked.value, state) === null && (await compare(ctx, asked.value, standing, state));
  // While the delta does not say what has changed, a manifest does, and the delta may accept the manifest's token.
  if (isBehind || differs || isAwaited(asked.value, { ...state, hasLeft: standing.hasLeft }))
    await requestTask(ctx.sql, 'manifest');
  const generated = generatedAt?.toISOString() ?? null;
  return {
    kind: 'done',
    nextInMs: nextCheckMs(doubtAfter(asked.value, standing), standing, ctx.settings.intervals),
    counts: { generated, live: livePricedSkuCount, skus: skuCount },
  };
}

/** Stores the doubt about the delta after a snapshot was named. Returns whether the delta is behind. */
async function judgeDelta(
  ctx: SyncContext,
  named: ManifestMeta,
  standing: CatalogStanding,
): Promise<boolean> {
  const doubt = doubtAfter(named, standing);
  // The snapshot may have just been built, and the delta may lead to it.
  if (
    isNewer(named, standing) &&
    (doubt === 'distrusted' || (doubt === 'suspected' && doubt !== standing.doubt))
  )
    await requestTask(ctx.sql, 'delta');
  if (doubt === standing.doubt) return doubt === 'behind';
  await noteDeltaDoubt(ctx.sql, standing, doubt);
  if (doubt === 'behind') {
    const generated = named.generatedAt?.toISOString() ?? null;
    ctx.emit({ event: 'delta.behind', snapshot: named.snapshotId, generated, token: standing.snapshotId });
  }
  return doubt === 'behind';
}

/**
 * Compares what the manifest route says about the mirror's own snapshot with the mirror. Returns whether they
 * differ. A rebuild stays noted until the snapshot is named with its former build time again, because another
 * server had dated it differently.
 */
async function compare(
  ctx: SyncContext,
  named: ManifestMeta,
  standing: CatalogStanding,
  { snapshotGeneratedAt }: SyncState,
): Promise<boolean> {
  if (named.snapshotId !== standing.snapshotId || standing.chainBroken) return false;
  const { catalogCheckMs, manifestMs } = ctx.settings.intervals;
  const waits = { firstMs: catalogCheckMs, mostMs: manifestMs };
  const before = standing.difference;
  const isAsBefore =
    named.generatedAt !== null && named.generatedAt.getTime() === snapshotGeneratedAt?.getTime();
  const difference: CatalogDifference | null =
    (before !== null && 'rebuilt' in before && !isAsBefore) || isRebuilt(named, standing, waits)
      ? { rebuilt: true }
      : isCompared(standing, waits)
        ? differenceOf(named, await countCohorts(ctx.sql), standing)
        : null;
  if (difference === null && before === null) {
    if (standing.idleManifests > 0 && isCompared(standing, waits)) await noteCountsRight(ctx.sql);
    return false;
  }
  const isStored = await noteDifference(ctx.sql, standing, difference);
  if (difference === null || !isStored) return false;
  if (before === null)
    ctx.emit({ event: 'catalog-check.differs', snapshot: named.snapshotId, ...difference });
  return true;
}
