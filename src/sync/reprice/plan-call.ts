import type { PutOff } from '../../pace/permit.ts';
import type { CallInputOptions, CallInputs, Early } from '../../store/call/bulk-call.ts';
import type { CallSize } from '../../store/call/call-lesson.ts';
import type { SyncState } from '../../store/catalog/sync-state.ts';
import type { LiveSpend, WantedSkus } from '../../store/ledger/claim.ts';
import { type DueClass, PROMISED, type Quota } from '../../store/ledger/due.ts';
import type { LivePlan } from '../../store/live/live.ts';
import { type LiveCredit, liveCredit } from '../live/ceiling.ts';
import { candidateOptions, chooseForQuota, earlyLiveSeconds } from '../live/choose.ts';
import { trialSize } from '../live/incident.ts';
import type { CallContext } from '../live/learn.ts';
import { snapshotMs, type SyncSettings } from '../settings.ts';
import { type FailedKind, skusOfCall } from './call-size.ts';
import { DOUBTED, type DoubtStep } from './live-doubt.ts';
import {
  earlyOf,
  FIRST_PACKING,
  type PackingTurns,
  planBatch,
  type PlanLimits,
  planSuspects,
} from './packing.ts';

/** What a call should carry, and what was known when that was decided. */
export interface PlannedCall extends CallContext {
  readonly kind: 'planned';
  /** SKUs of failed calls, or others: by lane, and live ones that were chosen by value. */
  readonly wanted: WantedSkus;
  /** Failed calls immediately before this one, and how many of these were rejections. */
  readonly failures: number;
  readonly rejections: number;
  readonly callSize: CallSize;
  /** Whether it is a single live SKU, to test whether the partner's live source works. */
  readonly lone: boolean;
  /** The turns of the next call by quotas; undefined: unchanged, because this call is not one. */
  readonly packing?: PackingTurns;
  /** What its live SKUs cost under the ceiling on live computations; null if none is known. */
  readonly spend: LiveSpend | null;
  /** Whether SKUs still have to be sorted by the rules of what is in scope. */
  readonly scopeMoved: boolean;
}

/** Why no call is made now: the pace, calls that fail, or the failure of the call itself. */
export type NoCallCause = PutOff | 'calls-failing' | FailedKind;

/** Why there is no call, and in how many milliseconds there may be one. */
export type NoCall =
  | { readonly kind: 'idle'; readonly nextInMs: number | null }
  /** Little is due, and nothing urgent: the call waits for more to come due. */
  | { readonly kind: 'linger'; readonly forMs: number }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: NoCallCause };

/** How one iteration ended: a call was made, or none can be made now. */
export type IterationResult = { readonly kind: 'called'; readonly skus: number } | NoCall;

/**
 * Whose turn it is among those that share a process's calls. Each counts its own calls: two that took turns by the
 * iteration's number could fall into step, and one would get every call, and the other none, while that lasts.
 */
export interface CallTurns {
  /** Turns of lanes, and of live SKUs and others, in calls by quotas. */
  readonly packing: PackingTurns;
  /** Whether the last call was a single live SKU, to test whether the live source works. */
  readonly triedLast: boolean;
  /** Whether the last other call had SKUs of failed calls. */
  readonly suspectsLast: boolean;
}

export const FIRST_TURNS: CallTurns = {
  packing: FIRST_PACKING,
  triedLast: false,
  suspectsLast: false,
};

export function afterTurn(
  turns: CallTurns,
  { lone, wanted, packing = turns.packing }: Pick<PlannedCall, 'lone' | 'wanted' | 'packing'>,
): CallTurns {
  if (lone) return { ...turns, triedLast: true };
  return { packing, triedLast: false, suspectsLast: wanted.suspects !== undefined };
}

export interface Iteration {
  readonly turns: CallTurns;
  readonly sinceLastCallMs: number;
  /** Whether the call is the first after a back-off, in which suspects would say nothing about the account. */
  readonly halfOpen?: boolean;
  /** Whether SKUs that were deferred again and again are computed again: they have waited long. */
  readonly recovering?: boolean;
  /** What to try while calls fail, perhaps because of their live SKUs. */
  readonly doubt?: DoubtStep | null;
  /** Whether a live SKU is being tried by itself. */
  readonly loneUnderWay?: boolean;
}

export function inputOptions(settings: SyncSettings): CallInputOptions {
  return {
    limit: settings.bulk.maxSkus,
    early: { usual: earlyBy(settings, 'ok'), stale: earlyBy(settings, 'stale') },
    candidates: candidateOptions(settings),
  };
}

/** Plans a bulk call from what was read at one moment, or says why there is none now. Pure. */
export function planCall(
  inputs: CallInputs,
  iteration: Iteration,
  settings: SyncSettings,
): PlannedCall | NoCall {
  const { pause, sync, livePlan: plan, nextDueMs } = inputs;
  if (pause.ms > 0) return { kind: 'wait', forMs: pause.ms, because: 'calls-failing' };
  const early = earlyBy(settings, sync.catalogState, earlyLiveSeconds(plan));
  const budget = sync.liveBudget ?? settings.bulk.liveBudget;
  const { callSize, scopeMoved } = inputs;
  const credit = liveCredit(plan, settings.callsPerMinute);
  const callSkus = skusOfCall(callSize, settings.bulk.maxSkus, pause.failures);
  const limits = planLimits(settings, budget, plan, {
    turns: iteration.turns.packing,
    callSkus,
    liveBudget: Math.min(budget, credit.skus),
    recovering: iteration.recovering,
  });
  const known = {
    plan,
    budget,
    callSize,
    callSkus,
    failures: pause.failures,
    rejections: pause.rejections,
    spend: credit.spend,
    scopeMoved,
  };
  for (const carries of callsInTurn(inputs, iteration, credit)) {
    const call = planCarrying(carries, inputs, { early, limits, credit, iteration, settings });
    if (call !== null) return call.kind === 'linger' ? call : { ...known, ...call };
  }
  if (iteration.loneUnderWay === true && awaitsLive(inputs)) return { kind: 'idle', nextInMs: LONE_POLL_MS };
  return withoutCall(inputs, credit, nextDueMs);
}

/** What a call carries: anything, no live SKU, or one live SKU alone. */
type Carries = 'all' | 'others' | 'lone';

/** How soon due SKUs are read again while a live SKU is tried by itself and nothing else is due. */
const LONE_POLL_MS = 1000;

/**
 * Returns what the next call may carry: the first of these for which something is due. While the live source
 * fails, or may fail, live SKUs are kept apart from all others, so that they fail no other. None is tried before
 * others work again; but if that takes long, the due others may be the ones that fail, so live SKUs come first
 * after every second failure.
 */
function callsInTurn(
  { livePlan: plan, pause }: CallInputs,
  { doubt = null, loneUnderWay = false, turns, halfOpen = false }: Iteration,
  credit: LiveCredit,
): readonly Carries[] {
  if (plan.incident !== null || (doubt === null && !isOut(plan))) return ['all'];
  const mayTry = (isOut(plan) || doubt === 'try') && credit.skus >= 1 && !loneUnderWay;
  const isLiveTurn = pause.failures === 0 || (pause.failures > DOUBTED && pause.failures % 2 === 1);
  // A try may take all the time, or all requests, until the next one, so every second call is for the others.
  if (mayTry && pause.failures === 0 && turns.triedLast) return ['others', 'lone'];
  if (mayTry) return isLiveTurn && !halfOpen ? ['lone', 'others'] : ['others', 'lone'];
  if (isOut(plan) || loneUnderWay) return ['others'];
  return isLiveTurn && pause.failures > 0 ? ['all'] : ['others', 'all'];
}

interface Planning {
  readonly early: Early;
  readonly limits: PlanLimits & { readonly trial: boolean };
  readonly credit: LiveCredit;
  readonly iteration: Iteration;
  readonly settings: SyncSettings;
}

type Carried = Pick<PlannedCall, 'kind' | 'wanted' | 'trial' | 'lone' | 'packing'>;

/** Plans a call with the due SKUs among those it may carry; null if there are none. */
function planCarrying(
  carries: Carries,
  inputs: CallInputs,
  { early, limits: usual, credit, iteration, settings }: Planning,
): Carried | Extract<NoCall, { kind: 'linger' }> | null {
  const { livePlan: plan, pause } = inputs;
  if (carries === 'lone') return planTry(inputs, early);
  // While no live SKU may be asked for, due ones neither delay a call nor hasten it.
  const withLive = carries === 'all' && !(isOut(plan) && credit.skus < 1);
  const limits = carries === 'others' ? { ...usual, liveBudget: 0 } : usual;
  const carried = inputs.due.filter(({ live }) => !live || withLive);
  const batch = planBatch(carried, early, limits);
  const suspects = planSuspects(inputs.suspects, limits);
  // Every second call is for suspects: half of these calls work, and the others' turns continue.
  const isSuspectsTurn = pause.failures === 0 && !iteration.turns.suspectsLast && iteration.halfOpen !== true;
  if (suspects !== null && (batch === null || isSuspectsTurn))
    return { kind: 'planned', wanted: { suspects }, trial: false, lone: false };
  if (batch === null) return null;
  const linger = lingerMs(carried, limits, settings.callsPerMinute, iteration.sinceLastCallMs);
  if (linger > 0) return { kind: 'linger', forMs: linger };
  const wanted = wantedOf(batch.quotas, inputs, limits.trial);
  return { kind: 'planned', wanted, trial: limits.trial, lone: false, packing: batch.turns };
}

/** Plans a call with one of the due live SKUs, and nothing else; null if none is due. */
function planTry(inputs: CallInputs, early: Early): Carried | null {
  if (!awaitsLive(inputs)) return null;
  const seconds = inputs.due.filter(({ live }) => live).map((due) => earlyOf(early, due));
  return {
    kind: 'planned',
    wanted: { lone: { earlySeconds: Math.max(0, ...seconds) } },
    trial: false,
    lone: true,
  };
}

/** Returns what a call by quotas asks for: a number of each class, and live SKUs by name if it matters which. */
function wantedOf(
  quotas: readonly Quota[],
  { livePlan: plan, untried, candidates }: CallInputs,
  trial: boolean,
): WantedSkus {
  // The ceiling is met: one live SKU that was not deferred before tests whether it still is.
  const triesCeiling = plan.ceiling.blockedAt !== null && !trial && quotas.some(({ live }) => live);
  if (untried !== null && triesCeiling)
    return { quotas: quotas.filter(({ live }) => !live), named: [untried] };
  const live = quotas.find((quota) => quota.live && quota.lane === 'live');
  const named = live === undefined ? null : chooseForQuota(plan, candidates, live.count);
  return named === null ? { quotas } : { quotas: quotas.filter((quota) => quota !== live), named };
}

/** Returns whether the partner's live source fails. */
export const isOut = ({ outageSince = null }: LivePlan): boolean => outageSince !== null;

const awaitsLive = ({ due, suspects }: CallInputs): boolean => [...due, ...suspects].some(({ live }) => live);

/** Returns when to try again if nothing is due, or only live SKUs for which the ceiling has nothing left yet. */
function withoutCall(inputs: CallInputs, credit: LiveCredit, nextDueMs: number | null): NoCall {
  if (credit.waitMs <= 0 || !awaitsLive(inputs)) return { kind: 'idle', nextInMs: nextDueMs };
  return credit.waitMs <= MAX_CREDIT_WAIT_MS
    ? { kind: 'linger', forMs: credit.waitMs }
    : { kind: 'idle', nextInMs: credit.waitMs };
}

/** Waits longer than this go back to the queue instead of blocking the slice. */
const MAX_CREDIT_WAIT_MS = 1000;

/**
 * Returns how large the next call may be. During an incident it is no larger than what is computed live of it,
 * because the rest would only be deferred, and nothing is refreshed early; now and then, a trial call tests
 * whether it is over.
 */
function planLimits(
  settings: SyncSettings,
  learned: number,
  plan: LivePlan,
  { turns, callSkus, liveBudget, recovering }: Omit<PlanLimits, 'spareSeconds'>,
): PlanLimits & { readonly trial: boolean } {
  if (plan.incident === null) {
    const spareSeconds = Math.max(0, snapshotMs(settings) - settings.intervals.sweepMinAgeMs) / 1000;
    return { callSkus, liveBudget, turns, recovering, spareSeconds, trial: false };
  }
  const { catalogCheckMs } = settings.intervals;
  const trial = trialSize(plan.incident, plan.now, { liveBudget: learned, callSkus, catalogCheckMs });
  const small = Math.min(callSkus, Math.max(1, Math.floor(learned)));
  return {
    callSkus: trial ?? small,
    liveBudget: trial ?? liveBudget,
    turns,
    spareSeconds: 0,
    trial: trial !== null,
  };
}

/** Minimum interval between two refreshes of a SKU while the catalog is stale. */
const STALE_MIN_AGE_MS = 60_000;

/**
 * Returns how many seconds before its due time a SKU of each lane may be claimed. While the catalog is stale,
 * nothing reports changes, so everything is re-priced oldest first with the whole share (partner rules 4.2.10,
 * 7.4.7); otherwise each SKU waits for its time. In the live lane, this applies to SKUs that count as live
 * (earlyOf).
 */
export function earlyBy(settings: SyncSettings, state: SyncState['catalogState'], earlyLive = 0): Early {
  const none: Early = { urgent: 0, live: earlyLive, new: 0, error: 0, metadata: 0, sweep: 0 };
  if (state !== 'stale') return none;
  const early = (intervalMs: number) =>
    Math.max(0, intervalMs - Math.min(STALE_MIN_AGE_MS, intervalMs)) / 1000;
  return { ...none, live: early(settings.intervals.liveMs), sweep: early(snapshotMs(settings)) };
}

/** The longest time after the previous call for which a call that could carry much more lingers. */
const MAX_LINGER_MS = 4000;
/** It lingers for the time of this many calls at most: with calls to spare, saving one is not worth a delay. */
const LINGER_CALLS = 8;
/** A call filled to this part is sent without lingering. */
const FULL_ENOUGH = 0.5;

/**
 * Returns how many milliseconds the next call should wait for more SKUs to come due. 0 if something urgent or
 * promised is due, if the live budget or half of the call is filled, or if the last call was long enough ago: four
 * seconds at the usual pace, less if `callsPerMinute` is higher.
 */
export function lingerMs(
  due: readonly DueClass[],
  limits: Pick<PlanLimits, 'callSkus' | 'liveBudget'>,
  callsPerMinute: number,
  sinceLastCallMs: number,
): number {
  const count = (which: (o: DueClass) => boolean) => due.filter(which).reduce((n, o) => n + o.count, 0);
  if (count(({ lane }) => lane === 'urgent' || lane === PROMISED) > 0) return 0;
  if (count(({ live }) => live) >= Math.max(1, Math.floor(limits.liveBudget))) return 0;
  if (count(({ live }) => !live) >= limits.callSkus * FULL_ENOUGH) return 0;
  const longest = Math.min(MAX_LINGER_MS, (LINGER_CALLS * 60_000) / callsPerMinute);
  return Math.max(0, longest - sinceLastCallMs);
}
