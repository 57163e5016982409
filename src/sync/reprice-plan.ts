import { type Lane, LANES, type Owed, type Quota } from '../store/due.ts';

/** How far before its due time a SKU of each lane may be taken, in seconds. */
export type Early = Readonly<Record<Lane, number>>;

export interface PlanLimits {
  readonly maxSkus: number;
  readonly liveBudget: number;
  /** Counts calls; which slow lane has its guaranteed place this time. */
  readonly turn: number;
  /** From how many seconds before its due time a snapshot SKU may fill a slot that is free anyway. */
  readonly spareSeconds: number;
}

/** Each slow lane that has something owed is sure of this part of a call's slots. */
const GUARANTEED_PART = 0.05;
const SLOW: readonly Lane[] = ['new', 'error', 'metadata', 'sweep'];

/**
 * What to claim for the next bulk call (specification 4.1: up to 100 SKUs, only a few computed live): at most the live
 * budget of SKUs that count as live, the rest snapshot-priced, lanes in their order, slow lanes with a guaranteed part,
 * and spare slots for the sweep. Null when nothing is owed.
 */
export function planBatch(owed: readonly Owed[], early: Early, limits: PlanLimits): Quota[] | null {
  if (owed.length === 0) return null;
  const liveSlots = Math.max(0, Math.min(Math.floor(limits.liveBudget), limits.maxSkus));
  const live = share(
    owed.filter((o) => o.live),
    liveSlots,
    guaranteedLive(owed, limits.turn),
  );
  const liveCount = [...live.values()].reduce((sum, n) => sum + n, 0);
  const slots = limits.maxSkus - liveCount;
  const cheap = share(
    owed.filter((o) => !o.live),
    slots,
    (_, count) => Math.min(count, Math.max(1, Math.floor(slots * GUARANTEED_PART))),
  );
  const cheapCount = [...cheap.values()].reduce((sum, n) => sum + n, 0);
  const quotas = LANES.flatMap((lane): Quota[] => [
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

/** With so few live slots, one in every second call goes to the slow lanes, each in its turn. */
function guaranteedLive(owed: readonly Owed[], turn: number): (lane: Lane, count: number) => number {
  const slow = SLOW.filter((lane) => owed.some((o) => o.live && o.lane === lane));
  const favoured = turn % 2 === 0 ? slow[(turn / 2) % Math.max(1, slow.length)] : undefined;
  return (lane) => Number(lane === favoured);
}

/** Splits `slots` over the lanes: guaranteed parts first, then in the lanes' order. */
function share(
  owed: readonly Owed[],
  slots: number,
  guaranteed: (lane: Lane, count: number) => number,
): Map<Lane, number> {
  const counts = new Map(owed.map(({ lane, count }) => [lane, count]));
  const given = new Map<Lane, number>();
  let left = slots;
  const give = (lane: Lane, wanted: number) => {
    const n = Math.max(0, Math.min(wanted, left));
    given.set(lane, (given.get(lane) ?? 0) + n);
    left -= n;
  };
  for (const lane of SLOW) {
    const count = counts.get(lane) ?? 0;
    if (count > 0) give(lane, Math.min(count, guaranteed(lane, count)));
  }
  for (const lane of LANES) give(lane, (counts.get(lane) ?? 0) - (given.get(lane) ?? 0));
  return given;
}
