import { describe, expect, test } from 'vitest';
import {
  ceilingAt,
  decide,
  guardMs,
  initialPace,
  ownMost,
  type PaceLimits,
  sendsPerMinute,
  sendsPerWindow,
} from '../../src/pace/policy.ts';

const NOW = 1_800_000_000_000;
const MINUTE = 60_000;
const limits = (more: Partial<PaceLimits> = {}): PaceLimits => ({
  maxPerWindow: 120,
  windowMs: MINUTE,
  backoffMs: MINUTE,
  ...more,
});

describe('beside the account’s other users', () => {
  const shared = limits({ account: { limit: 200, floor: 20 } });
  const all = sendsPerWindow({ ...shared, maxPerWindow: 200 });

  test('a twentieth of the account’s limit stays free so that the others can grow', () => {
    expect(ownMost(shared, 100)).toBe(all - 100 - 10);
    expect(ownMost({ ...shared, account: { limit: 190, floor: 20 } }, 100)).toBe(187 - 100 - 10);
  });

  test('the mirror keeps its floor, however many requests they send', () => {
    expect(ownMost(shared, 170)).toBe(20);
    expect(ownMost(shared, 1000)).toBe(20);
    expect(ownMost({ ...shared, account: { limit: 200, floor: 0.4 } }, 1000)).toBe(1);
  });

  test('the mirror gets no more than its share, however few requests they send', () => {
    expect(ownMost(shared, 1)).toBe(sendsPerWindow(shared));
    expect(ownMost(shared, 0)).toBe(sendsPerWindow(shared));
    expect(ownMost({ ...shared, account: { limit: 200, floor: 500 } }, 10)).toBe(sendsPerWindow(shared));
  });
});

describe('windows that are not a minute', () => {
  test('calls per minute are in proportion to the calls of a window', () => {
    const short = limits({ windowMs: 10_000, maxPerWindow: 22 });
    expect(sendsPerWindow(short)).toBe(19);
    expect(sendsPerMinute(short)).toBe(19 * 6);
    expect(sendsPerMinute(limits({ windowMs: 2 * MINUTE }))).toBe(
      sendsPerWindow(limits({ windowMs: 2 * MINUTE })) / 2,
    );
  });

  test('the guard is a twentieth of a window, and half a second at most', () => {
    expect([1000, 10_000, MINUTE].map((windowMs) => guardMs(limits({ windowMs })))).toEqual([50, 500, 500]);
  });
});

describe('the ceiling', () => {
  const from = (ceiling: number) => ({ ...initialPace(limits(), NOW), ceiling });

  test('grows by five a window, or by a twenty-fourth of a larger share', () => {
    const after = (maxPerWindow: number) => ceilingAt(limits({ maxPerWindow }), from(10), NOW + 2 * MINUTE);
    expect([24, 120].map(after)).toEqual([20, 20]);
    expect(after(480)).toBe(50);
  });

  test('is never below one, and does not shrink while the clock goes back', () => {
    expect(ceilingAt(limits(), from(0.2), NOW)).toBe(1);
    expect(ceilingAt(limits(), from(10), NOW - MINUTE)).toBe(10);
  });

  test('that fell below what was sent makes senders wait until enough sends have left the window', () => {
    const sends = [50, 40, 30, 20, 10].map((secondsAgo) => NOW - secondsAgo * 1000);
    const span = MINUTE + guardMs(limits());
    // Three are allowed, so the third from the end must leave first.
    expect(decide(limits(), from(3), sends, NOW)).toEqual({
      go: false,
      at: NOW - 30_000 + span,
      because: 'window',
    });
  });
});
