import { describe, expect, test } from 'vitest';
import type { Facts } from '../../src/status/facts.ts';
import { judgeHealth, NO_OWN_FACTS } from '../../src/status/health.ts';
import { CASES, factsOf, mirrorWith, NOW } from './cases.ts';

/** A mirror in which all is well, re-pricing included. */
const WELL: Facts = {
  ...factsOf(CASES.healthy),
  tasks: factsOf(CASES.healthy).tasks.map((task) =>
    task.task === 'reprice' ? { ...task, nextAt: new Date(NOW.getTime() - 5000) } : task,
  ),
};
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1000);
const codes = (facts: Partial<Facts>) => judgeHealth({ ...WELL, ...facts }).reasons.map(({ code }) => code);
const texts = (facts: Partial<Facts>) => judgeHealth({ ...WELL, ...facts }).reasons.map(({ text }) => text);
const withTask = (name: string, more: Partial<Facts['tasks'][number]>) => ({
  tasks: WELL.tasks.map((task) => (task.task === name ? { ...task, ...more } : task)),
});

test('a healthy mirror has no reasons', () => {
  expect(codes({})).toEqual([]);
});

describe('SKUs that are due while no call is answered', () => {
  const idle = { answeredSeconds: 3000, dueSeconds: 121 };
  test.each([
    ['two windows long', { idle }, ['stalled']],
    ['a window long, as after a full one', { idle: { answeredSeconds: 100, dueSeconds: 110 } }, []],
    [
      'of which none has ever been answered',
      { idle: { answeredSeconds: null, dueSeconds: 500 } },
      ['stalled'],
    ],
    ['that have just come due', { idle: { answeredSeconds: 3000, dueSeconds: 5 } }, []],
    ['of which there are none', { idle: { answeredSeconds: 3000, dueSeconds: null } }, []],
    ['as the daemon has just started', { idle, daemonSeconds: 100 }, []],
    ['as bulk calls pause', { idle, ...withTask('reprice', { nextAt: new Date(NOW.getTime() + 5000) }) }, []],
    ['during an incident, where live ones wait for one another', { idle, incident: true }, ['incident']],
    [
      'in short windows, for a minute',
      { windowSeconds: 1, idle: { answeredSeconds: 61, dueSeconds: 61 } },
      ['stalled'],
    ],
    ['in short windows, for less', { windowSeconds: 1, idle: { answeredSeconds: 60, dueSeconds: 61 } }, []],
  ] as const)('are reported or not: %s', (_, facts, expected) => {
    expect(codes(facts)).toEqual(expected);
  });

  test('are reported with how long that has lasted', () => {
    expect(texts({ idle })[0]).toMatch(/^SKUs have been due for 2m, and no call was answered for 2m; /);
  });

  test('are not reported while requests are rejected, which is reported instead', () => {
    expect(codes({ pace: factsOf(CASES['backing off']).pace, idle })).toEqual(['refused']);
  });
});

test('a broken chain is reported if it is not repaired within a minute', () => {
  const brokenFor = (seconds: number) => ({ sync: { ...WELL.sync, chainBrokenAt: ago(seconds) } });
  expect(codes(brokenFor(60))).toEqual([]);
  expect(codes(brokenFor(61))).toEqual(['chain-broken']);
});

test('SKUs in errors are reported if there are more than a few and more than one in a hundred', () => {
  const failing = (count: number) =>
    factsOf(mirrorWith({ stats: { due: [{ reason: 'error', count, oldestAgeSeconds: 5 }] } })).counts;
  const few = WELL.counts?.skus.reduce((sum, row) => sum + row.count, 0) ?? 0;
  expect(codes({ counts: failing(10) })).toEqual([]);
  expect(codes({ counts: failing(Math.floor(few / 100)) })).toEqual([]);
  expect(codes({ counts: failing(Math.floor(few / 100) + 1) })).toEqual(['skus-failing']);
});

describe('a running delta', () => {
  const running = (seconds: number) =>
    withTask('delta', { running: true, nextAt: ago(900), startedAt: ago(seconds) });
  test('counts as progress for three of its intervals and no longer', () => {
    expect(codes(running(900))).toEqual([]);
    expect(codes(running(901))).toEqual(['stopped']);
  });

  test('counts as progress for five minutes, however short its interval', () => {
    const targets = { ...WELL.targets, deltaIntervalSeconds: 1 };
    expect(codes({ ...running(300), targets })).toEqual([]);
    expect(codes({ ...running(301), targets })).toEqual(['stopped']);
  });
});

test('a delta that has been due for over a minute and is not running counts as stopped', () => {
  expect(codes(withTask('delta', { nextAt: ago(60) }))).toEqual([]);
  expect(codes(withTask('delta', { nextAt: ago(61) }))).toEqual(['stopped']);
});

test('a late delta says when it was last checked, or that this lies in the future', () => {
  const late = (seconds: number) =>
    texts({ sync: { ...WELL.sync, deltaCheckedAt: ago(seconds), deltaLate: true } });
  expect(late(7200)).toEqual([
    expect.stringContaining('the delta was last checked 2.0h ago (30m is allowed)'),
  ]);
  expect(late(-61)).toEqual([
    expect.stringContaining('the delta was last checked at a time to come (30m is'),
  ]);
});

describe('the clock of Postgres', () => {
  const clock = (more: Partial<Facts['clock']>) => ({ clock: { ...WELL.clock, ...more } });
  test.each([
    ['runs a little behind what was seen of it', { highWater: NOW.getTime() + 2000 }, []],
    ['was set back, and nobody has put that right', { highWater: NOW.getTime() + 2001 }, ['clock']],
    ['was set back, and that is being put right', { setBackSeconds: 3600 }, ['clock']],
    ['is ahead', { aheadSeconds: 3600 }, ['clock']],
    ['is behind', { aheadSeconds: -3600 }, ['clock']],
  ] as const)('%s', (_, more, expected) => {
    expect(codes(clock(more))).toEqual(expected);
  });

  test('is reported with how far it is off, and in which direction', () => {
    expect(texts(clock({ aheadSeconds: -7200 }))[0]).toMatch(
      /^the clock of Postgres is 2\.0h behind the others, so no price/,
    );
    expect(texts(clock({ aheadSeconds: 7200 }))[0]).toMatch(/ 2\.0h ahead of the others/);
    expect(texts(clock({ setBackSeconds: 7200 }))[0]).toMatch(/was set back by 2\.0h; /);
  });
});

test('what a daemon knows about its own clock and queues is reported', () => {
  const notPutRight = { part: 'the histories', problem: 'SQLSTATE P0001', hint: 'H' };
  const own = { ...NO_OWN_FACTS, clock: 'C', notPutRight, silent: 'Q' };
  expect(judgeHealth(WELL, own).reasons.map(({ code, text }) => [code, text.slice(0, 2)])).toEqual([
    ['clock', 'C;'],
    ['clock', 'Po'],
    ['queues-silent', 'Q;'],
  ]);
});
