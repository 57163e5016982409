import { assert, array, constant, double, integer, oneof, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Chart,
  chart,
  columnsOf,
  gapsOf,
  rangesAt,
  spansOf,
  stepsOf,
  topOf,
  valuesOf,
} from '../../src/status/chart.ts';
import { changesInHour, courseOf, latest, requestsChart, stateStrips } from '../../src/status/charts.ts';
import { NOW } from './cases.ts';
import { sampleAt, someDay } from './views.ts';

const [HOUR, DAY] = rangesAt(NOW) as [Chart['range'], Chart['range']];
const same = (n: number) => n;

describe('samples in columns', () => {
  test('the hour has 60 columns of a minute and the day 288 of five minutes, ending with the current one', () => {
    for (const at of ['12:00:00.000', '12:00:59.999', '12:04:30.000']) {
      const now = new Date(`2026-11-21T${at}Z`);
      for (const { from, stepMs, columns, name } of rangesAt(now)) {
        expect(columns * stepMs).toBe(name === 'hour' ? 3_600_000 : 86_400_000);
        expect(from + columns * stepMs).toBeGreaterThan(now.getTime());
        expect(from + (columns - 1) * stepMs).toBeLessThanOrEqual(now.getTime());
      }
    }
  });

  test('each sample falls into the column of its time, and those outside the range into none', () => {
    const columns = columnsOf(
      [sampleAt(60), sampleAt(59), sampleAt(1), sampleAt(0), sampleAt(-1), sampleAt(-60)],
      HOUR,
    );
    expect(columns.map((samples) => samples.length)).toEqual([
      1,
      ...Array.from({ length: 57 }, () => 0),
      1,
      1,
    ]);
    expect(columnsOf(someDay(), DAY).flat()).toHaveLength(1440 - 40 - 4);
  });

  test('every column without samples is a gap, however short, except the current one', () => {
    const kept = [sampleAt(4), sampleAt(2), sampleAt(1)];
    expect(gapsOf(columnsOf(kept, HOUR))).toEqual([
      { start: 0, end: 55 },
      { start: 56, end: 57 },
    ]);
    expect(gapsOf(columnsOf([], HOUR))).toEqual([{ start: 0, end: 59 }]);
  });

  test('the worst sample of a column counts, and a column without samples has no value', () => {
    const columns = [[sampleAt(3, { due: 4 }), sampleAt(2, { due: 9 })], [sampleAt(1, { due: null })], []];
    expect(valuesOf(columns, (s) => s.due, Math.max)).toEqual([9, null, null]);
    expect(valuesOf(columns, (s) => s.due, Math.min)).toEqual([4, null, null]);
    expect(spansOf([1, 1, 0, 1], (n) => n === 1)).toEqual([
      { start: 0, end: 2 },
      { start: 3, end: 4 },
    ]);
  });
});

describe('a line', () => {
  test.each([
    [[], ''],
    [[null, null], ''],
    [[5], 'M0 5H1'],
    [[5, 5, 5], 'M0 5H3'],
    [[5, 7], 'M0 5H1V7H2'],
    [[5, null, 5], 'M0 5H1M2 5H3'],
    [[null, 5, 6, null, 7], 'M1 5H2V6H3M4 7H5'],
    [[NaN, 1, Infinity, 1], 'M1 1H2M3 1H4'],
  ] as const)('of %j is %j', (values, path) => {
    expect(stepsOf(values, same)).toBe(path);
  });

  test('covers exactly the columns that have values', () => {
    const value = oneof(integer({ min: 0, max: 9 }), constant(null), double());
    assert(
      property(array(value, { maxLength: 50 }), (values) => {
        const covered = new Set<number>();
        let at = 0;
        for (const [, way, x] of stepsOf(values, (n) => Math.max(-1e6, Math.min(1e6, n))).matchAll(
          /([MHV])(-?[\d.e+]+)/g,
        )) {
          if (way === 'H') for (let column = at; column < Number(x); column += 1) covered.add(column);
          if (way !== 'V') at = Number(x);
        }
        expect([...covered].toSorted((a, b) => a - b)).toEqual(
          values.flatMap((one, i) => (one !== null && Number.isFinite(one) ? [i] : [])),
        );
      }),
    );
  });

  test.each([
    [[], 1],
    [[0], 1],
    [[1], 1],
    [[64], 75],
    [[101], 150],
    [[14_000_000], 15_000_000],
    [[0.3], 0.3],
  ])('the scale of %j goes to %d', (values, top) => {
    expect(topOf(values)).toBeCloseTo(top);
  });
});

describe('a chart', () => {
  const drawn = (more: Partial<Chart> = {}): string =>
    chart({ id: 'x', title: 'Requests', range: HOUR, lines: [], marks: [], gaps: [], unit: String, ...more })
      .text;

  test('describes what it shows in words: title, last value, bounds, marks and gaps', () => {
    const text = drawn({
      lines: [{ name: 'sent', look: 'first', values: [3, 8, 5] }],
      marks: [{ name: 'back-off', look: 'backoff', spans: [{ start: 1, end: 3 }] }],
      gaps: [{ start: 4, end: 9 }],
    });
    expect(text).toContain('<title id="x-t">Requests, last hour</title>');
    expect(text).toContain('sent: 5 at last, between 3 and 8. back-off: 2 minutes. No samples: 5 minutes.');
    expect(text).toContain('role="img" aria-labelledby="x-t x-d"');
  });

  test('describes a line and the area below it only once', () => {
    const values = [3, 8, 5];
    const text = drawn({
      lines: [
        { name: 'due', look: 'area', values },
        { name: 'due', look: 'first', values },
      ],
    });
    expect(text.match(/due: 5 at last/g)).toHaveLength(1);
  });

  test('says so if there are no samples, and draws no line', () => {
    const text = requestsChart(courseOf([], NOW)).text;
    expect(text.match(/no samples yet: one is taken each minute/g)).toHaveLength(2);
    expect(text).toContain('No figures yet.');
    expect(text).not.toMatch(/class="line \w+" d="M/);
  });

  test('draws nothing for the hours without a daemon', () => {
    const text = requestsChart(courseOf([sampleAt(1435), sampleAt(1434), sampleAt(0)], NOW)).text;
    const [, day = ''] = text.split('id="requests-chart-day-t"');
    const [, line = ''] = /class="line first" d="([^"]*)"/.exec(day) ?? [];
    expect(line.match(/M/g)).toHaveLength(2);
    expect(day).toContain('<path class="gap"');
  });

  test('labels round times on the axis, for the script to show in the viewer’s time zone', () => {
    expect([...drawn().matchAll(/data-at="([^"]+)">([^<]+)</g)].map(([, at, text]) => [at, text])).toEqual([
      ['2026-11-21T11:15:00.000Z', '11:15'],
      ['2026-11-21T11:30:00.000Z', '11:30'],
      ['2026-11-21T11:45:00.000Z', '11:45'],
    ]);
  });

  test('the strip of states shows the worst state of each column and leaves out unknown states', () => {
    const course = courseOf(
      [sampleAt(3, { state: 'of tomorrow' }), sampleAt(2), sampleAt(1, { state: 'broken' }), sampleAt(0)],
      NOW,
    );
    const [hour = '', day = ''] = stateStrips(course).text.split('id="state-day-t"');
    expect(hour).toContain('healthy: 2 minutes. broken: 1 minutes.');
    expect(day).toContain('broken: 5 minutes.');
    expect(hour + day).not.toContain('tomorrow');
  });

  test('the figures beside the charts come from the newest samples', () => {
    const course = courseOf(
      [sampleAt(80), sampleAt(2, { priceChanges: null }), sampleAt(1, { requests: 7 })],
      NOW,
    );
    expect(latest(course)?.requests).toBe(7);
    expect(changesInHour(course)).toBe(12);
    expect(latest(courseOf([sampleAt(10)], NOW))).toBeNull();
  });
});
