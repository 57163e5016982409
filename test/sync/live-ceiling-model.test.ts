import { array, assert, constantFrom, integer, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { LiveKnowledge } from '../../bench/ceiling/knowledge.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const CALLS = 118;

test('after any calls, answered in any order, the ceiling is forgotten once nothing is deferred any more', () => {
  const step = record({
    asked: integer({ min: 1, max: 6 }),
    part: constantFrom(0, 0, 0.5, 1, 1, 1),
    tookMs: constantFrom(100, 1000, 10_000, 90_000),
    laterMs: constantFrom(0, 500, 5000, 90_000),
  });
  assert(
    property(array(step, { maxLength: 300, size: 'max' }), (steps) => {
      const mirror = new LiveKnowledge({ budget: 5, mostBudget: 100, callsPerMinute: CALLS });
      let now = 0;
      for (const { asked, part, tookMs, laterMs } of steps) {
        const computed = Math.floor(asked * part);
        const times = { askedAt: now, answeredAt: now + tookMs };
        mirror.learn({ ...times, asked, computed, deferred: asked - computed, snapshotDeferred: 0 });
        now += laterMs;
      }
      now += 90 * SECOND;
      const from = now;
      while (Number.isFinite(mirror.ceilingAt(now))) {
        const { skus, waitMs } = mirror.credit(now);
        expect(skus >= 1 || waitMs > 0).toBe(true);
        now += Math.max(SECOND, waitMs);
        if (skus < 1) continue;
        const asked = Math.min(5, Math.floor(skus));
        mirror.spend(now, asked);
        const times = { askedAt: now, answeredAt: now + 100 };
        mirror.learn({ ...times, asked, computed: asked, deferred: 0, snapshotDeferred: 0 });
        expect(now - from).toBeLessThan(90 * MINUTE);
      }
    }),
    { numRuns: 40 },
  );
});
