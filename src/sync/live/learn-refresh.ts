import type { LineEvidence } from '../../store/answer/types.ts';
import type { LivePlan, RefreshThreshold } from '../../store/live/live.ts';
import {
  RATES_START_AS,
  unmovedProbability,
  withPrior,
  faded,
  type Memories,
  priorPart,
  type Rate,
  type RatePrior,
  withoutPrior,
} from '../../store/live/rate-prior.ts';
import type { LearnedRefresh, LiveRefresh } from '../../store/live/refresh.ts';
import type { SyncSettings } from '../settings.ts';
import { isHinted, predictedMove, predictionRecheckMinutes, testHints, testPrediction } from './hints.ts';
import {
  learnMovedSizes,
  nextRefreshMinutes,
  rateOf,
  bounded,
  learnHintedMove,
  learnRate,
} from './policy.ts';
import { boostPlan, byItself } from './product-lines.ts';

/* What one refresh of a live SKU teaches about it, and when the next one is due. Pure. */

/**
 * Returns what a refresh of a live SKU teaches, and when the next one is due under this plan. `lineEvidence`: what
 * its line says about it.
 */
export function learnRefresh(
  plan: LivePlan,
  settings: SyncSettings,
): (refresh: LiveRefresh, lineEvidence?: LineEvidence) => LearnedRefresh {
  return (refresh, lineEvidence = byItself(refresh)) => {
    const before = rateOf(refresh);
    const seen = { seen: refresh.sizesSeen ?? 0, moved: refresh.sizesMoved ?? 0 };
    const { sku, weight, minutes, moved } = refresh;
    const hinted = hintedBy(refresh, before);
    // The first refresh has no earlier one to be compared with; what a release explains says nothing about the
    // SKU's own moves.
    const isOwn = minutes !== null && !lineEvidence.explained;
    const held = refresh.memories ?? memoriesOf(before);
    const prior = priorOf(refresh);
    const memories = isOwn ? learnMemories(held, minutes, { moved, hinted: hinted.explains }, prior) : held;
    const rate = isOwn ? rateOfMemories(memories, prior) : before;
    const found = refresh.sizes ?? { held: 0, moved: 0 };
    const sizes = isOwn ? learnMovedSizes(seen, before, minutes, found) : seen;
    const dueIn = Math.min(waitMinutes(plan, settings, weight, rate), lineEvidence.againIn ?? Infinity);
    const boost = boostPlan(plan);
    const again =
      hinted.prediction === null || boost === null
        ? null
        : predictionRecheckMinutes({ weight, rate, dueIn }, refresh.hints ?? [], boost);
    const learned = {
      ...rate,
      memories,
      sizesSeen: sizes.seen,
      sizesMoved: sizes.moved,
      wholesale: lineEvidence.wholesale,
    };
    const { tests: hintTests, prediction, predictionTests } = hinted;
    return { sku, ...learned, hintTests, prediction, predictionTests, nextMs: (again ?? dueIn) * 60_000 };
  };
}

const priorOf = ({ priorMinutes = RATES_START_AS.beta }: LiveRefresh) => ({ minutes: priorMinutes });

/**
 * Returns what hints at a SKU say about its refresh, and what the refresh says about them and about moves hinted
 * at before. A move that undoes a hinted one also counts as explained by hints.
 */
function hintedBy(refresh: LiveRefresh, rate: Rate) {
  const { minutes, moved } = refresh;
  if (minutes === null) return { explains: false, tests: [], prediction: null, predictionTests: [] };
  const hints = refresh.hints ?? [];
  const prices = [...(refresh.prices ?? [])];
  const unmoved = unmovedProbability(withPrior(rate, priorOf(refresh)), Math.max(0, minutes));
  const predictionTests = refresh.prediction
    ? testPrediction(refresh.prediction, new Map(prices.map(([size, { to }]) => [size, to])))
    : [];
  return {
    explains: isHinted(hints, unmoved) || predictionTests.some(({ found }) => found === 'undone'),
    tests: testHints(hints, unmoved, moved),
    prediction: moved
      ? predictedMove(hints, unmoved, Object.fromEntries(prices.map(([size, { from }]) => [size, from])))
      : null,
    predictionTests,
  };
}

/**
 * Returns the minutes until a SKU's next live refresh: by its worth, or LIVE_INTERVAL if there is no refresh
 * threshold.
 */
export function waitMinutes(
  plan: RefreshThreshold,
  settings: SyncSettings,
  weight: number,
  rate: Rate,
): number {
  const { refreshThreshold, maxIntervalMinutes } = plan;
  if (refreshThreshold === null || maxIntervalMinutes === null) return settings.intervals.liveMs / 60_000;
  return nextRefreshMinutes({ weight, rate }, { refreshThreshold, maxIntervalMinutes });
}

/*
 * A SKU has two memories of how often it moves: a long one, which distinguishes SKUs that keep their habits, and a
 * short one, which notices within hours that habits have changed. Each refresh tests both: the memory that gave
 * its result the higher probability is believed more. The belief is again a single gamma distribution, so no other
 * part needs to know of two memories.
 * Rates are stored as learned from `RATES_START_AS`, and believed with what is known of all SKUs in its place
 * (`withPrior`). What a refresh teaches depends on the belief before it: in a market that is ten times as fast, a
 * SKU that has moved each time is no news, and a rate learned from slow beginnings would be too slow for days. So
 * each refresh is learned under the prior of its time. Pure; all times in minutes.
 */

type Prior = Pick<RatePrior, 'minutes'>;

/** Minutes of evidence that the short memory keeps. */
const SHORT_MINUTES = 24 * 60;
/** The part of the memories' log odds that each further refresh leaves, and the bound of the log odds. */
const FADING = 0.97;
const MAX_ODDS = 5;
/** While both predict alike, the long memory is believed more, because it knows more. */
const ODDS_OF_LONG = 0.2;

/** Returns both memories of a SKU of which only one rate is known. */
export const memoriesOf = (rate: Rate): Memories => ({
  long: rate,
  short: bounded(rate, SHORT_MINUTES),
  odds: 0,
});

/**
 * Returns the memories after a refresh, `tau` minutes after the previous one, that found the price changed or not.
 * `hinted`: a hint caused it and explains the move. `prior`: what is believed of all SKUs.
 */
export function learnMemories(
  { long, short, odds }: Memories,
  tau: number,
  { moved, hinted }: { readonly moved: boolean; readonly hinted: boolean },
  prior: Prior,
): Memories {
  if (tau <= 0) return { long, short, odds };
  const [ofLong, ofShort] = [withPrior(long, prior), withPrior(short, prior)];
  const learn = (rate: Rate) => (moved && hinted ? learnHintedMove(rate, tau) : learnRate(rate, tau, moved));
  const said = logProbability(ofShort, tau, moved) - logProbability(ofLong, tau, moved);
  return {
    long: bounded(withoutPrior(learn(ofLong), prior)),
    short: bounded(withoutPrior(learn(ofShort), prior), SHORT_MINUTES),
    odds: faded(Math.max(-MAX_ODDS, Math.min(MAX_ODDS, FADING * odds + said))),
  };
}

/**
 * Returns the rate of a SKU with these memories: a gamma distribution that has, under `prior`, the mean and
 * variance of both together. Without the prior, as rates are stored.
 */
export function rateOfMemories({ long, short, odds }: Memories, prior: Prior): Rate {
  const [ofLong, ofShort] = [withPrior(long, prior), withPrior(short, prior)];
  const part = 1 / (1 + Math.exp(ODDS_OF_LONG - odds));
  const together = (of: (rate: Rate) => number) => part * of(ofShort) + (1 - part) * of(ofLong);
  const mean = together(({ alpha, beta }) => alpha / beta);
  const variance = together(({ alpha, beta }) => (alpha * (alpha + 1)) / beta ** 2) - mean ** 2;
  return withoutPrior(
    { alpha: mean ** 2 / variance, beta: mean / variance, prior: together(priorPart) },
    prior,
  );
}

/**
 * Returns the logarithm of the probability that a SKU has moved in `tau` minutes, or has not. It is finite,
 * because refreshes are at least a moment apart.
 */
function logProbability({ alpha, beta }: Rate, tau: number, moved: boolean): number {
  const unmoved = -alpha * Math.log1p(tau / beta);
  return moved ? Math.log(-Math.expm1(unmoved)) : unmoved;
}
