import { assert, nat, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatDuration, parseDuration } from '../../src/lib/duration.ts';

describe('parseDuration', () => {
  test.each([
    ['500ms', 500],
    ['30s', 30_000],
    ['5m', 300_000],
    ['6h', 21_600_000],
    ['7d', 604_800_000],
    ['1.5h', 5_400_000],
    ['1.1m', 66_000],
    ['0', 0],
    ['0s', 0],
  ])('%s is %i ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each([
    '',
    '5',
    '-5m',
    '+5m',
    '5 m',
    ' 5m',
    '5M',
    '5min',
    '1h30m',
    '0.5ms',
    '1e3s',
    '.5h',
    '5.h',
    'm',
    'NaN',
    '9007199254740993ms',
    '99999999999999d',
  ])('rejects %j', (text) => {
    expect(parseDuration(text)).toBeNull();
  });
});

describe('formatDuration', () => {
  test.each([
    [300_000, '5m'],
    [90_000, '90s'],
    [86_400_000, '1d'],
    [1500, '1500ms'],
    [0, '0'],
    [0.4, '0'],
    [999.6, '1s'],
  ])('%d ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test('writes what parseDuration reads back as the same number', () => {
    assert(
      property(nat(), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });
});
