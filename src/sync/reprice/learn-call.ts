import type { Applied } from '../../store/answer/apply.ts';
import { listedAsSnapshot, storeLesson } from '../../store/call/call-lesson.ts';
import type { Claim, ClaimedSku } from '../../store/ledger/due.ts';
import { storeCeiling } from '../../store/live/limits.ts';
import { readLivePlan } from '../../store/live/live.ts';
import type { SyncContext } from '../context.ts';
import { withoutOwn } from '../live/again.ts';
import { learnLiveCeiling, returnedCreditMs } from '../live/ceiling.ts';
import {
  ceilingEvents,
  ceilingEvidence,
  learn,
  type AnswerCounts,
  type CallEvidence,
} from '../live/learn.ts';
import { weighDeferrals } from '../live/weigh-incident.ts';
import { sizeAfter } from './call-size.ts';
import type { PlannedCall } from './plan-call.ts';
import { followChangedLines, turnedLines } from './product-lines.ts';
import { countAnswered, type Reconciliation } from './reconciliation.ts';

/** Attempts to store what the call showed of the ceiling. Then it is dropped, because others have shown as much. */
const MAX_TRIES = 5;

/** Learns the partner's limits from an applied answer, which took `tookMs`. */
export async function learnFrom(
  ctx: SyncContext,
  claim: Claim,
  { skuAnswers, cut, lines, tookMs }: Reconciliation & Pick<Applied, 'lines'> & { readonly tookMs: number },
  planned: PlannedCall,
): Promise<void> {
  const { failures, wanted, callSize } = planned;
  const [suspects] = wanted.suspects ?? [];
  const call = { skus: claim.skus.length, failed: cut, hadFailed: suspects !== undefined };
  const others = claim.skus.filter(({ live }) => !live);
  const snapshot = shownOf(others, skuAnswers);
  const asked = planned.trial ? claim.skus : others;
  const ofListed = async () => shownOf(await listed(ctx, asked), skuAnswers);
  const evidence = planned.trial
    ? { tried: await ofListed() }
    : snapshot.deferred > 0
      ? { listed: await ofListed() }
      : {};
  const askedAt = claim.askedAt.getTime();
  const times = { askedAt, answeredAt: askedAt + tookMs };
  const byCall = { ...weighedLive(ctx, claim, skuAnswers, planned, times), snapshot, ...evidence, ...times };
  const taught = learn(planned, byCall, ctx.settings);
  const stored = await storeLesson(ctx.sql, taught.lesson, {
    failures,
    callSize: sizeAfter(callSize, ctx.settings.bulk.maxSkus, call),
    cleared: suspects?.largestCall ?? null,
    returnedMs: returnedCreditMs(planned.spend, deferredAgain(claim.skus, skuAnswers)),
    lines: turnedLines(lines, planned.plan.releases).map(({ change }) => change),
    magnitudes: ctx.floors.floors.magnitudes,
  });
  if (stored.ceilingMoved && byCall.live.asked > 0) await learnCeilingAgain(ctx, planned, byCall);
  await followChangedLines(ctx, planned.plan, lines, stored.lines);
  for (const event of taught.events) ctx.emit(event);
  if (stored.turned && taught.incidentEvent !== null) ctx.emit(taught.incidentEvent);
  if (!planned.trial) await weighDeferrals(ctx, planned.plan.incident, stored.deferrals);
}

/** Counts live SKUs that were deferred the last time and are deferred again. */
const deferredAgain = (skus: Claim['skus'], skuAnswers: Reconciliation['skuAnswers']): number =>
  shownOf(
    skus.filter(({ live, deferrals }) => live && deferrals > 0),
    skuAnswers,
  ).deferred;

/** Returns what the call showed of live SKUs, without deferrals that teach nothing. */
function weighedLive(
  { recent, settings }: SyncContext,
  { skus }: Claim,
  skuAnswers: Reconciliation['skuAnswers'],
  { trial }: PlannedCall,
  { answeredAt }: Pick<CallEvidence, 'answeredAt'>,
): Pick<CallEvidence, 'live' | 'alike' | 'proven'> {
  const asked = skus.filter(({ live }) => live);
  const live = shownOf(asked, skuAnswers);
  const again = deferredAgain(skus, skuAnswers);
  // Deferrals of a call beyond the budget say nothing about its SKUs.
  if (trial || live.asked - again > settings.bulk.liveBudget)
    return { live: withoutOwn(live, { again, expected: false }) };
  const { expected, ...more } = recent.noteLive(asked, skuAnswers, answeredAt);
  return { live: withoutOwn(live, { again, expected }), ...more };
}

/**
 * Weighs a call by what is known now, because others have taught something about the ceiling since it was planned.
 */
async function learnCeilingAgain(
  { sql, settings, emit }: SyncContext,
  { budget }: PlannedCall,
  byCall: CallEvidence,
): Promise<void> {
  const evidence = ceilingEvidence(byCall, budget, settings);
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const plan = await readLivePlan(sql);
    const after = learnLiveCeiling(plan, evidence, settings.callsPerMinute);
    if (after === null) return;
    if (!(await storeCeiling(sql, after))) continue;
    for (const event of ceilingEvents(plan.ceiling, after)) emit(event);
    return;
  }
}

/**
 * Returns the asked SKUs that the catalog lists as snapshot-priced, whatever they count as: only they show an
 * incident.
 */
async function listed({ sql }: SyncContext, asked: readonly ClaimedSku[]): Promise<readonly ClaimedSku[]> {
  const as = await listedAsSnapshot(
    sql,
    asked.map(({ sku }) => sku),
  );
  return asked.filter(({ sku }) => as.has(sku));
}

function shownOf(asked: readonly ClaimedSku[], answers: Reconciliation['skuAnswers']): AnswerCounts {
  return {
    asked: asked.length,
    answered: countAnswered(asked, answers, 'record', 'not_found'),
    deferred: countAnswered(asked, answers, 'deferred'),
  };
}
