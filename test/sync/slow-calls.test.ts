import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LiveKnowledge } from '../../bench/ceiling/knowledge.ts';
import { type Limiter, TokenBucket } from '../../bench/ceiling/limiters.ts';

/*
 * Mirrors that may send only a few requests a minute (PARTNER_RATE_LIMIT, PARTNER_RATE_SHARE). The time between
 * two calls is longer than the partner's ceiling needs for a live price, and all of it is used.
 */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const BUDGET = 5;

/** Returns the live prices computed in each hour for a mirror that always has some due. */
function hourly(callsPerMinute: number, limiter: Limiter, hours: number, answerMs: number): number[] {
  const known = new LiveKnowledge({ budget: BUDGET, mostBudget: 100, callsPerMinute });
  const computedIn = Array.from({ length: hours }, () => 0);
  const underWay: Parameters<LiveKnowledge['learn']>[0][] = [];
  for (let now = 0; now < hours * HOUR; now += MINUTE / callsPerMinute) {
    while ((underWay[0]?.answeredAt ?? Infinity) <= now) known.learn(underWay.shift()!);
    const asked = Math.min(Math.floor(known.budget), Math.floor(known.credit(now).skus));
    if (asked < 1) continue;
    known.spend(now, asked);
    const computed = limiter.take(now, asked);
    computedIn[Math.floor(now / HOUR)]! += computed;
    const times = { askedAt: now, answeredAt: now + answerMs };
    underWay.push({ ...times, asked, computed, deferred: asked - computed, snapshotDeferred: 0 });
  }
  return computedIn;
}

const drawn = fc.record({
  callsPerMinute: fc.double({ min: 2, max: 20, noNaN: true }),
  before: fc.integer({ min: 2, max: 6 }),
  times: fc.integer({ min: 3, max: 20 }),
  answerMs: fc.constantFrom(100, 1000, 5000),
});

test('a raised ceiling is found within two hours, however few calls there are', () => {
  fc.assert(
    fc.property(drawn, ({ callsPerMinute, before, times, answerMs }) => {
      const after = before * times;
      const limiter = new TokenBucket(BUDGET, (now) => (now < 3 * HOUR ? before : after));
      const possible = 60 * Math.min(after, callsPerMinute * BUDGET);
      const fifth = hourly(callsPerMinute, limiter, 5, answerMs)[4]!;
      expect(fifth).toBeGreaterThan(0.85 * possible);
    }),
    { numRuns: 20, examples: [[{ callsPerMinute: 5, before: 3, times: 5, answerMs: 1000 }]] },
  );
});
