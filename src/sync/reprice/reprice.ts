import { failpoint } from '../../lib/failpoint.ts';
import { doubling } from '../../lib/duration.ts';
import { AUTH_CLASS, PartnerError } from '../../partner/errors.ts';
import { applyAnswer } from '../../store/answer/apply.ts';
import {
  type Claim,
  claimDue,
  type ClaimedSku,
  nextDueInMs,
  peekDue,
  type Quota,
  releaseClaim,
  releaseHeld,
} from '../../store/due.ts';
import { callPause, noteCallApplied, noteCallFailed, noteCallWorked } from '../../store/tasks.ts';
import { isConnectionLost, storeFailure } from '../../store/db.ts';
import { type LivePlan, readLivePlan } from '../../store/live.ts';
import { readSyncState, storeLiveBudget, type SyncState } from '../../store/sync-state.ts';
import { nextRefresh, snapshotMs, type SyncContext, type SyncSettings } from '../context.ts';
import {
  type Reconciliation,
  skuResultOf,
  reconcile,
  tally,
  unpriced,
  type SkuAnswer,
} from './reconciliation.ts';
import { learnLiveBudget } from '../live/learn.ts';
import { allowedLive, chooseForQuota, earlyLiveSeconds, learnFromCall, learnRefresh } from '../live/plan.ts';
import { trialSize, weighCall } from '../live/incident.ts';
import { failureOf, PATIENCE_MS } from '../outcome.ts';
import { type Early, planBatch, type PlanLimits, lingerMs } from './plan.ts';

/** How one iteration ended: a call was made, or nothing is due, or it is not the time to call. */
export type Iteration =
  | { readonly kind: 'called'; readonly skus: number }
  | { readonly kind: 'idle'; readonly nextInMs: number | null }
  /** Little is due, and nothing urgent: the call waits for more to come due. */
  | { readonly kind: 'linger'; readonly forMs: number }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: string };

const CALL_PAUSE_MOST_MS = 1_800_000;
/** While the catalog is stale a SKU is not refreshed again within this. */
const STALE_MIN_AGE_MS = 60_000;
/** A claim outlives the request's own timeout by this much, for the answer to be applied. */
const LEASE_SLACK_MS = 60_000;
const WAKE_AT_ONCE = 1000;

/**
 * One iteration of re-pricing: plans a bulk call from the ledger, waits for a permit, claims its SKUs, asks, and
 * settles the answer in one transaction. `iteration.number` counts the iterations of this process. `stopping` ends the waiting for a permit;
 * `hard` also breaks off a request under way, whose SKUs then stay due.
 */
export async function repriceOnce(
  ctx: SyncContext,
  iteration: { readonly number: number; readonly sinceLastCallMs: number },
  requestTimeoutMs: number,
  signals: { readonly stopping: AbortSignal; readonly hard: AbortSignal },
): Promise<Iteration> {
  const { sql } = ctx;
  const pause = await callPause(sql);
  if (pause.ms > 0) return { kind: 'wait', forMs: pause.ms, because: 'calls are failing' };
  const first = await planCall(ctx, iteration, pause.failures);
  if (first.kind !== 'planned') return first;
  const acquired = await ctx.pacer.acquire('reprice', PATIENCE_MS, signals.stopping);
  if (acquired.kind === 'wait') return acquired;
  // While this call waited for its permit, others claimed what it had planned, and something urgent may have come.
  const planned = await planCall(ctx, iteration, pause.failures);
  const claim =
    planned.kind === 'planned'
      ? await claimPlanned(ctx, planned.plan, planned.quotas, requestTimeoutMs + LEASE_SLACK_MS)
      : null;
  if (planned.kind !== 'planned' || claim === null) {
    await acquired.permit.cancel();
    return planned.kind === 'planned' ? { kind: 'idle', nextInMs: 250 } : planned;
  }
  const skus = claim.skus.map(({ sku }) => sku);
  failpoint('bulk.claimed');
  try {
    const answer = await ctx.client.bulk(acquired.permit, skus, signals.hard);
    failpoint('bulk.answered');
    if (pause.failures > 0) await noteCallWorked(sql);
    await settle(ctx, claim, reconcile(skus, answer), planned);
    await noteCallApplied(sql);
  } catch (error) {
    if (error instanceof PartnerError) return await callFailed(ctx, claim, error, pause.failures);
    // The answer could not be stored; its SKUs need not wait for the lease to be asked about again. Where its COMMIT
    // was carried out after all, the claim is no longer ours and nothing is given back.
    if (isConnectionLost(error) || storeFailure(error) !== null)
      await releaseClaim(sql, claim.number, skus).catch(() => {});
    throw error;
  }
  return { kind: 'called', skus: skus.length };
}

/** What a call is to carry, and what was known when that was decided. */
interface Planned {
  readonly kind: 'planned';
  readonly quotas: readonly Quota[];
  readonly state: SyncState;
  readonly plan: LivePlan;
  /** Whether the call tries if an incident is over. */
  readonly trial: boolean;
}

/** Plans a bulk call from what is due in the ledger at this moment; or says why it is not the time to call. */
async function planCall(
  ctx: SyncContext,
  iteration: { readonly number: number; readonly sinceLastCallMs: number },
  failures: number,
): Promise<Planned | Iteration> {
  const { sql, settings } = ctx;
  await releaseHeld(sql, WAKE_AT_ONCE);
  const [state, plan] = await Promise.all([readSyncState(sql), readLivePlan(sql)]);
  const early = earlyBy(settings, state.catalogState, earlyLiveSeconds(plan));
  const due = await peekDue(sql, settings.bulk.maxSkus, early);
  const limits = planLimits(settings, state, plan, { iteration: iteration.number, failures });
  const quotas = planBatch(due, early, limits);
  if (quotas === null) return { kind: 'idle', nextInMs: await nextDueInMs(sql) };
  const linger = lingerMs(due, limits, settings.callsPerMinute, iteration.sinceLastCallMs);
  if (linger > 0) return { kind: 'linger', forMs: linger };
  return { kind: 'planned', quotas, state, plan, trial: limits.trial };
}

/** Claims what was planned; live SKUs by value where the plan has a refresh threshold, everything else by due time. */
async function claimPlanned(
  ctx: SyncContext,
  plan: LivePlan,
  quotas: readonly Quota[],
  leaseMs: number,
): Promise<Claim | null> {
  const live = quotas.find((quota) => quota.live && quota.lane === 'live');
  const chosen = live === undefined ? null : await chooseForQuota(ctx, plan, live);
  if (chosen === null) return await claimDue(ctx.sql, quotas, leaseMs);
  return await claimDue(
    ctx.sql,
    quotas.filter((quota) => quota !== live),
    leaseMs,
    chosen,
  );
}

/**
 * How large the next call may be. During an incident no larger than what is computed live of it, as the rest would only be
 * deferred, and nothing is refreshed before its time; or, now and then, a trial call whether it is over.
 */
function planLimits(
  settings: SyncSettings,
  state: SyncState,
  plan: LivePlan,
  { iteration, failures }: { readonly iteration: number; readonly failures: number },
): PlanLimits & { readonly trial: boolean } {
  const learned = state.liveBudget ?? settings.bulk.liveBudget;
  const liveBudget = Math.min(learned, allowedLive(plan, settings));
  const callSkus = callSize(settings.bulk.maxSkus, failures);
  if (plan.incident === null) {
    const spareSeconds = Math.max(0, snapshotMs(settings) - settings.intervals.sweepMinAgeMs) / 1000;
    return { callSkus, liveBudget, iteration, spareSeconds, trial: false };
  }
  const trial = trialSize(plan.incident, plan.now, learned, callSkus);
  const small = Math.min(callSkus, Math.max(1, Math.floor(learned)));
  return {
    callSkus: trial ?? small,
    liveBudget: trial ?? liveBudget,
    iteration,
    spareSeconds: 0,
    trial: trial !== null,
  };
}

/** After failed calls ever smaller ones, so that a SKU the partner cannot swallow is cornered and not the whole batch. */
function callSize(callSkus: number, failures: number): number {
  return Math.max(1, callSkus >> Math.min(failures, 10));
}

/**
 * While the catalog is stale, nothing reports changes, so everything is re-priced oldest first with the whole share
 * (partner rules 4.2.10, 7.4.7); otherwise each SKU waits for its time.
 */
export function earlyBy(settings: SyncSettings, state: SyncState['catalogState'], earlyLive = 0): Early {
  const none: Early = { urgent: 0, live: earlyLive, new: 0, error: 0, metadata: 0, sweep: 0 };
  if (state !== 'stale') return none;
  const early = (intervalMs: number) =>
    Math.max(0, intervalMs - Math.min(STALE_MIN_AGE_MS, intervalMs)) / 1000;
  return { ...none, live: early(settings.intervals.liveMs), sweep: early(snapshotMs(settings)) };
}

async function settle(
  ctx: SyncContext,
  claim: Claim,
  reconciliation: Reconciliation,
  planned: Planned,
): Promise<void> {
  const { sql, settings, random } = ctx;
  const { state, plan } = planned;
  let unpricedEntries = 0;
  const results = claim.skus.map((asked) => {
    const skuAnswer = reconciliation.skuAnswers.get(asked.sku) ?? { kind: 'error', because: 'omitted' };
    if (skuAnswer.kind === 'record') unpricedEntries += unpriced(skuAnswer.record);
    return skuResultOf(asked, skuAnswer, settings, random);
  });
  const next = {
    ...nextRefresh(settings),
    live: learnRefresh(plan, settings),
    everythingLive: plan.incident !== null,
  };
  const applied = await applyAnswer(sql, claim, results, next);
  failpoint('bulk.committed');
  const counts = tally(reconciliation.skuAnswers.values());
  ctx.emit({
    event: 'bulk.applied',
    asked: claim.skus.length,
    ...counts,
    unexpected: reconciliation.unexpected,
    late: claim.skus.length - applied.accepted,
    priceChanges: applied.priceChanges,
    metadataChanges: applied.metadataChanges,
    unpricedEntries,
    reportSeconds: applied.reportSeconds,
  });
  if (applied.sizeTypeChanges.length > 0)
    ctx.emit({ event: 'size-type.changed', skus: applied.sizeTypeChanges });
  await learn(ctx, claim, reconciliation, planned, state.liveBudget ?? settings.bulk.liveBudget);
  failpoint('bulk.learned');
}

async function learn(
  ctx: SyncContext,
  claim: Claim,
  reconciliation: Reconciliation,
  { plan, trial }: Planned,
  budget: number,
): Promise<void> {
  const deferred = (asked: ClaimedSku) => reconciliation.skuAnswers.get(asked.sku)?.kind === 'deferred';
  const live = claim.skus.filter((asked) => asked.live);
  const deferredLive = live.filter(deferred).length;
  const deferredOthers = claim.skus.filter((asked) => !asked.live && deferred(asked)).length;
  const learned = learnLiveBudget(
    budget,
    { askedLive: live.length, deferredLive, deferredOthers, bestRecent: plan.best },
    { start: ctx.settings.bulk.liveBudget, most: ctx.settings.bulk.maxSkus },
  );
  await learnFromCall(ctx, plan, {
    computed: live.filter(({ sku }) => isAnswered(reconciliation.skuAnswers.get(sku))).length,
    deferred: deferredLive,
    snapshotAsked: claim.skus.length - live.length,
    snapshotDeferred: deferredOthers,
    // A call that asked no more than calls have had answered was not deferred for its size.
    withinBudget: deferredOthers === 0 && live.length <= plan.best,
    budget,
  });
  const answered = claim.skus.filter(({ sku }) => isAnswered(reconciliation.skuAnswers.get(sku))).length;
  await weighCall(ctx, plan, { trial, asked: claim.skus.length, answered, snapshotDeferred: deferredOthers });
  if (learned === budget) return;
  await storeLiveBudget(ctx.sql, learned);
  if (Math.floor(learned) !== Math.floor(budget))
    ctx.emit({ event: 'live-budget.learned', budget: Math.floor(learned) });
}

function isAnswered(skuAnswer: SkuAnswer | undefined): boolean {
  return skuAnswer?.kind === 'record' || skuAnswer?.kind === 'not_found';
}

/**
 * A call that failed as a whole settles nothing: its SKUs stay due. After a refusal the pacer keeps everyone backing off;
 * after anything else the next call waits, longer each time. A single SKU that fails alone is set aside as an error.
 */
async function callFailed(
  ctx: SyncContext,
  claim: Claim,
  error: PartnerError,
  failures: number,
): Promise<Iteration> {
  const { sql, settings } = ctx;
  const skus = claim.skus.map(({ sku }) => sku);
  if (error.kind === 'aborted' || AUTH_CLASS.has(error.kind) || error.kind === 'account-not-configured') {
    await releaseClaim(sql, claim.number, skus);
    return { kind: 'wait', forMs: 0, because: error.kind };
  }
  const [alone] = claim.skus;
  if (claim.skus.length === 1 && alone !== undefined && failures > 0) {
    const result = skuResultOf(alone, { kind: 'error', because: 'reported' }, settings, ctx.random);
    await applyAnswer(sql, claim, [result], nextRefresh(settings));
  } else {
    await releaseClaim(sql, claim.number, skus);
  }
  const pausedMs = doubling(settings.intervals.errorMs, failures + 1, CALL_PAUSE_MOST_MS);
  await noteCallFailed(sql, pausedMs, error.kind);
  ctx.emit({ event: 'bulk.failed', ...failureOf(error), skus: skus.length, pausedMs });
  return { kind: 'wait', forMs: pausedMs, because: error.kind };
}
