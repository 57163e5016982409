import { describe, expect, test } from 'vitest';
import { createCircuitBreaker } from '../../src/pace/circuit-breaker.ts';
import { concernsOneOnly, type PaceLimits } from '../../src/pace/policy.ts';

const MINUTE = 60_000;
const LIMITS: PaceLimits = { maxPerWindow: 120, windowMs: MINUTE, backoffMs: MINUTE };

function onClock() {
  let now = 0;
  const clock = { now: () => now, monotonic: () => now, sleep: () => Promise.resolve() };
  return { breaker: createCircuitBreaker(clock, LIMITS), pass: (ms: number) => (now += ms) };
}

describe('refusals of one process', () => {
  test('do not open the breaker while the whole fleet is refused: the shared back-off is enough', () => {
    const { breaker } = onClock();
    for (let times = 1; times <= 20; times += 1) {
      breaker.refused(times);
      expect(breaker.openMs()).toBe(0);
    }
    expect(breaker.explain()).toBeNull();
  });

  test('open the breaker for longer each time between others’ successes, for ten back-offs at most', () => {
    const { breaker, pass } = onClock();
    const holds = [1, 2, 3, 4, 5, 6, 7].map(() => {
      breaker.refused(1);
      const held = breaker.openMs();
      pass(held);
      expect(breaker.openMs()).toBe(0);
      return held / MINUTE;
    });
    expect(holds).toEqual([0, 2, 4, 8, 10, 10, 10]);
  });

  test('raise suspicion of its own credential from the third on, with the time of the first and their number', () => {
    const { breaker } = onClock();
    breaker.refused(1);
    breaker.refused(1);
    expect(breaker.explain()).toBeNull();
    breaker.refused(1);
    expect(breaker.explain()).toContain(
      'requests of this daemon were rejected 3 times in a row since 1970-01-01T00:00:00.000Z while those of other daemons succeeded',
    );
  });

  test('are forgotten after a success or a new credential', () => {
    const { breaker } = onClock();
    for (let i = 0; i < 5; i += 1) breaker.refused(1);
    breaker.cleared();
    expect(breaker.openMs()).toBe(0);
    expect(breaker.explain()).toBeNull();
    breaker.refused(1);
    expect(breaker.openMs()).toBe(0);
  });
});

const KNOWN = {
  backoffUntil: null as number | null,
  refusedAt: 500,
  sentAt: 900,
  own: [900] as readonly number[],
};

test.each<[string, boolean, Partial<typeof KNOWN>]>([
  ['others have sent since the last refusal', true, {}],
  ['nobody has sent since but the process itself', false, { own: [600, 700, 900] }],
  [
    'nobody has sent since but the process itself, and others before',
    false,
    { refusedAt: 650, own: [700, 900] },
  ],
  ['others have sent before the last refusal only', false, { refusedAt: 800 }],
  ['all back off', false, { backoffUntil: 2000 }],
  ['its request was under way when the last refusal came', true, { sentAt: 500, own: [600, 700, 900] }],
])(
  'a refusal of a process with a suspected credential, if %s, concerns that process only: %s',
  (_name, own, facts) => {
    const known = { ...KNOWN, ...facts };
    expect(concernsOneOnly(known, known, [100, 300, 600, 700, 900])).toBe(own);
  },
);
