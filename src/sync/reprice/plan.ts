import { type Lane, DUE_LANES, type DueClass, type Quota } from '../../store/due.ts';

/** How far before its due time a SKU of each lane may be taken, in seconds. */
export type Early = Readonly<Record<Lane, number>>;

export interface PlanLimits {
  readonly callSkus: number;
  readonly liveBudget: number;
  /** Counts calls; which slow lane has its guaranteed slot this time. */
  readonly iteration: number;
  /** From how many seconds before its due time a snapshot SKU may fill a slot that is free anyway. */
  readonly spareSeconds: number;
}

/** Each lane that has something due is sure of this part of a call's slots, whatever stands before it. */
const GUARANTEED_PART = 0.05;
/** For so many iterations each, calls too small for both go to live SKUs and to the others. */
const SIDE_ITERATIONS = 16;

/**
 * What to claim for the next bulk call (partner rules 4.1: up to 100 SKUs, only a few computed live): at most the live
 * budget of SKUs that count as live, the rest snapshot-priced, lanes in their order, each with a guaranteed part, and
 * spare slots for the sweep. Null when nothing is due.
 */
export function planBatch(due: readonly DueClass[], early: Early, limits: PlanLimits): Quota[] | null {
  if (due.length === 0) return null;
  const liveDue = due.filter((o) => o.live);
  const cheapDue = due.filter((o) => !o.live);
  const budget = Math.max(0, Math.min(Math.floor(limits.liveBudget), limits.callSkus));
  const crowdedOut = budget === limits.callSkus && cheapDue.length > 0;
  const liveSlots = crowdedOut && Math.floor(limits.iteration / SIDE_ITERATIONS) % 2 === 1 ? 0 : budget;
  const live = share(liveDue, liveSlots, limits.iteration);
  const liveCount = [...live.values()].reduce((sum, n) => sum + n, 0);
  const slots = limits.callSkus - liveCount;
  const cheap = share(cheapDue, slots, limits.iteration);
  const cheapCount = [...cheap.values()].reduce((sum, n) => sum + n, 0);
  // Due, but no slot may carry it now.
  if (liveCount + cheapCount === 0) return null;
  const quotas = DUE_LANES.flatMap((lane): Quota[] => [
    { lane, live: true, count: live.get(lane) ?? 0, earlySeconds: early[lane] },
    { lane, live: false, count: cheap.get(lane) ?? 0, earlySeconds: early[lane] },
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
 * Splits `slots` over the lanes in their order. The lanes behind the first are sure of their part; where that is less
 * than a slot, one slot in every second iteration goes to one of them, in rotation.
 */
function share(due: readonly DueClass[], slots: number, iteration: number): Map<Lane, number> {
  const counts = new Map(due.map(({ lane, count }) => [lane, count]));
  const given = new Map<Lane, number>();
  let left = slots;
  const give = (lane: Lane, most: number) => {
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
/** No longer than the pace takes to let so many calls go: where calls are plenty, sparing one is worth no delay. */
const COMPANY_CALLS = 8;
/** A call this full goes at once. */
const FULL_ENOUGH = 0.5;

/**
 * How many milliseconds the next call should wait for more SKUs to come due. 0 where something urgent is due, where the
 * live budget or half of the call is filled, or where the last call was long enough ago: four seconds at the usual pace,
 * less where `callsPerMinute` is higher.
 */
export function lingerMs(
  due: readonly DueClass[],
  limits: Pick<PlanLimits, 'callSkus' | 'liveBudget'>,
  callsPerMinute: number,
  sinceLastCallMs: number,
): number {
  const count = (which: (o: DueClass) => boolean) => due.filter(which).reduce((n, o) => n + o.count, 0);
  if (count(({ lane }) => lane === 'urgent') > 0) return 0;
  if (count(({ live }) => live) >= Math.max(1, Math.floor(limits.liveBudget))) return 0;
  if (count(({ live }) => !live) >= limits.callSkus * FULL_ENOUGH) return 0;
  const longest = Math.min(MAX_LINGER_MS, (COMPANY_CALLS * 60_000) / callsPerMinute);
  return Math.max(0, longest - sinceLastCallMs);
}
