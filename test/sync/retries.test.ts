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

describe('the wait after failures', () => {
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

  test('of a manifest or delta is one minute, doubling to one hour, and never longer than its schedule', () => {
    const waits = (scheduleMs: number) =>
      [0, 1, 2, 3, 4, 5, 6, 7, 50].map((failures) => retryInMs(failures, scheduleMs) / MINUTE);
    expect(waits(7 * DAY)).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
    expect(waits(5 * MINUTE)).toEqual([1, 2, 4, 5, 5, 5, 5, 5, 5]);
    expect(waits(1000)).toEqual(Array(9).fill(1 / 60));
  });

  test('of a SKU in errors is ERROR_INTERVAL, doubling to six hours', () => {
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

  test('of a live SKU in errors is at most LIVE_INTERVAL, unless calls are scarce or it failed alone', () => {
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

  test('of a SKU whose own call is refused is an hour from the fourth time on, doubling to six', () => {
    const wait = (failures: number) => {
      const error = { kind: 'error', because: 'alone', failure: 'throttled-or-forbidden' } as const;
      const result = skuResultOf({ ...ASKED, failures }, error, SETTINGS, () => 0.5);
      return result.kind === 'error' ? result.waitMs / MINUTE : null;
    };
    expect([0, 2, 3, 4, 5, 6].map(wait)).toEqual([1, 4, 60, 120, 240, 360]);
  });

  test('of a SKU whose own call failed is sixty times as long from the second time on', () => {
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
    // If it may have been an outage, no longer than after any other error.
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

  test('of a deferred SKU is DEFERRED_INTERVAL, plus a tenth at most, while nothing is computed', () => {
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

  test('of a SKU that is deferred while others are computed doubles from the third time on, to half an hour', () => {
    expect([0, 1, 2, 3, 4, 1000].map((deferrals) => deferredMs(deferrals, true) / MINUTE)).toEqual([
      5, 5, 10, 20, 30, 30,
    ]);
    expect(deferredMs(9, true, 1)).toBeCloseTo(33 * MINUTE);
  });
});

describe('a SKU never becomes not_found through the error', () => {
  test.each(['reported', 'omitted', 'contradictory', 'unreadable'] as const)('%s', (because) => {
    expect(skuResultOf(ASKED, { kind: 'error', because }, SETTINGS, Math.random).kind).toBe('error');
  });
});

describe('the recovery from a failed delta', () => {
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

  test('from an answer that is too large is one retry, and then a manifest instead', () => {
    const error = { kind: 'answer-too-large', status: 200 } as const;
    expect([0, 1, 2].map((failures) => deltaRecovery(error, failures))).toEqual([
      'retry',
      'fetch-manifest',
      'fetch-manifest',
    ]);
  });

  test.each([405, 408, 411, 413, 414, 431])(
    'from status %i, which comes from a gateway, is a retry',
    (status) => {
      expect(deltaRecovery({ kind: 'bad-request', status })).toBe('retry');
    },
  );
});

describe('the next refresh of a SKU', () => {
  test('comes by sweep, LIVE_INTERVAL or METADATA_INTERVAL', () => {
    expect(nextRefresh(SETTINGS)).toEqual({
      liveMs: 30 * MINUTE,
      snapshotMs: DAY,
      snapshotReason: 'sweep',
      notFoundMs: 7 * DAY,
      lostMs: 3_600_000,
    });
  });

  test('comes by METADATA_INTERVAL without a sweep, or if the sweep is slower', () => {
    for (const sweep of ['0', '30d']) {
      expect(nextRefresh(settingsWith({ SWEEP_INTERVAL: sweep }))).toMatchObject({
        snapshotMs: 7 * DAY,
        snapshotReason: 'metadata',
      });
    }
  });

  test('comes early only while the catalog is stale, and never within a minute of the last', () => {
    const none = { urgent: 0, live: 0, new: 0, error: 0, metadata: 0, sweep: 0 };
    expect(earlyBy(SETTINGS, 'ok')).toEqual(none);
    expect(earlyBy(SETTINGS, 'none')).toEqual(none);
    expect(earlyBy(SETTINGS, 'stale')).toEqual({ ...none, live: 29 * 60, sweep: 24 * 3600 - 60 });
    expect(earlyBy(settingsWith({ LIVE_INTERVAL: '1s' }), 'stale').live).toBe(0);
  });
});
