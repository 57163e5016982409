import { array, assert, boolean, constantFrom, integer, option, property, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  backoffFor,
  ceilingAt,
  decide,
  guardMs,
  initialPace,
  type PaceLimits,
  refuses,
  sendsPerWindow,
} from '../../src/pace/policy.ts';
import type { RequestOutcome } from '../../src/partner/errors.ts';
import { Account, type End } from './account.ts';

const MINUTE = 60_000;
const ACCOUNT: PaceLimits = { maxPerWindow: 120, windowMs: MINUTE, backoffMs: MINUTE };
const FORBIDDEN = 'throttled-or-forbidden';

const anyLimits = record({
  maxPerWindow: integer({ min: 1, max: 60 }),
  windowMs: integer({ min: 1000, max: 120_000 }),
  backoffMs: integer({ min: 100, max: 120_000 }),
});
const anyStep = record({
  passMs: integer({ min: 0, max: 20_000 }),
  greedy: boolean(),
  latencyMs: integer({ min: 0, max: 40_000 }),
  outcome: constantFrom<End>(
    'ok',
    'ok',
    'ok',
    'ok',
    FORBIDDEN,
    'authorizer-fault',
    'network',
    'timeout',
    'service-fault',
    'lost',
  ),
});
const anyHistory = array(anyStep, { maxLength: 250, size: 'max' });

test('a clock that was ahead never makes anyone wait longer than the longest wait of each kind', () => {
  const DAY = 86_400_000;
  const anyTime = integer({ min: -DAY, max: 90 * DAY });
  assert(
    property(
      anyLimits,
      array(anyTime, { maxLength: 70 }),
      option(anyTime, { nil: null }),
      (limits, at, until) => {
        const sends = at.toSorted((one, other) => one - other);
        const decision = decide(limits, { ...initialPace(limits, 0), backoffUntil: until }, sends, 0);
        const longest = {
          spacing: limits.windowMs + guardMs(limits),
          window: limits.windowMs + guardMs(limits),
        };
        const most = { ...longest, silence: backoffFor(limits, Infinity), probe: 1000, paused: 0 };
        if (!decision.go) expect(decision.at).toBeLessThanOrEqual(most[decision.because]);
      },
    ),
  );
});

function live(
  limits: PaceLimits,
  history: readonly { passMs: number; greedy: boolean; latencyMs: number; outcome: End }[],
): Account {
  const account = new Account(limits);
  for (const { passMs, greedy, latencyMs, outcome } of history) {
    account.pass(passMs % (limits.windowMs / 2));
    if (!account.send(outcome, latencyMs) && greedy) account.sendNext(outcome, latencyMs);
  }
  return account;
}

describe('the rolling window', () => {
  test('contains no more sends than allowed, for any history of answers and any speed of asking', () => {
    assert(
      property(anyLimits, anyHistory, (limits, history) => {
        const account = live(limits, history);
        expect(account.mostInAnySpan()).toBeLessThanOrEqual(sendsPerWindow(limits));
      }),
      { numRuns: 300 },
    );
  });

  test('contains no more than the share at the server, even if delays differ by up to the guard', () => {
    assert(
      property(
        anyLimits,
        anyHistory,
        array(integer({ min: 0, max: 499 }), { minLength: 1 }),
        (limits, history, delays) => {
          const account = live(limits, history);
          const guard = guardMs(limits);
          const arrivals = account.sends
            .map((at, i) => at + ((delays[i % delays.length] ?? 0) % guard))
            .toSorted((a, b) => a - b);
          for (const at of arrivals) {
            const within = arrivals.filter((other) => other > at - limits.windowMs && other <= at);
            expect(within.length).toBeLessThanOrEqual(limits.maxPerWindow);
          }
        },
      ),
      { numRuns: 100 },
    );
  });

  test('at a share of 120 a minute holds 118 sends per window and guard, which a greedy sender reaches and keeps to', () => {
    expect(sendsPerWindow(ACCOUNT)).toBe(118);
    const account = new Account(ACCOUNT);
    while (account.now < 1_700_000_000_000 + 60 * MINUTE) account.sendNext('ok');
    expect(account.mostInAnySpan()).toBe(118);
    expect(account.sends.filter((at) => at > account.now - 10 * MINUTE).length).toBeGreaterThanOrEqual(1160);
  });

  test('spaces sends evenly instead of in bursts', () => {
    const account = new Account(ACCOUNT);
    for (let i = 0; i < 500; i += 1) account.sendNext('ok');
    const gaps = account.sends.slice(1).map((at, i) => at - (account.sends[i] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(MINUTE / 120);
  });
});

describe('the ceiling', () => {
  test('starts at half and grows by five a minute up to the full share', () => {
    const state = initialPace(ACCOUNT, 0);
    const after = (minutes: number) => ceilingAt(ACCOUNT, state, minutes * MINUTE);
    expect([after(0), after(1), after(5), after(11), after(60)]).toEqual([59, 64, 84, 114, 118]);
  });

  test('does not fall when the clock steps back', () =>
    expect(ceilingAt(ACCOUNT, initialPace(ACCOUNT, MINUTE), 0)).toBe(59));
});

describe('a refusal', () => {
  /** An account at full speed that is then refused once. */
  function refused(): Account {
    const account = new Account(ACCOUNT);
    while (account.recent().length < 100) account.sendNext('ok');
    account.sendNext(FORBIDDEN);
    account.pass(0);
    return account;
  }

  test.each<RequestOutcome>([FORBIDDEN, 'unauthorised', 'authorizer-fault', 'account-not-configured'])(
    '%s starts a back-off',
    (outcome) => {
      expect(refuses(outcome)).toBe(true);
      const account = new Account(ACCOUNT);
      account.sendNext(outcome);
      account.pass(0);
      expect(account.ask()).toEqual({ go: false, at: account.now + MINUTE, because: 'silence' });
    },
  );

  test.each<RequestOutcome>([
    'ok',
    'service-fault',
    'network',
    'timeout',
    'aborted',
    'bad-request',
    'sku-not-found',
    'snapshot-stale',
  ])('%s starts no back-off', (outcome) => {
    const account = new Account(ACCOUNT);
    account.sendNext(outcome);
    const before = account.state;
    account.pass(0);
    expect(account.state).toBe(before);
  });

  test('blocks all sends for the back-off, then allows one half-open request while everyone else waits for its answer', () => {
    const account = refused();
    account.pass(MINUTE - 1);
    expect(account.ask()).toMatchObject({ go: false, because: 'silence' });
    account.pass(1);
    expect(account.send('ok', 5000)).toBe(true);
    account.pass(1000);
    expect(account.ask()).toMatchObject({ go: false, because: 'probe' });
  });

  test('is followed, once a half-open request works, by half of the earlier rate and a slow recovery', () => {
    const account = refused();
    const occupancy = account.state.occupancy ?? 0;
    expect(occupancy).toBeGreaterThan(90);
    account.sendNext('ok', 100);
    account.pass(100);
    expect(account.state.backoffUntil).toBeNull();
    expect(ceilingAt(ACCOUNT, account.state, account.now)).toBe(occupancy / 2);
    expect(ceilingAt(ACCOUNT, account.state, account.now + MINUTE)).toBe(occupancy / 2 + 5);
  });

  test('of an account that sent little resumes at twenty, or at the whole share if that is less', () => {
    for (const [maxPerWindow, floor] of [
      [120, 20],
      [12, 10],
    ] as const) {
      const account = new Account({ ...ACCOUNT, maxPerWindow });
      account.sendNext(FORBIDDEN);
      account.pass(0);
      account.sendNext('ok');
      account.pass(0);
      expect(account.state.ceiling).toBe(floor);
    }
  });

  test('of a request already under way when the back-off began does not lengthen it', () => {
    const account = new Account(ACCOUNT);
    account.sendNext(FORBIDDEN, 2000);
    account.sendNext(FORBIDDEN, 9000);
    account.pass(2000);
    const { backoffUntil } = account.state;
    account.pass(20_000);
    expect(account.state).toMatchObject({ backoffUntil, refusals: 1 });
  });

  test('of a request sent in the millisecond in which the back-off began does not lengthen it', () => {
    const account = new Account(ACCOUNT);
    account.sendNext(FORBIDDEN);
    account.pass(0);
    account.settle(account.now, FORBIDDEN);
    expect(account.state.refusals).toBe(1);
  });

  test('keeps its back-off when an older request succeeds', () => {
    const account = new Account(ACCOUNT);
    account.sendNext('ok', 20_000);
    account.sendNext(FORBIDDEN, 0);
    account.pass(30_000);
    expect(account.state.backoffUntil).not.toBeNull();
  });

  test('lengthens the back-off from the fourth in a row on, to ten times its length at most', () => {
    const account = refused();
    const silences = [account.state.backoffUntil! - account.now];
    for (let i = 0; i < 8; i += 1) {
      account.sendNext(FORBIDDEN);
      account.pass(0);
      silences.push(account.state.backoffUntil! - account.now);
    }
    expect(silences.map((ms) => ms / MINUTE)).toEqual([1, 1, 1, 2, 4, 8, 10, 10, 10]);
  });

  test('that repeats keeps the occupancy of the first: the later windows were quiet', () => {
    const account = refused();
    const { occupancy, resumeAt } = account.state;
    account.sendNext(FORBIDDEN);
    account.pass(0);
    expect(account.state).toMatchObject({ occupancy, resumeAt, refusals: 2 });
  });
});

describe('a half-open request', () => {
  function probing(): Account {
    const account = new Account(ACCOUNT);
    account.sendNext(FORBIDDEN);
    account.pass(0);
    return account;
  }

  test.each<RequestOutcome>(['network', 'timeout', 'aborted'])(
    'that ended with %s proves nothing: another one goes a little later',
    (outcome) => {
      const account = probing();
      account.sendNext(outcome);
      account.pass(0);
      expect(account.ask()).toEqual({ go: false, at: account.now + 10_000, because: 'silence' });
      account.pass(10_000);
      expect(account.ask().go).toBe(true);
      expect(account.state.refusals).toBe(1);
    },
  );

  test('that the service itself answered, even with a fault, ends the back-off: the authorizer let it pass', () => {
    const account = probing();
    account.sendNext('service-fault');
    account.pass(0);
    expect(account.state.backoffUntil).toBeNull();
  });

  test('after a back-off shorter than the window counts in the window like any other request', () => {
    const account = new Account({ maxPerWindow: 3, windowMs: MINUTE, backoffMs: 1000 });
    account.sendNext(FORBIDDEN);
    account.pass(1000);
    expect(account.ask()).toEqual({
      go: false,
      at: (account.sends[0] ?? 0) + account.span,
      because: 'window',
    });
  });

  test('whose process died is given up after two minutes', () => {
    const account = probing();
    account.sendNext('lost');
    account.pass(119_999);
    expect(account.ask()).toMatchObject({ go: false, because: 'probe' });
    account.pass(1);
    expect(account.ask().go).toBe(true);
  });

  test('that takes longer than two minutes still ends the back-off, though another was sent meanwhile', () => {
    const account = probing();
    for (let n = 0; n < 2; n += 1) account.sendNext('ok', 150_000);
    expect(account.state.backoffUntil).not.toBeNull();
    account.pass(30_000);
    expect(account.state.backoffUntil).toBeNull();
  });

  test('that takes longer than two minutes does not end the back-off of a refusal that came after it was sent', () => {
    const account = probing();
    account.sendNext('ok', 150_000);
    account.sendNext(FORBIDDEN, 1000);
    account.pass(60_000);
    expect(account.state).toMatchObject({ refusals: 2 });
    expect(account.state.backoffUntil).not.toBeNull();
  });

  test('that takes longer than two minutes and then times out leaves the other one under way', () => {
    const account = probing();
    account.sendNext('timeout', 150_000);
    account.sendNext('ok', 60_000);
    account.pass(30_000);
    expect(account.ask()).toMatchObject({ go: false, because: 'probe' });
  });
});

test('the pacer never gets stuck: after any history a sender whose requests work returns to full speed', () => {
  assert(
    property(anyLimits, anyHistory, (limits, history) => {
      const account = live(limits, history);
      account.pass(40_000);
      const longest = Math.max(limits.backoffMs * 10, 120_000) + account.span;
      expect(account.sendNext('ok')).toBeLessThanOrEqual(longest);
      // The service recovers: every request still under way is answered, and refusals end.
      account.pass(40_000);
      account.sendNext('ok');
      account.pass(limits.windowMs * 30);
      account.sendNext('ok');
      expect(ceilingAt(limits, account.state, account.now)).toBe(sendsPerWindow(limits));
    }),
    { numRuns: 200 },
  );
});
