import { expect, test } from 'vitest';
import { estimateBacklog } from '../../src/status/format.ts';
import { judge } from '../../src/status/health.ts';
import { CASES, mirrorWith, NOW } from './cases.ts';

test.each([
  ['empty database', 'broken', 'no baseline yet, and no daemon is running'],
  ['first manifest', 'degraded', 'no baseline yet: the manifest is being fetched and applied'],
  ['first manifest failed', 'broken', 'no baseline yet: the manifest failed 2 times in a row (unavailable)'],
  ['first fill', 'degraded', 'initial load: 5,000 of 20,000 SKUs fetched'],
  ['healthy', 'healthy', undefined],
  ['backing off', 'degraded', expect.stringContaining('the rate limit is suspected')],
  ['wrong secret suspected', 'broken', expect.stringContaining('the credential is suspected')],
  ['incident', 'degraded', 'incident: the whole catalog is live-priced, so prices get older'],
  ['stale catalog', 'degraded', 'the catalog is stale; SKUs are refreshed by age'],
  ['calls failing', 'degraded', 'bulk calls are failing (3 in a row)'],
  ['daemon gone', 'degraded', 'no daemon is running, the delta is overdue by 15m'],
  ['daemon long gone', 'broken', 'no daemon is running, the delta is overdue by 25.0h'],
  ['refreshes late', 'degraded', 'refreshes are up to 2.5h late'],
] as const)('%s is %s', (name, verdict, first) => {
  const judged = judge(CASES[name], NOW);
  expect([judged.verdict, judged.reasons[0]]).toEqual([verdict, first]);
});

test('all that is wrong is said, the worst first, and what a daemon knows of itself counts', () => {
  expect(judge(CASES['stale catalog'], NOW, [{ level: 'broken', text: 'no room' }])).toEqual({
    verdict: 'broken',
    reasons: [
      'no room',
      'the catalog is stale; SKUs are refreshed by age',
      'the newest manifest was refused: rejected-token',
      'the delta failed 4 times in a row (no-snapshot)',
    ],
  });
});

test('a delta that failed last is said at once: nobody hears of changes meanwhile', () => {
  const { tasks, ...rest } = CASES.healthy;
  const failed = tasks.map((one) =>
    one.task === 'delta' ? { ...one, failures: 1, outcome: 'network' } : one,
  );
  expect(judge({ ...rest, tasks: failed }, NOW)).toEqual({
    verdict: 'degraded',
    reasons: ['the delta failed once (network)'],
  });
});

test('while requests are refused that is said, and not that each task fails', () => {
  const { tasks, ...rest } = CASES['backing off'];
  const failed = tasks.map((one) => ({ ...one, failures: 2, outcome: 'throttled-or-forbidden' }));
  expect(judge({ ...rest, tasks: failed }, NOW).reasons).toEqual(judge(CASES['backing off'], NOW).reasons);
});

const owing = (count: number, reason = 'changed') => ({ due: [{ reason, count, oldestAgeSeconds: 1 }] });

test('the estimate: whole calls at the present ceiling, beside the turns of live SKUs', () => {
  // 1000 live SKUs in 30 minutes, 5 a call: 6.67 calls a minute of 118.
  const estimate = estimateBacklog(mirrorWith({ stats: owing(11_800) }), NOW);
  expect(estimate).toMatchObject({ owed: 11_800, minutes: 1, least: 1, sure: 'sure', because: [] });
  expect(estimate.most).toBeCloseTo(118 / (118 - 1000 / 30 / 5), 5);
});

test('the estimate: live SKUs by their budget, and by the partner’s ceiling', () => {
  const stats = owing(590, 'live');
  expect(estimateBacklog(mirrorWith({ stats }), NOW).minutes).toBe(1);
  const live = { computedPerMinute: 0, ceilingPerMinute: 59, longestWaitSeconds: null };
  expect(estimateBacklog(mirrorWith({ stats: { ...stats, live } }), NOW).minutes).toBe(10);
});

test('the estimate: a back-off comes first, and a lower pace may recover', () => {
  const pace = {
    ...CASES['backing off'].stats.pace,
    ceilingPerMinute: 59,
    backingOffUntil: new Date(NOW.getTime() + 60_000),
  };
  const estimate = estimateBacklog(mirrorWith({ stats: { ...owing(11_800), pace } }), NOW);
  expect(estimate).toMatchObject({ minutes: 3, least: 2, sure: 'rough' });
  expect(estimate.because).toEqual(['requests are being rejected']);
});

test('the estimate: nothing is promised where nobody works or requests are refused for good', () => {
  for (const [status, why] of [
    [mirrorWith({ daemons: 0 }), 'no daemon is running'],
    [CASES['wrong secret suspected'], 'requests are rejected, the credential is suspected'],
  ] as const)
    expect(estimateBacklog(status, NOW)).toMatchObject({
      minutes: null,
      least: null,
      most: null,
      sure: 'unknown',
      because: [why],
    });
});

test('the estimate: no bound where live turns take every request', () => {
  const skus = [{ state: 'priced', priceSource: 'live' as const, count: 100_000 }];
  expect(estimateBacklog(mirrorWith({ stats: { ...owing(500), skus } }), NOW)).toMatchObject({
    most: null,
    sure: 'rough',
    because: ['live refreshes use every request'],
  });
});

test('the estimate: nothing due takes no time, whatever else there is', () => {
  expect(estimateBacklog(mirrorWith({ stats: { due: [] }, daemons: 0 }), NOW)).toMatchObject({
    owed: 0,
    minutes: 0,
    sure: 'sure',
  });
});
