import { describe, expect, test } from 'vitest';
import { judgeIncident, probeSize } from '../../src/sync/live/incident.ts';

const count = (live: number, skus: number) => ({ kind: 'count', live, skus }) as const;
const deferrals = (asked: number, deferred: number) => ({ kind: 'deferrals', asked, deferred }) as const;
const probe = (asked: number, answered: number) => ({ kind: 'probe', asked, answered }) as const;

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
    ['a probe without an incident', probe(20, 20), null],
  ] as const)('or not, when %s', (_, evidence, expected) => {
    expect(judgeIncident(null, evidence)).toBe(expected);
  });
});

describe('an incident ends', () => {
  test.each([
    ['live-count', count(500, 1000), null],
    ['live-count', count(501, 1000), 'live-count'],
    ['live-count', probe(20, 20), 'live-count'],
    ['live-count', deferrals(300, 0), 'live-count'],
    // The counts are of a snapshot built before it began.
    ['deferrals', count(50, 1000), 'deferrals'],
    ['deferrals', count(1000, 1000), 'live-count'],
    ['deferrals', probe(20, 5), 'deferrals'],
    ['deferrals', probe(20, 15), null],
  ] as const)('or not: begun by %s, %o', (present, evidence, expected) => {
    expect(judgeIncident(present, evidence)).toBe(expected);
  });
});

describe('a probe', () => {
  const incident = { because: 'deferrals', since: 0, probedAt: 1_000_000 } as const;

  test('asks for four budgets of SKUs, ten minutes after the one before', () => {
    expect(probeSize(incident, 1_599_999, 5, 100)).toBeNull();
    expect(probeSize(incident, 1_600_000, 5, 100)).toBe(20);
    expect(probeSize(incident, 1_600_000, 5, 12)).toBe(12);
  });

  test('is not sent where it could show nothing', () => {
    expect(probeSize(null, 9e9, 5, 100)).toBeNull();
    expect(probeSize({ ...incident, because: 'live-count' }, 9e9, 5, 100)).toBeNull();
    expect(probeSize(incident, 9e9, 5, 5)).toBeNull();
  });
});
