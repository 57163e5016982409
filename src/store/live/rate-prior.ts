import type { Tx } from '../connection/db.ts';

/*
 * How often a SKU moves of which nothing is known yet. Rates of single SKUs are learned from `RATES_START_AS` on, and
 * keep a part of that in their belief until it is forgotten. So in a market that is much faster or slower, their prices
 * would be believed too much or too little until each SKU has been refreshed many times. What all refreshes find
 * corrects that part, for all SKUs at once: replacing the prior is exact for gamma distributions of one shape, and can
 * be undone (`withPrior`, `withoutPrior`). Pure.
 */

/** Belief about a SKU's changes a minute: gamma distributed with shape alpha and rate beta (minutes). */
export interface Rate {
  readonly alpha: number;
  readonly beta: number;
  /**
   * How much of RATES_START_AS is left in beta: all of it at first, and less as it is forgotten. Absent: as much as may
   * be.
   */
  readonly prior?: number | null | undefined;
}

/**
 * What refreshes of a SKU have taught: over three days, over one, and which of the two foresees better what they find
 * (sync/live/learn-refresh.ts).
 */
export interface Memories {
  readonly long: Rate;
  readonly short: Rate;
  /** Logarithm of how much more probable the short memory has made what was found, fading. */
  readonly odds: number;
}

/**
 * What every rate is learned from on. A shape below one, as SKUs of a market differ more than those of an exponential
 * distribution would: of the shapes tried, the one that is best calibrated in the first hours of any market and costs
 * least where all rates are drawn anew.
 */
export const RATES_START_AS: Rate = { alpha: 0.8, beta: 120, prior: 1 };

/**
 * What is believed of SKUs before any of their own refreshes: `beta` in place of the one above, and the variance of
 * its logarithm.
 */
export interface RatePrior {
  readonly minutes: number;
  readonly variance: number;
}

/**
 * Before any refresh: rather too fast than too slow, since a price that is doubted costs less than one that is wrong.
 */
export const FIRST_RATE_PRIOR: RatePrior = { minutes: 30, variance: 2 };

const [MIN_MINUTES, MAX_MINUTES] = [0.5, 20_000];
/**
 * Variance by which the logarithm of the prior's minutes may drift between two lessons (a standard deviation of 5 %);
 * one lesson changes them threefold at most.
 */
const DRIFT = 0.0025;
const MAX_STEP = Math.log(3);
const MAX_VARIANCE = 2;

/** How much of what a rate was learned from on is left in it. */
export const priorPart = ({ beta, prior }: Rate): number => prior ?? Math.min(1, beta / RATES_START_AS.beta);

/** A rate, with what is believed of all in place of what it was learned from on. */
export function withPrior(rate: Rate, { minutes }: Pick<RatePrior, 'minutes'>): Rate {
  const prior = priorPart(rate);
  return { alpha: rate.alpha, beta: rate.beta + prior * (minutes - RATES_START_AS.beta), prior };
}

/** The other way round: the rate of which `withPrior` makes this one. */
export function withoutPrior({ alpha, beta, prior }: Rate, { minutes }: Pick<RatePrior, 'minutes'>): Rate {
  // What is left of the prior is no more than there is.
  const part = Math.min(prior ?? 0, beta / minutes);
  return { alpha, beta: beta + part * (RATES_START_AS.beta - minutes), prior: part };
}

/**
 * The probability that nothing has moved `tau` minutes after a refresh, of a SKU, or of one of its sizes, of which
 * `part` move with it.
 */
export function unmovedProbability({ alpha, beta }: Rate, tau: number, part = 1): number {
  return (1 + (part * tau) / beta) ** -alpha;
}

/**
 * What refreshes have found: right ones beyond those claimed, how much that depends on the logarithm of the prior's
 * minutes, and its variance.
 */
export interface PriorLesson {
  readonly surprise: number;
  readonly leverage: number;
  readonly noise: number;
}

/**
 * By how much the probability of `tau` minutes grows with the logarithm of the prior's minutes. `rate`: as it is
 * learned, without the prior.
 */
export function priorLeverage(rate: Rate, tau: number, prior: Pick<RatePrior, 'minutes'>): number {
  const { alpha, beta } = withPrior(rate, prior);
  return (
    (alpha * unmovedProbability({ alpha, beta }, tau) * tau * priorPart(rate) * prior.minutes) /
    (beta * (beta + tau))
  );
}

/** The prior after what was found under it: a Kalman filter's step, so that few refreshes change little. */
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
 * What is learned fades: each refresh leaves a little less of what earlier ones have found. In Postgres it is an error,
 * not zero, if a fading number, or a product of it, becomes too small for its type. So numbers are forgotten long
 * before; otherwise a mirror would fail after months, on SKUs at which nothing happens.
 */

const LEAST = 1e-6;

/** A number that fades, or 0 once next to nothing is left. */
export const faded = (number: number): number => (Math.abs(number) < LEAST ? 0 : number);

/** SQL: the same of an expression. */
export const fadedSql = (tx: Tx, expression: string) =>
  tx`case when abs(${tx.unsafe(expression)}) < ${LEAST} then 0 else ${tx.unsafe(expression)} end`;
