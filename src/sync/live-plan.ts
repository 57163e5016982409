import {
  type LiveCandidate,
  liveCandidates,
  type LiveLook,
  type LivePlan,
  type LookAhead,
  noteLiveCall,
  pruneLiveCalls,
  rateGroups,
  readLivePlan,
  storeLiveCeiling,
  storeLookPrice,
} from '../store/live.ts';
import type { Quota } from '../store/due.ts';
import { readSyncState } from '../store/sync-state.ts';
import type { SyncContext, SyncSettings } from './context.ts';
import { learnLiveCeiling, liveAllowance, type LiveCeiling } from './live-ceiling.ts';
import {
  chooseLive,
  earlyMinutes,
  learnRate,
  MOST_ROUNDS,
  nextLookMinutes,
  PRIOR,
  type Rate,
  roundMinutes,
  SHORTLIST,
  solvePrice,
} from './live-policy.ts';
import type { Outcome } from './outcome.ts';

/** Prices of looks are solved anew this often. */
const SOLVE_EVERY_MS = 600_000;
const FIRST_SOLVE_EVERY_MS = 60_000;

/**
 * Solves what a live look must gain to be worth it (live-policy.ts). Where the looks there are suffice for every SKU's
 * LIVE_INTERVAL, or by configuration, there is no price: every SKU has its turn.
 */
export async function planLive(ctx: SyncContext): Promise<Outcome> {
  const { sql, settings } = ctx;
  const [plan, state] = await Promise.all([readLivePlan(sql), readSyncState(sql)]);
  const liveBudget = state.liveBudget ?? settings.bulkLiveBudget;
  await pruneLiveCalls(sql);
  const groups = await rateGroups(sql, PRIOR.alpha / PRIOR.beta);
  const skus = groups.reduce((n, { count }) => n + count, 0);
  const looks = Math.min(settings.callsPerMinute * Math.floor(liveBudget), plan.ceilingPerMinute ?? Infinity);
  const round = roundMinutes(skus, looks);
  const scarce = settings.livePolicy === 'index' && round * 60_000 > settings.liveMs;
  if (!scarce) await storeLookPrice(sql, null, null);
  else await storeLookPrice(sql, solvePrice(groups, looks), MOST_ROUNDS * round);
  const nextInMs = skus === 0 ? FIRST_SOLVE_EVERY_MS : SOLVE_EVERY_MS;
  return {
    kind: 'done',
    nextInMs,
    counts: { liveSkus: skus, looksPerMinute: Math.round(looks), scarce: Number(scarce) },
  };
}

/** What a look at a live SKU teaches, and when the next one is due under this plan. */
export function lookAhead(plan: LivePlan, settings: SyncSettings): (look: LiveLook) => LookAhead {
  return (look) => {
    const before = rateOf(look);
    // The first look ever has no look before it to compare with.
    const rate = look.minutes === null ? before : learnRate(before, look.minutes, look.moved);
    const minutes =
      plan.lookPrice === null || plan.mostMinutes === null
        ? settings.liveMs / 60_000
        : nextLookMinutes(look.weight, rate, plan.lookPrice, plan.mostMinutes);
    return { sku: look.sku, ...rate, nextMs: minutes * 60_000 };
  };
}

function rateOf({ alpha, beta }: Pick<LiveCandidate, 'alpha' | 'beta'>): Rate {
  return alpha === null || beta === null ? PRIOR : { alpha, beta };
}

/** By how many seconds live looks may come early: where looks are scarce, no live slot stays empty. */
export function earlyLiveSeconds({ mostMinutes }: LivePlan): number {
  return mostMinutes === null ? 0 : earlyMinutes(mostMinutes) * 60;
}

/** How many live SKUs the next call may carry under the learned ceiling. */
export function allowedLive(plan: LivePlan, settings: SyncSettings): number {
  return liveAllowance(ceilingOf(plan), plan.now, plan.computed + plan.underWay, settings.callsPerMinute);
}

function ceilingOf({ ceilingPerMinute, ceilingAt }: LivePlan): LiveCeiling {
  return { perMinute: ceilingPerMinute, at: ceilingAt };
}

/**
 * Which SKUs of the live lane to claim for a quota, by value among the first by due time. Null where there is no price of
 * a look: then the quota is claimed by turn.
 */
export async function chooseForQuota(
  ctx: SyncContext,
  plan: LivePlan,
  quota: Quota,
): Promise<string[] | null> {
  if (plan.lookPrice === null || plan.mostMinutes === null) return null;
  const candidates = await liveCandidates(ctx.sql, quota, Math.max(SHORTLIST, 3 * quota.count));
  const chosen = chooseLive(
    candidates.map((candidate) => ({
      sku: candidate.sku,
      weight: candidate.weight,
      rate: rateOf(candidate),
      tau: candidate.minutes ?? Infinity,
    })),
    quota.count,
    plan.mostMinutes,
  );
  return chosen.map(({ sku }) => sku);
}

/** Remembers how many live SKUs a call computed and deferred, and learns the ceiling from it. */
export async function learnFromCall(
  ctx: SyncContext,
  plan: LivePlan,
  call: {
    readonly computed: number;
    readonly deferred: number;
    readonly withinBudget: boolean;
    readonly budget: number;
  },
): Promise<void> {
  if (call.computed + call.deferred === 0) return;
  await noteLiveCall(ctx.sql, call.computed, call.deferred);
  const before = ceilingOf(plan);
  const after = learnLiveCeiling(
    before,
    {
      deferredAll: call.withinBudget && call.deferred > 0 && call.computed === 0,
      computed: plan.computed + call.computed,
      capacity: ctx.settings.callsPerMinute * call.budget,
    },
    plan.now,
  );
  if (after === before) return;
  await storeLiveCeiling(ctx.sql, after.perMinute, after.at);
  ctx.emit({
    event: 'live-ceiling.learned',
    perMinute: after.perMinute === null ? null : Math.round(after.perMinute),
  });
}
