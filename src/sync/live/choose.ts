import type { CandidateOptions } from '../../store/call/candidates.ts';
import type { LivePlan } from '../../store/live/live.ts';
import type { LiveCandidate } from '../../store/live/refresh.ts';
import type { SyncSettings } from '../settings.ts';
import { TRIAL_BUDGETS } from './incident.ts';
import { chooseLive, MIN_MINUTES, SHORTLIST } from './policy.ts';
import { rateOf } from './rate.ts';

/*
 * Which live SKUs a call has: how many are read to choose from, and the choice. Pure.
 */

/** By how many seconds live refreshes may come early: where refreshes are scarce, no live slot stays empty. */
export function earlyLiveSeconds({ earlyMinutes: minutes }: LivePlan): number {
  return (minutes ?? 0) * 60;
}

const CANDIDATES_EACH = 3;

/** From how many live SKUs those of any call are chosen: a trial call asks for some live budgets of them. */
export function candidateOptions(settings: SyncSettings): CandidateOptions {
  return {
    perBudget: CANDIDATES_EACH * TRIAL_BUDGETS,
    configuredBudget: settings.bulk.liveBudget,
    least: SHORTLIST,
    most: Math.max(SHORTLIST, CANDIDATES_EACH * settings.bulk.maxSkus),
    restMinutes: MIN_MINUTES,
  };
}

/**
 * Which SKUs of the live lane to claim for a quota of `count`, by value among the first of the `candidates`, which come
 * in order of their due times. Null where there is no refresh threshold: then the quota is claimed in that order.
 */
export function chooseForQuota(
  plan: LivePlan,
  candidates: readonly LiveCandidate[],
  count: number,
): string[] | null {
  if (plan.refreshThreshold === null || plan.maxIntervalMinutes === null) return null;
  // Who was drawn at random may be due as well.
  const each = candidates.filter((one, at) => candidates.findIndex((other) => other.sku === one.sku) === at);
  const choice = each.slice(0, Math.max(SHORTLIST, CANDIDATES_EACH * count)).map((candidate) => ({
    sku: candidate.sku,
    weight: candidate.weight,
    rate: rateOf(candidate),
    tau: candidate.minutes ?? Infinity,
    hazard: candidate.hazard ?? 0,
    random: candidate.random ?? false,
  }));
  return chooseLive(choice, count, plan.overdueMinutes ?? plan.maxIntervalMinutes).map(({ sku }) => sku);
}
