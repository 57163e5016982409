import { expect, test } from 'vitest';
import { createInterval, createSums, createLogThrottle } from '../../src/telemetry/log/throttle.ts';

const MINUTE = 60_000;
const BEGINNING = Date.parse('2026-11-21T00:00:00Z');

function clocked() {
  let at = 0;
  const clock = { now: () => BEGINNING + at, monotonic: () => at, sleep: () => Promise.resolve() };
  return { clock, pass: (ms: number) => void (at += ms), at: () => at };
}

test('a recurring error is logged at once, after 1, 5 and 15 minutes, then hourly, and its end once', () => {
  const { clock, pass, at } = clocked();
  const throttle = createLogThrottle(clock);
  const said: number[] = [];
  for (let n = 0; n < 6 * 60; n += 1) {
    const { say, times, since } = throttle.again('store', 'away');
    expect({ times, since }).toEqual({ times: n + 1, since: '2026-11-21T00:00:00.000Z' });
    if (say) said.push(at() / MINUTE);
    pass(MINUTE);
  }
  expect(said).toEqual([0, 1, 6, 21, 81, 141, 201, 261, 321]);
  expect(throttle.over('store')).toEqual({ say: true, times: 360, lastedSeconds: 360 * 60 });
  expect(throttle.over('store')).toBeNull();
  expect(throttle.over('another')).toBeNull();
});

test('another fingerprint of the same error is logged at once, and only once', () => {
  const { clock, pass } = clocked();
  const throttle = createLogThrottle(clock);
  const looks = ['network', 'network', 'timeout', 'network', 'timeout'].map((look) => {
    pass(1000);
    return throttle.again('delta', look).say;
  });
  expect(looks).toEqual([true, false, true, false, false]);
});

test('an error with a new fingerprint each time is logged at most a hundred times', () => {
  const { clock, pass } = clocked();
  const throttle = createLogThrottle(clock);
  const said = Array.from({ length: 5000 }, (_, n) => {
    pass(10);
    return throttle.again('queues', `look ${n}`).say;
  });
  expect(said.filter(Boolean)).toHaveLength(100);
});

test('an intermittent error counts as one, which ends after five minutes without it', () => {
  const { clock, pass } = clocked();
  const throttle = createLogThrottle(clock);
  throttle.again('pace', 'refused');
  pass(30_000);
  expect(throttle.over('pace')).toMatchObject({ say: true, lastedSeconds: 30 });
  pass(20_000);
  // Back within the gap: neither it nor its end is logged, because the real end is known only later.
  expect(throttle.again('pace', 'refused')).toMatchObject({ say: false, times: 2 });
  pass(20_000);
  expect(throttle.over('pace')).toMatchObject({ say: false });
  expect(throttle.over('pace')).toBeNull();
  pass(10 * MINUTE);
  expect(throttle.again('pace', 'refused')).toMatchObject({ say: true, times: 3 });
  pass(MINUTE);
  expect(throttle.over('pace')).toMatchObject({ say: false });
  pass(4 * MINUTE);
  expect(throttle.over('pace')).toBeNull();
  pass(MINUTE);
  expect(throttle.over('pace')).toMatchObject({ say: true, times: 3, lastedSeconds: 730 });
  expect(throttle.over('pace')).toBeNull();
});

test('an error that returns over half an hour after its end is a new one', () => {
  const { clock, pass } = clocked();
  const throttle = createLogThrottle(clock);
  throttle.again('store', 'away');
  throttle.over('store');
  pass(31 * MINUTE);
  expect(throttle.again('store', 'away')).toEqual({
    say: true,
    times: 1,
    since: '2026-11-21T00:31:00.000Z',
  });
});

test('sums are logged at once, then once per interval with everything since', () => {
  const { clock, pass } = clocked();
  const sums = createSums<{ calls: number; skus: number }>(clock, 10 * MINUTE);
  expect(sums.add({ calls: 1, skus: 5 })).toEqual({ calls: 1, skus: 5 });
  expect(sums.due()).toBeNull();
  expect(sums.add({ calls: 1, skus: 2 })).toBeNull();
  pass(5 * MINUTE);
  expect(sums.add({ calls: 1, skus: 3 })).toBeNull();
  pass(5 * MINUTE);
  expect(sums.due()).toEqual({ calls: 2, skus: 5 });
  pass(60 * MINUTE);
  expect(sums.due()).toBeNull();
  expect(sums.add({ calls: 1, skus: 1 })).toEqual({ calls: 1, skus: 1 });
});

test('an interval is due the first time, and then once per period', () => {
  const { clock, pass } = clocked();
  const rarely = createInterval(clock, MINUTE);
  expect([rarely(), rarely()]).toEqual([true, false]);
  pass(MINUTE);
  expect([rarely(), rarely()]).toEqual([true, false]);
});
