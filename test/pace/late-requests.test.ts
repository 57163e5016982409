import { array, assert, integer, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { LAPSES_AFTER_MS } from '../../src/pace/policy.ts';
import { Account } from './account.ts';

const MINUTE = 60_000;
const FORBIDDEN = 'throttled-or-forbidden';

test('however long after its decision each request leaves, no minute at the server exceeds the share', () => {
  const anyPhase = record({
    sends: integer({ min: 1, max: 200 }),
    lateMs: integer({ min: 0, max: LAPSES_AFTER_MS }),
  });
  assert(
    property(
      integer({ min: 2, max: 200 }),
      array(anyPhase, { minLength: 2, maxLength: 5 }),
      (share, phases) => {
        const account = new Account({ maxPerWindow: share, windowMs: MINUTE, backoffMs: MINUTE });
        account.state = { ...account.state, ceiling: share };
        const arrivals = phases.flatMap(({ sends, lateMs }) =>
          Array.from({ length: sends }, () => {
            account.sendNext('ok');
            return account.now + lateMs;
          }),
        );
        const times = arrivals.toSorted((one, other) => one - other);
        const most = Math.max(
          ...times.map((at, i) => times.slice(0, i + 1).filter((each) => each > at - MINUTE).length),
        );
        expect(most).toBeLessThanOrEqual(share);
      },
    ),
    {
      examples: [
        [
          200,
          [
            { sends: 200, lateMs: LAPSES_AFTER_MS },
            { sends: 200, lateMs: 0 },
          ],
        ],
      ],
    },
  );
});

test('a refusal after a back-off, of a request that was under way when the back-off began, starts no new one', () => {
  const account = new Account({ maxPerWindow: 120, windowMs: MINUTE, backoffMs: 10_000 });
  account.sendNext(FORBIDDEN, 2000);
  account.sendNext(FORBIDDEN, 55_000);
  account.pass(2000);
  account.sendNext('ok', 100);
  account.pass(100);
  expect(account.state.backoffUntil).toBeNull();
  const resumed = account.state;
  account.pass(MINUTE);
  expect(account.state).toBe(resumed);
  // A request sent since then does.
  account.sendNext(FORBIDDEN);
  account.pass(0);
  expect(account.state).toMatchObject({ refusals: 1 });
});

test('a refusal after the clock is set back starts a back-off, though the previous one is dated in the future', () => {
  const account = new Account({ maxPerWindow: 120, windowMs: MINUTE, backoffMs: 10_000 });
  account.sendNext(FORBIDDEN);
  account.pass(0);
  account.sendNext('ok');
  account.pass(0);
  expect(account.state.backoffUntil).toBeNull();
  account.now -= 60 * MINUTE;
  account.settle(account.now, FORBIDDEN);
  expect(account.state).toMatchObject({ refusals: 1, backoffUntil: account.now + 10_000 });
});
