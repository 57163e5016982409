import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Memories, Rate } from '../../src/store/rate-prior.ts';
import { learnMemories, memoriesOf, rateOfMemories } from '../../src/sync/live/memories.ts';
import { learnRate, PRIOR } from '../../src/sync/live/policy.ts';
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

/** Far from what a real cannot hold, and from products of it that a double cannot. */
const isHeld = (number: number) => number > 1e-20 && number < 1e20;

/** Refreshes every `tau` minutes of a SKU that has moved in each n-th of them; 0: in none. */
function refreshed(from: Memories, refreshes: number, tau: number, nth: number): Memories {
  let memories = from;
  for (let n = 1; n <= refreshes; n += 1)
    memories = learnMemories(memories, tau, { moved: nth > 0 && n % nth === 0, hinted: false });
  return memories;
}

describe('two memories of how often a SKU moves', () => {
  test('are bounded, and what is believed lies between them, whatever refreshes find', () => {
    fc.assert(
      fc.property(fc.array(found, { maxLength: 60 }), (refreshes) => {
        let memories = memoriesOf(PRIOR);
        for (const { tau, ...what } of refreshes) memories = learnMemories(memories, tau, what);
        const { long, short, odds } = memories;
        expect(Math.abs(odds)).toBeLessThanOrEqual(5);
        expect(short.alpha).toBeLessThanOrEqual(20.0001);
        expect(short.beta).toBeLessThanOrEqual(1440.0001);
        const rate = rateOfMemories(memories);
        expect(rate.alpha).toBeGreaterThan(0);
        expect(mean(rate)).toBeGreaterThanOrEqual(Math.min(mean(long), mean(short)) * 0.9999);
        expect(mean(rate)).toBeLessThanOrEqual(Math.max(mean(long), mean(short)) * 1.0001);
      }),
    );
  });

  test('stay numbers that Postgres takes, for years of whatever habits', () => {
    const habits = fc.array(found, { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(habits, fc.array(found, { maxLength: 5 }), (before, always) => {
        let memories = memoriesOf(PRIOR);
        let wholesale = { moves: 0, minutes: 0 };
        const refresh = ({ tau, ...what }: (typeof before)[number]) => {
          memories = learnMemories(memories, tau, what);
          wholesale = learnWholesale(wholesale, tau, what.moved);
        };
        before.forEach(refresh);
        for (let n = 0; n < 10_000 && always.length > 0; n += 1) always.forEach(refresh);
        const { long, short, odds } = memories;
        const rate = rateOfMemories(memories);
        for (const number of [long.alpha, long.beta, short.alpha, short.beta, rate.alpha, rate.beta])
          expect(number).toSatisfy(isHeld);
        for (const number of [odds, wholesale.moves, wholesale.minutes])
          expect(number).toSatisfy((n: number) => n === 0 || isHeld(Math.abs(n)));
      }),
      { numRuns: runs(20) },
    );
  });

  test('of a SKU that keeps its habits are believed as one memory of days would be', () => {
    // A move every five hours, seen by refreshes that are half an hour apart.
    const steady = refreshed(memoriesOf(PRIOR), 400, 30, 10);
    let one = PRIOR;
    for (let n = 1; n <= 400; n += 1) one = learnRate(one, 30, n % 10 === 0);
    expect(mean(rateOfMemories(steady)) / mean(one)).toBeGreaterThan(0.9);
    expect(mean(rateOfMemories(steady)) / mean(one)).toBeLessThan(1.1);
  });

  test('notice within hours that a SKU which rested for weeks moves, and that one which moved rests', () => {
    const rested = refreshed(memoriesOf(PRIOR), 300, 100, 0);
    const lively = refreshed(rested, 12, 20, 1);
    expect(mean(rateOfMemories(rested))).toBeLessThan(1 / 3000);
    // Four hours later; one memory of days still believes in one move in four hours at most.
    expect(mean(rateOfMemories(lively))).toBeGreaterThan(1 / 150);
    expect(mean(lively.long)).toBeLessThan(1 / 240);

    const moved = refreshed(memoriesOf(PRIOR), 300, 100, 2);
    const resting = refreshed(moved, 20, 100, 0);
    expect(mean(rateOfMemories(resting))).toBeLessThan(mean(resting.long) / 1.5);
  });

  test('are told of a hinted move exactly when it was', () => {
    let hinted = memoriesOf(PRIOR);
    let unhinted = memoriesOf(PRIOR);
    for (let n = 0; n < 5; n += 1) {
      hinted = learnMemories(hinted, 60, { moved: true, hinted: true });
      unhinted = learnMemories(unhinted, 60, { moved: true, hinted: false });
    }
    expect(hinted.long).toEqual({ alpha: 6, beta: 420 });
    expect(mean(unhinted.short)).toBeGreaterThan(mean(hinted.short));
    // What a hint explains, but did not happen, is no move.
    expect(learnMemories(hinted, 60, { moved: false, hinted: true })).toEqual(
      learnMemories(hinted, 60, { moved: false, hinted: false }),
    );
  });

  test('learn nothing from a refresh that comes before the one before it, as by a clock that was set back', () => {
    const memories = refreshed(memoriesOf(PRIOR), 3, 10, 2);
    expect(learnMemories(memories, 0, { moved: true, hinted: false })).toEqual(memories);
    expect(learnMemories(memories, -5, { moved: false, hinted: false })).toEqual(memories);
  });
});
