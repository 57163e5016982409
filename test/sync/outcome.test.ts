import { expect, test } from 'vitest';
import type { PutOff } from '../../src/pace/permit.ts';
import { lostRetryInMs, postponedBy, retryAfter, retryInMs } from '../../src/sync/outcome.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Runs that failed `refusals` times in a row, all of them refused. */
const refused = (refusals: number) => ({ failures: refusals, refusals });
const failed = (failures: number) => ({ failures, refusals: 0 });

const LOST = { error: { kind: 'network' }, beganBackoff: false } as const;

test.each(['throttled-or-forbidden', 'unauthorised', 'authorizer-fault', 'account-not-configured'] as const)(
  'a request that ended with %s is retried soon: the pacer knows when',
  (kind) => {
    const error = { kind };
    expect(retryAfter({ error, beganBackoff: false }, refused(9), HOUR)).toBe(1000);
    const began = [0, 1].map((failures) =>
      retryAfter({ error, beganBackoff: true }, refused(failures), HOUR),
    );
    expect(began).toEqual([1000, 1000]);
    expect(retryAfter({ error, beganBackoff: true }, refused(0), 300)).toBe(300);
  },
);

test.each(['throttled-or-forbidden', 'unauthorised', 'authorizer-fault', 'account-not-configured'] as const)(
  'a route refused with %s while others succeed is retried ever more rarely, whatever its schedule',
  (kind) => {
    const waits = [2, 3, 4, 5, 20].map((failures) =>
      retryAfter({ error: { kind }, beganBackoff: true }, refused(failures), 5 * MINUTE),
    );
    expect(waits).toEqual([2 * MINUTE, 4 * MINUTE, 8 * MINUTE, 16 * MINUTE, 20 * MINUTE]);
  },
);

test('a suspected route asks after the others when a back-off ends', () => {
  const putOffs = (because: PutOff) =>
    [0, 1, 2, 9].map((failures) => postponedBy({ forMs: 100, because }, refused(failures)).nextInMs);
  expect(putOffs('silence')).toEqual([100, 100, 5100, 5100]);
  expect(putOffs('window')).toEqual([100, 100, 100, 100]);
  expect(postponedBy({ forMs: 100, because: 'paused' }, refused(3))).toEqual({
    kind: 'postponed',
    nextInMs: 100,
    because: 'paused',
  });
});

test('any other failure waits longer each time', () => {
  for (const failures of [0, 1, 9])
    expect(retryAfter(LOST, failed(failures), HOUR)).toBe(retryInMs(failures, HOUR));
  expect(retryAfter(LOST, failed(0), HOUR)).toBe(MINUTE);
});

test('a first refusal after an outage of the route waits like any first one', () => {
  const error = { kind: 'throttled-or-forbidden' } as const;
  for (const refusals of [0, 1])
    expect(retryAfter({ error, beganBackoff: true }, { failures: 12, refusals }, 5 * MINUTE)).toBe(1000);
  expect(postponedBy({ forMs: 100, because: 'silence' }, { failures: 12, refusals: 1 }).nextInMs).toBe(100);
  // Whatever else has failed in between, it is the third.
  expect(retryAfter({ error, beganBackoff: true }, { failures: 12, refusals: 2 }, HOUR)).toBe(2 * MINUTE);
});

test('a failure after refusals, as of a wrong secret, waits like a first one', () => {
  expect(retryAfter(LOST, refused(12), HOUR)).toBe(MINUTE);
  expect(retryAfter(LOST, { failures: 14, refusals: 12 }, HOUR)).toBe(4 * MINUTE);
});

test('a lost connection to Postgres causes long waits only if it is lost repeatedly', () => {
  expect([0, 1, 2, 3, 4, 20].map(lostRetryInMs)).toEqual([5000, 10_000, 20_000, 40_000, 80_000, HOUR]);
});
