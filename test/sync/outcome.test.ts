import { expect, test } from 'vitest';
import { lostRetryInMs, retryAfter, retryInMs } from '../../src/sync/outcome.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

test.each(['throttled-or-forbidden', 'unauthorised', 'authorizer-fault', 'account-not-configured'])(
  'a request that ended with %s is tried again soon: the pacer knows when',
  (kind) => {
    expect(retryAfter(kind, 9, HOUR, { halfOpen: true })).toBe(1000);
    expect([0, 1].map((failures) => retryAfter(kind, failures, HOUR, { halfOpen: false }))).toEqual([
      1000, 1000,
    ]);
    expect(retryAfter(kind, 0, 300, { halfOpen: false })).toBe(300);
  },
);

test('a route that is refused while others are let through is tried less and less often, whatever its schedule', () => {
  const after = [2, 3, 4, 20].map((failures) =>
    retryAfter('throttled-or-forbidden', failures, 5 * MINUTE, { halfOpen: false }),
  );
  expect(after).toEqual([2 * MINUTE, 4 * MINUTE, 8 * MINUTE, HOUR / 2]);
});

test('any other failure waits for longer each time', () => {
  for (const failures of [0, 1, 9])
    expect(retryAfter('network', failures, HOUR, { halfOpen: false })).toBe(retryInMs(failures, HOUR));
  expect(retryAfter('network', 0, HOUR, { halfOpen: false })).toBe(MINUTE);
});

test('a lost connection to Postgres is no reason to wait for long, unless it is lost again and again', () => {
  expect([0, 1, 2, 3, 4, 20].map(lostRetryInMs)).toEqual([5000, 10_000, 20_000, 40_000, 80_000, HOUR]);
});
