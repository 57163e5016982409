import { array, assert, constantFrom, integer, property, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type AfterAsks,
  afterAsks,
  areAlike,
  areRecovering,
  type LiveAsks,
  NOTHING_REMEMBERED,
  type Remembered,
  withoutOwn,
} from '../../src/sync/live/again.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const NONE = { asked: 0, deferred: 0 };

/** A call at `at` with `asked` and `deferred` SKUs, all for the first time unless given otherwise. */
const call = (at: number, asked: number, deferred: number, more: Partial<LiveAsks> = {}): LiveAsks => ({
  at,
  first: { asked, deferred },
  second: NONE,
  later: NONE,
  ...more,
});
const second = (at: number, asked: number, deferred: number) =>
  call(at, 0, 0, { second: { asked, deferred } });

/** Returns what is remembered after the calls, and what each of them showed. */
function after(calls: readonly LiveAsks[], from: Remembered = NOTHING_REMEMBERED) {
  let remembered = from;
  const shown: AfterAsks[] = [];
  for (const each of calls) {
    const next = afterAsks(remembered, each);
    shown.push(next);
    remembered = next.remembered;
  }
  return { remembered, shown, last: shown.at(-1) as AfterAsks };
}

const every = (fromMs: number, toMs: number, stepMs: number, made: (at: number) => LiveAsks) =>
  Array.from({ length: Math.floor((toMs - fromMs) / stepMs) }, (_, i) => made(fromMs + i * stepMs));

/** Ten minutes of 120 SKUs a minute, one of which is deferred every minute and again five minutes later. */
const OWN = every(0, 10 * MINUTE, SECOND, (at) => {
  const isDeferred = at % MINUTE === 0;
  const again = isDeferred && at >= 5 * MINUTE;
  return call(at, 2, Number(isDeferred), { second: { asked: Number(again), deferred: Number(again) } });
});

describe('SKUs that are deferred for the first time', () => {
  test('are unexpected as long as nobody knows how such SKUs end', () => {
    expect(after([call(0, 5, 0), call(SECOND, 5, 1)]).last.expected).toBe(false);
    // Second requests that are computed do not make them expected either.
    expect(after([second(0, 20, 0), call(SECOND, 5, 1)]).last.expected).toBe(false);
  });

  test('are expected, in the same number, if earlier ones were deferred again', () => {
    const { remembered } = after(OWN);
    const at = 10 * MINUTE;
    expect(afterAsks(remembered, call(at, 2, 1)).expected).toBe(true);
    // All SKUs of some calls: that does not come from a few SKUs.
    const block = after([call(at, 2, 2), call(at + 500, 2, 2), call(at + 1000, 2, 2)], remembered);
    expect([block.shown[0]?.expected, block.last.expected]).toEqual([true, false]);
  });

  test('are no longer expected if earlier ones are computed, as under a ceiling', () => {
    const { remembered } = after(OWN);
    const computed = every(10 * MINUTE, 13 * MINUTE, 10 * SECOND, (at) => second(at, 1, 0));
    const { last } = after([...computed, call(13 * MINUTE, 2, 1)], remembered);
    expect(last.expected).toBe(false);
  });

  test('are judged on their own once more were deferred than expected', () => {
    const { remembered } = after(OWN);
    const at = 10 * MINUTE;
    const block = [0, 1, 2, 3].map((n) => call(at + n * 500, 2, 2));
    const { remembered: exceeded } = after(block, remembered);
    expect(exceeded.lately.length).toBeLessThanOrEqual(1);
    const passed = every(at + 2000, at + 12_000, SECOND, (when) => call(when, 2, 0));
    expect(after([...passed, call(at + 12_000, 2, 1)], exceeded).last.expected).toBe(true);
  });

  test('are forgotten after ten minutes, and when a clock is set back', () => {
    const { remembered } = after(OWN);
    expect(afterAsks(remembered, call(30 * MINUTE, 2, 1)).expected).toBe(false);
    expect(afterAsks(remembered, call(-30 * MINUTE, 2, 1)).remembered.calls).toHaveLength(1);
  });
});

describe('the best minute before deferrals are explained', () => {
  test('is reported once', () => {
    const before = every(0, 5 * MINUTE, SECOND, (at) => call(at, 5, 0));
    const again = every(6 * MINUTE, 7 * MINUTE, 10 * SECOND, (at) => second(at, 1, 1));
    const { shown } = after([...before, ...again]);
    const told = shown.map(({ proven }) => proven).filter((proven) => proven !== null);
    expect(told).toEqual([300]);
    expect(shown.findIndex(({ proven }) => proven !== null)).toBe(before.length + 4);
  });

  test('is not reported if most second requests are computed', () => {
    expect(
      after(every(0, MINUTE, SECOND, (at) => second(at, 5, 2))).shown.every(({ proven }) => proven === null),
    ).toBe(true);
  });
});

describe('SKUs deferred alike', () => {
  const before = every(0, 2 * MINUTE, SECOND, (at) => call(at, 5, 1));

  test('are recognised by second requests of SKUs that were deferred some minutes ago', () => {
    const { remembered } = after([
      ...before,
      ...every(6 * MINUTE, 7 * MINUTE, 6 * SECOND, (at) => second(at, 1, 0)),
    ]);
    expect(areAlike(remembered, 7 * MINUTE)).toBe(true);
  });

  test('are not recognised by few second requests, by repeated deferrals, or by those of another time', () => {
    const with_ = (calls: readonly LiveAsks[]) => areAlike(after(calls).remembered, 7 * MINUTE);
    expect(with_([...before, second(6 * MINUTE, 9, 0)])).toBe(false);
    expect(with_([...before, second(6 * MINUTE, 20, 6)])).toBe(false);
    expect(with_([call(0, 100, 29), second(6 * MINUTE, 20, 0)])).toBe(false);
    expect(
      with_([second(MINUTE, 20, 0), ...every(2 * MINUTE, 3 * MINUTE, SECOND, (at) => call(at, 5, 1))]),
    ).toBe(false);
  });
});

test('repeatedly deferred SKUs recover if most of the last ones were computed', () => {
  const recovering = (...calls: readonly (readonly [minute: number, asked: number, deferred: number])[]) =>
    areRecovering(
      after(
        calls.map(([minute, asked, deferred]) => call(minute * MINUTE, 5, 0, { later: { asked, deferred } })),
      ).remembered,
    );
  expect(recovering([0, 3, 1])).toBe(true);
  expect(recovering([0, 2, 0])).toBe(false);
  expect(recovering([0, 4, 2])).toBe(false);
  expect(recovering([0, 50, 50], [5, 3, 0])).toBe(true);
  expect(recovering([0, 50, 0], [5, 0, 0])).toBe(false);
});

test('a call teaches nothing of SKUs deferred before, nor of any deferral if it was expected', () => {
  const live = { asked: 5, answered: 2, deferred: 3 };
  expect(withoutOwn(live, { again: 0, expected: false })).toEqual(live);
  expect(withoutOwn(live, { again: 2, expected: false })).toEqual({ asked: 3, answered: 2, deferred: 1 });
  expect(withoutOwn(live, { again: 2, expected: true })).toEqual({ asked: 2, answered: 2, deferred: 0 });
});

test('no more than ten minutes are remembered, in steps of five seconds, and nothing is expected without cause', () => {
  const any = record({
    laterMs: constantFrom(0, 500, 5000, 60_000, 3_600_000, -3_600_000),
    first: integer({ min: 0, max: 5 }),
    deferred: integer({ min: 0, max: 5 }),
    second: integer({ min: 0, max: 5 }),
    again: integer({ min: 0, max: 5 }),
  });
  assert(
    property(array(any, { maxLength: 400, size: 'max' }), (drawn) => {
      let [remembered, at, hasAgain] = [NOTHING_REMEMBERED, 0, false];
      for (const { laterMs, first, deferred, second: asked, again } of drawn) {
        at += laterMs;
        hasAgain ||= Math.min(asked, again) > 0;
        const made = call(at, first, Math.min(first, deferred), {
          second: { asked, deferred: Math.min(asked, again) },
        });
        const next = afterAsks(remembered, made);
        remembered = next.remembered;
        // Clocks that are set back and forth leave no more entries than there were calls.
        expect(remembered.calls.length).toBeLessThanOrEqual(Math.min(drawn.length, 400));
        if (!hasAgain && made.first.deferred > 0) expect(next.expected).toBe(false);
        if (made.first.deferred === 0) expect(next.expected).toBe(true);
      }
    }),
  );
});
