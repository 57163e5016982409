import { expect, test } from 'vitest';
import { backlogReasons } from '../../src/status/catalog.ts';
import { estimateBacklog } from '../../src/status/format.ts';
import type { CatalogCounts } from '../../src/store/status/counts.ts';
import { CASES, factsOf, mirrorWith, NOW } from './cases.ts';

/** Codes for a hundred SKUs: `pending` were never priced, and of these `unanswered` were asked and failed. */
const codes = (pending: number, unanswered: number, due: Record<string, number>) => {
  const skus: CatalogCounts['skus'] = [
    { state: 'priced', priceSource: 'snapshot', count: 100 - pending },
    { state: 'pending', priceSource: 'snapshot', count: pending },
  ];
  const twoHours = Object.entries(due).map(([reason, count]) => ({ reason, count, oldestAgeSeconds: 7200 }));
  const facts = factsOf(mirrorWith({ stats: { skus, unanswered, due: twoHours } }));
  return backlogReasons(facts).map(({ code }) => code);
};

test.each<[string, number, number, Record<string, number>, string[]]>([
  ['two of a hundred are still to be asked', 2, 0, { new: 2 }, ['filling']],
  ['one is, the other has failed', 2, 1, { error: 1 }, []],
  ['none is, as each has failed', 20, 20, { error: 20 }, ['skus-failing']],
  [
    'none is, and what is due besides is late',
    20,
    20,
    { error: 20, sweep: 1 },
    ['skus-failing', 'backlog-late'],
  ],
  ['some are, and others have failed', 20, 11, { error: 11, new: 9 }, ['skus-failing', 'filling']],
  ['some are, and hardly any has failed', 20, 10, { error: 10, new: 10 }, ['filling']],
  ['some are, and others are deferred', 20, 0, { deferred: 11, new: 9 }, ['filling']],
])('%s', (_, pending, unanswered, due, expected) => {
  expect(codes(pending, unanswered, due)).toEqual(expected);
});

const owing = (count: number, reason = 'changed') => ({ due: [{ reason, count, oldestAgeSeconds: 1 }] });

test('the estimate counts whole calls at the current ceiling, minus those for live refreshes', () => {
  // 1000 live SKUs in 30 minutes, 5 a call: 6.67 calls a minute of 118.
  const estimate = estimateBacklog(mirrorWith({ stats: owing(11_800) }), NOW);
  expect(estimate).toMatchObject({ owed: 11_800, minutes: 1, least: 1, sure: 'sure', because: [] });
  expect(estimate.most).toBeCloseTo(118 / (118 - 1000 / 30 / 5), 5);
});

test('the estimate for live SKUs follows their budget and the partner’s ceiling', () => {
  const stats = owing(590, 'live');
  expect(estimateBacklog(mirrorWith({ stats }), NOW).minutes).toBe(1);
  const live = { computedPerMinute: 0, ceilingPerMinute: 59, longestWaitSeconds: null };
  expect(estimateBacklog(mirrorWith({ stats: { ...stats, live } }), NOW).minutes).toBe(10);
});

test('the estimate adds the back-off first, and allows for a lowered pace to recover', () => {
  const pace = {
    ...CASES['backing off'].stats.pace,
    ceilingPerMinute: 59,
    backingOffUntil: new Date(NOW.getTime() + 60_000),
  };
  const estimate = estimateBacklog(mirrorWith({ stats: { ...owing(11_800), pace } }), NOW);
  expect(estimate).toMatchObject({ minutes: 3, least: 2, sure: 'rough' });
  expect(estimate.because).toEqual(['requests are being rejected']);
});

test('the estimate is unknown if no daemon runs, calls fail or the credential is suspected', () => {
  for (const [status, why] of [
    [mirrorWith({ daemons: 0 }), 'no daemon is running'],
    [CASES['calls failing'], 'bulk calls are failing'],
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

test('the estimate has no upper bound if live refreshes use every request', () => {
  const skus = [{ state: 'priced', priceSource: 'live' as const, count: 100_000 }];
  expect(estimateBacklog(mirrorWith({ stats: { ...owing(500), skus } }), NOW)).toMatchObject({
    most: null,
    sure: 'rough',
    because: ['live refreshes use every request'],
  });
});

test("while the partner's live source fails, the estimate for live SKUs is unknown", () => {
  const liveOutage = { since: NOW };
  const because = ["the partner's live source is failing"];
  const due = [...owing(11_790).due, ...owing(10, 'deferred').due];
  expect(estimateBacklog(mirrorWith({ stats: { due, liveOutage } }), NOW)).toMatchObject({
    minutes: 1,
    most: null,
    sure: 'rough',
    because,
  });
  expect(estimateBacklog(mirrorWith({ stats: { ...owing(10, 'live'), liveOutage } }), NOW)).toMatchObject({
    minutes: null,
    sure: 'unknown',
    because,
  });
  expect(estimateBacklog(mirrorWith({ stats: { ...owing(10), liveOutage } }), NOW)).toMatchObject({
    sure: 'sure',
    because: [],
  });
});

test('the estimate is zero if nothing is due, whatever else is wrong', () => {
  expect(estimateBacklog(mirrorWith({ stats: { due: [] }, daemons: 0 }), NOW)).toMatchObject({
    owed: 0,
    minutes: 0,
    sure: 'sure',
  });
});
