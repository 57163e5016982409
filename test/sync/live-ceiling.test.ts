import { describe, expect, test } from 'vitest';
import { type LiveCeiling, NO_CEILING } from '../../src/store/live/limits.ts';
import {
  type CeilingEvidence,
  learnLiveCeiling,
  liveCeilingAt,
  measuredCeiling,
  liveCredit,
  meetsCeiling,
  returnedCreditMs,
  withoutIdleTime,
} from '../../src/sync/live/ceiling.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const CALLS = 118;
const PLAN = {
  best: 5,
  partlyDeferred: 0,
  lastDeferred: 0,
  othersDeferred: 0,
  computedRate: 400,
  computedAt: null as number | null,
};

const call = (asked: number, computed: number, at: number, more: Partial<CeilingEvidence> = {}) => ({
  askedAt: at,
  answeredAt: at + SECOND,
  asked,
  computed,
  deferred: asked - computed,
  snapshotDeferred: 0,
  alike: false,
  proven: null,
  budget: 5,
  configuredBudget: 5,
  ...more,
});
const known = (more: Partial<LiveCeiling> = {}): LiveCeiling => ({ ...NO_CEILING, perMinute: 200, ...more });
const learned = (ceiling: LiveCeiling, seen: CeilingEvidence, more: Partial<typeof PLAN> = {}) =>
  learnLiveCeiling({ ...PLAN, ...more, ceiling }, seen, CALLS);

describe('a call that may have met the ceiling', () => {
  const met = (seen: CeilingEvidence, ceiling = NO_CEILING, more: Partial<typeof PLAN> = {}) =>
    meetsCeiling(seen, { ...PLAN, ...more, ceiling });

  test('has met it if all its live SKUs were deferred: hardly anything else causes that', () => {
    expect(met(call(5, 0, 0))).toBe(true);
    expect(met(call(1, 0, 0))).toBe(true);
    expect(met(call(5, 5, 0))).toBe(false);
  });

  test('shows nothing if SKUs taken for snapshot-priced were deferred, because they used the budget unseen', () => {
    expect(met(call(5, 0, 0, { snapshotDeferred: 1 }))).toBe(false);
  });

  test('with some SKUs deferred counts if most recent calls were like it, and others got as many as it asked for', () => {
    const part = (partlyDeferred: number, lastDeferred: number, best = 5) =>
      met(call(5, 3, 0), NO_CEILING, { partlyDeferred, lastDeferred, best });
    expect(part(9, 20)).toBe(false);
    expect(part(20, 19)).toBe(false);
    expect(part(20, 20)).toBe(true);
    expect(part(20, 20, 4)).toBe(false);
  });

  test('with some SKUs deferred counts in fewer calls if SKUs are known to be deferred alike', () => {
    const part = (partlyDeferred: number) =>
      met(call(5, 3, 0, { alike: true }), NO_CEILING, { partlyDeferred });
    expect(part(9)).toBe(false);
    expect(part(10)).toBe(true);
  });

  test('that asked for more than the budget shows something about the budget only', () => {
    expect(met(call(6, 5, 0), known())).toBe(false);
    expect(met(call(5, 4, 0), known())).toBe(true);
    expect(met(call(4, 3, 0, { budget: 3.9 }), known())).toBe(false);
    expect(met(call(3, 2, 0, { budget: 3.9 }), known())).toBe(true);
    expect(met(call(6, 5, 0, { budget: 6.5 }), known())).toBe(false);
    expect(met(call(6, 5, 0, { budget: 6.5, configuredBudget: 6 }), known())).toBe(true);
  });

  test('shows nothing if other calls defer snapshot-priced SKUs, which use the budget unseen', () => {
    const hidden = (othersDeferred: number) => ({ partlyDeferred: 10, lastDeferred: 20, othersDeferred });
    expect(met(call(5, 4, 0), NO_CEILING, hidden(2))).toBe(false);
    expect(met(call(5, 4, 0), known(), hidden(2))).toBe(false);
    expect(met(call(5, 4, 0), NO_CEILING, hidden(1))).toBe(true);
    expect(met(call(5, 0, 0), NO_CEILING, hidden(2))).toBe(true);
  });

  test('under a known ceiling counts with any deferral, unless it tried a larger budget', () => {
    expect(met(call(2, 1, 0), known())).toBe(true);
    expect(met(call(6, 5, 0, { budget: 6.1 }), known())).toBe(false);
    expect(met(call(20, 5, 0), known())).toBe(false);
  });
});

describe('the ceiling on live computations', () => {
  test('is unknown and limits nothing until two calls within a minute meet it', () => {
    expect(learned(NO_CEILING, call(5, 5, 0))).toBeNull();
    const suspected = learned(NO_CEILING, call(5, 0, 10)) as LiveCeiling;
    expect(suspected).toEqual({ ...NO_CEILING, step: 1, failedAt: 10 });
    expect(liveCredit({ ceiling: suspected, computedAt: null, creditFrom: 0, now: MINUTE }, CALLS).skus).toBe(
      Infinity,
    );
    expect(learned(suspected, call(5, 0, MINUTE + 11))).toMatchObject({ perMinute: null, blockedAt: null });
    expect(learned(suspected, call(5, 0, MINUTE + 10))).toMatchObject({
      perMinute: 400,
      blockedAt: MINUTE + 10,
      cycleFrom: MINUTE + 10,
    });
  });

  test('is not met by calls of one or two SKUs if others were computed since the last one', () => {
    const suspected = { ...NO_CEILING, step: 1, failedAt: 10 };
    const chance = learned(suspected, call(2, 0, 20 * SECOND), { computedAt: 11 * SECOND });
    expect(chance).toEqual({ ...suspected, step: 2, failedAt: 20 * SECOND });
    for (const [seen, computedAt] of [
      [call(2, 0, 20 * SECOND), 10],
      [call(2, 0, 20 * SECOND), null],
      [call(3, 0, 20 * SECOND), 11 * SECOND],
    ] as const)
      expect(learned(suspected, seen, { computedAt })).toMatchObject({ blockedAt: 20 * SECOND });
  });

  test('returns to the earlier rate if it was lowered because of SKUs deferred for reasons of their own', () => {
    const before = known({ perMinute: 40, alike: 3, blockedAt: SECOND, failedAt: SECOND });
    const seen = call(5, 4, MINUTE, { deferred: 0, proven: 190 });
    expect(learned(before, seen)).toEqual({
      ...known({ perMinute: 190, since: MINUTE + SECOND, cycleFrom: MINUTE + SECOND }),
      step: 1,
    });
    // A slightly higher rate is no reason, and without a known ceiling there is nothing to raise.
    expect(learned(known({ perMinute: 185, since: MINUTE }), seen)).toBeNull();
    expect(learned(NO_CEILING, seen)).toBeNull();
  });

  test('is measured by the part of a cycle in which it was not met', () => {
    // Open for 90 of 100 seconds, at 199 on average, a little less at first and a little more at the end.
    const blocked = known({ since: 0, cycleFrom: 0, blockedAt: 90 * SECOND, failedAt: 99 * SECOND });
    const after = learned(blocked, call(1, 1, 100 * SECOND));
    expect(after?.perMinute).toBeCloseTo(180, -1);
    expect(after).toMatchObject({ blockedAt: null, failedAt: null, cycleFrom: 100 * SECOND, alike: 0 });
    // Growth starts when the answer is known.
    expect(after?.since).toBe(101 * SECOND);
  });

  test('counts cycles as alike if they measure the same, however far it had grown in between', () => {
    const grown = known({ since: 0, cycleFrom: 0, blockedAt: 4 * MINUTE, failedAt: 4 * MINUTE });
    expect(liveCeilingAt(grown, 4 * MINUTE)).toBeGreaterThan(1.1 * 200);
    const same = learned(grown, call(1, 1, 4.3 * MINUTE));
    expect(same?.perMinute).toBeCloseTo(200, -1);
    expect(same?.alike).toBe(1);
    const other = learned(grown, call(1, 1, 5 * MINUTE));
    expect(other?.perMinute).toBeCloseTo(172, 0);
    expect(other?.alike).toBe(0);
  });

  test('is no longer met once a call succeeds that was sent after the last one to meet it', () => {
    const blocked = known({ blockedAt: 90 * SECOND, failedAt: 90 * SECOND });
    expect(learned(blocked, call(2, 2, 89 * SECOND, { answeredAt: 95 * SECOND }))).toBeNull();
    expect(learned(blocked, call(2, 2, 91 * SECOND, { answeredAt: 95 * SECOND }))?.blockedAt).toBeNull();
    expect(learned(blocked, call(2, 0, 92 * SECOND))?.failedAt).toBe(92 * SECOND);
  });

  test('is not met again by a call that was sent before the last cycle was measured', () => {
    expect(learned(known({ since: 100 * SECOND }), call(2, 0, 99 * SECOND))).toBeNull();
    expect(learned(known({ since: 100 * SECOND }), call(2, 0, 101 * SECOND))?.blockedAt).toBe(101 * SECOND);
  });

  test('falls by at most four percent if cycles were alike, and by four fifths if not', () => {
    const half = { since: 0, cycleFrom: 0, blockedAt: MINUTE, failedAt: MINUTE };
    const ended = call(1, 1, 10 * MINUTE);
    const last = liveCeilingAt(known({ alike: 3 }), MINUTE);
    expect(learned(known({ ...half, alike: 3 }), ended)).toMatchObject({ perMinute: last * 0.96, alike: 2 });
    expect(learned(known(half), ended)?.perMinute).toBeCloseTo(liveCeilingAt(known(), MINUTE) / 5);
  });

  test('grows ever faster after some minutes, and later and more slowly if cycles were alike', () => {
    expect(liveCeilingAt(known(), 0)).toBe(199);
    expect(liveCeilingAt(known(), 2 * MINUTE)).toBeCloseTo(204, 0);
    const agreed = known({ alike: 5 });
    expect(liveCeilingAt(agreed, 0)).toBeCloseTo(200 * (1 - 0.005 / 6), 10);
    expect(liveCeilingAt(agreed, 5 * MINUTE)).toBe(liveCeilingAt(agreed, 0));
    const sinceHeld = liveCeilingAt(agreed, 6.5 * MINUTE) - liveCeilingAt(agreed, 5 * MINUTE);
    expect(sinceHeld).toBeCloseTo(liveCeilingAt(known(), MINUTE) - liveCeilingAt(known(), 0), 10);
    expect(liveCeilingAt(known(), 10 * MINUTE)).toBeGreaterThan(800);
  });

  test('is forgotten once it has grown beyond what all calls can ask for', () => {
    expect(learned(known(), call(5, 5, MINUTE))).toBeNull();
    expect(learned(known({ step: 7 }), call(5, 5, 60 * MINUTE))).toEqual({ ...NO_CEILING, step: 8 });
  });
});

test('a ceiling counts as measured once cycles agree on it', () => {
  const measured = [known({ perMinute: null }), known({ alike: 0 }), known({ alike: 1 })].map(
    measuredCeiling,
  );
  expect(measured).toEqual([Infinity, 0, 200]);
});

describe('a time in which nothing is computed', () => {
  const ceiling = known({ step: 3, since: 10 * MINUTE, cycleFrom: 9 * MINUTE });
  const at = 132 * MINUTE;
  const computedAt = 12 * MINUTE;

  test('does not change the ceiling, and counts only if it is longer than ten seconds', () => {
    const after = withoutIdleTime(ceiling, { computedAt, now: at }, CALLS);
    expect(after).toEqual({ ...ceiling, since: 130 * MINUTE, cycleFrom: 129 * MINUTE });
    expect(liveCeilingAt(after, at)).toBe(liveCeilingAt(ceiling, computedAt));
    expect(withoutIdleTime(ceiling, { computedAt, now: computedAt + 10 * SECOND }, CALLS)).toBe(ceiling);
  });

  test('is longer than one computation and than two calls take, but never needs to exceed two minutes', () => {
    const since = { since: 0, cycleFrom: 0 };
    const isIdle = (perMinute: number, ms: number, calls = CALLS) =>
      withoutIdleTime(known({ ...since, perMinute: perMinute / 0.995 }), { computedAt: 0, now: ms }, calls)
        .since > 0;
    expect([isIdle(1, 70 * SECOND), isIdle(1, 80 * SECOND)]).toEqual([false, true]);
    expect([isIdle(4, 18 * SECOND), isIdle(4, 20 * SECOND)]).toEqual([false, true]);
    expect([isIdle(0.2, 119 * SECOND), isIdle(0.2, 121 * SECOND)]).toEqual([false, true]);
    expect([isIdle(200, 29 * SECOND, 4), isIdle(200, 31 * SECOND, 4)]).toEqual([false, true]);
    expect([isIdle(200, 119 * SECOND, 0.5), isIdle(200, 121 * SECOND, 0.5)]).toEqual([false, true]);
  });

  test.each([
    ['no ceiling is known', { ...ceiling, perMinute: null }, computedAt],
    ['it is met, which lasts as long as it lasts', { ...ceiling, blockedAt: 13 * MINUTE }, computedAt],
    ['nobody knows when it began', ceiling, null],
  ])('changes nothing if %s', (_, before, since) => {
    expect(withoutIdleTime(before, { computedAt: since, now: at }, CALLS)).toBe(before);
  });

  test('is left out for good by the first call after it', () => {
    const after = learned(ceiling, call(5, 5, at), { computedAt }) as LiveCeiling;
    expect(after).toEqual({ ...ceiling, step: 4, since: 130 * MINUTE, cycleFrom: 129 * MINUTE });
    expect(learned(after, call(5, 5, at + SECOND), { computedAt: at })).toBeNull();
    // Without that the ceiling would be forgotten by then.
    expect(learned(ceiling, call(5, 5, at))).toEqual({ ...NO_CEILING, step: 4 });
  });

  test('does not make the ceiling grow even if the first call after it meets the ceiling', () => {
    const met = learned(ceiling, call(5, 0, at), { computedAt }) as LiveCeiling;
    expect(met).toMatchObject({ perMinute: 200, blockedAt: at, since: 130 * MINUTE });
  });

  test('gives no more credit than there was before', () => {
    const credit = (now: number, computed: number | null) =>
      liveCredit({ ceiling, computedAt: computed, creditFrom: now - 1, now }, CALLS).spend?.skuMs;
    expect(credit(at, computedAt)).toBe(credit(computedAt, computedAt));
    expect(credit(at, null)).toBeLessThan(1);
  });
});

describe('the credit for live SKUs', () => {
  const credit = (ceiling: LiveCeiling, creditFrom: number, now: number) =>
    liveCredit({ ceiling, computedAt: null, creditFrom, now }, CALLS);

  test('grows evenly, and is not saved up if unused', () => {
    const ceiling = known({ perMinute: 60 / 0.995 });
    expect(credit(ceiling, 0, 500).skus).toBeCloseTo(0.5);
    expect(credit(ceiling, 0, 500).waitMs).toBeCloseTo(500, -1);
    expect(credit(ceiling, 0, MINUTE).skus).toBeLessThan(2);
  });

  test('is one SKU at ever longer intervals, at most a minute, while the ceiling is met', () => {
    const blocked = (failedAt: number) => known({ blockedAt: 0, failedAt });
    expect(credit(blocked(0), 0, 500).skus).toBe(0);
    expect(credit(blocked(0), 0, 509)).toEqual({ skus: 1, waitMs: 0, spend: { skuMs: 0, mostMs: 0 } });
    expect(credit(blocked(10 * SECOND), 0, 15 * SECOND).waitMs).toBe(SECOND);
    expect(credit(blocked(60 * MINUTE), 0, 61 * MINUTE).skus).toBe(1);
    // A SKU that was requested since counts as a try, answered or not.
    expect(credit(blocked(0), 10 * SECOND, 15 * SECOND).skus).toBe(0);
  });

  test('a block that a clock set back leaves in the future ends with the next answer, and raises nothing', () => {
    const before = known({ since: 0, cycleFrom: 0, blockedAt: 10 * MINUTE, failedAt: 10 * MINUTE });
    const after = learned(before, call(5, 5, 5 * MINUTE));
    expect(after).toMatchObject({ blockedAt: null, failedAt: null });
    expect(after?.perMinute).toBeLessThanOrEqual(liveCeilingAt(before, 10 * MINUTE));
  });

  test('is blocked for at most a minute by a database clock that was set back', () => {
    const ahead = 8 * 24 * 60 * MINUTE;
    expect(credit(known({ since: ahead }), ahead, 0).skus).toBeGreaterThanOrEqual(1);
    const blocked = known({ since: ahead, blockedAt: ahead, failedAt: ahead, cycleFrom: ahead });
    expect(credit(blocked, ahead, 0).waitMs).toBeLessThanOrEqual(MINUTE);
    expect(learned(blocked, call(1, 1, MINUTE))).toMatchObject({ blockedAt: null, since: MINUTE + SECOND });
  });

  test('never falls to zero, because the ceiling could not be measured again', () => {
    const blocked = known({ perMinute: 6, blockedAt: SECOND, failedAt: SECOND });
    expect(learned(blocked, call(1, 1, 9 * SECOND))?.perMinute).toBeCloseTo(6 * 0.85, 0);
    expect(learned(known({ ...blocked, perMinute: 1 }), call(1, 1, 9 * SECOND))?.perMinute).toBe(1);
  });

  test('for a partner that computes one a minute is known within four minutes, and not exceeded', () => {
    const [first, second] = [call(1, 0, 0), call(1, 0, SECOND)];
    const met = learned(learned(NO_CEILING, first) as LiveCeiling, second, {
      computedRate: 0,
    }) as LiveCeiling;
    expect(met).toMatchObject({ perMinute: 5, blockedAt: SECOND });
    let ceiling = met;
    for (let minute = 1; minute <= 4; minute += 1) {
      ceiling = learned(ceiling, call(1, 1, minute * MINUTE)) as LiveCeiling;
      if (minute < 4) ceiling = learned(ceiling, call(1, 0, minute * MINUTE + 15 * SECOND)) as LiveCeiling;
    }
    expect(ceiling.perMinute).toBeGreaterThanOrEqual(1);
    expect(ceiling.perMinute).toBeLessThan(1.3);
  });

  test('grows from one a minute to a raised ceiling as soon as from five a minute', () => {
    const minutes = (perMinute: number) => {
      let at = 0;
      while (liveCeilingAt(known({ perMinute }), at * MINUTE) < 200) at += 1;
      return at;
    };
    expect(minutes(1)).toBeLessThanOrEqual(minutes(5) + 1);
  });

  test('does not grow while the ceiling is met, however long that lasts', () => {
    const blocked = known({ blockedAt: MINUTE, failedAt: MINUTE });
    expect(liveCeilingAt(blocked, 3 * 60 * MINUTE)).toBe(liveCeilingAt(blocked, MINUTE));
  });

  test('that repeatedly deferred SKUs took is given back, because they did not use the ceiling', () => {
    const { spend } = credit(known({ perMinute: 6 / 0.995 }), 0, MINUTE);
    expect(returnedCreditMs(spend, 3) / 30_000).toBeCloseTo(1, 1);
    // In a burst it would meet a limit per second.
    expect(returnedCreditMs(credit(known(), 0, MINUTE).spend, 3)).toBe(0);
    expect([returnedCreditMs(spend, 0), returnedCreditMs(null, 3)]).toEqual([0, 0]);
    const blocked = credit(known({ blockedAt: 0, failedAt: 0 }), 0, MINUTE);
    expect([blocked.skus, returnedCreditMs(blocked.spend, 1)]).toEqual([1, 0]);
  });
});
