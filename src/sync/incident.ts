import { noteProbe, snapshotDeferrals, storeIncident } from '../store/incident.ts';
import type { LivePlan } from '../store/live.ts';
import { requestTask } from '../store/tasks.ts';
import type { SyncContext } from './context.ts';
import { type IncidentEvidence, judgeIncident } from './incident-verdict.ts';

/**
 * Weighs evidence for or against an incident. A change is stored, said, and planned for at once: the live plan takes
 * everything in, or lets it go again.
 */
export async function weighEvidence(ctx: SyncContext, evidence: IncidentEvidence): Promise<void> {
  const change = await storeIncident(ctx.sql, (present) => judgeIncident(present, evidence));
  if (change === null) return;
  await requestTask(ctx.sql, 'live-plan');
  // The delta says which SKUs crossed, or that a fresh manifest must (0013).
  await requestTask(ctx.sql, 'delta');
  ctx.emit({
    event: change.to === null ? 'incident.ended' : 'incident.began',
    because: change.to ?? change.from,
    minutes: change.minutes,
    ...evidence,
  });
}

/** The counts of a manifest answer (specification 2.7), where it gives them. */
export async function weighCounts(
  ctx: SyncContext,
  meta: { readonly livePricedSkuCount: number | null; readonly skuCount: number | null },
): Promise<void> {
  if (meta.livePricedSkuCount === null || meta.skuCount === null) return;
  await weighEvidence(ctx, { kind: 'count', live: meta.livePricedSkuCount, skus: meta.skuCount });
}

/** What a bulk call shows: a probe's answers, or snapshot-priced SKUs that were deferred. */
export async function weighCall(
  ctx: SyncContext,
  plan: LivePlan,
  call: {
    readonly probe: boolean;
    readonly asked: number;
    readonly answered: number;
    readonly snapshotDeferred: number;
  },
): Promise<void> {
  if (call.probe) {
    await noteProbe(ctx.sql);
    await weighEvidence(ctx, { kind: 'probe', asked: call.asked, answered: call.answered });
  } else if (plan.incident === null && call.snapshotDeferred > 0) {
    await weighEvidence(ctx, { kind: 'deferrals', ...(await snapshotDeferrals(ctx.sql)) });
  }
}
