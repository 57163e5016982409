import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemberWatch } from '../../src/store/answer/members.ts';
import { runs } from '../support/soak.ts';

/* Columns for which a partner has two values: servers that disagree, one of which answers each request at random. */

const SKUS = Array.from({ length: 100 }, (_, n) => `S${n}`);
const KEY = 'column ["size_type"]';

/** Whether a watch reports it within so many refreshes of all SKUs; `isOther` decides which server answers. */
function isTold(refreshes: number, isOther: (sku: string, refresh: number) => boolean): boolean {
  const watch = new MemberWatch();
  const held = new Map<string, boolean>();
  for (let refresh = 0; refresh < refreshes; refresh += 1) {
    const answer = SKUS.map((sku) => {
      const [before, now] = [held.get(sku) ?? isOther(sku, refresh), isOther(sku, refresh)];
      held.set(sku, now);
      return { sku, keys: new Set(before === now ? [] : [KEY]) };
    });
    if (watch.note(answer, new Set()).muted.length > 0) return true;
  }
  return false;
}

/** Returns a number from 0 to 1 for each SKU and refresh, the same for the same seed. */
function chance(seed: number, sku: string, refresh: number): number {
  let hash = seed;
  for (const code of Buffer.from(`${sku} ${refresh}`))
    hash = Math.imul(hash ^ code, 0x5b_d1_e9_95) ^ (hash >>> 15);
  return (Math.imul(hash ^ (hash >>> 13), 0x27_d4_eb_2f) >>> 0) / 2 ** 32;
}

test('what two servers disagree about is reported, whatever part of the requests each answers', () => {
  fc.assert(
    fc.property(fc.integer(), fc.double({ min: 0.1, max: 0.9, noNaN: true }), (seed, part) => {
      expect(isTold(80, (sku, refresh) => chance(seed, sku, refresh) < part)).toBe(true);
    }),
    { numRuns: runs(100) },
  );
});

test('what changes once for each SKU, at any refresh, is not reported', () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      expect(isTold(30, (sku, refresh) => refresh >= 30 * chance(seed, sku, 0))).toBe(false);
    }),
    { numRuns: runs(50) },
  );
});

test('SKUs that are never refreshed again keep others from being followed for two weeks only', () => {
  const DAY = 86_400_000;
  let now = 0;
  const watch = new MemberWatch(() => now);
  const moved = (skus: readonly string[]) => skus.map((sku) => ({ sku, keys: new Set([KEY]) }));
  watch.note(moved(Array.from({ length: 2000 }, (_, n) => `GONE-${n}`)), new Set());
  const told = () => {
    for (let refresh = 0; refresh < 40; refresh += 1)
      if (watch.note(moved(SKUS), new Set()).muted.length > 0) return true;
    return false;
  };
  now = 13 * DAY;
  expect([told(), watch.follows('S0'), watch.follows('GONE-0')]).toEqual([false, false, true]);
  // A SKU that is refreshed, and still moves, is followed for as long again.
  watch.note(moved(['GONE-0']), new Set());
  now = 15 * DAY;
  expect([watch.follows('S0'), told()]).toEqual([true, true]);
  expect([watch.follows('GONE-0'), watch.follows('S0')]).toEqual([true, true]);
});
