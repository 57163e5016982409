import type { LineEvidence } from '../../store/answer/types.ts';
import type { LivePlan, RefreshThreshold } from '../../store/live/live.ts';
import { RATES_START_AS, unmovedProbability, withPrior } from '../../store/live/rate-prior.ts';
import type { LearnedRefresh, LiveRefresh } from '../../store/live/refresh.ts';
import type { SyncSettings } from '../settings.ts';
import { isHinted, predictedMove, predictionRecheckMinutes, testHints, testPrediction } from './hints.ts';
import { boostPlan, byItself } from './lines.ts';
import { learnMemories, memoriesOf, rateOfMemories } from './memories.ts';
import { learnMovedSizes, nextRefreshMinutes, type Rate } from './policy.ts';
import { rateOf } from './rate.ts';

/*
 * What one refresh of a live SKU teaches of it, and when the next one is due. Pure.
 */

/**
 * What a refresh of a live SKU teaches, and when the next one is due under this plan. `lineEvidence`: what its line
 * says of it.
 */
export function learnRefresh(
  plan: LivePlan,
  settings: SyncSettings,
): (refresh: LiveRefresh, lineEvidence?: LineEvidence) => LearnedRefresh {
  return (refresh, lineEvidence = byItself(refresh)) => {
    const before = rateOf(refresh);
    const seen = { seen: refresh.sizesSeen ?? 0, moved: refresh.sizesMoved ?? 0 };
    const { sku, weight, minutes, moved } = refresh;
    // The first fetch ever has no refresh before it to compare with; what a release explains says nothing of the
    // SKU's own moves.
    const hinted = hintedBy(refresh, before);
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
 * What hints at a SKU say of its refresh, and the refresh of them and of those before; what is undone that they had
 * told of is theirs, too.
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

/** Minutes until a SKU's next live refresh: by its worth, or LIVE_INTERVAL where there is no refresh threshold. */
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
