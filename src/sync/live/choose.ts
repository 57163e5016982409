import type { CandidateOptions } from '../../store/call/candidates.ts';
import type { LivePlan } from '../../store/live/live.ts';
import type { LiveCandidate } from '../../store/live/refresh.ts';
import type { SyncSettings } from '../settings.ts';
import { TRIAL_BUDGETS } from './incident.ts';
import { chooseLive, MIN_MINUTES, SHORTLIST, rateOf } from './policy.ts';

/* Chooses the live SKUs of a call: how many are read to choose from, and which are taken. Pure. */

/**
 * Returns by how many seconds live refreshes may come early, so that no live slot stays empty while refreshes are
 * scarce.
 */
export function earlyLiveSeconds({ earlyMinutes: minutes }: LivePlan): number {
  return (minutes ?? 0) * 60;
}

const CANDIDATES_EACH = 3;

/**
 * Returns from how many live SKUs those of a call are chosen: a trial call asks for several live budgets of them.
 */
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
 * Chooses SKUs of the live lane to claim for a quota of `count`, by value among the first `candidates`, which come
 * in order of their due times. Null if there is no refresh threshold: the quota is then claimed in that order.
 */
export function chooseForQuota(
  plan: LivePlan,
  candidates: readonly LiveCandidate[],
  count: number,
): string[] | null {
  if (plan.refreshThreshold === null || plan.maxIntervalMinutes === null) return null;
  // A SKU drawn at random may be due as well.
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
 * Due times were computed under an earlier refresh threshold. After a start or an outage, or while a ceiling on
 * live computations is met, more SKUs are due than can be refreshed, and in the order of due times they would be
 * refreshed almost in rotation. So during such a backlog, its most valuable SKUs are listed anew each minute and
 * refreshed before all others. Pure; all times in minutes.
 */

/** Due SKUs are a backlog if refreshing them takes this many minutes. */
const BACKLOG_MINUTES = 3;
/** How many minutes of refreshes are listed: until the next list, and as long again in case that is late. */
const LISTED_MINUTES = 2;
/** After a longer time without a live refresh, the mirror was idle. */
const IDLE_MINUTES = 2;
/** Minutes by which the idle time shrinks per minute without a backlog. */
const OVER_A_MINUTE = 0.25;

/** How many SKUs are due for a refresh, and how many refreshes there are per minute. */
export interface Backlog {
  readonly due: number;
  readonly refreshesPerMinute: number;
}

export function isBacklog({ due, refreshesPerMinute }: Backlog): boolean {
  return due >= BACKLOG_MINUTES * refreshesPerMinute;
}

/** Returns whether the next minute may bring a backlog: more is due than is refreshed in a minute. */
export function isBacklogNear({ due, refreshesPerMinute }: Backlog): boolean {
  return due >= refreshesPerMinute;
}

export function listedSkus({ refreshesPerMinute }: Backlog): number {
  return Math.ceil(LISTED_MINUTES * refreshesPerMinute);
}

/** The minutes between consecutive live refreshes, during the time `elapsed`. */
export interface Quiet {
  readonly gaps: readonly number[];
  readonly elapsed: number;
}

/**
 * Returns the minutes without a refresh, for as long as their effects last: `idle` so far, plus each of the `gaps`
 * between two refreshes that exceeds IDLE_MINUTES. Without a backlog, they shrink with the `elapsed` time since
 * the last call.
 */
export function idleAfter(
  idle: number,
  { gaps, elapsed, backlog }: Quiet & { readonly backlog: boolean },
): number {
  const grown = gaps.reduce((sum, gap) => sum + (gap > IDLE_MINUTES ? gap : 0), idle);
  return backlog ? grown : Math.max(0, grown - OVER_A_MINUTE * elapsed);
}

/**
 * Returns after how many minutes without a refresh a SKU comes first, whatever its value: the longest allowed wait
 * `most`, plus twice the idle time, because after that every SKU has waited long.
 */
export function overdueMinutes(most: number, idle: number): number {
  return most + 2 * idle;
}
