import { array, assert, constantFrom, integer, property, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { initialPace, type PaceLimits, type PaceState } from '../../src/pace/policy.ts';
import { explainRefusal, refusalOf } from '../../src/pace/view.ts';
import { Account, type End } from '../pace/account.ts';
import { runs } from '../support/soak.ts';

const MINUTE = 60_000;
const LIMITS: PaceLimits = { maxPerWindow: 120, windowMs: MINUTE, backoffMs: MINUTE };
const SINCE = Date.parse('2026-11-21T10:00:00Z');
const FORBIDDEN = 'throttled-or-forbidden';

/** Returns an account that was refused `refusals` times, once a minute. */
function refused(facts: Partial<PaceState> = {}): PaceState {
  const refusals = facts.refusals ?? 1;
  return {
    ...initialPace(LIMITS, SINCE),
    backoffUntil: SINCE + refusals * MINUTE,
    refusals,
    refusal: FORBIDDEN,
    refusedSince: SINCE,
    refusedAt: SINCE + (refusals - 1) * (MINUTE + 500),
    occupancy: 110,
    resumeAt: 55,
    ...facts,
  };
}

const said = (facts: Partial<PaceState>) => explainRefusal(LIMITS, refused(facts));

describe('the explanation of a refusal', () => {
  test('is empty while requests are let through', () => {
    expect(refusalOf(LIMITS, initialPace(LIMITS, SINCE))).toBeNull();
    expect(explainRefusal(LIMITS, initialPace(LIMITS, SINCE))).toBeNull();
  });

  test('starts with what is known: the answer, since when, and how often', () => {
    const since = 'since 2026-11-21T10:00:00.000Z';
    expect(said({})).toContain(`throttled or refused; a 403 ${since}; `);
    expect(said({ refusals: 2 })).toContain(`a 403 ${since}, 2 times in a row`);
    expect(said({ refusal: 'unauthorised' })).toContain(
      `a 401 (the Authorization header did not arrive) ${since}`,
    );
    expect(said({ refusal: 'authorizer-fault' })).toContain(`authorizer's 500 (an unknown api_key`);
  });

  test.each([
    [
      'the rate, where own requests filled half of the share or more',
      { occupancy: 60 },
      'the rate limit is suspected',
    ],
    [
      'other traffic or the credential, where they were fewer',
      { occupancy: 59 },
      'own requests were few (59 of 120): other traffic is heavy or the credential is wrong',
    ],
    [
      'the credential at the third refusal in quiet windows, and still other traffic',
      { refusals: 3 },
      'the credential is suspected, or other traffic constantly fills the limit',
    ],
    [
      'still the rate, where three refusals came within one window',
      { refusals: 3, refusedAt: SINCE + MINUTE + 499 },
      'the rate limit is suspected',
    ],
  ])('then says what is suspected: %s', (_name, facts, text) => {
    expect(said(facts)).toContain(text);
  });

  test('is definite for an account that is not configured, because the partner itself says so', () => {
    expect(said({ refusal: 'account-not-configured', refusals: 5 })).toBe('supplier account not configured');
  });

  test('never claims to know what only the partner knows', () => {
    for (const refusals of [1, 2, 3, 50])
      for (const occupancy of [0, 1, 60, 120]) {
        const rest = said({ refusals, occupancy })?.replace(
          'other traffic is heavy or the credential is wrong',
          '',
        );
        expect(rest).not.toMatch(/wrong|invalid|reject/);
      }
  });
});

const anyLimits = record({
  maxPerWindow: integer({ min: 1, max: 60 }),
  windowMs: integer({ min: 1000, max: 120_000 }),
  backoffMs: integer({ min: 100, max: 120_000 }),
});
const anyHistory = array(
  record({
    passMs: integer({ min: 0, max: 20_000 }),
    latencyMs: integer({ min: 0, max: 40_000 }),
    outcome: constantFrom<End>(
      'ok',
      FORBIDDEN,
      FORBIDDEN,
      FORBIDDEN,
      FORBIDDEN,
      'unauthorised',
      'timeout',
      'lost',
    ),
  }),
  { maxLength: 60, size: 'max' },
);

test('the credential is suspected only after three refusals over a whole window without a success', () => {
  let suspected = 0;
  assert(
    property(anyLimits, anyHistory, (limits, history) => {
      const account = new Account(limits);
      for (const { passMs, latencyMs, outcome } of history) {
        account.pass(passMs);
        account.sendNext(outcome, latencyMs);
        const refusal = refusalOf(limits, account.state);
        if (refusal?.suspected !== 'credential') continue;
        suspected += 1;
        expect(refusal.times).toBeGreaterThanOrEqual(3);
        const from = refusal.since.getTime();
        expect(account.now - from).toBeGreaterThanOrEqual(limits.windowMs);
        // Only half-open requests since the first refusal: at most one per back-off, or per sixth of it if one had
        // no result.
        const sends = account.sends.filter((at) => at > from).length;
        expect(sends).toBeLessThanOrEqual(1 + ((account.now - from) * 6) / limits.backoffMs);
      }
    }),
    { numRuns: runs(300) },
  );
  expect(suspected).toBeGreaterThan(0);
});
