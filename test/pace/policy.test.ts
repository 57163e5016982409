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

test('whatever a clock that was ahead has written, nobody is to wait for longer than what is waited for can last', () => {
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
  test('holds no more sends than allowed, whatever the history of answers and the speed of asking', () => {
    assert(
      property(anyLimits, anyHistory, (limits, history) => {
        const account = live(limits, history);
        expect(account.mostInAnySpan()).toBeLessThanOrEqual(sendsPerWindow(limits));
      }),
      { numRuns: 300 },
    );
  });

  test('at the server holds no more than the share, though requests arrive up to the guard apart', () => {
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

  test('a share of 120 a minute is 118 sends in window and guard, reached and kept by a greedy sender', () => {
    expect(sendsPerWindow(ACCOUNT)).toBe(118);
    const account = new Account(ACCOUNT);
    while (account.now < 1_700_000_000_000 + 60 * MINUTE) account.sendNext('ok');
    expect(account.mostInAnySpan()).toBe(118);
    expect(account.sends.filter((at) => at > account.now - 10 * MINUTE).length).toBeGreaterThanOrEqual(1160);
  });

  test('sends are spaced evenly, not in bursts', () => {
    const account = new Account(ACCOUNT);
    for (let i = 0; i < 500; i += 1) account.sendNext('ok');
    const gaps = account.sends.slice(1).map((at, i) => at - (account.sends[i] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(MINUTE / 120);
  });
});

describe('the ceiling', () => {
  test('begins at half and grows by five a minute up to the whole', () => {
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
    '%s back-offs',
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
  ])('%s causes no back-off', (outcome) => {
    const account = new Account(ACCOUNT);
    account.sendNext(outcome);
    const before = account.state;
    account.pass(0);
    expect(account.state).toBe(before);
  });

  test('lets nobody send for the back-off, then one half-open request, and everyone else waits for its answer', () => {
    const account = refused();
    account.pass(MINUTE - 1);
    expect(account.ask()).toMatchObject({ go: false, because: 'silence' });
    account.pass(1);
    expect(account.send('ok', 5000)).toBe(true);
    account.pass(1000);
    expect(account.ask()).toMatchObject({ go: false, because: 'probe' });
  });

  test('after a half-open request that worked, sending goes on at half of what was sent, and recovers slowly', () => {
    const account = refused();
    const occupancy = account.state.occupancy ?? 0;
    expect(occupancy).toBeGreaterThan(90);
    account.sendNext('ok', 100);
    account.pass(100);
    expect(account.state.backoffUntil).toBeNull();
    expect(ceilingAt(ACCOUNT, account.state, account.now)).toBe(occupancy / 2);
    expect(ceilingAt(ACCOUNT, account.state, account.now + MINUTE)).toBe(occupancy / 2 + 5);
  });

  test('of an account that sent little resumes at the floor of twenty, or the whole share where that is less', () => {
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

  test('of a request that was already under way when the back-off began does not lengthen it', () => {
    const account = new Account(ACCOUNT);
    account.sendNext(FORBIDDEN, 2000);
    account.sendNext(FORBIDDEN, 9000);
    account.pass(2000);
    const { backoffUntil } = account.state;
    account.pass(20_000);
    expect(account.state).toMatchObject({ backoffUntil, refusals: 1 });
  });

  test('of a request sent in the very millisecond in which the back-off began does not lengthen it', () => {
    const account = new Account(ACCOUNT);
    account.sendNext(FORBIDDEN);
    account.pass(0);
    account.settle(account.now, FORBIDDEN);
    expect(account.state.refusals).toBe(1);
  });

  test('keeps its back-off when an older request answers well', () => {
    const account = new Account(ACCOUNT);
    account.sendNext('ok', 20_000);
    account.sendNext(FORBIDDEN, 0);
    account.pass(30_000);
    expect(account.state.backoffUntil).not.toBeNull();
  });

  test('again and again makes the back-off longer from the fourth on, and never longer than ten times', () => {
    const account = refused();
    const silences = [account.state.backoffUntil! - account.now];
    for (let i = 0; i < 8; i += 1) {
      account.sendNext(FORBIDDEN);
      account.pass(0);
      silences.push(account.state.backoffUntil! - account.now);
    }
    expect(silences.map((ms) => ms / MINUTE)).toEqual([1, 1, 1, 2, 4, 8, 10, 10, 10]);
  });

  test('repeated remembers how full the window was at the first: the later windows were quiet', () => {
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
    'that ended with %s says nothing: another goes a little later',
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

  test('after a back-off shorter than the window takes a place in the window like any other request', () => {
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

  test('that takes longer than that ends the back-off all the same, though another was sent meanwhile', () => {
    const account = probing();
    for (let n = 0; n < 2; n += 1) account.sendNext('ok', 150_000);
    expect(account.state.backoffUntil).not.toBeNull();
    account.pass(30_000);
    expect(account.state.backoffUntil).toBeNull();
  });

  test('that takes longer than that says nothing of a refusal that came after it was sent', () => {
    const account = probing();
    account.sendNext('ok', 150_000);
    account.sendNext(FORBIDDEN, 1000);
    account.pass(60_000);
    expect(account.state).toMatchObject({ refusals: 2 });
    expect(account.state.backoffUntil).not.toBeNull();
  });

  test('that takes longer than that, and then says nothing, leaves the other one under way', () => {
    const account = probing();
    account.sendNext('timeout', 150_000);
    account.sendNext('ok', 60_000);
    account.pass(30_000);
    expect(account.ask()).toMatchObject({ go: false, because: 'probe' });
  });
});

test('the pacer is never stuck: after any history a sender whose requests work comes back to full speed', () => {
  assert(
    property(anyLimits, anyHistory, (limits, history) => {
      const account = live(limits, history);
      account.pass(40_000);
      const longest = Math.max(limits.backoffMs * 10, 120_000) + account.span;
      expect(account.sendNext('ok')).toBeLessThanOrEqual(longest);
      // A service that heals: whatever is still under way comes in, and refusals end.
      account.pass(40_000);
      account.sendNext('ok');
      account.pass(limits.windowMs * 30);
      account.sendNext('ok');
      expect(ceilingAt(limits, account.state, account.now)).toBe(sendsPerWindow(limits));
    }),
    { numRuns: 200 },
  );
});
