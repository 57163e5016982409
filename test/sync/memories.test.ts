import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRng } from '../../src/sandbox/rng.ts';
import {
  FIRST_RATE_PRIOR,
  learnPrior,
  type Memories,
  priorLeverage,
  type Rate,
  RATES_START_AS,
  unmovedProbability,
  withPrior,
} from '../../src/store/live/rate-prior.ts';
import { learnMemories, memoriesOf, rateOfMemories } from '../../src/sync/live/learn-refresh.ts';
import { bounded, learnRate, PRIOR } from '../../src/sync/live/policy.ts';
import { learnWholesale } from '../../src/sync/live/releases.ts';
import { runs } from '../support/soak.ts';

const mean = ({ alpha, beta }: Rate) => alpha / beta;
const found = fc.record({
  tau: fc.oneof(
    fc.double({ min: 0.001, max: 1, noNaN: true }),
    fc.double({ min: 1, max: 20_000, noNaN: true }),
  ),
  moved: fc.boolean(),
  hinted: fc.boolean(),
});

const priors = fc.record({ minutes: fc.double({ min: 0.5, max: 20_000, noNaN: true }) });
/** The prior of a market that moves at the rate from which learning starts. */
const USUAL = { minutes: RATES_START_AS.beta };

/** Far from what a `real` cannot hold, and from products of it that a double cannot hold. */
const isHeld = (number: number) => number > 1e-20 && number < 1e20;

/** Refreshes every `tau` minutes a SKU that has moved in every n-th refresh; 0: in none. */
function refreshed(from: Memories, refreshes: number, tau: number, nth: number, prior = USUAL): Memories {
  let memories = from;
  for (let n = 1; n <= refreshes; n += 1)
    memories = learnMemories(memories, tau, { moved: nth > 0 && n % nth === 0, hinted: false }, prior);
  return memories;
}

describe('the two memories of how often a SKU moves', () => {
  test('are bounded, and the combined rate lies between them, whatever refreshes find', () => {
    fc.assert(
      fc.property(fc.array(found, { maxLength: 60 }), priors, (refreshes, prior) => {
        let memories = memoriesOf(PRIOR);
        for (const { tau, ...what } of refreshes) memories = learnMemories(memories, tau, what, prior);
        const { long, short, odds } = memories;
        expect(Math.abs(odds)).toBeLessThanOrEqual(5);
        expect(short.alpha).toBeLessThanOrEqual(20.0001);
        expect(short.beta).toBeLessThanOrEqual(1440.0001);
        const rate = rateOfMemories(memories, prior);
        expect(rate.alpha).toBeGreaterThan(0);
        const [believed, ...each] = [rate, long, short].map((one) => mean(withPrior(one, prior))) as [
          number,
          ...number[],
        ];
        expect(believed).toBeGreaterThanOrEqual(Math.min(...each) * 0.9999);
        expect(believed).toBeLessThanOrEqual(Math.max(...each) * 1.0001);
      }),
    );
  });

  test('remain numbers that Postgres accepts, through years of any pattern', () => {
    const habits = fc.array(found, { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(habits, fc.array(found, { maxLength: 5 }), priors, (before, always, prior) => {
        let memories = memoriesOf(PRIOR);
        let wholesale = { moves: 0, minutes: 0 };
        const refresh = ({ tau, ...what }: (typeof before)[number]) => {
          memories = learnMemories(memories, tau, what, prior);
          wholesale = learnWholesale(wholesale, tau, what.moved);
        };
        before.forEach(refresh);
        for (let n = 0; n < 10_000 && always.length > 0; n += 1) always.forEach(refresh);
        const { long, short, odds } = memories;
        const rate = rateOfMemories(memories, prior);
        for (const number of [long.alpha, long.beta, short.alpha, short.beta, rate.alpha, rate.beta])
          expect(number).toSatisfy(isHeld);
        const parts = [long.prior, short.prior, rate.prior].map((part) => part ?? Number.NaN);
        for (const number of [odds, wholesale.moves, wholesale.minutes, ...parts])
          expect(number).toSatisfy((n: number) => n === 0 || isHeld(Math.abs(n)));
      }),
      { numRuns: runs(20) },
    );
  });

  test('of a SKU with steady habits are combined to what one memory of days would hold', () => {
    // A move every five hours, seen by refreshes that are half an hour apart.
    const steady = refreshed(memoriesOf(PRIOR), 400, 30, 10);
    let one = PRIOR;
    for (let n = 1; n <= 400; n += 1) one = bounded(learnRate(one, 30, n % 10 === 0));
    expect(mean(rateOfMemories(steady, USUAL)) / mean(one)).toBeGreaterThan(0.9);
    expect(mean(rateOfMemories(steady, USUAL)) / mean(one)).toBeLessThan(1.1);
  });

  test('notice within hours that a SKU starts to move after weeks of rest, and that a moving one rests', () => {
    const rested = refreshed(memoriesOf(PRIOR), 300, 100, 0);
    const lively = refreshed(rested, 12, 20, 1);
    expect(mean(rateOfMemories(rested, USUAL))).toBeLessThan(1 / 3000);
    // Four hours later. One memory of days would still expect one move in four hours at most.
    expect(mean(rateOfMemories(lively, USUAL))).toBeGreaterThan(1 / 150);
    expect(mean(lively.long)).toBeLessThan(1 / 240);

    const moved = refreshed(memoriesOf(PRIOR), 300, 100, 2);
    const resting = refreshed(moved, 20, 100, 0);
    expect(mean(rateOfMemories(resting, USUAL))).toBeLessThan(mean(resting.long) / 1.5);
  });

  test('make correct predictions in a market ten times as fast, also for SKUs that always move', () => {
    const rng = createRng(5);
    const gauss = () => Math.sqrt(-2 * Math.log(1 - rng.next())) * Math.cos(2 * Math.PI * rng.next());
    const skus = Array.from({ length: 1000 }, () => ({
      truth: Math.exp(1.5 * gauss()) / 36,
      memories: memoriesOf(PRIOR),
    }));
    let prior = FIRST_RATE_PRIOR;
    let [claimed, right, claimedOfFast, rightOfFast] = [0, 0, 0, 0];
    for (let round = 0; round < 40; round += 1) {
      const lesson = { surprise: 0, leverage: 0, noise: 0 };
      for (const sku of skus) {
        const tau = 10 + 50 * rng.next();
        const rate = rateOfMemories(sku.memories, prior);
        const p = unmovedProbability(withPrior(rate, prior), tau);
        const isRight = rng.next() < Math.exp(-tau * sku.truth);
        lesson.surprise += Number(isRight) - p;
        lesson.leverage += priorLeverage(rate, tau, prior);
        lesson.noise += p * (1 - p);
        sku.memories = learnMemories(sku.memories, tau, { moved: !isRight, hinted: false }, prior);
        if (round < 20) continue;
        claimed += p;
        right += Number(isRight);
        claimedOfFast += sku.truth > 0.1 ? p : 0;
        rightOfFast += Number(sku.truth > 0.1 && isRight);
      }
      prior = learnPrior(prior, lesson);
    }
    const looks = 20 * skus.length;
    expect(Math.abs(claimed - right) / looks).toBeLessThan(0.015);
    expect(Math.abs(claimedOfFast - rightOfFast) / (looks / 5)).toBeLessThan(0.05);
  });

  test('forget their prior like all else, so that a prior which changes later does not change them', () => {
    const [then, later] = [{ minutes: 20_000 }, { minutes: 10 }];
    // As it was stored after the last refresh.
    const believed = (memories: Memories, prior: typeof then) =>
      mean(withPrior(rateOfMemories(memories, then), prior));
    // A move every two hours, for a week: twenty moves are remembered, and none of them is from the prior.
    const lively = refreshed(memoriesOf(PRIOR), 168, 60, 2, then);
    expect(lively.long.prior).toBeLessThan(0.05);
    expect(believed(lively, then)).toBeGreaterThan(1 / 180);
    expect(believed(lively, later) / believed(lively, then)).toBeLessThan(1.5);
    // A SKU that hardly moves forgets it after days.
    expect(refreshed(memoriesOf(PRIOR), 200, 100, 0, then).long.prior).toBeLessThan(0.05);
    expect(refreshed(memoriesOf(PRIOR), 3, 100, 0, then).long.prior).toBe(1);
  });

  test('count a hinted move at its exact time', () => {
    let hinted = memoriesOf(PRIOR);
    let unhinted = memoriesOf(PRIOR);
    for (let n = 0; n < 5; n += 1) {
      hinted = learnMemories(hinted, 60, { moved: true, hinted: true }, USUAL);
      unhinted = learnMemories(unhinted, 60, { moved: true, hinted: false }, USUAL);
    }
    expect(hinted.long).toEqual({ alpha: PRIOR.alpha + 5, beta: PRIOR.beta + 300, prior: 1 });
    expect(mean(unhinted.short)).toBeGreaterThan(mean(hinted.short));
    // Without a move, a hint that could explain one changes nothing.
    expect(learnMemories(hinted, 60, { moved: false, hinted: true }, USUAL)).toEqual(
      learnMemories(hinted, 60, { moved: false, hinted: false }, USUAL),
    );
  });

  test('learn nothing from a refresh dated before the previous one, as after a clock was set back', () => {
    const memories = refreshed(memoriesOf(PRIOR), 3, 10, 2);
    expect(learnMemories(memories, 0, { moved: true, hinted: false }, USUAL)).toEqual(memories);
    expect(learnMemories(memories, -5, { moved: false, hinted: false }, USUAL)).toEqual(memories);
  });
});
