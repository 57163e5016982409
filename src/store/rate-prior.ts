/*
 * How often a SKU moves of which nothing is known yet. Rates of single SKUs are learned from one change in `RATES_START_AT` minutes on, and keep
 * that part of their belief for hours, so in a market that is much faster or slower their prices would be believed too much or too
 * little until each SKU has been refreshed many times. What all refreshes find corrects that part, for all SKUs at once. Pure.
 */

/** Belief about a SKU's changes a minute: gamma distributed with shape alpha and rate beta (minutes). */
export interface Rate {
  readonly alpha: number;
  readonly beta: number;
}

/** What refreshes of a SKU have taught: over three days, over one, and which of the two foresees better what they find (sync/live/memories.ts). */
export interface Memories {
  readonly long: Rate;
  readonly short: Rate;
  /** Logarithm of how much more probable the short memory has made what was found, fading. */
  readonly odds: number;
}

/** Mean minutes between two changes that every rate is learned from on. */
export const RATES_START_AT = 120;

/** What is believed of SKUs before any of their own refreshes: mean minutes between two changes, and the variance of its logarithm. */
export interface RatePrior {
  readonly minutes: number;
  readonly variance: number;
}

/** Before any refresh: rather too fast than too slow, since a price that is doubted costs less than one that is wrong. */
export const FIRST_RATE_PRIOR: RatePrior = { minutes: 30, variance: 2 };

const [LEAST_MINUTES, MOST_MINUTES] = [0.5, 20_000];
/** The logarithm may change by so much (standard deviation 5 %) between two lessons, and by a factor of three in one. */
const DRIFT = 0.0025;
const MOST_STEP = Math.log(3);
const MOST_VARIANCE = 2;

/** A rate, with what is believed of all in place of what it was learned from on. */
export function withPrior({ alpha, beta }: Rate, { minutes }: Pick<RatePrior, 'minutes'>): Rate {
  return { alpha, beta: beta + Math.min(RATES_START_AT, beta) * (minutes / RATES_START_AT - 1) };
}

/** The probability that nothing has moved `tau` minutes after a refresh, of a SKU, or of one of its sizes, of which `part` move with it. */
export function unmovedProbability({ alpha, beta }: Rate, tau: number, part = 1): number {
  return (1 + (part * tau) / beta) ** -alpha;
}

/** What refreshes have found: right ones beyond those claimed, how much that depends on the logarithm of the prior's minutes, and its variance. */
export interface PriorLesson {
  readonly surprise: number;
  readonly leverage: number;
  readonly noise: number;
}

/** By how much the probability of `tau` minutes grows with the logarithm of the prior's minutes. `rate`: as it is learned, without the prior. */
export function priorLeverage(rate: Rate, tau: number, prior: Pick<RatePrior, 'minutes'>): number {
  const { alpha, beta } = withPrior(rate, prior);
  const byBeta = (alpha * unmovedProbability({ alpha, beta }, tau) * tau) / (beta * (beta + tau));
  return byBeta * Math.min(RATES_START_AT, rate.beta) * (prior.minutes / RATES_START_AT);
}

/** The prior after what was found under it: a Kalman filter's step, so that few refreshes change little. */
export function learnPrior(
  { minutes, variance }: RatePrior,
  { surprise, leverage, noise }: PriorLesson,
): RatePrior {
  const certain = variance * leverage ** 2;
  const gain = certain + noise === 0 ? 0 : (variance * leverage) / (certain + noise);
  const step = Math.max(-MOST_STEP, Math.min(MOST_STEP, gain * surprise));
  return {
    minutes: Math.min(MOST_MINUTES, Math.max(LEAST_MINUTES, minutes * Math.exp(step))),
    variance: Math.min(MOST_VARIANCE, (1 - gain * leverage) * variance + DRIFT),
  };
}
