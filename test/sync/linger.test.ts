import { describe, expect, test } from 'vitest';
import type { DueClass } from '../../src/store/ledger/due.ts';
import { lingerMs } from '../../src/sync/reprice/plan-call.ts';

const LIMITS = { callSkus: 100, liveBudget: 5.9 };
/** The usual pace. A shorter wait would take a pace of more than eight calls in four seconds. */
const USUAL = 118;
const FULL_WAIT_MS = 4000;

const live = (count: number): DueClass => ({ lane: 'live', live: true, count });
const swept = (count: number): DueClass => ({ lane: 'sweep', live: false, count });
const lingers = (due: readonly DueClass[], sinceMs = 0, limits = LIMITS, callsPerMinute = USUAL) =>
  lingerMs(due, limits, callsPerMinute, sinceMs);

describe('the time for which a call waits for more SKUs', () => {
  test('is zero with exactly as many live SKUs as allowed, and unchanged with one fewer', () => {
    expect(lingers([live(5)])).toBe(0);
    expect(lingers([live(4)])).toBe(FULL_WAIT_MS);
  });

  test('is zero with exactly half of its slots filled', () => {
    expect(lingers([swept(50)])).toBe(0);
    expect(lingers([swept(49)])).toBe(FULL_WAIT_MS);
  });

  test('depends on the sum over all lanes, of live SKUs and others separately', () => {
    expect(lingers([swept(25), { lane: 'new', live: false, count: 25 }])).toBe(0);
    expect(lingers([live(2), { lane: 'error', live: true, count: 3 }])).toBe(0);
    expect(lingers([live(4), swept(49)])).toBe(FULL_WAIT_MS);
  });

  test('is zero with one urgent SKU', () => {
    expect(lingers([{ lane: 'urgent', live: false, count: 1 }])).toBe(0);
    expect(lingers([{ lane: 'urgent', live: false, count: 0 }, swept(1)])).toBe(FULL_WAIT_MS);
  });

  test('is what is left of four seconds since the last call', () => {
    expect(lingers([swept(1)], 1500)).toBe(2500);
    expect(lingers([swept(1)], FULL_WAIT_MS)).toBe(0);
    expect(lingers([swept(1)], 9000)).toBe(0);
  });

  test('is the time of eight calls at most, if calls are plentiful', () => {
    expect(lingers([swept(1)], 0, LIMITS, 480)).toBe(1000);
    expect(lingers([swept(1)], 0, LIMITS, 10)).toBe(FULL_WAIT_MS);
  });

  test('is not shortened by live SKUs if there is no live budget', () => {
    expect(lingers([live(1)], 0, { ...LIMITS, liveBudget: 0 })).toBe(0);
    expect(lingers([swept(3)], 0, { ...LIMITS, liveBudget: 0 })).toBe(FULL_WAIT_MS);
  });
});
