import type { Early } from '../../store/call/bulk-call.ts';
import {
  type ClaimedLane,
  DUE_LANES,
  type DueClass,
  type DueSuspects,
  type Lane,
  type LaneClass,
  PROMISED,
  type Quota,
} from '../../store/ledger/due.ts';

/* Decides which due SKUs a bulk call carries. Pure. */

export interface PlanLimits {
  readonly callSkus: number;
  readonly liveBudget: number;
  readonly turns: PackingTurns;
  /** How many seconds before its due time a snapshot SKU may fill an otherwise free slot. */
  readonly spareSeconds: number;
  /** Whether live SKUs of the error lane get half of the live slots. */
  readonly recovering?: boolean | undefined;
}

/** Every lane with something due is guaranteed this part of a call's slots. */
const GUARANTEED_PART = 0.05;
/**
 * Part of a call's slots that promised SKUs leave to other due SKUs. Fewer promises are admitted than the
 * remaining slots could keep, so they catch up.
 */
const BESIDE_PROMISED = 0.05;
/**
 * Of every ODD_CALLS calls with an odd number of live slots, the first ODD_FIRST give the odd one to recovering
 * SKUs.
 */
const ODD_CALLS = 7;
const ODD_FIRST = 2;

/**
 * Whose turn it is when slots are too few for all. Each turn advances only with the calls in which it is taken,
 * and live SKUs and others have separate turns: if turns followed the call's number, a ceiling that gives live
 * SKUs a slot in every second call, for example, would give all of these to one lane.
 */
export interface PackingTurns {
  /** Whether the next call that is too small for live SKUs and others serves the others first. */
  readonly liveLast: boolean;
  readonly live: SideTurns;
  readonly others: SideTurns;
}

interface SideTurns {
  /** Part of a slot that all others still lack of their part beside promised SKUs. */
  readonly missing: number;
  /** Whether the last call had a guaranteed slot for a lane behind the first. */
  readonly favouredLast: boolean;
  /** The lane that has waited longest for such a slot comes first. */
  readonly lanes: readonly Lane[];
  /** Calls with an odd number of live slots while SKUs recover, modulo ODD_CALLS. */
  readonly odd: number;
}

const FIRST_SIDE: SideTurns = { missing: 0, favouredLast: true, lanes: DUE_LANES, odd: 0 };
export const FIRST_PACKING: PackingTurns = { liveLast: false, live: FIRST_SIDE, others: FIRST_SIDE };

/** What to claim for a call, and whose turn it is after that. */
export interface PlannedBatch {
  readonly quotas: readonly Quota[];
  readonly turns: PackingTurns;
}

const countOf = (due: readonly DueClass[]): number => due.reduce((sum, { count }) => sum + count, 0);

/**
 * Plans what to claim for the next bulk call (partner rules 4.1: up to 100 SKUs, only a few computed live): at
 * most the live budget of SKUs that count as live, the rest snapshot-priced; promised SKUs first, then lanes in
 * their order, each with a guaranteed part, and spare slots for the sweep. Calls too small for both go to live
 * SKUs and to the others in turn. Null if nothing is due.
 */
export function planBatch(due: readonly DueClass[], early: Early, limits: PlanLimits): PlannedBatch | null {
  if (due.length === 0) return null;
  const { callSkus, turns } = limits;
  const liveDue = due.filter((o) => o.live);
  const cheapDue = due.filter((o) => !o.live);
  const budget = Math.max(0, Math.min(Math.floor(limits.liveBudget), callSkus));
  const isSmall = callSkus - budget < Math.max(1, callSkus * GUARANTEED_PART);
  const crowded = isSmall && liveDue.length > 0 && cheapDue.length > 0;
  const liveSlots =
    crowded && turns.liveLast ? Math.min(budget, Math.max(0, callSkus - countOf(cheapDue))) : budget;
  const { given: live, turns: ofLive } = splitLive(liveDue, liveSlots, limits);
  const liveCount = [...live.values()].reduce((sum, n) => sum + n, 0);
  const slots = callSkus - liveCount;
  const { given: cheap, turns: ofOthers } = split(cheapDue, slots, turns.others);
  const cheapCount = [...cheap.values()].reduce((sum, n) => sum + n, 0);
  // Something is due, but no slot may carry it now.
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
  return {
    quotas: [...quotas.filter((q) => !(q.lane === 'sweep' && !q.live)), ...spare].filter((q) => q.count > 0),
    turns: {
      liveLast: crowded ? !turns.liveLast : turns.liveLast && liveCount > 0,
      live: ofLive,
      others: ofOthers,
    },
  };
}

/**
 * Returns how many seconds before its due time a SKU of the class may be claimed. SKUs that no manifest lists are
 * in the live lane without counting as live. Nobody reports their moves, whatever the catalog's state, and scarce
 * live slots are not for them: they wait for their time.
 */
export function earlyOf(early: Early, { lane, live }: LaneClass): number {
  return lane === PROMISED || (lane === 'live' && !live) ? 0 : early[lane];
}

interface Split {
  readonly given: ReadonlyMap<ClaimedLane, number>;
  readonly turns: SideTurns;
}

/** Splits the live `slots`: SKUs without a price get up to half of what refreshes would have. */
function splitLive(due: readonly DueClass[], slots: number, limits: PlanLimits): Split {
  const { given, turns } = splitRecovering(due, slots, limits);
  const refreshed = given.get('live') ?? 0;
  const fresh = given.get('new') ?? 0;
  const waiting = (due.find(({ lane }) => lane === 'new')?.count ?? 0) - fresh;
  // Refreshes are planned for the usual pace. At a lower one they are always due, and an initial load would crawl.
  const more = Math.min(waiting, Math.max(0, Math.floor((refreshed - fresh) / 2)));
  if (more === 0) return { given, turns };
  return { given: new Map([...given, ['live', refreshed - more], ['new', fresh + more]]), turns };
}

/** Splits the live `slots`: if SKUs of the error lane recover, half goes to them first. */
function splitRecovering(
  due: readonly DueClass[],
  slots: number,
  { turns: { live: turns }, recovering = false }: PlanLimits,
): Split {
  const waiting = due.find(({ lane }) => lane === 'error')?.count ?? 0;
  if (!recovering || waiting === 0 || slots === 0) return split(due, slots, turns);
  const isOdd = slots % 2 === 1;
  const half = (slots + Number(isOdd && turns.odd < ODD_FIRST)) >> 1;
  const first = Math.min(waiting, half);
  const rest = due.map((each) => (each.lane === 'error' ? { ...each, count: waiting - first } : each));
  const { given, turns: after } = split(
    rest.filter(({ count }) => count > 0),
    slots - first,
    turns,
  );
  return {
    given: new Map([...given, ['error', (given.get('error') ?? 0) + first]]),
    turns: { ...after, odd: (turns.odd + Number(isOdd)) % ODD_CALLS },
  };
}

/** Splits `slots` between promised SKUs, which come first, and the lanes. */
function split(due: readonly DueClass[], slots: number, turns: SideTurns): Split {
  const lanes = due.filter(({ lane }) => lane !== PROMISED);
  const wanted = due.find(({ lane }) => lane === PROMISED)?.count ?? 0;
  const others = countOf(lanes);
  if (wanted === 0 || others === 0) {
    const promised = Math.min(wanted, slots);
    return promised > 0 ? { given: new Map([[PROMISED, promised]]), turns } : share(lanes, slots, turns);
  }
  // If the others' part is less than a slot, they get a slot in some of the calls.
  const missing = turns.missing + slots * BESIDE_PROMISED;
  const promised = Math.min(wanted, slots - Math.min(Math.floor(missing), others, slots));
  const { given, turns: after } = share(lanes, slots - promised, turns);
  return {
    given: new Map<ClaimedLane, number>([
      ...(promised > 0 ? ([[PROMISED, promised]] as const) : []),
      ...given,
    ]),
    turns: { ...after, missing: Math.min(1, Math.max(0, missing - (slots - promised))) },
  };
}

/**
 * Splits `slots` over the lanes in their order. The lanes after the first have a guaranteed part; if that is less
 * than a slot, one slot in every second call goes to one of them, in turn.
 */
function share(due: readonly DueClass[], slots: number, turns: SideTurns): Split {
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
  const part = Math.floor(slots * GUARANTEED_PART);
  const takesTurns = slots > 0 && part === 0 && behind.length > 0;
  const favoured =
    takesTurns && !turns.favouredLast ? turns.lanes.find((lane) => behind.includes(lane)) : undefined;
  for (const lane of behind) give(lane, part > 0 ? part : Number(lane === favoured));
  for (const lane of DUE_LANES) give(lane, slots);
  return { given, turns: takesTurns ? afterShare(turns, favoured) : turns };
}

const afterShare = (turns: SideTurns, favoured: Lane | undefined): SideTurns => ({
  ...turns,
  favouredLast: favoured !== undefined,
  lanes:
    favoured === undefined ? turns.lanes : [...turns.lanes.filter((lane) => lane !== favoured), favoured],
});

/**
 * Plans a call of SKUs that were in failed calls, and no others: of those that may share the largest calls as many
 * as fit, live ones within the budget. Null if none is due. Half of such calls work, and the other half narrow the
 * suspicion.
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
