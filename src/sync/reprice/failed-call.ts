import type { SentPermit } from '../../pace/permit.ts';
import { refuses } from '../../pace/policy.ts';
import { mayBeOfWhatIsAsked, type PartnerError } from '../../partner/errors.ts';
import { applyAnswer } from '../../store/answer/apply.ts';
import { storeFailedCall } from '../../store/call/call-lesson.ts';
import { markUnstored } from '../../store/ledger/claim.ts';
import { type Claim, type ClaimedSku, returnClaim, type ReturnOptions } from '../../store/ledger/due.ts';
import { callPause } from '../../store/ledger/tasks.ts';
import { NO_PRIVILEGE, quarantine } from '../../store/quarantine.ts';
import type { SyncContext } from '../context.ts';
import { type Failure, failureOf } from '../outcome.ts';
import { nextRefresh } from '../settings.ts';
import { afterFailedCall, type FailedKind, isRejection } from './call-size.ts';
import { type EndedCall, mayBeOfLive, mayFailForSource } from './live-doubt.ts';
import { followOutage } from './partner-faults.ts';
import { isOut, type IterationResult, type PlannedCall } from './plan-call.ts';
import { blamedFrom, skuResultOf } from './reconciliation.ts';

/** Gives a claim back, as returnClaim does, and makes the next plan read the whole ledger again. */
export async function release(
  { sql, floors }: SyncContext,
  claim: Claim,
  options: ReturnOptions = {},
): Promise<void> {
  const skus = claim.skus.map(({ sku }) => sku);
  await returnClaim(sql, claim, skus, options);
  floors.reset();
}

/** Keeps `count` SKUs of a claim, drawn at random, and gives the others back. */
export async function keepSome(ctx: SyncContext, claim: Claim, count: number): Promise<Claim> {
  if (count >= claim.skus.length) return claim;
  const order = claim.skus
    .map((asked) => ({ asked, drawn: ctx.random() }))
    .toSorted((a, b) => a.drawn - b.drawn)
    .map(({ asked }) => asked);
  await release(ctx, { ...claim, skus: order.slice(count) });
  const kept = new Set(order.slice(0, count));
  return { ...claim, skus: claim.skus.filter((asked) => kept.has(asked)) };
}

/**
 * Handles a call that failed as a whole, which settles nothing: its SKUs stay due. After a refusal the pacer backs
 * off for all daemons (callRefused). After any other failure its SKUs share calls of half as many, so that a SKU
 * that the partner cannot answer is found in a few calls and waits alone, while the others continue within the
 * pace. If several calls in a row fail, their SKUs are not the cause: all calls pause, longer each time, and no
 * SKU is blamed.
 */
export async function callFailed(
  ctx: SyncContext,
  claim: Claim,
  error: PartnerError,
  planned: RefusableCall,
): Promise<IterationResult> {
  if (error.kind === 'aborted' || refuses(error.kind)) {
    await callRefused(ctx, claim, error, planned);
    return { kind: 'wait', forMs: 0, because: error.kind };
  }
  const failure = { ...failureOf(error), because: error.kind };
  return planned.lone && isOut(planned.plan) && mayBeOfLive(error.kind)
    ? await returnTry(ctx, claim, failure)
    : await returnFailedCall(ctx, claim, failure, planned);
}

/**
 * Gives a failed try back. In an outage of the live source it says nothing about its SKU or other calls; the next
 * one has another SKU.
 */
async function returnTry(ctx: SyncContext, claim: Claim, failure: WholeFailure): Promise<IterationResult> {
  await release(ctx, claim, { holdMs: ctx.settings.intervals.errorMs });
  ctx.emit({ event: 'bulk.failed', ...failure, skus: claim.skus.length, pausedMs: 0 });
  return { kind: 'called', skus: 0 };
}

/** Notes how a call ended, which may show that the live source is what fails. */
export async function noteCallEnd(
  ctx: SyncContext,
  { skus: asked }: Claim,
  { plan }: PlannedCall,
  { sentAt, answered }: Pick<EndedCall, 'sentAt' | 'answered'>,
): Promise<void> {
  // In an incident other SKUs are computed live, too; in an outage the failure is known already.
  if (plan.incident !== null || (isOut(plan) && !answered)) return;
  const isAway = ctx.recent.noteEnded({ asked, answered, sentAt, endedAt: ctx.clock.monotonic() });
  await followOutage(ctx, isAway ? 'begins' : null);
}

type RefusableCall = PlannedCall & { readonly permit: SentPermit };

/**
 * Handles a call that was refused or broken off. The answer does not say whether the rate, the credential or one
 * of the SKUs is the cause. If the refusal began a back-off, because others were let through before it, the SKUs
 * are suspected like those of any failed call. The first call after the back-off has other SKUs, so a SKU that is
 * itself refused is found within a few back-offs, and delays no others. Refusals of that first call, or of calls
 * that were under way, say nothing about their SKUs.
 */
async function callRefused(
  ctx: SyncContext,
  claim: Claim,
  error: PartnerError,
  { permit, wanted, failures }: RefusableCall,
): Promise<void> {
  const hadFailed = wanted.suspects !== undefined;
  const [first] = claim.skus;
  if (first === undefined || !mayBeOfWhatIsAsked(error)) return await release(ctx, claim);
  // While all requests may be refused, a refusal says nothing about suspects: other SKUs, or another route, go
  // first.
  if (permit.halfOpen && hadFailed)
    return await release(ctx, claim, { holdMs: ctx.settings.intervals.errorMs });
  if (!permit.beganBackoff()) return await release(ctx, claim);
  const skus = claim.skus.length;
  if (skus > 1) await release(ctx, claim, { largestCall: Math.ceil(skus / 2) });
  const isBlamed =
    skus === 1 &&
    (await settleAlone(ctx, claim, first, { failures, mayBlame: hadFailed, failure: error.kind }));
  if (!hadFailed) return;
  const sku = isBlamed ? { sku: first.sku } : {};
  ctx.emit({ event: 'bulk.failed', ...failureOf(error), because: error.kind, skus, ...sku, pausedMs: 0 });
}

/** Why a call failed as a whole. `lacksPrivilege`: Postgres rejected its answer for lack of a privilege. */
type WholeFailure = Failure & { readonly because: FailedKind; readonly lacksPrivilege?: boolean };

/** Gives the SKUs of a failed call back, as callFailed says. */
export async function returnFailedCall(
  ctx: SyncContext,
  claim: Claim,
  { lacksPrivilege = false, ...failure }: WholeFailure,
  { failures, rejections, wanted, callSize, plan }: PlannedCall,
): Promise<IterationResult> {
  const { sql, settings } = ctx;
  const { because } = failure;
  const skus = claim.skus.length;
  const hadFailed = wanted.suspects !== undefined;
  const call = { kind: because, skus, failures, rejections, hadFailed };
  const { blames, ...effects } = afterFailedCall(call, callSize, settings);
  const [first] = claim.skus;
  const alone = blames ? first : undefined;
  if (because === 'not-stored') await markUnstored(sql, claim);
  const mayBlame =
    hadFailed && alone !== undefined && !mayFailForSource(alone, because, plan, settings.intervals);
  const isBlamed =
    alone !== undefined && (await settleAlone(ctx, claim, alone, { failures, mayBlame, failure: because }));
  if (alone !== undefined && because === 'not-stored')
    await quarantine(sql, 'store', [
      { reason: lacksPrivilege ? NO_PRIVILEGE : because, sku: alone.sku, sample: failure.problem ?? null },
    ]);
  await storeFailedCall(sql, { claim, because, failures, isRejection: isRejection(because), ...effects });
  ctx.floors.reset();
  const sku = isBlamed ? { sku: alone.sku } : {};
  const { pauseMs } = effects;
  ctx.emit({ event: 'bulk.failed', ...failure, skus, ...sku, pausedMs: pauseMs });
  return pauseMs > 0 ? { kind: 'wait', forMs: pauseMs, because } : { kind: 'called', skus: 0 };
}

interface AloneFailure {
  readonly failure: FailedKind;
  /** Failed calls immediately before it. */
  readonly failures: number;
  /** Whether its SKU had been in a failed call before, and no other cause of this failure is known. */
  readonly mayBlame: boolean;
}

/**
 * Makes a SKU whose own call failed wait like one in `errors`, and share no call until a call with it has worked.
 * Returns whether the SKU is blamed, and so waits longer: not the first time, which may be chance, and not if
 * another call failed, before it or while it was under way, and none has worked since, because that may be an
 * outage.
 */
async function settleAlone(
  { sql, settings, random }: SyncContext,
  claim: Claim,
  asked: ClaimedSku,
  { failures, mayBlame, failure }: AloneFailure,
): Promise<boolean> {
  const isBlamed =
    mayBlame &&
    asked.failures >= blamedFrom(failure) &&
    failures === 0 &&
    (await callPause(sql)).failures === 0;
  const because = isBlamed ? 'alone' : 'alone-in-doubt';
  const result = skuResultOf(asked, { kind: 'error', because, failure }, settings, random);
  await applyAnswer(sql, claim, [result], nextRefresh(settings));
  return isBlamed;
}
