import { describe, expect, test } from 'vitest';
import { believedLive, judgeIncident, trialSize } from '../../src/sync/live/incident.ts';

const count = (live: number, skus: number) => ({ kind: 'count', live, skus }) as const;
const deferrals = (asked: number, deferred: number) => ({ kind: 'deferrals', asked, deferred }) as const;
const trial = (asked: number, answered: number) => ({ kind: 'trial', asked, answered }) as const;

describe('an incident begins', () => {
  test.each([
    ['the whole catalog counts as live', count(1000, 1000), 'live-count'],
    ['nearly the whole catalog counts as live', count(900, 1000), 'live-count'],
    ['much of the catalog is live, as it may always be', count(890, 1000), null],
    ['the catalog is empty', count(0, 0), null],
    ['calls are answered a few SKUs of a hundred', deferrals(300, 285), 'deferrals'],
    ['half of what is listed as snapshot-priced is deferred', deferrals(300, 150), 'deferrals'],
    ['a single call was deferred', deferrals(95, 95), null],
    ['some SKUs are listed wrongly', deferrals(900, 300), null],
    ['a half-open request without an incident', trial(20, 20), null],
  ] as const)('or not, when %s', (_, evidence, expected) => {
    expect(judgeIncident(null, evidence)).toBe(expected);
  });
});

describe('an incident ends', () => {
  test.each([
    ['live-count', count(600, 1000), null],
    ['live-count', count(850, 1000), null],
    ['live-count', count(851, 1000), 'live-count'],
    ['live-count', trial(20, 20), null],
    ['live-count', trial(20, 5), 'live-count'],
    ['live-count', deferrals(300, 0), 'live-count'],
    // The counts are of a snapshot built before it began.
    ['deferrals', count(50, 1000), 'deferrals'],
    ['deferrals', count(1000, 1000), 'live-count'],
    ['deferrals', trial(20, 5), 'deferrals'],
    ['deferrals', trial(20, 15), null],
    ['deferrals', trial(8, 8), null],
    // Nearly everything is listed as live: nothing was tried.
    ['deferrals', trial(2, 2), 'deferrals'],
    ['deferrals', trial(0, 0), 'deferrals'],
  ] as const)('or not: begun by %s, %o', (present, evidence, expected) => {
    expect(judgeIncident(present, evidence)).toBe(expected);
  });
});

test('a share that settles below the start of an incident ends it, within six hours', () => {
  for (let live = 0; live < 1000; live += 10) {
    const after = judgeIncident('live-count', count(live, 1000), { minutes: 360 });
    expect([live, after]).toEqual([live, live >= 900 ? 'live-count' : null]);
  }
  expect(judgeIncident('live-count', count(880, 1000), { minutes: 359 })).toBe('live-count');
  expect(judgeIncident('deferrals', count(880, 1000), { minutes: 9999 })).toBe('deferrals');
});

test('counts that a trial has disproved start no incident, but deferrals do', () => {
  expect(judgeIncident(null, count(1000, 1000), { disproved: true })).toBeNull();
  expect(judgeIncident(null, deferrals(300, 285), { disproved: true })).toBe('deferrals');
  expect(judgeIncident('deferrals', count(1000, 1000), { disproved: true })).toBe('live-count');
});

test('live SKUs announced beyond those that the file lists are not believed, and none are added', () => {
  expect([believedLive(1000, 0), believedLive(1000, 950), believedLive(40, 950)]).toEqual([1000, 50, 0]);
  expect(believedLive(50, -950)).toBe(50);
});

describe('a trial call', () => {
  const HOUR = 3_600_000;
  const incident = { because: 'deferrals', since: 0, triedAt: 1_000_000 } as const;
  const limits = { liveBudget: 5, callSkus: 100, catalogCheckMs: HOUR };

  test('asks for four budgets of SKUs, ten minutes after the one before', () => {
    expect(trialSize(incident, 1_599_999, limits)).toBeNull();
    expect(trialSize(incident, 1_600_000, limits)).toBe(20);
    expect(trialSize(incident, 1_600_000, { ...limits, callSkus: 12 })).toBe(12);
  });

  test('in an incident by counts comes after two checks, and at least ten minutes', () => {
    const counted = { ...incident, because: 'live-count' } as const;
    expect(trialSize(counted, counted.triedAt + 2 * HOUR - 1, limits)).toBeNull();
    expect(trialSize(counted, counted.triedAt + 2 * HOUR, limits)).toBe(20);
    const often = { ...limits, catalogCheckMs: 1000 };
    expect(trialSize(counted, counted.triedAt + 599_999, often)).toBeNull();
    expect(trialSize(counted, counted.triedAt + 600_000, often)).toBe(20);
  });

  test('is not made without an incident, and is a full call if calls hold no more than is computed live', () => {
    expect(trialSize(null, 9e9, limits)).toBeNull();
    for (const callSkus of [1, 5]) expect(trialSize(incident, 9e9, { ...limits, callSkus })).toBe(callSkus);
  });

  test('that fills a call ends an incident, and a smaller one does not', () => {
    expect(judgeIncident('deferrals', trial(2, 2), { callSkus: 2 })).toBeNull();
    expect(judgeIncident('deferrals', trial(2, 2), { callSkus: 3 })).toBe('deferrals');
    expect(judgeIncident('deferrals', trial(0, 0), { callSkus: 1 })).toBe('deferrals');
  });
});
