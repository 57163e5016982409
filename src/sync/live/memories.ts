import { faded } from '../../store/faded.ts';
import type { Memories, Rate } from '../../store/rate-prior.ts';
import { bounded, learnHintedMove, learnRate } from './policy.ts';

/*
 * A SKU has two memories of how often it moves: a long one, which tells SKUs apart that keep their habits, and a short one, which notices within
 * hours that habits have changed. Each refresh is a test of both: the one that has found it more probable is believed more. What is believed
 * is one gamma distribution again, so nobody else needs to know of two. Pure; all times in minutes.
 */

/** The short memory forgets all but so many minutes. */
const SHORT_MINUTES = 24 * 60;
/** Of what earlier refreshes have said for a memory so much is left with each further one, and altogether it says no more than this. */
const FADING = 0.97;
const MOST_ODDS = 5;
/** As long as both foresee alike, the long memory is believed more: it is the one that knows more. */
const ODDS_OF_LONG = 0.5;

/** Both memories of a SKU of which only one rate is known. */
export const memoriesOf = (rate: Rate): Memories => ({
  long: rate,
  short: bounded(rate, SHORT_MINUTES),
  odds: 0,
});

/**
 * The memories after a refresh `tau` minutes after the one before that found the price changed or not; `hinted`: a hint has brought it about, and
 * explains the move.
 */
export function learnMemories(
  { long, short, odds }: Memories,
  tau: number,
  { moved, hinted }: { readonly moved: boolean; readonly hinted: boolean },
): Memories {
  if (tau <= 0) return { long, short, odds };
  const learn = (rate: Rate) => (moved && hinted ? learnHintedMove(rate, tau) : learnRate(rate, tau, moved));
  const said = logProbability(short, tau, moved) - logProbability(long, tau, moved);
  return {
    long: learn(long),
    short: bounded(learn(short), SHORT_MINUTES),
    odds: faded(Math.max(-MOST_ODDS, Math.min(MOST_ODDS, FADING * odds + said))),
  };
}

/** What is believed of a SKU with these memories: a gamma distribution with the mean and the variance of both together. */
export function rateOfMemories({ long, short, odds }: Memories): Rate {
  const part = 1 / (1 + Math.exp(ODDS_OF_LONG - odds));
  const together = (of: (rate: Rate) => number) => part * of(short) + (1 - part) * of(long);
  const mean = together(({ alpha, beta }) => alpha / beta);
  const variance = together(({ alpha, beta }) => (alpha * (alpha + 1)) / beta ** 2) - mean ** 2;
  return { alpha: mean ** 2 / variance, beta: mean / variance };
}

/** Logarithm of the probability that a SKU has moved in `tau` minutes, or has not. Never infinite: a refresh comes a moment after the one before at least. */
function logProbability({ alpha, beta }: Rate, tau: number, moved: boolean): number {
  const unmoved = -alpha * Math.log1p(tau / beta);
  return moved ? Math.log(-Math.expm1(unmoved)) : unmoved;
}
