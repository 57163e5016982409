import { describe, expect, test } from 'vitest';
import { judgeHealth } from '../../src/status/health.ts';
import { runbookOf } from '../../src/status/reason.ts';
import { NO_CEILING } from '../../src/store/live/limits.ts';
import { nothingComputedSince } from '../../src/store/live/live.ts';
import { factsOf, mirrorWith, NOW } from './cases.ts';

describe('the time since which nothing was computed live', () => {
  const blocked = (blockedAt: number | null) => ({ ceiling: { ...NO_CEILING, blockedAt } });
  test.each([
    ['is not told where no live SKU is deferred', null, { computedAt: 5, ...blocked(6) }, false],
    ['is not told in an outage, which is told', null, { computedAt: 5, outageSince: 6, ...blocked(6) }, true],
    ['is not known where nothing was ever computed', null, { computedAt: null, ...blocked(null) }, true],
    ['goes by the last computation', 5, { computedAt: 5, ...blocked(null) }, true],
    ['goes by the block where that began later', 6, { computedAt: 5, ...blocked(6) }, true],
    ['goes by the block where nothing was ever computed', 6, { computedAt: null, ...blocked(6) }, true],
    ['goes by a computation in the block', 7, { computedAt: 7, ...blocked(6) }, true],
  ])('%s', (_, since, plan, isDeferred) => {
    expect(nothingComputedSince(plan, isDeferred)).toBe(since);
  });
});

describe('the reason that nothing is computed live', () => {
  const judged = (seconds: number | null, daemonSeconds = 7200) =>
    judgeHealth({
      ...factsOf(mirrorWith({})),
      daemonSeconds,
      nothingComputedSince: seconds === null ? null : new Date(NOW.getTime() - seconds * 1000),
    });

  test('is given after half an hour, with its age and a runbook', () => {
    const { state, reasons } = judged(1800);
    expect(state).toBe('degraded');
    expect(reasons).toEqual([expect.objectContaining({ code: 'live-deferred' })]);
    expect(reasons[0]?.text).toContain('computed no live SKU for 30m');
    expect(reasons[0] && runbookOf(reasons[0])).toBe('deferred-growing.md');
  });

  test.each([
    ['sooner', 1799, 7200],
    ['where some are', null, 7200],
    ['where the daemon has not been there for so long', 7200, 1799],
    ['without a daemon', 7200, 0],
  ])('is not given %s', (_, seconds, daemonSeconds) => {
    expect(judged(seconds, daemonSeconds).reasons).toEqual([]);
  });
});
