import { describe, expect, test } from 'vitest';
import {
  backOffMs,
  excerptOf,
  judgeStatus,
  receiverAheadMs,
  retryAfterMs,
  takesAnyTime,
} from '../../src/follow/delivery.ts';

test.each([
  [[200, 201, 202, 204, 299], 'delivered'],
  [[410], 'unwanted'],
  [[400, 406, 409, 413, 415, 422, 499], 'refused'],
  // These concern the endpoint, not the batch.
  [[401, 403, 404, 405, 407], 'failed'],
  [[408, 425, 429, 500, 502, 503, 504, 599, 300, 301, 302, 307, 308, 100], 'failed'],
])('%j: %s', (statuses, outcome) => {
  expect(statuses.map((code) => judgeStatus(code, null))).toEqual(statuses.map(() => outcome));
});

describe('a receiver with a different clock', () => {
  const sentAt = Date.parse('2026-11-20T10:00:00Z');
  test.each<[string | undefined, string | undefined, number | null]>([
    [undefined, undefined, null],
    ['soon', undefined, null],
    ['Fri, 20 Nov 2026 10:04:00 GMT', undefined, null],
    ['Fri, 20 Nov 2026 09:56:00 GMT', undefined, null],
    ['Fri, 20 Nov 2026 10:04:01 GMT', undefined, 241_000],
    ['Fri, 20 Nov 2026 09:55:59 GMT', undefined, -241_000],
    // From a cache: when the answer was made, and how long ago that is.
    ['Fri, 20 Nov 2026 09:00:00 GMT', '3600', null],
    ['Fri, 20 Nov 2026 10:00:00 GMT', '301', 301_000],
    ['Fri, 20 Nov 2026 10:05:00 GMT', 'old', 300_000],
  ])('is detected by Date %s, Age %s: %s', (date, age, ms) => {
    expect(receiverAheadMs(date, age, sentAt, sentAt)).toBe(ms);
  });

  test.each([
    ['Fri, 20 Nov 2026 10:09:00 GMT', null],
    ['Fri, 20 Nov 2026 10:09:01 GMT', 241_000],
    ['Fri, 20 Nov 2026 09:55:59 GMT', -241_000],
  ])('is detected despite a slow answer: %s', (date, ms) => {
    expect(receiverAheadMs(date, undefined, sentAt, sentAt + 300_000)).toBe(ms);
  });

  test.each<[number, ReturnType<typeof judgeStatus>]>([
    [400, 'failed'],
    [422, 'failed'],
    [401, 'failed'],
    // These mean something other than an outdated signature.
    [413, 'refused'],
    [410, 'unwanted'],
    [200, 'delivered'],
  ])('may have refused because of its clock: %d is %s', (code, outcome) => {
    expect(judgeStatus(code, 300_000)).toBe(outcome);
    expect(judgeStatus(code, -300_000)).toBe(outcome);
  });
});

test('a receiver accepts signatures of any time once it has accepted one that is over ten minutes off', () => {
  expect([null, 300_000, -600_000, 600_001, -600_001].map(takesAnyTime)).toEqual([
    false,
    false,
    false,
    true,
    true,
  ]);
});

describe('the wait before the next attempt', () => {
  test('doubles from a second to a minute, and half of it is random', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 8, 2000].map((n) => backOffMs(n, null, 1))).toEqual([
      1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000,
    ]);
    expect([1, 7].map((n) => backOffMs(n, null, 0))).toEqual([500, 30_000]);
  });

  test('is as long as the receiver asks for, up to an hour, and never shorter than the back-off', () => {
    expect(backOffMs(1, 90_000, 0)).toBe(90_000);
    expect(backOffMs(1, 0, 1)).toBe(1000);
    expect(backOffMs(1, 86_400_000, 0)).toBe(3_600_000);
  });
});

describe('Retry-After', () => {
  const now = Date.parse('2026-11-20T10:00:00Z');
  test.each<[string | undefined, string | undefined, number | null]>([
    [undefined, undefined, null],
    ['120', undefined, 120_000],
    ['0', undefined, 0],
    ['soon', undefined, null],
    ['-5', undefined, null],
    ['1e9', undefined, null],
    ['Fri, 20 Nov 2026 10:02:00 GMT', undefined, 120_000],
    ['Fri, 20 Nov 2026 09:00:00 GMT', undefined, 0],
    // By the receiver's own clock, which is an hour ahead.
    ['Fri, 20 Nov 2026 11:02:00 GMT', 'Fri, 20 Nov 2026 11:00:00 GMT', 120_000],
  ])('%s, Date %s: %s', (header, date, ms) => {
    expect(retryAfterMs(header, date, now)).toBe(ms);
  });
});

test("only the printable words of a receiver's answer are stored", () => {
  expect(excerptOf('')).toBeNull();
  expect(excerptOf(' \n\u0000\u001b[31m\t')).toBe('[31m');
  expect(excerptOf('no\r\n such\u202e  field')).toBe('no such field');
  expect(excerptOf('x'.repeat(5000))).toHaveLength(200);
});
