import { array, assert, integer, property, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { learnLiveBudget } from '../../src/sync/live/learn.ts';

const LIMITS = { start: 5, most: 100 };

/** Asks a partner that computes `capacity` live SKUs a call for as many as the budget allows. */
function ask(budget: number, capacity: number): number {
  const askedLive = Math.floor(budget);
  return learnLiveBudget(
    budget,
    { askedLive, deferredLive: Math.max(0, askedLive - capacity), deferredOthers: 0 },
    LIMITS,
  );
}

describe('the live budget', () => {
  test('stays between one and the size of a call, whatever the answers', () => {
    const anyCall = record({
      asked: integer({ min: 0, max: 100 }),
      deferred: integer({ min: 0, max: 100 }),
      deferredOthers: integer({ min: 0, max: 3 }),
    });
    assert(
      property(
        integer({ min: 1, max: 100 }),
        array(anyCall, { maxLength: 200, size: 'max' }),
        (first, calls) => {
          let budget = first;
          for (const { asked, deferred, deferredOthers } of calls) {
            const seen = { askedLive: asked, deferredLive: Math.min(asked, deferred), deferredOthers };
            budget = learnLiveBudget(budget, seen, LIMITS);
            expect(budget).toBeGreaterThanOrEqual(1);
            expect(budget).toBeLessThanOrEqual(LIMITS.most);
          }
        },
      ),
    );
  });

  test.each([1, 2, 3, 5, 8, 20])(
    'finds a capacity of %i and from then on hardly defers a SKU',
    (capacity) => {
      let budget: number = LIMITS.start;
      for (let call = 0; call < 2000; call += 1) budget = ask(budget, capacity);
      let overdrawn = 0;
      for (let call = 0; call < 1000; call += 1) {
        overdrawn += Number(Math.floor(budget) > capacity);
        budget = ask(budget, capacity);
      }
      // A higher budget is tried again after ten clean calls below the configured one, and after a hundred above
      // it.
      expect(overdrawn).toBeLessThanOrEqual(capacity < LIMITS.start ? 100 : 10);
      expect(Math.floor(budget)).toBeGreaterThanOrEqual(capacity - 1);
    },
  );

  test('is not lowered below what a call of the last minute proved', () => {
    const all = { askedLive: 5, deferredLive: 5, deferredOthers: 0 };
    expect(learnLiveBudget(5, { ...all, bestRecent: 5 }, LIMITS)).toBe(5);
    expect(learnLiveBudget(9, { ...all, bestRecent: 3 }, LIMITS)).toBe(8);
    expect(learnLiveBudget(5, { ...all, bestRecent: 0 }, LIMITS)).toBe(4);
  });

  test('never exceeds what a call may hold', () => {
    const clean = { askedLive: 100, deferredLive: 0, deferredOthers: 0 };
    expect(learnLiveBudget(100, clean, LIMITS)).toBe(100);
    expect(learnLiveBudget(7, { ...clean, askedLive: 7 }, { start: 10, most: 7 })).toBe(7);
  });

  test('becomes what was answered if some of it was deferred', () => {
    expect(learnLiveBudget(8, { askedLive: 8, deferredLive: 3, deferredOthers: 0 }, LIMITS)).toBe(7);
    expect(learnLiveBudget(8.4, { askedLive: 20, deferredLive: 1, deferredOthers: 0 }, LIMITS)).toBe(19);
    expect(learnLiveBudget(1, { askedLive: 1, deferredLive: 1, deferredOthers: 0 }, LIMITS)).toBe(1);
  });

  test('learns nothing from calls below the budget, or whose unknown live SKUs used it up unseen', () => {
    expect(learnLiveBudget(5, { askedLive: 4, deferredLive: 0, deferredOthers: 0 }, LIMITS)).toBe(5);
    expect(learnLiveBudget(5, { askedLive: 5, deferredLive: 2, deferredOthers: 1 }, LIMITS)).toBe(5);
  });

  test('is back at the configured value soon after a bad hour', () => {
    let budget = 1;
    for (let call = 0; call < 45; call += 1) budget = ask(budget, 5);
    expect(Math.floor(budget)).toBe(5);
  });
});
