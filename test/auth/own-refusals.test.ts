import { describe, expect, test } from 'vitest';
import type { PaceLimits } from '../../src/pace/policy.ts';
import { createOwnRefusals } from '../../src/pace/circuit-breaker.ts';

const MINUTE = 60_000;
const LIMITS: PaceLimits = { maxPerWindow: 120, windowMs: MINUTE, backoffMs: MINUTE };

function onClock() {
  let now = 0;
  const clock = { now: () => now, monotonic: () => now, sleep: () => Promise.resolve() };
  return { own: createOwnRefusals(clock, LIMITS), pass: (ms: number) => (now += ms) };
}

describe('refusals of one process', () => {
  test('hold nobody back while the whole fleet is refused: the shared back-off is enough', () => {
    const { own } = onClock();
    for (let times = 1; times <= 20; times += 1) {
      own.refused(times);
      expect(own.holdMs()).toBe(0);
    }
    expect(own.explain()).toBeNull();
  });

  test('in between others’ successes hold it back longer each time, ten back-offs at most', () => {
    const { own, pass } = onClock();
    const holds = [1, 2, 3, 4, 5, 6, 7].map(() => {
      own.refused(1);
      const held = own.holdMs();
      pass(held);
      expect(own.holdMs()).toBe(0);
      return held / MINUTE;
    });
    expect(holds).toEqual([0, 2, 4, 8, 10, 10, 10]);
  });

  test('make its own credential suspect from the third on, with since when and how often', () => {
    const { own } = onClock();
    own.refused(1);
    own.refused(1);
    expect(own.explain()).toBeNull();
    own.refused(1);
    expect(own.explain()).toContain(
      'requests of this daemon were rejected 3 times in a row since 1970-01-01T00:00:00.000Z while those of other daemons succeeded',
    );
  });

  test('are forgotten with a success or a new credential', () => {
    const { own } = onClock();
    for (let i = 0; i < 5; i += 1) own.refused(1);
    own.cleared();
    expect(own.holdMs()).toBe(0);
    expect(own.explain()).toBeNull();
    own.refused(1);
    expect(own.holdMs()).toBe(0);
  });
});
