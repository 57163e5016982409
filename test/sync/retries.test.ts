import { assert, double, integer, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { doubling } from '../../src/lib/duration.ts';
import type { PartnerErrorKind } from '../../src/partner/errors.ts';
import { deltaRecovery } from '../../src/sync/delta.ts';
import { retryInMs } from '../../src/sync/outcome.ts';
import { earlyBy } from '../../src/sync/reprice/plan-call.ts';
import { type SkuAnswer, skuResultOf } from '../../src/sync/reprice/reconciliation.ts';
import { nextRefresh } from '../../src/sync/settings.ts';
import { settingsWith } from '../support/settings.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const SETTINGS = settingsWith();
const ASKED = {
  sku: 'A',
  generation: 1,
  deferrals: 0,
  failures: 0,
  live: false,
  dueAt: new Date(0),
  reason: 'sweep',
};

describe('waiting longer after each failure', () => {
  test('doubles from the base to the cap', () => {
    expect([0, 1, 2, 3, 4, 5].map((failures) => doubling(10, failures, 100))).toEqual([
      10, 10, 20, 40, 80, 100,
    ]);
  });

  test('never shrinks, never exceeds the cap, and survives any count', () => {
    assert(
      property(
        integer({ min: 1, max: 1e6 }),
        integer({ min: 0, max: 1e9 }),
        integer({ min: 1, max: 1e9 }),
        (base, failures, cap) => {
          const wait = doubling(base, failures, cap);
          expect(wait).toBeLessThanOrEqual(cap);
          expect(wait).toBeGreaterThanOrEqual(Math.min(base, cap));
          expect(doubling(base, failures + 1, cap)).toBeGreaterThanOrEqual(wait);
        },
      ),
    );
  });

  test('of a manifest or delta: one minute, doubling to one hour, and on schedule in any case', () => {
    const waits = (scheduleMs: number) =>
      [0, 1, 2, 3, 4, 5, 6, 7, 50].map((failures) => retryInMs(failures, scheduleMs) / MINUTE);
    expect(waits(7 * DAY)).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
    expect(waits(5 * MINUTE)).toEqual([1, 2, 4, 5, 5, 5, 5, 5, 5]);
    expect(waits(1000)).toEqual(Array(9).fill(1 / 60));
  });

  test('of a SKU in errors: ERROR_INTERVAL, doubling to six hours', () => {
    const wait = (failures: number) => {
      const result = skuResultOf(
        { ...ASKED, failures },
        { kind: 'error', because: 'reported' },
        SETTINGS,
        () => 0.5,
      );
      return result.kind === 'error' ? result.waitMs / MINUTE : null;
    };
    expect([0, 1, 2, 3, 8, 9, 1000].map(wait)).toEqual([1, 2, 4, 8, 256, 360, 360]);
  });

  test('of a live SKU in errors: no longer than LIVE_INTERVAL, unless calls do not suffice for all, or it had one to itself', () => {
    const wait = (failures: number, liveSuffices: boolean, error: Partial<SkuAnswer> = {}) => {
      const said = { kind: 'error', because: 'reported', ...error } as SkuAnswer;
      const trend = { generalErrors: false, computes: true, liveSuffices };
      const result = skuResultOf({ ...ASKED, live: true, failures }, said, SETTINGS, () => 0.5, trend);
      return result.kind === 'error' ? result.waitMs / MINUTE : null;
    };
    expect([0, 4, 5, 1000].map((failures) => wait(failures, true))).toEqual([1, 16, 30, 30]);
    expect(wait(1000, false)).toBe(360);
    expect(wait(1000, true, { because: 'alone-in-doubt', failure: 'timeout' })).toBe(360);
  });

  test('of a SKU whose own call is refused: an hour, from the fourth time on', () => {
    const wait = (failures: number) => {
      const error = { kind: 'error', because: 'alone', failure: 'throttled-or-forbidden' } as const;
      const result = skuResultOf({ ...ASKED, failures }, error, SETTINGS, () => 0.5);
      return result.kind === 'error' ? result.waitMs / MINUTE : null;
    };
    expect([0, 2, 3, 4, 5, 6].map(wait)).toEqual([1, 4, 60, 120, 240, 360]);
  });

  test('of a SKU with which a call of its own failed: sixty times as long from the second time on', () => {
    const wait = (failures: number, because: 'alone' | 'alone-in-doubt') => {
      const error = { kind: 'error', because, failure: 'service-fault' } as const;
      const result = skuResultOf({ ...ASKED, failures }, error, SETTINGS, () => 0.5);
      return result.kind === 'error' ? [result.blame === 'alone', result.waitMs / MINUTE] : null;
    };
    expect([0, 1, 2, 9].map((failures) => wait(failures, 'alone'))).toEqual([
      [true, 1],
      [true, 60],
      [true, 120],
      [true, 360],
    ]);
    // Where it may have been an outage, no longer than any other error.
    expect([0, 1, 2, 9].map((failures) => wait(failures, 'alone-in-doubt'))).toEqual([
      [true, 1],
      [true, 2],
      [true, 4],
      [true, 360],
    ]);
  });

  const deferredMs = (deferrals: number, computes: boolean, random = 0) => {
    const meanwhile = { generalErrors: false, computes };
    const result = skuResultOf(
      { ...ASKED, deferrals },
      { kind: 'deferred' },
      SETTINGS,
      () => random,
      meanwhile,
    );
    return result.kind === 'deferred' ? result.waitMs : NaN;
  };

  test('of a deferred SKU: no sooner than DEFERRED_INTERVAL, a quarter later at most while nothing is computed, however often it was deferred', () => {
    assert(
      property(
        double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        integer({ min: 0, max: 1000 }),
        (random, deferrals) => {
          const wait = deferredMs(deferrals, false, random);
          expect(wait).toBeGreaterThanOrEqual(SETTINGS.intervals.deferredMs);
          expect(wait).toBeLessThanOrEqual(SETTINGS.intervals.deferredMs * 1.1);
          expect(deferredMs(deferrals, true, random)).toBeGreaterThanOrEqual(wait);
        },
      ),
    );
  });

  test('of one that is deferred again and again while others are computed: from the third time on doubling, half an hour at most', () => {
    expect([0, 1, 2, 3, 4, 1000].map((deferrals) => deferredMs(deferrals, true) / MINUTE)).toEqual([
      5, 5, 10, 20, 30, 30,
    ]);
    expect(deferredMs(9, true, 1)).toBeCloseTo(33 * MINUTE);
  });
});

describe('no kind of error ever makes a SKU not found', () => {
  test.each(['reported', 'omitted', 'contradictory', 'unreadable'] as const)('%s', (because) => {
    expect(skuResultOf(ASKED, { kind: 'error', because }, SETTINGS, Math.random).kind).toBe('error');
  });
});

describe('the remedy for a delta that was not answered', () => {
  test.each<[PartnerErrorKind, ReturnType<typeof deltaRecovery>]>([
    ['snapshot-expired', 'fetch-manifest'],
    ['delta-too-large', 'fetch-manifest'],
    ['since-missing', 'fetch-manifest'],
    ['bad-request', 'fetch-manifest'],
    ['no-snapshot', 'catalog-fault'],
    ['snapshot-stale', 'catalog-fault'],
    ['throttled-or-forbidden', 'retry'],
    ['unauthorised', 'retry'],
    ['authorizer-fault', 'retry'],
    ['account-not-configured', 'retry'],
    ['service-fault', 'retry'],
    ['not-a-route', 'retry'],
    ['unreadable', 'retry'],
    ['network', 'retry'],
    ['timeout', 'retry'],
    ['aborted', 'retry'],
  ])('%s: %s', (kind, remedy) => {
    expect(deltaRecovery({ kind, status: 400 })).toBe(remedy);
  });

  test('an answer that is too large is asked for once more, and then a manifest in its place', () => {
    const error = { kind: 'answer-too-large', status: 200 } as const;
    expect([0, 1, 2].map((failures) => deltaRecovery(error, failures))).toEqual([
      'retry',
      'fetch-manifest',
      'fetch-manifest',
    ]);
  });

  test.each([405, 408, 411, 413, 414, 431])('%i is of a gateway: retry', (status) => {
    expect(deltaRecovery({ kind: 'bad-request', status })).toBe('retry');
  });
});

describe('the next refresh of a SKU', () => {
  test('is by sweep, live turn or metadata age, each by its own interval', () => {
    expect(nextRefresh(SETTINGS)).toEqual({
      liveMs: 30 * MINUTE,
      snapshotMs: DAY,
      snapshotReason: 'sweep',
      notFoundMs: 7 * DAY,
      lostMs: 3_600_000,
    });
  });

  test('without a sweep, or with one slower than metadata, is by the age of the metadata', () => {
    for (const sweep of ['0', '30d']) {
      expect(nextRefresh(settingsWith({ SWEEP_INTERVAL: sweep }))).toMatchObject({
        snapshotMs: 7 * DAY,
        snapshotReason: 'metadata',
      });
    }
  });

  test('comes early only while the catalog is stale, and then never within a minute of the last', () => {
    const none = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };
    expect(earlyBy(SETTINGS, 'ok')).toEqual(none);
    expect(earlyBy(SETTINGS, 'none')).toEqual(none);
    expect(earlyBy(SETTINGS, 'stale')).toEqual({ ...none, live: 29 * 60, sweep: 24 * 3600 - 60 });
    expect(earlyBy(settingsWith({ LIVE_INTERVAL: '1s' }), 'stale').live).toBe(0);
  });
});
