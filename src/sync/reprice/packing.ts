import type { Early } from '../../store/call/bulk-call.ts';
import {
  type ClaimedLane,
  DUE_LANES,
  type DueClass,
  type DueSuspects,
  type LaneClass,
  PROMISED,
  type Quota,
} from '../../store/ledger/due.ts';

/*
 * What a bulk call carries of what is due. Pure.
 */

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

/**
 * How many seconds before its due time a SKU of the class may be claimed. SKUs that no manifest lists are in the live
 * lane without counting as live. Nobody reports their moves, whatever the catalog's state, and scarce live slots are
 * not for them: they wait for their time.
 */
export function earlyOf(early: Early, { lane, live }: LaneClass): number {
  return lane === PROMISED || (lane === 'live' && !live) ? 0 : early[lane];
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
