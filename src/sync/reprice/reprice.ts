import { failpoint } from '../../lib/failpoint.ts';
import type { Span } from '../../lib/tracer.ts';
import type { Acquired, SentPermit } from '../../pace/permit.ts';
import type { BulkAnswer } from '../../partner/answers.ts';
import { PartnerError } from '../../partner/errors.ts';
import { type Applied, applyAnswer } from '../../store/answer/apply.ts';
import { type CallInputs, readCallInputs } from '../../store/call/bulk-call.ts';
import {
  isConnectionLost,
  isPrivilegeLacking,
  rejection,
  storeFailure,
} from '../../store/connection/sql-errors.ts';
import { claimDue, markUnstored } from '../../store/ledger/claim.ts';
import type { Claim } from '../../store/ledger/due.ts';
import type { LiveRefresh } from '../../store/live/refresh.ts';
import { takeRefreshes } from '../../store/sellers/refresh.ts';
import { readScope, withinScope } from '../../store/sellers/scope.ts';
import { readWatchlist } from '../../store/sellers/watchlist.ts';
import type { StopSignals, SyncContext } from '../context.ts';
import { learnRefresh } from '../live/learn-refresh.ts';
import { weighLines } from '../live/product-lines.ts';
import { PATIENCE_MS } from '../outcome.ts';
import { nextRefresh } from '../settings.ts';
import {
  acquireTraced,
  answerFacts,
  applyTraced,
  callTraced,
  CallSteps,
  permitFacts,
  traceCall,
} from '../traces.ts';
import { skusOfHalfOpen } from './call-size.ts';
import { callFailed, keepSome, noteCallEnd, returnFailedCall, release } from './failed-call.ts';
import { learnFrom } from './learn-call.ts';
import { mayBeOfLive } from './live-doubt.ts';
import { followOutage } from './partner-faults.ts';
import {
  inputOptions,
  type IterationResult,
  type Iteration,
  planCall,
  type PlannedCall,
} from './plan-call.ts';
import {
  answerFor,
  countAnswered,
  type Reconciliation,
  skuResultOf,
  reconcile,
  unpriced,
} from './reconciliation.ts';
import { followHints } from './take-hints.ts';
import { tellApplied, tellNotSizes } from './tell.ts';

/** How much longer a claim lasts than the request's timeout, so that the answer can be applied. */
const LEASE_SLACK_MS = 60_000;
/** How soon the ledger is read again after others have claimed all that was planned. */
const OVERTAKEN_MS = 250;
/** Pieces of pending scope changes applied before a call; about one second of work. */
const SORTED_PIECES = 4;

/**
 * Runs one iteration of re-pricing: plans a bulk call from the ledger, waits for its permit, claims its SKUs,
 * asks, settles the answer in one transaction, and learns from it. `onSent` is called when the request leaves:
 * from then on another call may be planned.
 */
export async function repriceOnce(
  ctx: SyncContext,
  iteration: Pick<Iteration, 'sinceLastCallMs'>,
  requestTimeoutMs: number,
  signals: StopSignals,
  onSent: () => void = () => {},
): Promise<IterationResult> {
  const steps = new CallSteps(ctx.clock);
  const planFor = (halfOpen: boolean) =>
    steps.time('plan', async () =>
      planCall(await readInputs(ctx), { ...iteration, halfOpen, ...recentlyShown(ctx) }, ctx.settings),
    );
  const first = await planFor(false);
  if (first.kind !== 'planned') return first;
  const acquired = await steps.time(
    'pace.wait',
    () => ctx.pacer.acquire('reprice', PATIENCE_MS, signals.stopping),
    (asked) => permitFacts('reprice', asked),
  );
  if (acquired.kind === 'wait') return acquired;
  const { waited, permit } = acquired;
  const { halfOpen } = permit;
  // While this call waited, others may have claimed what it planned, and something urgent may have come.
  const prepare = async () => {
    const planned = waited || halfOpen ? await planFor(halfOpen) : first;
    if (planned.kind !== 'planned') return planned;
    const claim = await steps.time('claim', () => claimPlanned(ctx, planned, permit, requestTimeoutMs));
    return { kind: 'prepared', planned, claim } as const;
  };
  const prepared = await orGivingBack(prepare, () => permit.cancel());
  if (prepared.kind !== 'prepared' || prepared.claim === null) {
    await permit.cancel();
    if (prepared.kind !== 'prepared') return prepared;
    ctx.recent.noteTurn(prepared.planned);
    return { kind: 'idle', nextInMs: OVERTAKEN_MS };
  }
  const { planned, claim } = prepared;
  failpoint('bulk.claimed');
  return await traceCall(ctx, steps, claim, (span) =>
    ctx.recent.during(planned, () => makeCall(ctx, { claim, planned, permit, span }, signals, onSent)),
  );
}

/** Returns what planning needs to know of recent answers. */
const recentlyShown = ({ recent }: SyncContext) => ({
  turns: recent.turns,
  recovering: recent.recovering,
  ...recent.liveDoubt,
});

/**
 * Returns the result of `work`. If it throws, tries to give back what was taken for it, so that nothing waits for
 * it.
 */
async function orGivingBack<T>(work: () => Promise<T>, giveBack: () => Promise<void>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await giveBack().catch(() => {});
    throw error;
  }
}

interface ClaimedCall {
  readonly claim: Claim;
  readonly planned: PlannedCall;
  readonly permit: SentPermit;
  readonly span: Span;
}

/** Makes the call of a claim, as described at repriceOnce. */
async function makeCall(
  ctx: SyncContext,
  { claim, planned, permit: first, span }: ClaimedCall,
  signals: StopSignals,
  onSent: () => void,
): Promise<IterationResult> {
  const skus = claim.skus.map(({ sku }) => sku);
  const valid = await orGivingBack(
    () => validPermit(ctx, first, signals.stopping),
    () => release(ctx, claim),
  );
  if (valid.kind === 'wait') {
    await release(ctx, claim);
    return valid;
  }
  const sentAt = ctx.clock.monotonic();
  try {
    const facts = { 'catalog_mirror.skus.asked': skus.length };
    const answer = await callTraced(ctx, 'bulk', facts, async (call) => {
      const asking = ctx.client.bulk(valid.permit, skus, signals.hard);
      onSent();
      const answered = await asking.catch((error: unknown) => nothingRead(ctx, claim, error));
      call.set(answerFacts(answered));
      return answered;
    });
    const tookMs = ctx.clock.monotonic() - sentAt;
    failpoint('bulk.answered');
    const reconciliation = reconciled(ctx, claim, answer);
    const settled = await settle(ctx, claim, reconciliation, planned).catch(rejectionOrThrow);
    if ('state' in settled) {
      span.fail(settled.state);
      return await returnFailedCall(ctx, claim, notStored(settled), planned);
    }
    if (showsSource(claim, reconciliation))
      await noteCallEnd(ctx, claim, planned, { sentAt, answered: true });
    await ctx.tracer.span('learn', {}, () =>
      learnFrom(ctx, claim, { ...reconciliation, ...settled, tookMs }, planned),
    );
    failpoint('bulk.learned');
  } catch (error) {
    if (error instanceof PartnerError) {
      span.fail(error.kind);
      const done = await callFailed(ctx, claim, error, { ...planned, permit: valid.permit });
      if (mayBeOfLive(error.kind)) await noteCallEnd(ctx, claim, planned, { sentAt, answered: false });
      return done;
    }
    await returnUnstored(ctx, claim, error).catch(() => {});
    throw error;
  }
  return { kind: 'called', skus: skus.length };
}

/** An answer of errors alone does not show whether snapshot-priced SKUs work. */
const showsSource = ({ skus }: Claim, { skuAnswers }: Reconciliation): boolean =>
  skus.some(({ live }) => live) || countAnswered(skus, skuAnswers, 'record', 'not_found', 'deferred') > 0;

/** Returns an empty answer if the partner read none of the SKUs because of these (notePassedOver); else throws. */
function nothingRead({ recent }: SyncContext, claim: Claim, error: unknown): BulkAnswer {
  const isPassedOver =
    error instanceof PartnerError && error.kind === 'no-skus-read' && recent.notePassedOver(claim.skus);
  if (!isPassedOver) throw error;
  return { results: new Map(), notFound: [], deferred: [], errors: [], requested: 0 };
}

/**
 * Returns the reconciled answer, including whether earlier answers show that the partner reads only part of a
 * call.
 */
function reconciled({ recent, emit }: SyncContext, { skus }: Claim, answer: BulkAnswer): Reconciliation {
  tellNotSizes({ emit }, answer);
  const setBack = new Set(skus.flatMap((asked) => (asked.setBack === true ? [asked.sku] : [])));
  const found = reconcile(
    skus.map(({ sku }) => sku),
    answer,
    setBack,
  );
  const readsNoMore = recent.noteRead(skus.length, found.read);
  return { ...found, cut: found.cut || readsNoMore };
}

/**
 * Gives back SKUs whose answer could not be stored, so that they are asked for again before the lease ends. If the
 * COMMIT was carried out after all, the claim is no longer ours and nothing is given back. Unless Postgres as a
 * whole is the cause, they share calls of half as many, because one of them may be the cause, such as a lock that
 * somebody holds on it; a single one waits as after any error.
 */
async function returnUnstored(ctx: SyncContext, claim: Claim, error: unknown): Promise<void> {
  const skus = claim.skus.length;
  if (isConnectionLost(error) || storeFailure(error) !== null) return await release(ctx, claim);
  await markUnstored(ctx.sql, claim);
  const holdMs = skus > 1 ? 0 : ctx.settings.intervals.errorMs;
  await release(ctx, claim, { largestCall: Math.ceil(skus / 2), holdMs });
}

/**
 * Claims what is planned. Gives back SKUs that are out of scope, while some still have to be sorted by its rules;
 * and for a half-open call, all but some drawn at random (skusOfHalfOpen).
 */
async function claimPlanned(
  ctx: SyncContext,
  { wanted, spend, scopeMoved }: PlannedCall,
  { halfOpen, refusals }: SentPermit,
  requestTimeoutMs: number,
): Promise<Claim | null> {
  const { sql, floors } = ctx;
  const claimed = await claimDue(sql, wanted, requestTimeoutMs + LEASE_SLACK_MS, spend, floors.floors);
  if (claimed === null) return null;
  const cutDown = async () => {
    const claim = scopeMoved ? await withinScope(sql, claimed) : claimed;
    return claim !== null && halfOpen
      ? await keepSome(ctx, claim, skusOfHalfOpen(claim.skus.length, refusals))
      : claim;
  };
  return await orGivingBack(cutDown, () => release(ctx, claimed));
}

/**
 * Returns the permit, or a new one if it has lapsed meanwhile. If only one of the two is half-open, the new one is
 * given back and the call waits, because the first call after a back-off is planned as such (skusOfHalfOpen).
 */
async function validPermit(ctx: SyncContext, permit: SentPermit, stopping: AbortSignal): Promise<Permitted> {
  if (!permit.lapsed()) return { kind: 'granted', permit };
  await permit.cancel();
  const again = await acquireTraced(ctx, 'reprice', stopping);
  if (again.kind === 'wait' || again.permit.halfOpen === permit.halfOpen) return again;
  await again.permit.cancel();
  return { kind: 'wait', forMs: OVERTAKEN_MS, because: 'probe' };
}

type Permitted =
  | { readonly kind: 'granted'; readonly permit: SentPermit }
  | Extract<Acquired, { readonly kind: 'wait' }>;

/**
 * Reads what a call is planned from, after applying what sellers have meanwhile changed in the watchlist and the
 * scope, hinted at, and asked for.
 */
async function readInputs(ctx: SyncContext): Promise<CallInputs> {
  const options = inputOptions(ctx.settings);
  const inputs = await readCallInputs(ctx.sql, options, ctx.floors);
  const { watchlistMoved, scopeMoved, hintsCame, refreshesCame } = inputs;
  if (!watchlistMoved && !scopeMoved && !hintsCame && !refreshesCame) return inputs;
  if (scopeMoved) await readScope(ctx.sql, { everything: false, pieces: SORTED_PIECES });
  // Entries of the list that Postgres rejects prevent no call: maintenance fails because of them, and says so.
  if (watchlistMoved)
    await readWatchlist(ctx.sql, { most: ctx.settings.catalog.watchedSkus, everything: false }).catch(
      rejectionOrThrow,
    );
  if (hintsCame) await followHints(ctx, inputs.livePlan);
  if (refreshesCame) await takeRefreshes(ctx.sql);
  ctx.floors.reset();
  return await readCallInputs(ctx.sql, options, ctx.floors);
}

/** Applies an answer in one transaction, and reports the result. */
async function settle(
  ctx: SyncContext,
  claim: Claim,
  reconciliation: Reconciliation,
  { plan }: PlannedCall,
): Promise<Pick<Applied, 'lines'>> {
  const { sql, settings, random, observers } = ctx;
  let unpricedEntries = 0;
  const { skuAnswers } = reconciliation;
  const liveSource = ctx.recent.noteLiveSource(claim.skus, skuAnswers, plan.outageSince ?? null);
  const meanwhile = {
    cut: reconciliation.cut,
    liveFails: liveSource.fails,
    liveSuffices:
      plan.refreshThreshold === null && !plan.unsolved && settings.intervals.livePolicy === 'index',
    ceilingMet: plan.ceiling.blockedAt !== null,
    generalErrors: ctx.recent.noteErrors(claim.skus, skuAnswers),
    computes:
      plan.computed > 0 || claim.skus.some(({ sku, live }) => live && skuAnswers.get(sku)?.kind === 'record'),
  };
  const results = claim.skus.map((asked) => {
    const skuAnswer = answerFor(asked, skuAnswers);
    if (skuAnswer.kind === 'record') unpricedEntries += unpriced(skuAnswer.record);
    return skuResultOf(asked, skuAnswer, settings, random, meanwhile);
  });
  const learning = {
    live: learnRefresh(plan, settings),
    lines: (refreshes: readonly LiveRefresh[]) => weighLines(plan, refreshes),
    everythingLive: plan.incident !== null,
    random,
  };
  const applied = await applyTraced(ctx, () =>
    applyAnswer(sql, claim, results, nextRefresh(settings), { learning, observers }),
  );
  failpoint('bulk.committed');
  await followOutage(ctx, liveSource.change);
  tellApplied(ctx, claim, reconciliation, { ...applied, unpricedEntries });
  return applied;
}

type Rejection = NonNullable<ReturnType<typeof rejection>>;

function rejectionOrThrow(error: unknown): Rejection {
  const rejected = rejection(error);
  if (rejected === null) throw error;
  return rejected;
}

/**
 * Describes an answer with rows that Postgres rejects: its SKUs are treated like those of a failed call, so that
 * one delays no other.
 */
const notStored = ({ state, by }: Rejection) =>
  ({
    because: 'not-stored',
    hint: 'see catalog_internal.quarantine for the SKU, and what rejects its rows in Postgres',
    problem: `Postgres rejects the rows of the answer: SQLSTATE ${state}, by ${by}`,
    lacksPrivilege: isPrivilegeLacking(state),
  }) as const;
