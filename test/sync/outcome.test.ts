import { expect, test } from 'vitest';
import type { PartnerErrorKind } from '../../src/partner/errors.ts';
import { lostRetryInMs, retryAfter, retryInMs } from '../../src/sync/outcome.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LOST = { error: { kind: 'network', status: undefined }, beganBackoff: false } as const;

test.each(['throttled-or-forbidden', 'unauthorised', 'authorizer-fault', 'account-not-configured'] as const)(
  'a request that ended with %s is tried again soon: the pacer knows when',
  (kind) => {
    const error = { kind, status: undefined };
    expect(retryAfter({ error, beganBackoff: false }, 9, HOUR)).toBe(1000);
    const began = [0, 1].map((failures) => retryAfter({ error, beganBackoff: true }, failures, HOUR));
    expect(began).toEqual([1000, 1000]);
    expect(retryAfter({ error, beganBackoff: true }, 0, 300)).toBe(300);
  },
);

const after = (kind: PartnerErrorKind, status: number | undefined, failures: number) =>
  retryAfter({ error: { kind, status }, beganBackoff: true }, failures, 5 * MINUTE);

test('a route that is refused while others are let through is tried less and less often, whatever its schedule', () => {
  const waits = [2, 3, 4, 5, 20].map((failures) => after('throttled-or-forbidden', 403, failures));
  expect(waits).toEqual([2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 10 * MINUTE, 10 * MINUTE]);
});

test('a 429, a 401 and an account that is not configured are no matter of the route', () => {
  expect(after('throttled-or-forbidden', 429, 9)).toBe(1000);
  expect(after('unauthorised', 401, 9)).toBe(1000);
  expect(after('account-not-configured', 403, 9)).toBe(1000);
});

test('any other failure waits for longer each time', () => {
  for (const failures of [0, 1, 9]) expect(retryAfter(LOST, failures, HOUR)).toBe(retryInMs(failures, HOUR));
  expect(retryAfter(LOST, 0, HOUR)).toBe(MINUTE);
});

test('a lost connection to Postgres is no reason to wait for long, unless it is lost again and again', () => {
  expect([0, 1, 2, 3, 4, 20].map(lostRetryInMs)).toEqual([5000, 10_000, 20_000, 40_000, 80_000, HOUR]);
});
