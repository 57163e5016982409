import { requestTask } from '../store/ledger/tasks.ts';
import { type Incident, noteCounted, storeIncident } from '../store/live/incident.ts';
import type { SyncContext } from './context.ts';
import { type IncidentEvidence, incidentEvent, judgeIncident } from './live/incident.ts';

/*
 * What manifests and calls show of an incident is judged (live/incident.ts), and a change is stored and acted on.
 */

/** Weighs the counts of a manifest answer that is believed (partner rules 2.7), where it has them. */
export async function weighCounts(
  ctx: SyncContext,
  meta: { readonly livePricedSkuCount: number | null; readonly skuCount: number | null },
): Promise<void> {
  if (meta.livePricedSkuCount === null || meta.skuCount === null) return;
  await weigh(ctx, { kind: 'count', live: meta.livePricedSkuCount, skus: meta.skuCount });
  await noteCounted(ctx.sql);
}

/**
 * Weighs what recent calls deferred of SKUs asked as snapshot-priced, after a call that was planned with `incident`
 * and deferred some; null where it deferred none. Calls that were planned in an incident hardly ask for more than is
 * computed live.
 */
export async function weighDeferrals(
  ctx: SyncContext,
  incident: Incident | null,
  deferrals: { readonly asked: number; readonly deferred: number } | null,
): Promise<void> {
  if (deferrals === null || incident !== null) return;
  const evidence: IncidentEvidence = { kind: 'deferrals', ...deferrals };
  // A few SKUs are listed wrongly at any time: those cost no round trip.
  if (judgeIncident(null, evidence) !== null) await weigh(ctx, evidence);
}

/**
 * Judges evidence. A change is stored, reported and planned for at once: the live plan takes in every SKU, or
 * releases them.
 */
async function weigh(ctx: SyncContext, evidence: IncidentEvidence): Promise<void> {
  const change = await storeIncident(ctx.sql, (present, minutes) =>
    judgeIncident(present, evidence, minutes),
  );
  if (change === null) return;
  await requestTask(ctx.sql, 'live-plan');
  // The delta says which SKUs crossed, or that a fresh manifest must (0013).
  await requestTask(ctx.sql, 'delta');
  ctx.emit(incidentEvent(change, change.minutes, evidence));
}
