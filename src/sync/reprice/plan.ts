import type { CallInputOptions, CallInputs, CallSize, Early } from '../../store/call/bulk-call.ts';
import type { SyncState } from '../../store/catalog/sync-state.ts';
import {
  type ClaimedLane,
  DUE_LANES,
  type DueClass,
  type DueSuspects,
  type LaneClass,
  PROMISED,
  type Quota,
  type WantedSkus,
} from '../../store/ledger/due.ts';
import type { LiveSpend } from '../../store/ledger/due.ts';
import type { LivePlan } from '../../store/live/live.ts';
import { snapshotMs, type SyncSettings } from '../context.ts';
import { type LiveCredit, liveCredit } from '../live/ceiling.ts';
import { trialSize } from '../live/incident.ts';
import type { CallContext } from '../live/learn.ts';
import { candidateOptions, chooseForQuota, earlyLiveSeconds } from '../live/plan.ts';
import { skusOfCall } from './call-size.ts';

/** What a call is to carry, and what was known when that was decided. */
export interface PlannedCall extends CallContext {
  readonly kind: 'planned';
  /** SKUs that were in a failed call, or others: by lane, and live ones that were chosen by value. */
  readonly wanted: WantedSkus;
  /** Failed calls immediately before this one. */
  readonly failures: number;
  readonly callSize: CallSize;
  /** What its live SKUs take under the ceiling on live computations; null where none is known. */
  readonly spend: LiveSpend | null;
  /** SKUs are still to be sorted by the rules of what is in scope. */
  readonly scopeMoved: boolean;
}

export type NoCall =
  | { readonly kind: 'idle'; readonly nextInMs: number | null }
  /** Little is due, and nothing urgent: the call waits for more to come due. */
  | { readonly kind: 'linger'; readonly forMs: number }
  | { readonly kind: 'wait'; readonly forMs: number; readonly because: string };

/** How one iteration ended: a call was made, or there is none to make now. */
export type IterationResult = { readonly kind: 'called'; readonly skus: number } | NoCall;

export interface Iteration {
  /** Iterations of this process so far. */
  readonly number: number;
  readonly sinceLastCallMs: number;
  /** The call is the first after a back-off: suspects would tell nothing of the account. */
  readonly halfOpen?: boolean;
  /** SKUs that were deferred again and again are computed again: they have waited for long. */
  readonly recovering?: boolean;
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
  const { pause, sync, livePlan: plan, due, nextDueMs } = inputs;
  if (pause.ms > 0) return { kind: 'wait', forMs: pause.ms, because: 'calls are failing' };
  const early = earlyBy(settings, sync.catalogState, earlyLiveSeconds(plan));
  const budget = sync.liveBudget ?? settings.bulk.liveBudget;
  const { callSize, scopeMoved } = inputs;
  const credit = liveCredit(plan, settings.callsPerMinute);
  const limits = planLimits(settings, budget, plan, {
    iteration: iteration.number,
    callSkus: skusOfCall(callSize, settings.bulk.maxSkus, pause.failures),
    liveBudget: Math.min(budget, credit.skus),
    recovering: iteration.recovering,
  });
  const quotas = planBatch(due, early, limits);
  const suspects = planSuspects(inputs.suspects, limits);
  const known = { plan, budget, callSize, failures: pause.failures, spend: credit.spend, scopeMoved };
  const planned = { kind: 'planned', ...known } as const;
  const isSuspectsTurn = pause.failures === 0 && iteration.number % 2 === 1 && iteration.halfOpen !== true;
  if (suspects !== null && (quotas === null || isSuspectsTurn))
    return { ...planned, wanted: { suspects }, trial: false };
  if (quotas === null) return withoutCall(due, credit, nextDueMs);
  const linger = lingerMs(due, limits, settings.callsPerMinute, iteration.sinceLastCallMs);
  if (linger > 0) return { kind: 'linger', forMs: linger };
  const { trial } = limits;
  const { untried } = inputs;
  if (untried !== null && plan.ceiling.blockedAt !== null && !trial && quotas.some((quota) => quota.live))
    return { ...planned, wanted: { quotas: quotas.filter((quota) => !quota.live), named: [untried] }, trial };
  const live = quotas.find((quota) => quota.live && quota.lane === 'live');
  const named = live === undefined ? null : chooseForQuota(plan, inputs.candidates, live.count);
  if (named === null) return { ...planned, wanted: { quotas }, trial };
  return { ...planned, wanted: { quotas: quotas.filter((quota) => quota !== live), named }, trial };
}

/** Nothing is due, or live SKUs only, for which the ceiling on live computations has nothing left yet. */
function withoutCall(due: readonly DueClass[], credit: LiveCredit, nextDueMs: number | null): NoCall {
  const awaitsCredit = credit.waitMs > 0 && due.some(({ live }) => live);
  if (!awaitsCredit) return { kind: 'idle', nextInMs: nextDueMs };
  return credit.waitMs <= MAX_CREDIT_WAIT_MS
    ? { kind: 'linger', forMs: credit.waitMs }
    : { kind: 'idle', nextInMs: credit.waitMs };
}

/** Waits longer than this go back to the queue instead of blocking the slice. */
const MAX_CREDIT_WAIT_MS = 1000;

/**
 * How large the next call may be. During an incident no larger than what is computed live of it, as the rest would
 * only be deferred, and nothing is refreshed before its time; or, now and then, a trial call whether it is over.
 */
function planLimits(
  settings: SyncSettings,
  learned: number,
  plan: LivePlan,
  { iteration, callSkus, liveBudget, recovering }: Omit<PlanLimits, 'spareSeconds'>,
): PlanLimits & { readonly trial: boolean } {
  if (plan.incident === null) {
    const spareSeconds = Math.max(0, snapshotMs(settings) - settings.intervals.sweepMinAgeMs) / 1000;
    return { callSkus, liveBudget, iteration, recovering, spareSeconds, trial: false };
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

/**
 * A call of SKUs that were in failed calls, and of no others: of those that may share the largest calls as many as
 * fit, the live ones within the budget. Null where none is due. Half of such a call works, and the other half is the
 * smaller suspicion.
 */
export function planSuspects(
  suspects: readonly DueSuspects[],
  { callSkus, liveBudget }: Pick<PlanLimits, 'callSkus' | 'liveBudget'>,
): DueSuspects[] | null {
  const budget = Math.max(0, Math.floor(liveBudget));
  for (const { largestCall } of suspects) {
    const alike = suspects.filter((other) => other.largestCall === largestCall);
    const counted = (live: boolean) => alike.find((other) => other.live === live)?.count ?? 0;
    const most = Math.min(largestCall, callSkus);
    const live = Math.min(counted(true), budget, most);
    const others = Math.min(counted(false), most - live);
    if (live + others > 0)
      return [
        { largestCall, live: true, count: live },
        { largestCall, live: false, count: others },
      ].filter(({ count }) => count > 0);
  }
  return null;
}

/** Minimum interval between two refreshes of a SKU while the catalog is stale. */
const STALE_MIN_AGE_MS = 60_000;

/**
 * How many seconds before its due time a SKU of each lane may be claimed. While the catalog is stale, nothing reports
 * changes, so everything is re-priced oldest first with the whole share (partner rules 4.2.10, 7.4.7); otherwise each
 * SKU waits for its time. In the live lane this is for SKUs that count as live (earlyOf).
 */
export function earlyBy(settings: SyncSettings, state: SyncState['catalogState'], earlyLive = 0): Early {
  const none: Early = { urgent: 0, live: earlyLive, new: 0, error: 0, metadata: 0, sweep: 0 };
  if (state !== 'stale') return none;
  const early = (intervalMs: number) =>
    Math.max(0, intervalMs - Math.min(STALE_MIN_AGE_MS, intervalMs)) / 1000;
  return { ...none, live: early(settings.intervals.liveMs), sweep: early(snapshotMs(settings)) };
}

/**
 * The same for a class. SKUs that no manifest lists are in the live lane without counting as live: nobody reports
 * their moves whatever the catalog's state, and live slots that are scarce are none of theirs, so they wait for their
 * time.
 */
function earlyOf(early: Early, { lane, live }: LaneClass): number {
  return lane === PROMISED || (lane === 'live' && !live) ? 0 : early[lane];
}

export interface PlanLimits {
  readonly callSkus: number;
  readonly liveBudget: number;
  /** Counts calls; which slow lane has its guaranteed slot this time. */
  readonly iteration: number;
  /** From how many seconds before its due time a snapshot SKU may fill a slot that is free anyway. */
  readonly spareSeconds: number;
  /** Live SKUs of the lane of errors have half of the live slots. */
  readonly recovering?: boolean | undefined;
}

/** Every lane with something due is guaranteed this part of a call's slots. */
const GUARANTEED_PART = 0.05;
/**
 * Part of a call's slots that promised SKUs leave to others that are due. Promises are admitted for a smaller part
 * than the rest, so they catch up.
 */
const BESIDE_PROMISED = 0.05;
/** Calls too small for both go to live SKUs and to the others in turns of this many iterations. */
const SIDE_ITERATIONS = 16;

/**
 * What to claim for the next bulk call (partner rules 4.1: up to 100 SKUs, only a few computed live): at most the
 * live budget of SKUs that count as live, the rest snapshot-priced, what is promised first, then lanes in their
 * order, each with a guaranteed part, and spare slots for the sweep. Null when nothing is due.
 */
export function planBatch(due: readonly DueClass[], early: Early, limits: PlanLimits): Quota[] | null {
  if (due.length === 0) return null;
  const liveDue = due.filter((o) => o.live);
  const cheapDue = due.filter((o) => !o.live);
  const budget = Math.max(0, Math.min(Math.floor(limits.liveBudget), limits.callSkus));
  const crowdedOut = budget === limits.callSkus && cheapDue.length > 0;
  const liveSlots = crowdedOut && Math.floor(limits.iteration / SIDE_ITERATIONS) % 2 === 1 ? 0 : budget;
  const live = splitLive(liveDue, liveSlots, limits);
  const liveCount = [...live.values()].reduce((sum, n) => sum + n, 0);
  const slots = limits.callSkus - liveCount;
  const cheap = split(cheapDue, slots, limits.iteration);
  const cheapCount = [...cheap.values()].reduce((sum, n) => sum + n, 0);
  // Due, but no slot may carry it now.
  if (liveCount + cheapCount === 0) return null;
  const quota = (lane: ClaimedLane, isLive: boolean, count = 0): Quota => ({
    lane,
    live: isLive,
    count,
    earlySeconds: earlyOf(early, { lane, live: isLive }),
  });
  const quotas = ([PROMISED, ...DUE_LANES] as const).flatMap((lane) => [
    quota(lane, true, live.get(lane)),
    quota(lane, false, cheap.get(lane)),
  ]);
  const spare: Quota[] = [
    {
      lane: 'sweep',
      live: false,
      count: slots - cheapCount + (cheap.get('sweep') ?? 0),
      earlySeconds: Math.max(early.sweep, limits.spareSeconds),
    },
  ];
  return [...quotas.filter((q) => q.count > 0 && !(q.lane === 'sweep' && !q.live)), ...spare].filter(
    (q) => q.count > 0,
  );
}

/** Splits the live `slots`: where those in the lane of errors recover, half is theirs first. */
function splitLive(
  due: readonly DueClass[],
  slots: number,
  { iteration, recovering = false }: PlanLimits,
): Map<ClaimedLane, number> {
  const waiting = due.find(({ lane }) => lane === 'error')?.count ?? 0;
  // The odd slot in two iterations of seven, which is out of step with the turns of the lanes.
  const half = (slots + Number(iteration % 7 < 2)) >> 1;
  const first = recovering ? Math.min(waiting, half) : 0;
  if (first === 0) return split(due, slots, iteration);
  const others = due.map((each) => (each.lane === 'error' ? { ...each, count: waiting - first } : each));
  const given = split(
    others.filter(({ count }) => count > 0),
    slots - first,
    iteration,
  );
  return new Map([...given, ['error', (given.get('error') ?? 0) + first]]);
}

/** Splits `slots` between what is promised, which comes first, and the lanes. */
function split(due: readonly DueClass[], slots: number, iteration: number): Map<ClaimedLane, number> {
  const lanes = due.filter(({ lane }) => lane !== PROMISED);
  const wanted = due.find(({ lane }) => lane === PROMISED)?.count ?? 0;
  if (wanted === 0) return share(lanes, slots, iteration);
  // Where the part of others is less than a slot, it is a slot in some of the iterations.
  const leftBefore = (n: number) => Math.ceil(n * slots * BESIDE_PROMISED);
  const left = leftBefore(iteration + 1) - leftBefore(iteration);
  const others = lanes.reduce((sum, { count }) => sum + count, 0);
  const promised = Math.min(wanted, slots - Math.min(left, others));
  // The lanes take turns by the calls in which they get a slot.
  return new Map<ClaimedLane, number>([
    ...(promised > 0 ? ([[PROMISED, promised]] as const) : []),
    ...share(lanes, slots - promised, Math.min(iteration, leftBefore(iteration))),
  ]);
}

/**
 * Splits `slots` over the lanes in their order. The lanes after the first have a guaranteed part; where that is less
 * than a slot, one slot in every second iteration goes to one of them, in rotation.
 */
function share(due: readonly DueClass[], slots: number, iteration: number): Map<ClaimedLane, number> {
  const counts = new Map<ClaimedLane, number>(due.map(({ lane, count }) => [lane, count]));
  const given = new Map<ClaimedLane, number>();
  let left = slots;
  const give = (lane: ClaimedLane, most: number) => {
    const before = given.get(lane) ?? 0;
    const n = Math.min(most, (counts.get(lane) ?? 0) - before, left);
    given.set(lane, before + n);
    left -= n;
  };
  const behind = DUE_LANES.filter((lane) => counts.has(lane)).slice(1);
  const favoured = iteration % 2 === 0 ? behind[(iteration / 2) % Math.max(1, behind.length)] : undefined;
  const part = Math.floor(slots * GUARANTEED_PART);
  for (const lane of behind) give(lane, part > 0 ? part : Number(lane === favoured));
  for (const lane of DUE_LANES) give(lane, slots);
  return given;
}

/** How long a call that could carry much more lingers for more SKUs after the one before, at most. */
const MAX_LINGER_MS = 4000;
/** The wait is at most the time for this many calls: with calls to spare, saving one is not worth a delay. */
const LINGER_CALLS = 8;
/** A call filled to this part is sent without lingering. */
const FULL_ENOUGH = 0.5;

/**
 * How many milliseconds the next call should wait for more SKUs to come due. 0 where something urgent or promised is
 * due, where the live budget or half of the call is filled, or where the last call was long enough ago: four seconds
 * at the usual pace, less where `callsPerMinute` is higher.
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
