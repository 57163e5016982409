import { faded, priorPart, type Rate, RATES_START_AS } from '../../store/live/rate-prior.ts';
import type { LiveCandidate } from '../../store/live/refresh.ts';

/*
 * Which live SKU to refresh next. The delta never reports their price moves (partner rule 4.2.6), and a call
 * computes only a few of them (partner rule 4.1.3), so refreshes go where they gain most: each SKU has a learned
 * rate of change and a weight, and refreshes are distributed so that one more anywhere gains the same. Pure; all
 * times in minutes.
 * The distribution follows Cho & Garcia-Molina (ACM TODS 28, 2003), with rates learned from "changed since the
 * last refresh or not" as a gamma distribution.
 * Symbols: `tau`, minutes since the last refresh; `alpha` and `beta`, shape and minutes of the gamma distribution
 * that a rate is believed to have; `lambda` = alpha / beta, the expected moves per minute; `mu`, the refresh
 * threshold: what one more refresh per minute gains anywhere.
 */

/** Evidence is bounded, so that a SKU whose rate of change has shifted is learned anew. */
const MAX_SHAPE = 20;
const MAX_MEMORY_MINUTES = 3 * 24 * 60;
/**
 * No SKU is believed to move less often than this: once in 300 days. Three days of memory cannot show less, and
 * the belief would fade on and on (store/live/rate-prior.ts).
 */
const MIN_SHAPE = 0.01;
/** Minimum interval between two refreshes of a SKU. */
export const MIN_MINUTES = 1;
/** Maximum interval between two refreshes of a SKU, in full rounds over all live SKUs. */
export const MAX_ROUNDS = 3;
/** Candidates to choose from, in order of their due times: enough to catch up by value after a back-off. */
export const SHORTLIST = 16;
/**
 * Part of the refreshes that the schedule spends; the rest absorbs late ones. Even if releases take some, at least
 * MIN_SPENT_PART is left.
 */
export const SPENT_PART = 0.97;
const MIN_SPENT_PART = 0.8;

/** The belief if nothing is known: about one change in two and a half hours. */
export const PRIOR: Rate = RATES_START_AS;

/**
 * Returns the belief after a refresh, `tau` minutes after the previous one, that found the price changed or not.
 * Not bounded yet.
 */
export function learnRate(rate: Rate, tau: number, changed: boolean): Rate {
  if (tau <= 0) return rate;
  const { alpha, beta } = rate;
  if (!changed) return { ...rate, beta: beta + tau };
  // The mixture that results from "at least one change" is approximated by a gamma with its mean and variance.
  const r = Math.log1p(tau / beta);
  const seen = -Math.expm1(-alpha * r);
  const mean = ((alpha / beta) * -Math.expm1(-(alpha + 1) * r)) / seen;
  const second = (((alpha * (alpha + 1)) / beta ** 2) * -Math.expm1(-(alpha + 2) * r)) / seen;
  const variance = second - mean ** 2;
  if (!(variance > 0) || !(mean > 0)) return rate;
  return { ...rate, alpha: mean ** 2 / variance, beta: mean / variance };
}

/**
 * Returns the belief after a refresh that a hint caused, `tau` minutes after the previous one, and that found the
 * hinted move: the move came at the end of these minutes. If such moves taught nothing, a SKU whose moves are all
 * hinted at would be believed to rest, and to be worth every hint.
 */
export function learnHintedMove(rate: Rate, tau: number): Rate {
  return tau <= 0 ? rate : { ...rate, alpha: rate.alpha + 1, beta: rate.beta + tau };
}

/** The most sizes, of refreshes that found a move, that are remembered: the nature of a SKU's moves may change. */
const MAX_SIZES = 300;

/**
 * Returns the sizes of refreshes that found a move, and how many of them moved, after a refresh, `tau` minutes
 * after the previous one, that found `moved` of `held` sizes changed. A longer time may contain several moves, so
 * only what one of them would have moved at the believed rate counts.
 */
export function learnMovedSizes(
  before: { readonly seen: number; readonly moved: number },
  { alpha, beta }: Rate,
  tau: number,
  { held, moved }: { readonly held: number; readonly moved: number },
): { readonly seen: number; readonly moved: number } {
  if (held <= 0 || moved <= 0 || tau <= 0) return before;
  const moves = (alpha / beta) * tau;
  const part = Math.min(1, moved / held);
  const ofOne = Math.min(1, -Math.log1p(part * Math.expm1(-moves)) / moves);
  const [seen, sizes] = [before.seen + held, before.moved + ofOne * held];
  const scale = Math.min(1, MAX_SIZES / seen);
  return { seen: seen * scale, moved: sizes * scale };
}

/**
 * Returns a rate without the evidence beyond these minutes, or beyond twenty moves; the prior's part shrinks as
 * much.
 */
export function bounded(rate: Rate, minutes = MAX_MEMORY_MINUTES): Rate {
  const { alpha, beta } = rate;
  const scale = Math.min(1, MAX_SHAPE / alpha, minutes / beta);
  return {
    alpha: Math.max(MIN_SHAPE, alpha * scale),
    beta: beta * scale,
    prior: faded(priorPart(rate) * scale),
  };
}

/**
 * Returns what a SKU's past says about its rate when nothing else is known, for example when it turns live:
 * `moves` refreshes of the last `minutes` found a price moved.
 */
export function rateFromPast(moves: number, minutes: number): Rate {
  return bounded({ alpha: PRIOR.alpha + moves, beta: PRIOR.beta + minutes });
}

/**
 * Returns the weighted gain expected of a refresh now, by which candidates are ranked. `tau`: minutes since the
 * last refresh. `gain` of store/live/order.ts is the same in SQL; test/sync/live-backlog.pg.test.ts compares them.
 */
export function refreshValue(weight: number, { alpha, beta }: Rate, tau: number): number {
  const r = Math.log1p(tau / beta);
  const shape = alpha - 1;
  // (1 − e^(−shape·r)) / shape, whose limit at shape 0 is r.
  const spread = Math.abs(shape) < 1e-9 ? r : -Math.expm1(-shape * r) / shape;
  return weight * (beta * spread - tau * Math.exp(-alpha * r));
}

/** The terms by which refreshes are distributed. */
export interface RefreshTerms {
  /** What one more refresh per minute gains anywhere. */
  readonly refreshThreshold: number;
  /** The longest wait between two refreshes of a SKU. */
  readonly maxIntervalMinutes: number;
}

interface Weighted {
  readonly weight: number;
  readonly rate: Rate;
}

/** A SKU that has also moved with probability 1 − e^−hazard, because its line does (releases.ts). */
interface Boosted extends Weighted {
  readonly hazard: number;
}

/**
 * Returns the value of a SKU with a hazard whose last refresh was `minutes` ago: a gain lasts until the next move,
 * or the longest wait. Also in `gain` of store/live/order.ts.
 */
export function boostedValue(
  { weight, rate, hazard, minutes }: Boosted & { readonly minutes: number },
  { maxIntervalMinutes }: Pick<RefreshTerms, 'maxIntervalMinutes'>,
): number {
  const lambda = rate.alpha / rate.beta;
  const moves = lambda * minutes + hazard;
  return (weight * (1 - Math.exp(-moves) * (1 + moves))) / (lambda + 1 / maxIntervalMinutes);
}

/** Returns how many minutes after its last refresh that value equals the gain of one more refresh anywhere. */
export function boostedMinutes(
  { weight, rate, hazard }: Boosted,
  { refreshThreshold: mu, maxIntervalMinutes: most }: RefreshTerms,
): number {
  const lambda = rate.alpha / rate.beta;
  // At the end of the wait that nextRefreshMinutes returns, a refresh is worth half the threshold.
  const wanted = ((mu / 2) * (lambda + 1 / most)) / weight;
  if (wanted >= 1) return most;
  let [low, high] = [0, 50];
  for (let step = 0; step < 40; step += 1) {
    const middle = (low + high) / 2;
    if (1 - Math.exp(-middle) * (1 + middle) < wanted) low = middle;
    else high = middle;
  }
  return Math.min(most, Math.max(0, (high - hazard) / lambda));
}

/**
 * Part of the live refreshes that go to SKUs drawn at random, so that p_right is tested on a fair sample, and the
 * smallest number of them per day.
 */
const DRAWN_PART = 0.005;
const MIN_DRAWN_A_DAY = 50;

/** Returns the probability with which each live SKU is drawn for the next `minutes`, at `refreshes` per minute. */
export function drawnPart(skus: number, refreshes: number, minutes: number): number {
  const drawn = minutes * Math.max(DRAWN_PART * refreshes, MIN_DRAWN_A_DAY / (24 * 60));
  return Math.min(1, drawn / Math.max(1, skus));
}

/** SKUs similar enough to be planned as one: `count` of them, changes per minute, weight. */
export interface RateGroup {
  readonly count: number;
  readonly lambda: number;
  readonly weight: number;
  /**
   * Minutes between refreshes that keep promises of their age, whatever these refreshes are worth; null: nothing
   * is promised.
   */
  readonly promised?: number | null;
}

/** Returns the longest wait up to `most` that promises allow a group. */
export const promisedWait = ({ promised }: Pick<RateGroup, 'promised'>, most: number): number =>
  Math.min(most, promised ?? Infinity);

/**
 * Returns the refreshes per minute that a SKU is worth when one more refresh anywhere gains the threshold. A
 * promise may require more.
 */
function refreshesPerMinute(
  { lambda, weight }: Pick<RateGroup, 'lambda' | 'weight'>,
  { refreshThreshold: mu, maxIntervalMinutes: most }: RefreshTerms,
): number {
  const wanted = (-lambda + Math.sqrt(lambda ** 2 + (4 * weight * lambda) / mu)) / 2;
  return Math.min(Math.max(1 / MIN_MINUTES, 1 / most), Math.max(1 / most, wanted));
}

/** Part of a full round by which a refresh may come early to fill an empty live slot. */
const EARLY_ROUNDS = 0.09;

/** Returns how many minutes before its due time a SKU may be refreshed, given the minutes of a full round. */
export function earlyMinutes(round: number): number {
  return Number.isFinite(round) ? EARLY_ROUNDS * round : 0;
}

/** Returns the minutes of one full round: every SKU once at `refreshes` per minute. */
export function roundMinutes(skus: number, refreshes: number): number {
  return skus / Math.max(refreshes, 1e-9);
}

/** Returns the same for SKUs without a promise that requires more, after promises have taken their refreshes. */
export function roundOf(groups: readonly RateGroup[], refreshes: number): number {
  const countOf = (some: readonly RateGroup[]) => some.reduce((sum, { count }) => sum + count, 0);
  const evenly = roundMinutes(countOf(groups), refreshes);
  const oftener = groups.filter((group) => promisedWait(group, Infinity) < evenly);
  const taken = oftener.reduce((sum, group) => sum + group.count / promisedWait(group, Infinity), 0);
  return roundMinutes(countOf(groups) - countOf(oftener), refreshes - taken);
}

/**
 * Returns the threshold `mu` (the Lagrange multiplier of the refresh budget) at which all SKUs together ask for 97
 * % of the `refreshes` per minute, none waiting longer than `most` minutes; `setAside` of them are left to others.
 * If even the longest allowed waits ask for more, returns the largest sensible `mu`.
 */
export function solveThreshold(
  groups: readonly RateGroup[],
  refreshes: number,
  most: number,
  setAside = 0,
): number {
  if (groups.length === 0) return 1;
  const spent = Math.max(MIN_SPENT_PART * refreshes, SPENT_PART * refreshes - setAside);
  const asked = (refreshThreshold: number) =>
    groups.reduce((sum, group) => {
      const terms = { refreshThreshold, maxIntervalMinutes: promisedWait(group, most) };
      return sum + group.count * refreshesPerMinute(group, terms);
    }, 0);
  // Bisection over the logarithm: the higher the threshold, the fewer refreshes are asked for.
  let [low, high] = [-60, 60];
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    if (asked(Math.exp(middle)) > spent) low = middle;
    else high = middle;
  }
  return Math.exp(high);
}

/** Returns the minutes until the next refresh of a SKU. */
export function nextRefreshMinutes({ weight, rate }: Weighted, terms: RefreshTerms): number {
  const maxIntervalMinutes = Math.max(terms.maxIntervalMinutes, MIN_MINUTES);
  return 1 / refreshesPerMinute({ weight, lambda: rate.alpha / rate.beta }, { ...terms, maxIntervalMinutes });
}

export interface Candidate {
  readonly sku: string;
  readonly weight: number;
  readonly rate: Rate;
  /** Minutes since the last refresh; Infinity if there was none. */
  readonly tau: number;
  /** The SKU has moved with probability 1 − e^−hazard, because its line does. */
  readonly hazard?: number;
  /** To be refreshed first, whatever its worth. */
  readonly random?: boolean;
}

/**
 * Chooses `count` candidates to refresh: first those drawn at random, then those beyond the longest allowed wait
 * `most` (oldest first), then by value. Callers leave out candidates refreshed within the last minute; so does
 * this.
 */
export function chooseLive(candidates: readonly Candidate[], count: number, most: number): Candidate[] {
  return candidates
    .filter(({ tau }) => tau >= MIN_MINUTES)
    .map((candidate) => {
      const overdue = candidate.tau >= most;
      const value = overdue ? candidate.tau : candidateValue(candidate, most);
      const rank = candidate.random === true ? 2 : Number(overdue);
      return { candidate, rank, value };
    })
    .toSorted((a, b) => (a.rank === b.rank ? b.value - a.value || 0 : b.rank - a.rank))
    .slice(0, count)
    .map(({ candidate }) => candidate);
}

function candidateValue({ weight, rate, tau, hazard }: Candidate, most: number): number {
  if (hazard === undefined || hazard <= 0) return refreshValue(weight, rate, tau);
  return boostedValue({ weight, rate, minutes: tau, hazard }, { maxIntervalMinutes: most });
}

/** Returns what is believed of a SKU's rate of change: what refreshes have taught, else what its past says. */
export function rateOf({
  alpha,
  beta,
  prior,
  pastMoves,
  pastMinutes,
}: Pick<LiveCandidate, 'alpha' | 'beta' | 'prior' | 'pastMoves' | 'pastMinutes'>): Rate {
  if (alpha !== null && beta !== null) return { alpha, beta, prior };
  return rateFromPast(pastMoves ?? 0, pastMinutes ?? 0);
}
