import type { CandidateOptions } from '../../store/call/candidates.ts';
import type { LivePlan } from '../../store/live/live.ts';
import type { LiveCandidate } from '../../store/live/refresh.ts';
import type { SyncSettings } from '../settings.ts';
import { TRIAL_BUDGETS } from './incident.ts';
import { chooseLive, MIN_MINUTES, SHORTLIST, rateOf } from './policy.ts';

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

/*
 * Due times were computed under an earlier refresh threshold. After a start or an outage, or while a ceiling on live
 * computations is met, more SKUs are due than can be refreshed, and in the order of due times they would be refreshed
 * almost in rotation. So while there is such a backlog, its most valuable SKUs are listed anew each minute and
 * refreshed before all others. Pure; all times in minutes.
 */

/** What is due makes a backlog once it takes this many minutes to refresh. */
const BACKLOG_MINUTES = 3;
/** How many minutes' worth of it is listed: until the next list and as long again, should that be late. */
const LISTED_MINUTES = 2;
/** After a longer time without a live refresh the mirror was idle. */
const IDLE_MINUTES = 2;
/** Minutes by which the idle time shrinks in a minute without a backlog. */
const OVER_A_MINUTE = 0.25;

/** How much is due that refreshes are wanted for, and how many of them there are a minute. */
export interface Backlog {
  readonly due: number;
  readonly refreshesPerMinute: number;
}

export function isBacklog({ due, refreshesPerMinute }: Backlog): boolean {
  return due >= BACKLOG_MINUTES * refreshesPerMinute;
}

/** Whether the next minute may bring one: more is due than is refreshed in one. */
export function isBacklogNear({ due, refreshesPerMinute }: Backlog): boolean {
  return due >= refreshesPerMinute;
}

/** How many SKUs to list. */
export function listedSkus({ refreshesPerMinute }: Backlog): number {
  return Math.ceil(LISTED_MINUTES * refreshesPerMinute);
}

/** Times between one live refresh and the next, in the time `elapsed`. */
export interface Quiet {
  readonly gaps: readonly number[];
  readonly elapsed: number;
}

/**
 * Minutes without a refresh, as far as their effects last: `idle` so far, plus each of the `gaps` between two refreshes
 * that is longer than IDLE_MINUTES. Unless there is a backlog, they wane with the `elapsed` time since the last call.
 */
export function idleAfter(
  idle: number,
  { gaps, elapsed, backlog }: Quiet & { readonly backlog: boolean },
): number {
  const grown = gaps.reduce((sum, gap) => sum + (gap > IDLE_MINUTES ? gap : 0), idle);
  return backlog ? grown : Math.max(0, grown - OVER_A_MINUTE * elapsed);
}

/**
 * Minutes without a refresh after which a SKU comes first, whatever its value: the longest allowed wait `most`, and
 * twice the idle time, because after that every SKU has waited for long.
 */
export function overdueMinutes(most: number, idle: number): number {
  return most + 2 * idle;
}
