import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CallSize } from '../../src/store/call/call-lesson.ts';
import { FAILURES_BEFORE_PAUSE } from '../../src/store/ledger/tasks.ts';
import { afterFailedCall, ANY_SIZE, sizeAfter, skusOfCall } from '../../src/sync/reprice/call-size.ts';
import { planSuspects } from '../../src/sync/reprice/packing.ts';
import { MAX_UNDER_WAY } from '../../src/sync/reprice/slice.ts';
import { settingsWith } from '../support/settings.ts';
import { runs } from '../support/soak.ts';
import { reprice } from './failing-partner.ts';
import { allowed, type Failing, FINE, HOUR, MINUTE, MOST, type Outcome, worst } from './failing.ts';

const SETTINGS = settingsWith();
const ANY: CallSize = { step: 0, ...ANY_SIZE };

describe('one SKU that makes every call fail', () => {
  test.each([
    ['a live one', 3],
    ['a snapshot-priced one', 300],
  ])('%s, delays no other, and costs ten calls a day', (_, bad) => {
    const outcome = reprice({ ...FINE, bad: new Set([bad]) }, 24);
    expect(worst(outcome, [], 10 * MINUTE, 0)).toBeLessThan(MINUTE);
    expect(outcome.lost).toBeLessThanOrEqual(16);
    const without = reprice(FINE, 24);
    expect(outcome.calls - outcome.lost).toBeGreaterThan(0.95 * without.calls);
  });

  test('does not block the other one in a catalog of two', () => {
    const outcome = reprice({ ...FINE, skus: 2, live: 2, bad: new Set([0]) }, 24);
    expect(worst(outcome, [], 2 * MINUTE, 0)).toBeLessThan(MINUTE);
  });
});

describe('a limit on the size of calls', () => {
  test.each([99, 60, 34, 7, 1])(
    'of %i SKUs is found, remembered, and hardly ever exceeded again',
    (limit) => {
      const outcome = reprice({ ...FINE, limit, skus: 1000, live: 20, workers: 1, latencyMs: 200 }, 12);
      expect(outcome.lost).toBeLessThanOrEqual(allowed(outcome, 0, 12));
      // The first load takes calls of at least two thirds of that size, plus the lost ones.
      const fill = Math.max(0, ...outcome.late.filter(({ byMs }) => byMs > MINUTE).map(({ at }) => at));
      const calls = (1000 / limit) * 1.5 + 40;
      expect(fill).toBeLessThan((calls / SETTINGS.callsPerMinute) * MINUTE + 5 * MINUTE);
    },
  );

  test('is forgotten once it is gone: nothing is remembered forever', () => {
    let size: CallSize = { ...ANY, size: 30, failing: 60, proven: 30, patience: 80 };
    let calls = 0;
    while (size.size !== null && calls < 100_000) {
      calls += 1;
      const call = { skus: skusOfCall(size, MOST, 0), failed: false, hadFailed: false };
      size = sizeAfter(size, MOST, call) ?? size;
    }
    expect(size).toMatchObject(ANY_SIZE);
    expect(calls).toBeLessThan(500);
  });
});

test('after an outage all SKUs are within their targets again, within the hour even after a long one', () => {
  const outages = [
    [3 * HOUR, 3 * HOUR + 2 * MINUTE],
    [5 * HOUR, 11 * HOUR],
  ] as const;
  const outcome = reprice({ ...FINE, outages }, 24);
  expect(worst(outcome, outages, 10 * MINUTE, 45 * MINUTE)).toBeLessThan(MINUTE);
  expect(outcome.lost).toBeLessThan(allowed(outcome, 0, 24));
});

/**
 * With a limit of about twenty SKUs and bad ones among them, halves of failed calls take every second call for
 * some minutes after an outage. Counter-example: 177 SKUs, 96 live, two bad, limit 22, three workers, answers of 8
 * s: 3 minutes 5 s.
 */
const LATE = 5 * MINUTE;
test('after an outage that made every SKU a suspect, one bad SKU does not use up all tries', () => {
  const minutes = [80, 178] as const;
  const partner = { ...FINE, skus: 100, live: 40, limit: 25, workers: MAX_UNDER_WAY, latencyMs: 15_000 };
  const outages = [[minutes[0] * MINUTE, minutes[1] * MINUTE]] as const;
  const outcome = reprice({ ...partner, bad: new Set([5]), outages }, 12);
  expect(worst(outcome, outages, 30 * MINUTE, 45 * MINUTE)).toBeLessThan(3 * MINUTE);
});

/**
 * Returns the calls that outages cost: those under way at the start, some until all pause for ever longer, and one
 * after each pause of five minutes.
 */
const toOutages = (outages: Failing['outages'], workers: number) =>
  outages.reduce(
    (calls, [from, to]) => calls + workers + 5 * FAILURES_BEFORE_PAUSE + (to - from) / (5 * MINUTE),
    0,
  );

test('five bad SKUs of a hundred and an outage of hours cost no more than each of them alone', () => {
  const partner = { ...FINE, skus: 101, live: 40, workers: MAX_UNDER_WAY, bad: new Set([0, 69, 1, 3, 54]) };
  const outages = [[272 * MINUTE, 417 * MINUTE]] as const;
  const outcome = reprice({ ...partner, outages }, 24);
  expect(outcome.lostToOutages).toBeLessThanOrEqual(toOutages(outages, MAX_UNDER_WAY));
  expect(outcome.lost - outcome.lostToOutages).toBeLessThanOrEqual(allowed(outcome, 5, 24));
});

test('six bad SKUs, calls of five and an outage cost no more than each alone, plus the calls under way', () => {
  const partner = { ...FINE, skus: 237, live: 40, limit: 5, workers: MAX_UNDER_WAY, latencyMs: 15_000 };
  const outages = [[201 * MINUTE, 374 * MINUTE]] as const;
  const outcome = reprice({ ...partner, bad: new Set([78, 190, 0, 80, 94, 92]), outages }, 24);
  expect(outcome.lost - outcome.lostToOutages).toBeLessThanOrEqual(allowed(outcome, 6, 24, MAX_UNDER_WAY));
});

test('for any bad SKUs, limit and outage the other SKUs keep their targets and few calls are lost', () => {
  const minutes = (most: number) => fc.integer({ min: 1, max: most });
  const partners = fc.record({
    skus: fc.integer({ min: 100, max: 300 }),
    live: fc.integer({ min: 40, max: 100 }),
    bad: fc.uniqueArray(fc.nat(299), { maxLength: 8 }),
    limit: fc.oneof(fc.constant(MOST), fc.integer({ min: 1, max: 10 }), fc.integer({ min: 11, max: 99 })),
    outage: fc.option(fc.tuple(minutes(300), minutes(180)), { nil: null }),
    workers: fc.constantFrom(1, 4, MAX_UNDER_WAY),
    latencyMs: fc.constantFrom(200, 2000, 8000, 15_000),
  });
  const hours = 24;
  fc.assert(
    fc.property(partners, ({ bad, outage, ...rest }) => {
      // Only if there are calls for all SKUs: a mirror that is short of calls is late without any failure.
      fc.pre(
        rest.live / Math.min(5, rest.limit) <
          0.35 * Math.min(118, (rest.workers * MINUTE) / rest.latencyMs) * 5,
      );
      const hidden = new Set(bad.filter((n) => n < rest.skus));
      const outages =
        outage === null ? [] : [[outage[0] * MINUTE, (outage[0] + outage[1]) * MINUTE] as const];
      const outcome = reprice({ ...FINE, ...rest, bad: hidden, outages }, hours);
      expect(worst(outcome, outages, 30 * MINUTE, 45 * MINUTE)).toBeLessThan(LATE);
      expect(outcome.lostToOutages).toBeLessThanOrEqual(toOutages(outages, rest.workers));
      const underWay = rest.limit < MOST ? rest.workers : 0;
      expect(outcome.lost - outcome.lostToOutages).toBeLessThanOrEqual(
        allowed(outcome, hidden.size, hours, underWay),
      );
    }),
    { numRuns: runs(6, 20) },
  );
}, 120_000);

describe('while every call with a live SKU fails', () => {
  const ALWAYS = [[0, 6 * HOUR]] as const;
  const isLive = (sku: string, { live }: Failing) => Number(sku.slice(1)) < live;
  /** Returns by how much the most overdue snapshot-priced SKU exceeded its target, after `from`. */
  const worstOther = (partner: Failing, { late }: Outcome, from: number) =>
    Math.max(0, ...late.filter(({ sku, at }) => !isLive(sku, partner) && at >= from).map(({ byMs }) => byMs));

  test.each([
    ['hangs, in 32 calls at once', 10_000, 500, MAX_UNDER_WAY, 29_000],
    ['hangs, in one call at a time', 3000, 300, 1, 29_000],
    ['fails at once', 3000, 300, MAX_UNDER_WAY, 2000],
  ])(
    'and %s, the others are priced within minutes, and the outage is reported',
    (_, skus, live, workers, hangMs) => {
      const partner = { ...FINE, skus, live, workers, hangMs, liveOutages: ALWAYS };
      const outcome = reprice(partner, 2);
      expect(worstOther(partner, outcome, 10 * MINUTE)).toBe(0);
      expect(outcome.outages).toEqual([{ began: expect.any(Number) as number, ended: Infinity }]);
      expect(outcome.outages[0]?.began).toBeLessThan(5 * MINUTE);
      // One try a minute, plus the calls under way before the outage is known.
      expect(outcome.lost).toBeLessThan(2 * 60 + 2 * MAX_UNDER_WAY + 20);
    },
  );

  test('the others keep their targets, and live SKUs are back minutes after its end', () => {
    const liveOutages = [[HOUR, 3 * HOUR]] as const;
    const partner = { ...FINE, skus: 3000, live: 300, workers: MAX_UNDER_WAY, atOnce: false, liveOutages };
    const outcome = reprice(partner, 4);
    expect(worstOther(partner, outcome, 0)).toBeLessThan(5 * MINUTE);
    expect(outcome.outages).toHaveLength(1);
    expect(worst(outcome, liveOutages, 0, 10 * MINUTE)).toBeLessThan(MINUTE);
    expect(outcome.outages[0]?.ended).toBeLessThan(3 * HOUR + 2 * MINUTE);
  });

  test('a try that takes all the time until the next one leaves every second call to the others', () => {
    const liveOutages = [[179 * MINUTE, 476 * MINUTE]] as const;
    const partner = {
      ...FINE,
      skus: 2995,
      live: 236,
      workers: 1,
      latencyMs: 200,
      hangMs: 60_000,
      atOnce: false,
    };
    const outcome = reprice({ ...partner, liveOutages }, 10);
    expect(worstOther({ ...partner, liveOutages }, outcome, 0)).toBeLessThan(LATE);
  });

  test('others that were in a failed call are asked for between the tries, too', () => {
    const liveOutages = [[5 * MINUTE, 36 * MINUTE]] as const;
    const hanging = { workers: 1, latencyMs: 200, hangMs: 60_000, atOnce: false, liveOutages };
    const partner = { ...FINE, ...hanging, skus: 1831, live: 10, bad: new Set([3, 6]) };
    expect(worstOther(partner, reprice(partner, 2), 0)).toBeLessThan(12 * MINUTE);
  });

  const TEN_LIVE = { ...FINE, skus: 100, live: 10, latencyMs: 200, atOnce: false };
  test('two live SKUs that fail alone do not hide that the others are answered again', () => {
    const liveOutages = [[4 * MINUTE, 65 * MINUTE]] as const;
    const outcome = reprice({ ...TEN_LIVE, bad: new Set([0, 1]), hangMs: 60_000, liveOutages }, 10);
    expect(outcome.outages).toHaveLength(1);
    expect(outcome.outages[0]?.ended).toBeLessThan(85 * MINUTE);
    expect(worst(outcome, liveOutages, 0, 20 * MINUTE)).toBeLessThan(MINUTE);
  });

  test('no live SKU is blamed for a try that failed in an outage, even if it ends before it is known', () => {
    const liveOutages = [[MINUTE, 11 * MINUTE]] as const;
    const outcome = reprice({ ...TEN_LIVE, workers: 1, hangMs: 1000, liveOutages }, 3);
    expect(outcome.outages).toEqual([]);
    expect(worst(outcome, liveOutages, 0, 10 * MINUTE)).toBeLessThan(MINUTE);
  });

  test('live SKUs blamed before the outage was known are asked for at its end', () => {
    const liveOutages = [[MINUTE, 39 * MINUTE]] as const;
    const partner = { ...TEN_LIVE, bad: new Set([0]), hangMs: 1000, workers: MAX_UNDER_WAY };
    const outcome = reprice({ ...partner, liveOutages }, 4);
    expect(outcome.outages).toHaveLength(1);
    expect(worst(outcome, liveOutages, 0, 10 * MINUTE)).toBeLessThan(MINUTE);
  });

  test('a daemon that does not doubt the live source blames no live SKU for what another daemon does', () => {
    const liveOutages = [[98 * MINUTE, 123 * MINUTE]] as const;
    const partner = {
      ...FINE,
      skus: 221,
      live: 5,
      latencyMs: 200,
      hangMs: 10_000,
      atOnce: false,
      workers: 1,
    };
    const outcome = reprice({ ...partner, daemons: 3, liveOutages }, 6);
    expect(worst(outcome, liveOutages, 0, 20 * MINUTE)).toBeLessThan(25 * MINUTE);
  });

  test('with any number of daemons, a live SKU waits no longer after an outage than the outage lasted', () => {
    const partners = fc.record({
      skus: fc.integer({ min: 50, max: 300 }),
      live: fc.integer({ min: 5, max: 34 }),
      daemons: fc.integer({ min: 2, max: 4 }),
      workers: fc.constantFrom(1, 4, MAX_UNDER_WAY),
      hangMs: fc.constantFrom(1000, 10_000, 29_000),
      from: fc.integer({ min: 10, max: 110 }),
      minutes: fc.integer({ min: 3, max: 60 }),
    });
    fc.assert(
      fc.property(partners, ({ from, minutes, ...rest }) => {
        const end = (from + minutes) * MINUTE;
        const partner = { ...FINE, ...rest, latencyMs: 200, atOnce: false };
        const outcome = reprice({ ...partner, liveOutages: [[from * MINUTE, end]] }, 5);
        const after = outcome.late.flatMap(({ at, byMs }) => (at > end && byMs > MINUTE ? [at - end] : []));
        expect(Math.max(0, ...after)).toBeLessThan(Math.max(15, minutes + 5) * MINUTE);
      }),
      { numRuns: runs(6, 40) },
    );
  }, 60_000);

  /**
   * If one call at a time hangs for a minute, detection takes twenty minutes, and as long again if nothing else is
   * due.
   */
  const LATEST = 30 * MINUTE;
  test('for any catalog, bad live SKUs and way of hanging the others continue', () => {
    const partners = fc.record({
      skus: fc.integer({ min: 100, max: 3000 }),
      live: fc.integer({ min: 10, max: 300 }),
      bad: fc.uniqueArray(fc.nat(9), { maxLength: 3 }),
      from: fc.integer({ min: 1, max: 180 }),
      minutes: fc.integer({ min: 10, max: 300 }),
      hangMs: fc.constantFrom(1000, 10_000, 29_000, 60_000),
      workers: fc.constantFrom(1, 4, MAX_UNDER_WAY),
      latencyMs: fc.constantFrom(200, 2000, 8000),
    });
    fc.assert(
      fc.property(partners, ({ bad, from, minutes, live, ...rest }) => {
        const most = Math.min(live, rest.skus - 50);
        fc.pre(most < 0.35 * Math.min(118, (rest.workers * MINUTE) / rest.latencyMs) * 25);
        const end = (from + minutes) * MINUTE;
        const liveOutages = [[from * MINUTE, end]] as const;
        const partner = { ...FINE, ...rest, live: most, bad: new Set(bad), atOnce: false, liveOutages };
        const outcome = reprice(partner, 10);
        expect(worstOther(partner, outcome, 30 * MINUTE)).toBeLessThan(LATEST);
        // No live SKU is blamed for longer than the outage.
        expect(worst(outcome, liveOutages, 0, 15 * MINUTE)).toBeLessThan(30 * MINUTE);
      }),
      { numRuns: runs(8, 40) },
    );
  }, 120_000);

  test('other failures (a live limit, some live SKUs, the size, everything) are not taken for a live outage', () => {
    const some = { ...FINE, skus: 300, live: 40, bad: new Set([3, 5, 9, 12, 20, 33, 200, 201]) };
    const partners = [
      ...[1, 3, 4].map((liveLimit) => ({ ...FINE, liveLimit })),
      some,
      { ...FINE, skus: 600, live: 5, bad: new Set([3]) },
      { ...FINE, limit: 7, workers: 1, latencyMs: 200 },
    ];
    for (const partner of partners) {
      const outcome = reprice(partner, 12);
      expect(worst(outcome, [], 30 * MINUTE, 0)).toBeLessThan(LATE);
      expect(outcome.outages).toEqual([]);
      expect(outcome.lost).toBeLessThanOrEqual(0.03 * outcome.calls + allowed(outcome, partner.bad.size, 12));
    }
    const outages = [[2 * HOUR, 5 * HOUR]] as const;
    const outcome = reprice({ ...some, outages }, 12);
    expect(worst(outcome, outages, 30 * MINUTE, 45 * MINUTE)).toBeLessThan(LATE);
    expect(outcome.outages).toEqual([]);
  });
});

describe('the response to a failed call', () => {
  const after = (skus: number, failures: number, more = {}) =>
    afterFailedCall(
      { kind: 'timeout', skus, failures, rejections: 0, hadFailed: false, ...more },
      ANY,
      SETTINGS,
    );

  test('is to split its SKUs into smaller calls without a pause while few have failed in a row', () => {
    expect(after(100, 0)).toMatchObject({ pauseMs: 0, largestCall: 50, blames: false });
    expect(after(25, 1)).toEqual({ pauseMs: 0, holdMs: 0, largestCall: 13, blames: false, callSize: null });
  });

  test('is to blame a SKU that was alone in it, except in the call before a pause', () => {
    const blamed = [0, 1, 2, 3, 4, 9].map((failures) => after(1, failures).blames);
    expect(blamed).toEqual([true, true, true, false, false, false]);
  });

  test('is an ever longer pause from the fourth in a row on, without smaller calls', () => {
    const pauses = [2, 3, 4, 5, 40].map((failures) => after(100, failures).pauseMs / MINUTE);
    expect(pauses).toEqual([0, 1, 2, 4, 5]);
    expect(after(100, FAILURES_BEFORE_PAUSE)).toMatchObject({ largestCall: null, callSize: null });
    // One call tries then, each time with another SKU.
    expect([3, 4, 5].map((failures) => after(1, failures).holdMs / MINUTE)).toEqual([0, 3, 5]);
  });

  test('is a pause at once for a wrong body key, which touches no SKU', () => {
    expect(after(1, 0, { kind: 'no-skus-read' })).toEqual({
      pauseMs: MINUTE,
      holdMs: 0,
      largestCall: null,
      callSize: null,
      blames: false,
    });
  });
});

describe('a call for SKUs of failed calls', () => {
  const at = (largestCall: number, live: number, others: number) => [
    ...(live > 0 ? [{ largestCall, live: true, count: live }] : []),
    ...(others > 0 ? [{ largestCall, live: false, count: others }] : []),
  ];

  test('takes the SKUs of the largest calls first, as many as such a call may have', () => {
    expect(planSuspects([...at(50, 5, 95), ...at(1, 0, 2)], { callSkus: 100, liveBudget: 5 })).toEqual(
      at(50, 5, 45),
    );
    expect(planSuspects(at(50, 0, 95), { callSkus: 25, liveBudget: 5 })).toEqual(at(50, 0, 25));
  });

  test('leaves out live SKUs beyond the budget, and is null if there are no others', () => {
    expect(planSuspects([...at(50, 9, 0), ...at(13, 0, 4)], { callSkus: 100, liveBudget: 0 })).toEqual(
      at(13, 0, 4),
    );
    expect(planSuspects(at(50, 9, 0), { callSkus: 100, liveBudget: 0.5 })).toBeNull();
    expect(planSuspects([], { callSkus: 100, liveBudget: 5 })).toBeNull();
  });
});
