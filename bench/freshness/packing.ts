import { learnLiveBudget } from '../../src/sync/live-budget.ts';
import { planBatch, waitForCompanyMs } from '../../src/sync/reprice-plan.ts';
import type { Owed } from '../../src/store/due.ts';
import { seeded } from './random.ts';

export interface PackingResult {
  readonly calls: number;
  /** The least calls that any plan could do it in: a hundred SKUs and five live ones a call. */
  readonly bound: number;
  readonly deferred: number;
}

const MAX_SKUS = 100;
const LIVE_BUDGET = 5;
const CALLS_A_MINUTE = 118;
const DEFERRED_CALLS = 5 * CALLS_A_MINUTE;
const NOT_EARLY = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };

/**
 * A first fill of `skus` SKUs through the production planner: how many calls it takes. `liveShare` of them is live, and of
 * these `mislisted` are listed as snapshot: they use live budget unseen until they have been deferred once.
 */
export function simulateFill(
  skus: number,
  liveShare: number,
  mislisted: number,
  seed: number,
): PackingResult {
  const random = seeded(seed);
  const live = Math.round(skus * liveShare);
  const hidden = Math.round(live * mislisted);
  const listedLive: boolean[] = Array.from({ length: live - hidden }, () => true);
  const listedSnapshot: boolean[] = shuffled(
    Array.from({ length: skus - (live - hidden) }, (_, i) => i < hidden),
    random,
  );
  const waiting: { from: number }[] = [];
  let budget = LIVE_BUDGET;
  /** Places in the pace since the last call. */
  let idle = Infinity;
  let [calls, deferred] = [0, 0];

  while (listedLive.length + listedSnapshot.length + waiting.length > 0) {
    while ((waiting[0]?.from ?? Infinity) <= calls) {
      waiting.shift();
      listedLive.push(true);
    }
    const owed = owedOf(listedLive.length, listedSnapshot.length);
    const limits = { maxSkus: MAX_SKUS, liveBudget: budget, turn: calls, spareSeconds: 0 };
    const quotas = planBatch(owed, NOT_EARLY, limits);
    // Nothing but deferred SKUs is left: time passes, and no call is made.
    if (quotas === null) {
      const wait = (waiting[0]?.from ?? calls) - calls;
      for (const entry of waiting) entry.from -= wait;
      idle += wait;
      continue;
    }
    if (waitForCompanyMs(owed, limits, (idle * 60_000) / CALLS_A_MINUTE) > 0) {
      for (const entry of waiting) entry.from -= 1;
      idle += 1;
      continue;
    }
    idle = 1;
    calls += 1;
    const taken = (isLive: boolean) =>
      quotas.filter((q) => q.live === isLive && q.lane === 'new').reduce((n, q) => n + q.count, 0);
    const asked = [...listedLive.splice(0, taken(true)), ...listedSnapshot.splice(0, taken(false))];
    const askedLive = Math.min(taken(true), asked.length);
    let left = LIVE_BUDGET;
    let [deferredLive, deferredOthers] = [0, 0];
    // The partner computes in whatever order it likes.
    for (const [at, isLive] of shuffled([...asked.entries()], random)) {
      if (!isLive || left > 0) {
        left -= Number(isLive);
        continue;
      }
      if (at < askedLive) deferredLive += 1;
      else deferredOthers += 1;
      waiting.push({ from: calls + DEFERRED_CALLS });
    }
    deferred += deferredLive + deferredOthers;
    budget = learnLiveBudget(
      budget,
      { askedLive, deferredLive, deferredOthers, bestRecent: LIVE_BUDGET },
      { start: LIVE_BUDGET, most: MAX_SKUS },
    );
  }
  return { calls, bound: Math.max(Math.ceil(skus / MAX_SKUS), Math.ceil(live / LIVE_BUDGET)), deferred };
}

function owedOf(live: number, snapshot: number): Owed[] {
  return [
    ...(live > 0
      ? [{ lane: 'new' as const, live: true, count: Math.min(live, MAX_SKUS), oldestSeconds: 0 }]
      : []),
    ...(snapshot > 0
      ? [{ lane: 'new' as const, live: false, count: Math.min(snapshot, MAX_SKUS), oldestSeconds: 0 }]
      : []),
  ];
}

function shuffled<T>(items: T[], random: () => number): T[] {
  for (let i = items.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [items[i], items[j]] = [items[j] as T, items[i] as T];
  }
  return items;
}
