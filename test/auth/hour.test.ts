import { describe, expect, test } from 'vitest';
import { sendsPerWindow, type PaceLimits } from '../../src/pace/policy.ts';
import { refusalOf, type Suspicion } from '../../src/pace/view.ts';
import { RollingWindow } from '../../src/sandbox/gate.ts';
import { Account } from '../pace/account.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** How often the mirror checks whether it may send, once it is time to. */
const STEP = 50;
/** The defaults: 200 requests a minute for the account, 60 % of them for the mirror. */
const LIMITS: PaceLimits = { maxPerWindow: 120, windowMs: MINUTE, backoffMs: MINUTE };
const FORBIDDEN = 'throttled-or-forbidden';

interface Weather {
  /** Whether the secret is right `at` ms after the beginning. */
  readonly secretRight: (at: number) => boolean;
  /** Requests that the account's other users send in the second that starts at `at`. */
  readonly others: (at: number) => number;
}

interface Seen {
  /** Own sends, in ms after the beginning. */
  readonly sends: number[];
  /** When a log line `pace.silenced` is written. */
  readonly backedOff: number[];
  /** When requests resumed. */
  readonly resumed: number[];
  readonly suspected: Set<Suspicion>;
  /** The refusals at the end, or null. */
  readonly end: ReturnType<typeof refusalOf>;
}

/** Simulates a mirror that always has something to ask, beside others on one account, for `ms` on its own clock. */
function live(weather: Weather, ms: number): Seen {
  const account = new Account(LIMITS);
  const begin = account.now;
  const partner = new RollingWindow(MINUTE);
  const seen: Seen = { sends: [], backedOff: [], resumed: [], suspected: new Set(), end: null };
  let { refusals } = account.state;
  const watch = () => {
    const at = account.now - begin;
    if (account.state.refusals > refusals) seen.backedOff.push(at);
    if (account.state.refusals < refusals) seen.resumed.push(at);
    ({ refusals } = account.state);
    const refusal = refusalOf(LIMITS, account.state);
    if (refusal !== null) seen.suspected.add(refusal.suspected);
  };
  let askAt = account.now;
  for (let at = 0; at < ms; at += STEP) {
    if (at % SECOND === 0) for (let n = weather.others(at); n > 0; n -= 1) partner.add(account.now);
    const decision = account.now < askAt ? null : account.ask();
    if (decision?.go === false) askAt = decision.at;
    if (decision?.go === true) {
      const outcome = partner.add(account.now) > 200 || !weather.secretRight(at) ? FORBIDDEN : 'ok';
      account.send(outcome, 50);
      seen.sends.push(at);
    }
    account.pass(STEP);
    watch();
  }
  return { ...seen, end: refusalOf(LIMITS, account.state) };
}

const quiet = () => 0;
const always = () => true;

describe('an hour with a wrong secret', () => {
  const wrong = (from: number, to: number) => (at: number) => at < from || at >= to;

  test('from the start takes eleven half-open requests and log lines, with growing gaps of at most ten minutes', () => {
    const { sends, backedOff, suspected, end } = live({ secretRight: () => false, others: quiet }, HOUR);
    expect(sends.map((at) => Math.round(at / MINUTE))).toEqual([0, 1, 2, 3, 5, 9, 17, 27, 37, 47, 57]);
    expect(backedOff).toHaveLength(sends.length);
    expect([...suspected]).toEqual(['other-traffic-or-credential', 'credential']);
    expect(end).toMatchObject({ times: 11, ownRequests: 1, ownMost: 120, outcome: FORBIDDEN });
  });

  test('that begins at full speed makes the rate suspect first, and the credential from the third refusal on', () => {
    const { sends, suspected, backedOff } = live(
      { secretRight: wrong(HOUR, 2 * HOUR), others: quiet },
      2 * HOUR,
    );
    expect(sends.filter((at) => at >= HOUR).length).toBeLessThanOrEqual(12);
    expect(backedOff).toHaveLength(sends.filter((at) => at >= HOUR).length);
    expect([...suspected]).toEqual(['rate', 'credential']);
  });

  test('ends within the longest back-off once the secret is right, and full speed returns', () => {
    for (const end of [62, 70, 85, 119].map((minutes) => minutes * MINUTE)) {
      const seen = live({ secretRight: wrong(HOUR, end), others: quiet }, end + HOUR);
      const [resumed] = seen.resumed;
      expect(resumed).toBeGreaterThanOrEqual(end);
      expect((resumed ?? Infinity) - end).toBeLessThanOrEqual(10 * MINUTE + SECOND);
      expect(seen.end).toBeNull();
      const lastMinute = seen.sends.filter((at) => at >= end + HOUR - MINUTE).length;
      expect(lastMinute).toBeGreaterThanOrEqual(sendsPerWindow(LIMITS) * 0.9);
    }
  });
});

describe('other users of the account who are too fast', () => {
  test('now and then, for an hour, never make the credential suspect, and requests continue', () => {
    // 250 requests in 25 seconds, every seven minutes.
    const others = (at: number) => (at % (7 * MINUTE) < 25 * SECOND ? 10 : 0);
    const { backedOff, suspected, resumed, sends } = live({ secretRight: always, others }, HOUR);
    expect(backedOff.length).toBeGreaterThan(3);
    expect(resumed.length).toBeGreaterThan(3);
    expect(suspected).not.toContain('credential');
    expect(suspected.size).toBeGreaterThan(0);
    expect(sends.length).toBeGreaterThan(15 * 60);
  });

  test('half of the time do not make the credential suspect', () => {
    const others = (at: number) => (at % (4 * MINUTE) < 2 * MINUTE ? 4 : 0);
    const { suspected, backedOff } = live({ secretRight: always, others }, HOUR);
    expect(backedOff.length).toBeGreaterThan(10);
    expect(suspected).not.toContain('credential');
  });

  test('all the time make the credential suspect as well, until they stop', () => {
    const others = (at: number) => (at < HOUR ? 5 : 0);
    const seen = live({ secretRight: always, others }, HOUR + 15 * MINUTE);
    expect(seen.suspected).toContain('credential');
    expect(seen.sends.filter((at) => at >= MINUTE && at < HOUR).length).toBeLessThanOrEqual(11);
    expect((seen.resumed.at(-1) ?? Infinity) - HOUR).toBeLessThanOrEqual(10 * MINUTE + SECOND);
    expect(seen.end).toBeNull();
  });
});
