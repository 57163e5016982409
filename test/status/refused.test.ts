import { expect, test } from 'vitest';
import { unreadyReason } from '../../src/status/health.ts';
import { CASES, healthOf } from './cases.ts';

test.each(['backing off', 'wrong secret suspected'] as const)(
  'without a baseline, rejected requests (%s) are named first, before what waits for them',
  (name) => {
    const { pace } = CASES[name].stats;
    const manifest = CASES['first manifest failed'];
    const mirror = { ...manifest, stats: { ...manifest.stats, pace } };
    const [first, second] = healthOf(mirror).reasons;
    expect(first).toMatchObject({ code: 'refused' });
    expect(second).toMatchObject({
      code: 'no-baseline',
      text: 'no baseline yet: requests are rejected; the manifest is fetched by itself once they are not',
    });
    expect(unreadyReason(healthOf(mirror))?.code).toBe('no-baseline');
  },
);

test('a task that failed and is put off says what it waits for', () => {
  const failed = CASES['stale catalog'].tasks.map((one) =>
    one.task === 'delta' ? { ...one, failures: 4, outcome: 'silence' } : one,
  );
  const { reasons } = healthOf({ ...CASES['stale catalog'], tasks: failed });
  expect(reasons.find(({ code }) => code === 'delta-failing')?.text).toContain(
    'the delta failed 4 times in a row (back-off: requests wait after one that was rejected)',
  );
});
