import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LineRefresh } from '../../src/store/answer/types.ts';
import { QUIET_LINE, type Line } from '../../src/store/live/product-line-state.ts';
import {
  dismissed,
  isWholesale,
  learnWholesale,
  NO_RELEASES,
  releasedPart,
  thresholdAfter,
  weighRefresh,
  wholesaleRate,
} from '../../src/sync/live/releases.ts';
import { NOW, refresh, released, suspected, UNMOVED, weighAll, WHOLESALE } from './line-refreshes.ts';

describe('a line', () => {
  test('is suspected when two calm SKUs of it move wholesale one after the other', () => {
    const { line, turns } = weighAll([refresh(NOW), refresh(NOW + 0.1)]);
    expect(turns).toEqual(['suspected']);
    expect(line).toMatchObject({ phase: 'suspected', since: NOW + 0.1, answers: 0, moved: 0, step: 2 });
  });

  test('is not suspected for one SKU, for moves of few sizes, or for moves far apart', () => {
    expect(weighAll([refresh(NOW)]).turns).toEqual([]);
    const few = { sizes: { held: 10, moved: 4 } };
    expect(weighAll(Array.from({ length: 50 }, (_, i) => refresh(NOW + i / 10, few))).turns).toEqual([]);
    expect(weighAll(Array.from({ length: 50 }, (_, i) => refresh(NOW + i * 60))).turns).toEqual([]);
  });

  test('is not suspected if its SKUs often move wholesale anyway', () => {
    const lively = { wholesale: { moves: 60, minutes: 2880 } };
    const { turns } = weighAll(
      Array.from({ length: 40 }, (_, i) =>
        refresh(NOW + i, { ...lively, sizes: i % 3 === 0 ? WHOLESALE : UNMOVED }),
      ),
    );
    expect(turns).toEqual([]);
  });

  test('loses evidence with each unmoved SKU, and as time passes', () => {
    const [one] = [weighAll([refresh(NOW)]).line];
    const still = weighRefresh(one, refresh(NOW, { sizes: UNMOVED }), NO_RELEASES).line;
    expect(one.evidence).toBeCloseTo(4, 9);
    expect(still.evidence).toBeCloseTo(4 + Math.log(0.4), 9);
    const later = weighRefresh(one, refresh(NOW + 10, { sizes: UNMOVED }), NO_RELEASES).line;
    expect(later.evidence).toBeCloseTo(4 / Math.E + Math.log(0.4), 9);
  });

  test('gets less evidence from a move that the SKU was likely to make anyway', () => {
    const evidence = (minutes: number) =>
      weighRefresh(
        QUIET_LINE,
        refresh(NOW, { minutes, wholesale: { moves: 20, minutes: 2880 } }),
        NO_RELEASES,
      ).line.evidence;
    expect(evidence(10)).toBeGreaterThan(evidence(100));
    expect(evidence(100)).toBeGreaterThan(evidence(1000));
    expect(evidence(100_000)).toBeGreaterThan(0);
  });

  test('is confirmed as soon as two other SKUs have moved, too', () => {
    expect(weighAll([refresh(NOW + 1)], suspected()).turns).toEqual([]);
    const { line, turns } = weighAll([refresh(NOW + 1), refresh(NOW + 1)], suspected());
    expect(turns).toEqual(['confirmed']);
    expect(line).toMatchObject({ phase: 'released', since: NOW + 0.1, evidence: 0, hits: 2, misses: 0 });
    const unmoved = Array.from({ length: 8 }, () => refresh(NOW + 1, { sizes: UNMOVED }));
    expect(weighAll([...unmoved, refresh(NOW + 1), refresh(NOW + 1)], suspected()).turns).toEqual([
      'confirmed',
    ]);
    const many = Array.from({ length: 9 }, () => refresh(NOW + 1, { sizes: UNMOVED }));
    expect(weighAll([...many, refresh(NOW + 1), refresh(NOW + 1)], suspected()).turns).toEqual([]);
  });

  test('is not confirmed by moves that were likely anyway', () => {
    const lively = { minutes: 600, wholesale: { moves: 60, minutes: 2880 } };
    expect(weighAll([refresh(NOW + 1, lively), refresh(NOW + 1, lively)], suspected()).turns).toEqual([]);
  });

  test('is dismissed by six unmoved SKUs, but only after five minutes, in which they may still move', () => {
    const others = (count: number, at: number) =>
      Array.from({ length: count }, () => refresh(at, { sizes: UNMOVED, minutes: 60 }));
    expect(weighAll(others(20, NOW + 5), suspected()).turns).toEqual([]);
    expect(weighAll(others(5, NOW + 6), suspected()).turns).toEqual([]);
    const { line, turns } = weighAll(others(6, NOW + 6), suspected());
    expect(turns).toEqual(['dismissed']);
    expect(line).toMatchObject({ phase: 'quiet', since: null, evidence: 0, answers: 0, hits: 0, misses: 0 });
  });

  test('counts only SKUs last refreshed before the suspicion as answers', () => {
    const again = Array.from({ length: 10 }, () => refresh(NOW + 1, { minutes: 0.5 }));
    expect(weighAll(again, suspected()).line).toMatchObject({ phase: 'suspected', answers: 0, moved: 0 });
  });

  test('is dismissed after half an hour in which too few other SKUs were refreshed', () => {
    const one = refresh(NOW + 2);
    expect(weighAll([one, refresh(NOW + 30, { minutes: 1 })], suspected()).turns).toEqual([]);
    expect(weighAll([one, refresh(NOW + 31, { minutes: 1 })], suspected()).turns).toEqual(['dismissed']);
  });

  test('remembers which part of it a release moves', () => {
    expect(releasedPart(QUIET_LINE)).toBeCloseTo(0.6, 9);
    const { line } = weighAll([refresh(NOW + 3), refresh(NOW + 4, { sizes: UNMOVED })], released());
    expect(line).toMatchObject({ hits: 7, misses: 1 });
    expect(releasedPart(line)).toBeCloseTo((2.4 + 7) / 12, 9);
    const many = weighAll(
      Array.from({ length: 2000 }, () => refresh(NOW + 4)),
      released(),
    ).line;
    expect(many.hits).toBeCloseTo(200, 6);
  });

  test('can be suspected again after a release, by SKUs that were refreshed since', () => {
    const soon = Array.from({ length: 5 }, () => refresh(NOW + 60, { minutes: 55 }));
    expect(weighAll(soon, released()).turns).toEqual([]);
    const late = Array.from({ length: 5 }, () => refresh(NOW + 480));
    expect(weighAll(late, released()).turns[0]).toBe('suspected');
    const first = Array.from({ length: 5 }, () => refresh(NOW + 480, { minutes: 500 }));
    expect(weighAll(first, released()).turns).toEqual([]);
  });

  test('starts over if a clock that was ahead has dated it', () => {
    const { line } = weighRefresh(released(), refresh(NOW - 100), NO_RELEASES);
    expect(line).toMatchObject({ phase: 'quiet', since: null, hits: 6, weighedAt: NOW - 100 });
    expect(line.evidence).toBeCloseTo(4, 9);
    const quiet = weighAll([refresh(NOW)]).line;
    expect(weighRefresh(quiet, refresh(NOW - 0.5), NO_RELEASES).turn).toBe('suspected');
    expect(weighRefresh(quiet, refresh(NOW - 2), NO_RELEASES).turn).toBeNull();
  });
});

describe('a release explains', () => {
  const explained = (line: Line, over: Partial<LineRefresh> & { at: number }) =>
    weighRefresh(line, refresh(over.at, over), NO_RELEASES).explained;

  test('a wholesale move within ten minutes, or the first one found since', () => {
    expect(explained(released(), { at: NOW + 9, minutes: 5 })).toBe(true);
    expect(explained(released(), { at: NOW + 11, minutes: 5 })).toBe(false);
    expect(explained(released(), { at: NOW + 300, minutes: 310 })).toBe(true);
    expect(explained(suspected(), { at: NOW + 1 })).toBe(true);
  });

  test('no move of few sizes, and no move of a quiet line', () => {
    expect(explained(released(), { at: NOW + 2, sizes: { held: 10, moved: 4 } })).toBe(false);
    expect(explained(QUIET_LINE, { at: NOW + 2 })).toBe(false);
  });
});

describe('wholesale moves', () => {
  test('are moves of at least half of the sizes of a SKU that has any', () => {
    expect(isWholesale({ held: 10, moved: 5 })).toBe(true);
    expect(isWholesale({ held: 11, moved: 5 })).toBe(false);
    expect(isWholesale({ held: 0, moved: 0 })).toBe(false);
  });

  test('are learned over two days, and start at the rate of the population', () => {
    let known = { moves: 0, minutes: 0 };
    for (let day = 0; day < 20; day += 1) known = learnWholesale(known, 720, day % 2 === 0);
    expect(known.minutes).toBeCloseTo(2880, 6);
    expect(known.moves).toBeGreaterThan(1);
    expect(known.moves).toBeLessThan(3);
    expect(learnWholesale(known, 0, true)).toEqual(known);
    expect(wholesaleRate({ moves: 0, minutes: 0 })).toBeCloseTo(1 / 1500, 12);
    expect(wholesaleRate({ moves: 1000, minutes: 1e6 })).toBeCloseTo(1 / 1000, 5);
  });
});

describe('the threshold', () => {
  test('rises by half a point with each wrong suspicion, falls by a fifth with a right one, and is bounded', () => {
    expect(thresholdAfter(6, 'dismissed')).toBe(6.5);
    expect(thresholdAfter(8, 'confirmed')).toBeCloseTo(7.8, 9);
    expect(thresholdAfter(6, 'confirmed')).toBe(6);
    expect(thresholdAfter(16, 'dismissed')).toBe(16);
  });
});

describe('drawn refreshes', () => {
  const sizes = fc
    .integer({ min: 0, max: 10 })
    .chain((held) => fc.record({ held: fc.constant(held), moved: fc.integer({ min: 0, max: held }) }));
  const refreshes = fc.array(
    fc.record({
      later: fc.double({ min: -5, max: 60, noNaN: true }),
      minutes: fc.double({ min: 0.01, max: 5000, noNaN: true }),
      sizes,
      wholesale: fc.record({
        moves: fc.double({ min: 0, max: 50, noNaN: true }),
        minutes: fc.double({ min: 0, max: 2880, noNaN: true }),
      }),
    }),
    { maxLength: 200 },
  );

  test('keep every line consistent, and advance it by one step each', () => {
    fc.assert(
      fc.property(refreshes, (drawn) => {
        let [line, at] = [QUIET_LINE, NOW];
        for (const { later, ...each } of drawn) {
          at += later;
          const before = line;
          const { line: after, turn } = weighRefresh(before, { at, ...each }, NO_RELEASES);
          expect(after.step).toBe(before.step + 1);
          if (after.phase !== 'suspected') expect(after.evidence).toBeGreaterThanOrEqual(0);
          if (after.phase !== 'suspected') expect(after.evidence).toBeLessThan(NO_RELEASES.threshold);
          expect(after.since === null).toBe(after.phase === 'quiet');
          expect(after.moved).toBeLessThanOrEqual(after.answers);
          expect(releasedPart(after)).toBeGreaterThan(0);
          expect(releasedPart(after)).toBeLessThan(1);
          if (turn === 'suspected') expect(after.phase).toBe('suspected');
          if (turn === 'confirmed' || turn === 'dismissed') expect(before.phase).toBe('suspected');
          line = after;
        }
        expect(dismissed(line)).toMatchObject({ phase: 'quiet', since: null, step: line.step });
      }),
    );
  });
});
