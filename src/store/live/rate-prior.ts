import type { Tx } from '../connection/db.ts';

/*
 * How often a SKU moves about which nothing is known yet. Rates of single SKUs are learned starting from
 * `RATES_START_AS`, and keep a part of it until it is forgotten. In a much faster or slower market their prices
 * would therefore be believed too much or too little until each SKU has been refreshed many times. What all
 * refreshes find corrects that part, for all SKUs at once: replacing the prior is exact for gamma distributions of
 * one shape, and can be undone (`withPrior`, `withoutPrior`). Pure.
 */

/** The belief about a SKU's changes a minute: a gamma distribution with shape alpha and rate beta (minutes). */
export interface Rate {
  readonly alpha: number;
  readonly beta: number;
  /**
   * How much of RATES_START_AS is left in beta: all of it at first, less as it is forgotten. If absent, as much as
   * possible.
   */
  readonly prior?: number | null | undefined;
}

/**
 * What refreshes of a SKU have taught over three days and over one, and which of the two predicts their results
 * better (sync/live/learn-refresh.ts).
 */
export interface Memories {
  readonly long: Rate;
  readonly short: Rate;
  /** Logarithm of how much more probable the results were by the short memory; fades. */
  readonly odds: number;
}

/**
 * The starting point of every rate. The shape is below one because SKUs of a market differ more than an exponential
 * distribution would let them. Of the shapes tried, this one is best calibrated in the first hours of any market,
 * and costs least if all rates are drawn anew.
 */
export const RATES_START_AS: Rate = { alpha: 0.8, beta: 120, prior: 1 };

/**
 * What is believed about SKUs before any refresh of theirs: `beta` in place of the one above, and the variance of
 * its logarithm.
 */
export interface RatePrior {
  readonly minutes: number;
  readonly variance: number;
}

/** Before any refresh. Rather too fast than too slow, because a doubted price costs less than a wrong one. */
export const FIRST_RATE_PRIOR: RatePrior = { minutes: 30, variance: 2 };

const [MIN_MINUTES, MAX_MINUTES] = [0.5, 20_000];
/**
 * The variance by which the logarithm of the prior's minutes may drift between two lessons (a standard deviation of
 * 5 %). One lesson changes the minutes threefold at most.
 */
const DRIFT = 0.0025;
const MAX_STEP = Math.log(3);
const MAX_VARIANCE = 2;

/** Returns how much of its starting point is left in a rate. */
export const priorPart = ({ beta, prior }: Rate): number => prior ?? Math.min(1, beta / RATES_START_AS.beta);

/** Replaces a rate's starting point with what is believed of all SKUs. */
export function withPrior(rate: Rate, { minutes }: Pick<RatePrior, 'minutes'>): Rate {
  const prior = priorPart(rate);
  return { alpha: rate.alpha, beta: rate.beta + prior * (minutes - RATES_START_AS.beta), prior };
}

/** Inverts `withPrior`: returns the rate that it would turn into this one. */
export function withoutPrior({ alpha, beta, prior }: Rate, { minutes }: Pick<RatePrior, 'minutes'>): Rate {
  // No more of the prior can be left than beta contains.
  const part = Math.min(prior ?? 0, beta / minutes);
  return { alpha, beta: beta + part * (RATES_START_AS.beta - minutes), prior: part };
}

/**
 * Returns the probability that nothing has moved `tau` minutes after a refresh, of a SKU, or of one of its sizes if
 * only `part` of them move with it.
 */
export function unmovedProbability({ alpha, beta }: Rate, tau: number, part = 1): number {
  return (1 + (part * tau) / beta) ** -alpha;
}

/**
 * What refreshes found: how many more were right than claimed, how much that depends on the logarithm of the prior's
 * minutes, and its variance.
 */
export interface PriorLesson {
  readonly surprise: number;
  readonly leverage: number;
  readonly noise: number;
}

/**
 * Returns how much the probability for `tau` minutes grows with the logarithm of the prior's minutes. `rate` is the
 * learned one, without the prior.
 */
export function priorLeverage(rate: Rate, tau: number, prior: Pick<RatePrior, 'minutes'>): number {
  const { alpha, beta } = withPrior(rate, prior);
  return (
    (alpha * unmovedProbability({ alpha, beta }, tau) * tau * priorPart(rate) * prior.minutes) /
    (beta * (beta + tau))
  );
}

/** Returns the prior after a lesson: a step of a Kalman filter, so that few refreshes change little. */
export function learnPrior(
  { minutes, variance }: RatePrior,
  { surprise, leverage, noise }: PriorLesson,
): RatePrior {
  const certain = variance * leverage ** 2;
  const gain = certain + noise === 0 ? 0 : (variance * leverage) / (certain + noise);
  const step = Math.max(-MAX_STEP, Math.min(MAX_STEP, gain * surprise));
  return {
    minutes: Math.min(MAX_MINUTES, Math.max(MIN_MINUTES, minutes * Math.exp(step))),
    variance: Math.min(MAX_VARIANCE, (1 - gain * leverage) * variance + DRIFT),
  };
}

/*
 * What is learned fades: each refresh leaves a little less of what earlier ones found. Postgres raises an error,
 * instead of returning zero, if a fading number, or a product of it, becomes too small for its type. So numbers are
 * set to 0 long before that; otherwise a mirror would fail after months, on SKUs whose prices never move.
 */

const LEAST = 1e-6;

/** Returns a fading number, or 0 once almost nothing is left of it. */
export const faded = (number: number): number => (Math.abs(number) < LEAST ? 0 : number);

/** SQL: the same for an expression. */
export const fadedSql = (tx: Tx, expression: string) =>
  tx`case when abs(${tx.unsafe(expression)}) < ${LEAST} then 0 else ${tx.unsafe(expression)} end`;
