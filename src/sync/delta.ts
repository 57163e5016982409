import { failpoint } from '../lib/failpoint.ts';
import type { SentPermit } from '../pace/permit.ts';
import { PartnerError } from '../partner/errors.ts';
import { applyDelta, countListed, type DeltaApplied } from '../store/catalog/delta.ts';
import { readSyncState, type SyncState } from '../store/catalog/sync-state.ts';
import { noteBrokenChain, noteCatalogFault, noteChainRestored } from '../store/catalog/tokens.ts';
import { type TaskFailures, requestTask } from '../store/ledger/tasks.ts';
import { ask, type FailedRequest } from './ask.ts';
import type { SyncContext } from './context.ts';
import { isShrunk } from './manifest-decision.ts';
import {
  failureOf,
  otherThanRefused,
  postponedBy,
  rejectedRetryInMs,
  type TaskOutcome,
  retryAfter,
} from './outcome.ts';
import { dueKey } from './traces.ts';

/** This many SKUs turning live in one delta may be an incident, so the catalog's counts are checked. */
const INCIDENT_CHECK_SKUS = 500;

/** What to do about a delta request that failed (partner rules 4.2, 7.3). */
export type DeltaRecovery = 'fetch-manifest' | 'catalog-fault' | 'retry';

/**
 * Returns what to do after an error of the delta route. A 400 without a known code means that the token is
 * unusable; any other 4xx comes from a gateway and says nothing about the token.
 */
export function deltaRecovery(
  error: Pick<PartnerError, 'kind' | 'status'>,
  failuresBefore = 0,
): DeltaRecovery {
  switch (error.kind) {
    case 'snapshot-expired':
    case 'delta-too-large':
    case 'since-missing':
      return 'fetch-manifest';
    // The first time, anything in between may have sent it; the second time, it is the partner's answer to this
    // token.
    case 'answer-too-large':
      return failuresBefore === 0 ? 'retry' : 'fetch-manifest';
    case 'bad-request':
      return error.status === 400 ? 'fetch-manifest' : 'retry';
    case 'no-snapshot':
    case 'snapshot-stale':
      return 'catalog-fault';
    default:
      return 'retry';
  }
}

/**
 * Answers after which a run ends although the token still advances. The delta then does not count as read, and the
 * next poll continues. After an outage there may be that many. If none of them contains a SKU, the partner gives
 * each answer a token of its own.
 */
const MAX_HOPS = 100;
/** Consecutive answers without a SKU after which such a partner's delta counts as read. */
const MAX_OWN_HOPS = 3;

/**
 * Polls the delta from the stored token for as long as to_snapshot advances (partner rule 4.2.11), and applies
 * each answer with its token in one transaction. It also asks with a rejected token, because a gateway may have
 * rejected it, or a replica that did not know it yet; an answer to it restores the chain.
 */
export async function syncDelta(
  ctx: SyncContext,
  before: TaskFailures,
  signal?: AbortSignal,
): Promise<TaskOutcome> {
  const { deltaMs } = ctx.settings.intervals;
  const seen = new Set<string>();
  let hops = 0;
  let empty = 0;
  for (;;) {
    const state = await readSyncState(ctx.sql);
    const { snapshotId, manifestAppliedAt } = state;
    if (snapshotId === null || manifestAppliedAt === null) {
      return { kind: 'postponed', nextInMs: Math.min(deltaMs, 5000), because: 'no baseline yet' };
    }
    const send = (permit: SentPermit) => ctx.client.delta(permit, snapshotId, signal);
    const asked = await ask(ctx, 'delta', send, before.failures, signal);
    if (asked.kind === 'wait') return postponedBy(asked, before);
    if (asked.kind === 'error') return await recover(ctx, asked, snapshotId, before);

    const delta = { ...asked.value, toSnapshot: asked.value.toSnapshot ?? snapshotId };
    failpoint('delta.answered');
    const shrinks = await shrinksTooMuch(ctx, delta.removed, state);
    if (shrinks !== null) return await fetchManifest(ctx, shrinks, snapshotId, otherThanRefused(before));
    empty = delta.changed.length + delta.removed.length + delta.nowLive.length === 0 ? empty + 1 : 0;
    // `ownTokens` holds until the token first stays the same.
    const ownToken = empty >= (state.ownTokens ? MAX_OWN_HOPS : MAX_HOPS);
    // A token that this run has already seen closes a circle: everything has been reported. A cached answer is
    // never the end.
    const isEnd = delta.isOld !== true && (ownToken || seen.has(delta.toSnapshot));
    const applied = await applyDeltaTraced(ctx, {
      since: snapshotId,
      askedAt: state.readAt,
      ...delta,
      isEnd,
      ownToken,
    });
    failpoint('delta.committed');
    const advanced = delta.toSnapshot !== snapshotId;
    if (applied.applied && (advanced || applied.marked > 0 || delta.skipped > 0)) {
      ctx.emit({
        event: 'delta.applied',
        toSnapshot: delta.toSnapshot,
        changed: delta.changed.length,
        removed: delta.removed.length,
        nowLive: delta.nowLive.length,
        newSkus: applied.newSkus,
        crossedToLive: applied.crossedToLive,
        crossedToSnapshot: applied.crossedToSnapshot,
        skipped: delta.skipped,
      });
    }
    if (applied.isCut) ctx.emit({ event: 'delta.limit-suspected', changed: delta.changed.length });
    if (applied.crossedToLive >= INCIDENT_CHECK_SKUS) await requestTask(ctx.sql, 'catalog-check');
    seen.add(snapshotId);
    hops += Number(advanced);
    const isOver = !advanced || isEnd || hops >= MAX_HOPS;
    // At once, because the run may fail before its end; and at the end of every run, whether or not the chain was
    // broken before, because the COMMIT that restored it may have gone unanswered.
    if (isOver || state.chainBrokenAt !== null)
      await noteChainRestored(ctx.sql, ctx.settings.intervals.manifestMs);
    if (isOver) {
      await askWhereItLed(ctx, hops);
      return { kind: 'done', nextInMs: deltaMs, counts: { hops } };
    }
  }
}

/**
 * Requests a catalog check if the delta has moved but is still behind the snapshot that was named: there may be a
 * newer one by now.
 */
async function askWhereItLed({ sql }: SyncContext, hops: number): Promise<void> {
  if (hops === 0) return;
  const { deltaBehindSince } = await readSyncState(sql);
  if (deltaBehindSince !== null) await requestTask(sql, 'catalog-check');
}

/**
 * A delta that removes a smaller part of the catalog is not counted: counting takes a scan, and few remove more.
 */
const MIN_COUNTED_PART = 0.05;

/**
 * Returns an error if the delta removes too many SKUs; null if it leaves enough, or a person has confirmed it. A
 * delta that leaves less of the last manifest, or of what is listed now, than a manifest may have is treated like
 * one that is too large: the newest manifest decides, and is refused in turn if it lists too few. So of two deltas
 * that each remove less, the second one is caught.
 */
async function shrinksTooMuch(
  { sql, settings }: SyncContext,
  removed: readonly string[],
  { manifestLines, shrinkConfirmed }: SyncState,
): Promise<PartnerError | null> {
  const lines = manifestLines ?? 0;
  if (shrinkConfirmed || removed.length <= lines * MIN_COUNTED_PART) return null;
  const { named, listed } = await countListed(sql, removed);
  const before = Math.max(lines, listed);
  if (named === 0 || !isShrunk(listed - named, before, settings.catalog.manifestMinShare)) return null;
  const detail = `it removes ${named} of ${listed} listed SKUs, and the last manifest had ${lines}`;
  return new PartnerError('delta-too-large', 'delta', { detail });
}

async function applyDeltaTraced(
  { sql, tracer }: SyncContext,
  delta: Parameters<typeof applyDelta>[1],
): Promise<DeltaApplied> {
  const { changed, removed, nowLive, toSnapshot } = delta;
  const facts = {
    'catalog_mirror.delta.to_snapshot': toSnapshot,
    'catalog_mirror.delta.changed': changed.length,
    'catalog_mirror.delta.removed': removed.length,
    'catalog_mirror.delta.now_live': nowLive.length,
  };
  return await tracer.span('delta.apply', facts, async (span) => {
    const applied = await applyDelta(sql, delta);
    span.set({ 'catalog_mirror.delta.new_skus': applied.newSkus });
    tracer.remember(applied.reportedAt.map(dueKey));
    return applied;
  });
}

async function recover(
  ctx: SyncContext,
  asked: FailedRequest,
  token: string,
  before: TaskFailures,
): Promise<TaskOutcome> {
  const { error } = asked;
  const failuresBefore = otherThanRefused(before);
  const recovery = deltaRecovery(error, failuresBefore);
  if (recovery === 'fetch-manifest') return await fetchManifest(ctx, error, token, failuresBefore);
  if (recovery === 'catalog-fault') await noteCatalogFault(ctx.sql, error);
  return {
    kind: 'failed',
    nextInMs: retryAfter(asked, before, ctx.settings.intervals.deltaMs),
    ...failureOf(error),
  };
}

async function fetchManifest(
  ctx: SyncContext,
  error: PartnerError,
  token: string,
  failuresBefore: number,
): Promise<TaskOutcome> {
  const nextInMs = rejectedRetryInMs(error.kind, failuresBefore);
  // Not a failure yet: the manifest comes first, and the delta immediately after it.
  if (await noteBrokenChain(ctx.sql, token, error.kind === 'snapshot-expired')) {
    ctx.emit({ event: 'delta.chain-broken', ...failureOf(error) });
    return { kind: 'postponed', nextInMs, because: error.kind };
  }
  return { kind: 'failed', nextInMs, ...failureOf(error) };
}
