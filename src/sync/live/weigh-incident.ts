import { requestTask } from '../../store/ledger/tasks.ts';
import { forgetTrial, type Incident, storeIncident } from '../../store/live/limits.ts';
import type { SyncContext } from '../context.ts';
import {
  believedLive,
  type IncidentEvidence,
  incidentEvent,
  isUsualCount,
  judgeIncident,
} from './incident.ts';

/* Judges what manifests and calls show of an incident (live/incident.ts), and stores and acts on a change. */

/**
 * Weighs the counts of a believed manifest answer (partner rules 2.7), if it has them. `miscount`: how many fewer
 * live SKUs than announced the last file contained that was read. `ofFile`: this answer's own file was read and
 * says so, which no earlier trial call disproves.
 */
export async function weighCounts(
  ctx: SyncContext,
  meta: { readonly livePricedSkuCount: number | null; readonly skuCount: number | null },
  { miscount = 0, ofFile = false } = {},
): Promise<void> {
  if (meta.livePricedSkuCount === null || meta.skuCount === null) return;
  const live = believedLive(meta.livePricedSkuCount, miscount);
  const evidence = { kind: 'count', live, skus: meta.skuCount } as const;
  if (ofFile || isUsualCount(evidence)) await forgetTrial(ctx.sql);
  await weigh(ctx, evidence);
}

/**
 * Weighs recent deferrals of SKUs asked as snapshot-priced, after a call that deferred some (`deferrals` null: it
 * deferred none). Does nothing if the call was planned in an `incident`, because such calls hardly ask for more
 * than is computed live.
 */
export async function weighDeferrals(
  ctx: SyncContext,
  incident: Incident | null,
  deferrals: { readonly asked: number; readonly deferred: number } | null,
): Promise<void> {
  if (deferrals === null || incident !== null) return;
  const evidence: IncidentEvidence = { kind: 'deferrals', ...deferrals };
  // A few SKUs are always listed wrongly: those cost no round trip.
  if (judgeIncident(null, evidence) !== null) await weigh(ctx, evidence);
}

/**
 * Judges evidence. A change is stored, reported and planned for at once: the live plan takes in every SKU, or
 * releases them.
 */
async function weigh(ctx: SyncContext, evidence: IncidentEvidence): Promise<void> {
  const change = await storeIncident(ctx.sql, ({ from, minutes, disproved }) =>
    judgeIncident(from, evidence, { minutes, disproved }),
  );
  if (change === null) return;
  await requestTask(ctx.sql, 'live-plan');
  // The delta says which SKUs changed class, or that a new manifest must (0013).
  await requestTask(ctx.sql, 'delta');
  ctx.emit(incidentEvent(change, change.minutes, evidence));
}
