import { failpoint } from '../../lib/failpoint.ts';
import type { Acquired, SentPermit } from '../../pace/pacer.ts';
import { AUTH_CLASS, PartnerError } from '../../partner/errors.ts';
import { applyAnswer } from '../../store/answer/apply.ts';
import type { Applied } from '../../store/answer/types.ts';
import { type CallInputs, readCallInputs } from '../../store/bulk-call.ts';
import { storeFailedCall, storeLesson } from '../../store/call-lesson.ts';
import { isConnectionLost, rejection, storeFailure } from '../../store/sql-errors.ts';
import { type Claim, claimDue, type ClaimedSku, releaseClaim } from '../../store/due.ts';
import { isLockNotAvailable } from '../../store/locks.ts';
import { listedAsSnapshot, readLivePlan, storeCeiling } from '../../store/live.ts';
import { quarantine } from '../../store/quarantine.ts';
import { takeRefreshes } from '../../store/refresh.ts';
import { readScope, withinScope } from '../../store/scope.ts';
import { callPause } from '../../store/tasks.ts';
import { readWatchlist } from '../../store/watchlist.ts';
import { nextRefresh, type SyncContext } from '../context.ts';
import { learnLiveCeiling } from '../live/ceiling.ts';
import { weighDeferrals } from '../live/incident.ts';
import {
  capacityOfCalls,
  ceilingEvents,
  ceilingEvidence,
  learn,
  type Shown,
  type ShownByCall,
} from '../live/learn.ts';
import { weighLines } from '../live/lines.ts';
import { learnRefresh } from '../live/plan.ts';
import { followHints } from './hints.ts';
import { followLines, turnedLines } from './lines.ts';
import { type Failure, failureOf, PATIENCE_MS } from '../outcome.ts';
import { afterFailedCall, type FailedKind, sizeAfter } from './call-size.ts';
import { inputOptions, type NoCall, planCall, type PlannedCall, type IterationState } from './plan.ts';
import { type Reconciliation, skuResultOf, reconcile, unpriced, type SkuAnswer } from './reconciliation.ts';
import { tellApplied } from './tell.ts';

/** How one iteration ended: a call was made, or there is none to make now. */
export type Iteration = { readonly kind: 'called'; readonly skus: number } | NoCall;

/** A claim outlives the request's own timeout by this much, for the answer to be applied. */
const LEASE_SLACK_MS = 60_000;
/** When others have claimed all that was planned, the ledger is read again after this. */
const OVERTAKEN_MS = 250;
/** Of SKUs that are sorted by the rules of what is in scope before a call: a second or so. */
const SORTED_PIECES = 4;
/** Then what the call showed of the ceiling is left out: so many others have shown something meanwhile. */
const MOST_TRIES = 5;

/**
 * One iteration of re-pricing: plans a bulk call from the ledger, waits for its permit, claims its SKUs, asks, settles the
 * answer in one transaction, and learns from it. `stopping` ends the waiting for a permit; `hard` also breaks off a
 * request under way, whose SKUs then stay due. `onSent` is called when the request leaves: from then on another call may be planned.
 */
export async function repriceOnce(
  ctx: SyncContext,
  iteration: IterationState,
  requestTimeoutMs: number,
  signals: { readonly stopping: AbortSignal; readonly hard: AbortSignal },
  onSent: () => void = () => {},
): Promise<Iteration> {
  const plan = async () => planCall(await readInputs(ctx), iteration, ctx.settings);
  const first = await plan();
  if (first.kind !== 'planned') return first;
  const acquired = await ctx.pacer.acquire('reprice', PATIENCE_MS, signals.stopping);
  if (acquired.kind === 'wait') return acquired;
  const { waited } = acquired;
  // While this call waited, others may have claimed what it had planned, and something urgent may have come.
  const planned = waited ? await plan() : first;
  const claim = planned.kind === 'planned' ? await claimPlanned(ctx, planned, requestTimeoutMs) : null;
  if (planned.kind !== 'planned' || claim === null) {
    await acquired.permit.cancel();
    return planned.kind === 'planned' ? { kind: 'idle', nextInMs: OVERTAKEN_MS } : planned;
  }
  failpoint('bulk.claimed');
  const skus = claim.skus.map(({ sku }) => sku);
  const valid = await validPermit(ctx, acquired.permit, signals.stopping);
  if (valid.kind === 'wait') {
    await release(ctx, claim);
    return valid;
  }
  const { permit } = valid;
  try {
    const sentAt = ctx.clock.monotonic();
    const asking = ctx.client.bulk(permit, skus, signals.hard);
    onSent();
    const answer = await asking;
    const tookMs = ctx.clock.monotonic() - sentAt;
    failpoint('bulk.answered');
    const reconciliation = reconcile(skus, answer);
    const settled = await settle(ctx, claim, reconciliation, planned).catch(rejectionOrThrow);
    if ('state' in settled) return await giveBack(ctx, claim, notStored(settled), planned);
    await learnFrom(ctx, claim, { ...reconciliation, ...settled, tookMs }, planned);
    failpoint('bulk.learned');
  } catch (error) {
    if (error instanceof PartnerError) return await callFailed(ctx, claim, error, planned);
    // The answer could not be stored; its SKUs need not wait for the lease to be asked about again. Where its COMMIT
    // was carried out after all, the claim is no longer ours and nothing is given back.
    if (isConnectionLost(error) || storeFailure(error) !== null || isLockNotAvailable(error))
      await release(ctx, claim).catch(() => {});
    throw error;
  }
  return { kind: 'called', skus: skus.length };
}

/** Claims what is planned. While SKUs are still to be sorted by the rules of what is in scope, those that are not are given back. */
async function claimPlanned(
  { sql, floors }: SyncContext,
  { wanted, spend, scopeMoved }: PlannedCall,
  requestTimeoutMs: number,
): Promise<Claim | null> {
  const claim = await claimDue(sql, wanted, requestTimeoutMs + LEASE_SLACK_MS, spend, floors.floors);
  return claim !== null && scopeMoved ? await withinScope(sql, claim) : claim;
}

/** The permit, or another one where it has lapsed meanwhile. */
async function validPermit(
  { pacer }: SyncContext,
  permit: SentPermit,
  stopping: AbortSignal,
): Promise<Permitted> {
  if (!permit.lapsed()) return { kind: 'granted', permit };
  await permit.cancel();
  return await pacer.acquire('reprice', PATIENCE_MS, stopping);
}

type Permitted =
  | { readonly kind: 'granted'; readonly permit: SentPermit }
  | Extract<Acquired, { readonly kind: 'wait' }>;

/** Reads what a call is planned from, after what sellers have done to the watchlist and the scope meanwhile, hinted at, and asked for. */
async function readInputs(ctx: SyncContext): Promise<CallInputs> {
  const options = inputOptions(ctx.settings);
  const inputs = await readCallInputs(ctx.sql, options, ctx.floors);
  const { watchlistMoved, scopeMoved, hintsCame, refreshesCame } = inputs;
  if (!watchlistMoved && !scopeMoved && !hintsCame && !refreshesCame) return inputs;
  if (scopeMoved) await readScope(ctx.sql, { everything: false, pieces: SORTED_PIECES });
  if (watchlistMoved)
    await readWatchlist(ctx.sql, { most: ctx.settings.catalog.watchedSkus, everything: false });
  if (hintsCame) await followHints(ctx, inputs.live);
  if (refreshesCame) await takeRefreshes(ctx.sql);
  ctx.floors.reset();
  return await readCallInputs(ctx.sql, options, ctx.floors);
}

/** Applies an answer in one transaction, and reports its result. */
async function settle(
  ctx: SyncContext,
  claim: Claim,
  reconciliation: Reconciliation,
  { plan }: PlannedCall,
): Promise<Pick<Applied, 'lines'>> {
  const { sql, settings, random } = ctx;
  let unpricedEntries = 0;
  const results = claim.skus.map((asked) => {
    const skuAnswer = reconciliation.skuAnswers.get(asked.sku) ?? { kind: 'error', because: 'omitted' };
    if (skuAnswer.kind === 'record') unpricedEntries += unpriced(skuAnswer.record);
    return skuResultOf(asked, skuAnswer, settings, random);
  });
  const applied = await applyAnswer(sql, claim, results, {
    ...nextRefresh(settings),
    live: learnRefresh(plan, settings),
    lines: (refreshes) => weighLines(plan, refreshes),
    everythingLive: plan.incident !== null,
    members: ctx.members,
    looks: ctx.looks,
    hints: ctx.hints,
    moves: ctx.moves,
  });
  failpoint('bulk.committed');
  tellApplied(ctx, claim, reconciliation, { ...applied, unpricedEntries });
  return applied;
}

/** Gives a claim back as it was. */
async function release({ sql, floors }: SyncContext, claim: Claim): Promise<void> {
  await releaseClaim(
    sql,
    claim.number,
    claim.skus.map(({ sku }) => sku),
  );
  floors.reset();
}

async function learnFrom(
  ctx: SyncContext,
  claim: Claim,
  { skuAnswers, lines, tookMs }: Reconciliation & Pick<Applied, 'lines'> & { readonly tookMs: number },
  planned: PlannedCall,
): Promise<void> {
  const shown = (live: boolean) =>
    shownOf(
      claim.skus.filter((asked) => asked.live === live),
      skuAnswers,
    );
  const { failures, wanted, callSize } = planned;
  const [suspects] = wanted.suspects ?? [];
  const call = { skus: claim.skus.length, failed: false, hadFailed: suspects !== undefined };
  const snapshot = shown(false);
  const asked = planned.trial ? claim.skus : claim.skus.filter(({ live }) => !live);
  const ofListed = async () => shownOf(await listed(ctx, asked), skuAnswers);
  const evidence = planned.trial
    ? { tried: await ofListed() }
    : snapshot.deferred > 0
      ? { listed: await ofListed() }
      : {};
  const askedAt = claim.askedAt.getTime();
  const times = { askedAt, answeredAt: askedAt + tookMs };
  const byCall = { live: shown(true), snapshot, ...evidence, ...times };
  const taught = learn(planned, byCall, ctx.settings);
  const stored = await storeLesson(ctx.sql, taught.lesson, {
    failures,
    callSize: sizeAfter(callSize, ctx.settings.bulk.maxSkus, call),
    cleared: suspects?.largestCall ?? null,
    lines: turnedLines(lines, planned.plan.releases).map(({ change }) => change),
  });
  if (stored.ceilingMoved && byCall.live.asked > 0) await learnCeilingAgain(ctx, planned, byCall);
  await followLines(ctx, planned.plan, lines, stored.lines);
  for (const event of taught.events) ctx.emit(event);
  if (stored.turned && taught.incidentEvent !== null) ctx.emit(taught.incidentEvent);
  if (!planned.trial) await weighDeferrals(ctx, planned.plan.incident, stored.deferrals);
}

/** Other calls have taught something of the ceiling since this one was planned: it is weighed with what is known now. */
async function learnCeilingAgain(
  { sql, settings, emit }: SyncContext,
  { budget }: PlannedCall,
  byCall: ShownByCall,
): Promise<void> {
  const evidence = ceilingEvidence(byCall, budget, settings);
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const plan = await readLivePlan(sql);
    const after = learnLiveCeiling(plan, evidence, capacityOfCalls(budget, settings));
    if (after === null) return;
    if (!(await storeCeiling(sql, after))) continue;
    for (const event of ceilingEvents(plan.ceiling, after)) emit(event);
    return;
  }
}

/** Those that the catalog lists as snapshot-priced: by them it is judged whether it is so, whatever they count as. */
async function listed({ sql }: SyncContext, asked: readonly ClaimedSku[]): Promise<readonly ClaimedSku[]> {
  const as = await listedAsSnapshot(
    sql,
    asked.map(({ sku }) => sku),
  );
  return asked.filter(({ sku }) => as.has(sku));
}

function shownOf(asked: readonly ClaimedSku[], skuAnswers: Reconciliation['skuAnswers']): Shown {
  const count = (...kinds: readonly SkuAnswer['kind'][]) =>
    asked.filter(({ sku }) => kinds.includes(skuAnswers.get(sku)?.kind ?? 'error')).length;
  return { asked: asked.length, answered: count('record', 'not_found'), deferred: count('deferred') };
}

/**
 * A call that failed as a whole settles nothing: its SKUs stay due. After a refusal the pacer backs off for all daemons. After any
 * other failure its SKUs share calls of half as many, so that one that the partner cannot answer is found in a few calls, and waits
 * alone; the others go on within the pace. Where several calls in a row fail, it is not for their SKUs: then all wait, longer each
 * time, and no SKU is blamed.
 */
async function callFailed(
  ctx: SyncContext,
  claim: Claim,
  error: PartnerError,
  planned: PlannedCall,
): Promise<Iteration> {
  if (error.kind === 'aborted' || AUTH_CLASS.has(error.kind) || error.kind === 'account-not-configured') {
    await release(ctx, claim);
    return { kind: 'wait', forMs: 0, because: error.kind };
  }
  return await giveBack(ctx, claim, { ...failureOf(error), because: error.kind }, planned);
}

/** Gives the SKUs of a failed call back, as callFailed says. */
async function giveBack(
  ctx: SyncContext,
  claim: Claim,
  failure: Failure & { readonly because: FailedKind },
  { failures, wanted, callSize }: PlannedCall,
): Promise<Iteration> {
  const { sql, settings } = ctx;
  const { because } = failure;
  const skus = claim.skus.length;
  const call = { kind: because, skus, failures, hadFailed: wanted.suspects !== undefined };
  const { blames, ...effects } = afterFailedCall(call, callSize, settings);
  const [first] = claim.skus;
  const alone = blames ? first : undefined;
  const isBlamed = alone !== undefined && (await setAside(ctx, claim, alone, failures));
  if (alone !== undefined && because === 'not-stored')
    await quarantine(sql, 'store', [{ reason: because, sku: alone.sku, sample: failure.problem ?? null }]);
  await storeFailedCall(sql, { claim, because, failures, ...effects });
  ctx.floors.reset();
  const sku = isBlamed ? { sku: alone.sku } : {};
  const { pauseMs } = effects;
  ctx.emit({ event: 'bulk.failed', ...failure, skus, ...sku, pausedMs: pauseMs });
  return pauseMs > 0 ? { kind: 'wait', forMs: pauseMs, because } : { kind: 'called', skus: 0 };
}

type Rejection = NonNullable<ReturnType<typeof rejection>>;

function rejectionOrThrow(error: unknown): Rejection {
  const rejected = rejection(error);
  if (rejected === null) throw error;
  return rejected;
}

/** An answer with rows that Postgres never takes: its SKUs are treated as those of a failed call, so that one holds up no other. */
const notStored = ({ state, by }: Rejection) =>
  ({
    because: 'not-stored',
    hint: 'see catalog_internal.quarantine for the SKU, and what rejects its rows in Postgres',
    problem: `Postgres rejects the rows of the answer: SQLSTATE ${state}, by ${by}`,
  }) as const;

/**
 * A SKU with which a call of its own failed waits like one in `errors`, and shares no call until one with it has worked. Returns
 * whether it is to blame, and waits longer: not the first time, which may be chance, nor where another call has failed and none
 * has worked since, before it or while it was under way: that may be an outage.
 */
async function setAside(
  { sql, settings, random }: SyncContext,
  claim: Claim,
  asked: ClaimedSku,
  failures: number,
): Promise<boolean> {
  const isBlamed = asked.failures > 0 && failures === 0 && (await callPause(sql)).failures === 0;
  const because = isBlamed ? 'alone' : 'alone-in-doubt';
  const result = skuResultOf(asked, { kind: 'error', because }, settings, random);
  await applyAnswer(sql, claim, [result], nextRefresh(settings));
  return isBlamed;
}
