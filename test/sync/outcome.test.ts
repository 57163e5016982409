import { expect, test } from 'vitest';
import { lostRetryInMs, retryAfter, retryInMs } from '../../src/sync/outcome.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

test.each(['throttled-or-forbidden', 'unauthorised', 'authorizer-fault', 'account-not-configured'])(
  'a request that ended with %s is tried again soon: the pacer knows when',
  (kind) => {
    expect(retryAfter(kind, 9, HOUR)).toBe(1000);
    expect(retryAfter(kind, 0, 300)).toBe(300);
  },
);

test('any other failure waits for longer each time', () => {
  for (const failures of [0, 1, 9])
    expect(retryAfter('network', failures, HOUR)).toBe(retryInMs(failures, HOUR));
  expect(retryAfter('network', 0, HOUR)).toBe(MINUTE);
});

test('a lost connection to Postgres is no reason to wait for long, unless it is lost again and again', () => {
  expect([0, 1, 2, 3, 4, 20].map(lostRetryInMs)).toEqual([5000, 10_000, 20_000, 40_000, 80_000, HOUR]);
});
