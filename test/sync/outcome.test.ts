import { expect, test } from 'vitest';
import type { PutOff } from '../../src/pace/permit.ts';
import { lostRetryInMs, postponedBy, retryAfter, retryInMs } from '../../src/sync/outcome.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LOST = { error: { kind: 'network' }, beganBackoff: false } as const;

test.each(['throttled-or-forbidden', 'unauthorised', 'authorizer-fault', 'account-not-configured'] as const)(
  'a request that ended with %s is tried again soon: the pacer knows when',
  (kind) => {
    const error = { kind };
    expect(retryAfter({ error, beganBackoff: false }, 9, HOUR)).toBe(1000);
    const began = [0, 1].map((failures) => retryAfter({ error, beganBackoff: true }, failures, HOUR));
    expect(began).toEqual([1000, 1000]);
    expect(retryAfter({ error, beganBackoff: true }, 0, 300)).toBe(300);
  },
);

test.each(['throttled-or-forbidden', 'unauthorised', 'authorizer-fault', 'account-not-configured'] as const)(
  'a route that is refused with %s while others are let through is tried less and less often, whatever its schedule',
  (kind) => {
    const waits = [2, 3, 4, 5, 20].map((failures) =>
      retryAfter({ error: { kind }, beganBackoff: true }, failures, 5 * MINUTE),
    );
    expect(waits).toEqual([2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 16 * MINUTE, 20 * MINUTE]);
  },
);

test('a route that is suspected asks after others when a back-off is over', () => {
  const putOffs = (because: PutOff) =>
    [0, 1, 2, 9].map((failures) => postponedBy({ forMs: 100, because }, failures).nextInMs);
  expect(putOffs('silence')).toEqual([100, 100, 5100, 5100]);
  expect(putOffs('window')).toEqual([100, 100, 100, 100]);
  expect(postponedBy({ forMs: 100, because: 'paused' }, 3)).toEqual({
    kind: 'postponed',
    nextInMs: 100,
    because: 'paused',
  });
});

test('any other failure waits for longer each time', () => {
  for (const failures of [0, 1, 9]) expect(retryAfter(LOST, failures, HOUR)).toBe(retryInMs(failures, HOUR));
  expect(retryAfter(LOST, 0, HOUR)).toBe(MINUTE);
});

test('a lost connection to Postgres is no reason to wait for long, unless it is lost again and again', () => {
  expect([0, 1, 2, 3, 4, 20].map(lostRetryInMs)).toEqual([5000, 10_000, 20_000, 40_000, 80_000, HOUR]);
});
