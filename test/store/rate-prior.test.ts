import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRng } from '../../src/sandbox/rng.ts';
import {
  FIRST_RATE_PRIOR,
  learnPrior,
  priorLeverage,
  type RatePrior,
  unmovedProbability,
  withoutPrior,
  withPrior,
} from '../../src/store/live/rate-prior.ts';
import { learnRate, PRIOR } from '../../src/sync/live/policy.ts';

const rates = fc.record({
  alpha: fc.double({ min: 0.05, max: 20, noNaN: true }),
  beta: fc.double({ min: 0.5, max: 4320, noNaN: true }),
});
const priors = fc.record({
  minutes: fc.double({ min: 0.5, max: 20_000, noNaN: true }),
  variance: fc.double({ min: 0.001, max: 2, noNaN: true }),
});
const taus = fc.double({ min: 0, max: 100_000, noNaN: true });

describe('the probability that nothing has moved', () => {
  test('falls with time from 1, and for a size is never less than for its SKU', () => {
    fc.assert(
      fc.property(
        rates,
        fc.double({ min: 0, max: 100_000, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (rate, tau, part) => {
          expect(unmovedProbability(rate, 0)).toBe(1);
          const all = unmovedProbability(rate, tau);
          expect(unmovedProbability(rate, tau + 1)).toBeLessThanOrEqual(all);
          expect(unmovedProbability(rate, tau, part)).toBeGreaterThanOrEqual(all);
          expect(unmovedProbability(rate, tau, 0)).toBe(1);
        },
      ),
    );
  });

  test('equals the frequency if moves come at rates of such a distribution', () => {
    const [alpha, beta, tau, step] = [2, 300, 60, 1e-5];
    let unmoved = 0;
    // No move in tau minutes at the rate l: e^(-l tau). The density of a gamma distribution of shape 2 is beta² l
    // e^(-beta l).
    for (let l = step / 2; l < 0.2; l += step) unmoved += beta ** 2 * l * Math.exp(-(beta + tau) * l) * step;
    expect(unmovedProbability({ alpha, beta }, tau)).toBeCloseTo(unmoved, 5);
  });
});

describe('a rate with the common prior', () => {
  test('is the prior’s if nothing is known, and its own if much is', () => {
    expect(withPrior(PRIOR, { minutes: 7 })).toEqual({ alpha: PRIOR.alpha, beta: 7, prior: 1 });
    expect(withPrior({ alpha: 1, beta: 4120 }, { minutes: 7 })).toEqual({ alpha: 1, beta: 4007, prior: 1 });
    expect(withPrior({ alpha: 3, beta: 60 }, { minutes: 120 })).toEqual({ alpha: 3, beta: 60, prior: 0.5 });
    // Half of it is forgotten; all of it is forgotten.
    expect(withPrior({ alpha: 9, beta: 300, prior: 0.5 }, { minutes: 1120 }).beta).toBe(800);
    expect(withPrior({ alpha: 9, beta: 300, prior: 0 }, { minutes: 1120 }).beta).toBe(300);
    // Of a slower prior, no more than there is can be taken out.
    expect(withoutPrior({ alpha: 9, beta: 300, prior: 1 }, { minutes: 600 })).toEqual({
      alpha: 9,
      beta: 60,
      prior: 0.5,
    });
  });

  test('can be separated from it again', () => {
    fc.assert(
      fc.property(rates, priors, (rate, prior) => {
        const { alpha, beta } = withoutPrior(withPrior(rate, prior), prior);
        expect(alpha).toBe(rate.alpha);
        expect(beta / rate.beta).toBeCloseTo(1, 9);
        expect(withPrior(withoutPrior(rate, prior), prior).beta / rate.beta).toBeCloseTo(1, 9);
      }),
    );
  });

  test('is a rate, and the faster the prior, the less certain a price', () => {
    fc.assert(
      fc.property(rates, priors, taus, (rate, { minutes }, tau) => {
        const slow = withPrior(rate, { minutes });
        expect(slow.beta).toBeGreaterThan(0);
        const fast = withPrior(rate, { minutes: minutes / 2 });
        expect(unmovedProbability(fast, tau)).toBeLessThanOrEqual(unmovedProbability(slow, tau));
      }),
    );
  });

  test('depends on the prior as its leverage says', () => {
    fc.assert(
      fc.property(rates, priors, taus, (rate, { minutes }, tau) => {
        const step = 1e-5;
        const at = (factor: number) =>
          unmovedProbability(withPrior(rate, { minutes: minutes * factor }), tau);
        const slope = (at(Math.exp(step)) - at(Math.exp(-step))) / (2 * step);
        expect(priorLeverage(rate, tau, { minutes })).toBeCloseTo(slope, 5);
      }),
    );
  });
});

describe('the common prior', () => {
  test('stays in its bounds, whatever was found, and few refreshes change little', () => {
    const lesson = fc.record({
      surprise: fc.double({ min: -1e6, max: 1e6, noNaN: true }),
      leverage: fc.double({ min: 0, max: 1e6, noNaN: true }),
      noise: fc.double({ min: 0, max: 1e6, noNaN: true }),
    });
    fc.assert(
      fc.property(priors, lesson, (prior, found) => {
        const next = learnPrior(prior, found);
        expect(next.minutes).toBeGreaterThanOrEqual(Math.max(0.5, prior.minutes / 3.001));
        expect(next.minutes).toBeLessThanOrEqual(Math.min(20_000, prior.minutes * 3.001));
        expect(next.variance).toBeGreaterThan(0);
        expect(next.variance).toBeLessThanOrEqual(2);
      }),
    );
    const nothing = learnPrior(FIRST_RATE_PRIOR, { surprise: 0, leverage: 0, noise: 0 });
    expect(nothing.minutes).toBe(FIRST_RATE_PRIOR.minutes);
    const one = learnPrior({ minutes: 30, variance: 0.01 }, { surprise: -0.9, leverage: 0.1, noise: 0.09 });
    expect(one.minutes).toBeGreaterThan(29);
  });

  test('becomes more certain with more refreshes, and drifts while there are none', () => {
    const prior = { minutes: 30, variance: 0.5 };
    const after = (many: number) =>
      learnPrior(prior, { surprise: 0, leverage: 0.2 * many, noise: 0.09 * many }).variance;
    expect(after(0)).toBeCloseTo(prior.variance, 1);
    expect(after(0)).toBeGreaterThan(prior.variance);
    expect(after(10)).toBeLessThan(prior.variance / 2);
    expect(after(1000)).toBeLessThan(0.01);
  });

  /**
   * Learns the prior of a market in which every SKU moves once in `minutes` on average, each at its own rate, and
   * is refreshed every twenty minutes.
   */
  function learned(
    minutes: number,
    rounds: number,
    seed: number,
  ): { prior: RatePrior; claimed: number; right: number } {
    const rng = createRng(seed);
    const exponential = () => -Math.log(1 - rng.next());
    const skus = Array.from({ length: 2000 }, () => ({
      truth: exponential() / minutes,
      rate: PRIOR,
    }));
    let prior = FIRST_RATE_PRIOR;
    let [claimed, right] = [0, 0];
    for (let round = 0; round < rounds; round += 1) {
      const lesson = { surprise: 0, leverage: 0, noise: 0 };
      [claimed, right] = [0, 0];
      for (const sku of skus) {
        const p = unmovedProbability(withPrior(sku.rate, prior), 20);
        const isRight = rng.next() < Math.exp(-20 * sku.truth);
        lesson.surprise += Number(isRight) - p;
        lesson.leverage += priorLeverage(sku.rate, 20, prior);
        lesson.noise += p * (1 - p);
        claimed += p / skus.length;
        right += Number(isRight) / skus.length;
        sku.rate = withoutPrior(learnRate(withPrior(sku.rate, prior), 20, !isRight), prior);
      }
      prior = learnPrior(prior, lesson);
    }
    return { prior, claimed, right };
  }

  test.each([8, 30, 120, 1000, 10_000])(
    'a market of one change in %d minutes is known after ten rounds of refreshes',
    (minutes) => {
      const { claimed, right } = learned(minutes, 10, minutes);
      expect(Math.abs(claimed - right)).toBeLessThan(0.03);
    },
  );
});
