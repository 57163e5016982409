import { expect, test } from 'vitest';
import { isInTime } from '../../src/queues/runner.ts';

test.each([
  ['just made', 1000, 1000, true],
  ['made by a daemon with another interval a moment ago', 2000, 1000, true],
  ['by a clock that is ahead', 2001, 1000, false],
  ['in an hour', 3_600_000, 5000, false],
  ['due, and not taken yet', -900, 1000, true],
  ['kept waiting by a long job', -15_000, 1000, true],
  ['lost', -15_001, 1000, false],
  ['late by less than three of its intervals', -60_000, 20_000, true],
  ['late by more', -60_001, 20_000, false],
  ['unknown', Number.NaN, 1000, false],
])('the next job of a schedule is checked for being in time: %s', (_, inMs, everyMs, expected) => {
  expect(isInTime(inMs, everyMs)).toBe(expected);
});
