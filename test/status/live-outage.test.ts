import { expect, test } from 'vitest';
import { judgeHealth } from '../../src/status/health.ts';
import { runbookOf } from '../../src/status/reason.ts';
import { factsOf, mirrorWith, NOW } from './cases.ts';

test('an outage of the live source is reported with its age and a runbook', () => {
  const health = judgeHealth(
    factsOf(mirrorWith({ stats: { liveOutage: { since: new Date(NOW.getTime() - 720_000) } } })),
  );
  expect(health.state).toBe('degraded');
  const [reason] = health.reasons;
  expect(reason).toMatchObject({ code: 'live-outage', text: expect.stringContaining('for 12m') as string });
  expect(reason && runbookOf(reason)).toBe('deferred-growing.md');
  expect(judgeHealth(factsOf(mirrorWith({ stats: { liveOutage: null } }))).reasons).toEqual([]);
});
