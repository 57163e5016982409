import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LineRefresh } from '../../src/store/answer/types.ts';
import { QUIET_LINE } from '../../src/store/live/product-line-state.ts';
import {
  boostedMinutes,
  boostedValue,
  chooseLive,
  nextRefreshMinutes,
  PRIOR,
  solveThreshold,
} from '../../src/sync/live/policy.ts';
import {
  releaseRecheckMinutes,
  earlyAfter,
  type LineMember,
  panelOf,
  releasedMembers,
  setAside,
} from '../../src/sync/live/product-lines.ts';
import { NO_RELEASES } from '../../src/sync/live/releases.ts';
import { NOW, refresh, released, suspected, UNMOVED, WHOLESALE } from './line-refreshes.ts';

const terms = (refreshThreshold: number, maxIntervalMinutes: number) => ({
  refreshThreshold,
  maxIntervalMinutes,
});

const PLAN = { refreshThreshold: 1, maxIntervalMinutes: 120 };
const member = (n: number, over: Partial<LineMember> = {}): LineMember => ({
  sku: `S${n}`,
  weight: 1,
  rate: PRIOR,
  minutes: 60,
  dueIn: 60,
  ...over,
});

describe('the SKUs refreshed for a release', () => {
  const line = suspected();
  const now = NOW + 0.1;
  const members = Array.from({ length: 20 }, (_, i) => member(i, { weight: 1 + i }));

  test('are a panel of the eight others that gain most', () => {
    const panel = panelOf(line, members, PLAN, now);
    expect(panel.map(({ sku }) => sku)).toEqual(['S19', 'S18', 'S17', 'S16', 'S15', 'S14', 'S13', 'S12']);
    for (const { inMinutes, hazard } of panel) {
      expect(inMinutes).toBe(0);
      expect(1 - Math.exp(-hazard)).toBeCloseTo(0.6, 9);
    }
  });

  test('are none if the line is small, and none that were refreshed since', () => {
    expect(panelOf(line, members.slice(0, 11), PLAN, now)).toEqual([]);
    expect(panelOf(line, members.slice(0, 12), PLAN, now)).toHaveLength(8);
    expect(
      panelOf(
        line,
        members.map((each) => ({ ...each, minutes: 0 })),
        PLAN,
        now,
      ),
    ).toEqual([]);
  });

  test('are, once it is confirmed, all that become due sooner', () => {
    const pulled = releasedMembers(line, members, PLAN, now);
    expect(pulled).toHaveLength(20);
    for (const { inMinutes } of pulled) expect(inMinutes).toBe(0);
  });

  test('include others that have probably moved but are not refreshed sooner: due already, or of little value', () => {
    const others = [member(1, { dueIn: 0 }), member(2, { dueIn: -90 }), member(3, { weight: 1e-6 })];
    const pulled = releasedMembers(line, others, PLAN, now);
    expect(pulled.map(({ sku }) => sku).toSorted()).toEqual(['S1', 'S2', 'S3']);
    for (const { inMinutes, hazard } of pulled) {
      expect(inMinutes).toBeNull();
      expect(1 - Math.exp(-hazard)).toBeCloseTo(0.6, 9);
    }
    expect(releasedMembers(line, [member(4, { minutes: 0 })], PLAN, now)).toEqual([]);
  });

  test('include unmoved ones again a little later, as long as the release continues', () => {
    const known = { weight: 0.5, rate: PRIOR };
    const again = (age: number, over: Partial<LineRefresh> = {}) =>
      releaseRecheckMinutes(released(), refresh(NOW + 0.1 + age, { sizes: UNMOVED, ...over }), known, PLAN);
    expect(again(1)).toBeGreaterThanOrEqual(5 - 1e-9);
    expect(again(1)).toBeLessThan(nextRefreshMinutes({ weight: 0.5, rate: PRIOR }, terms(1, 120)));
    expect(again(10.1)).toBeNull();
    expect(again(1, { sizes: WHOLESALE })).toBeNull();
    expect(releaseRecheckMinutes(QUIET_LINE, refresh(NOW, { sizes: UNMOVED }), known, PLAN)).toBeNull();
    expect(releaseRecheckMinutes(suspected(), refresh(NOW + 1, { sizes: UNMOVED }), known, PLAN)).toBeNull();
  });
});

describe('the boost', () => {
  const positive = (min: number, max: number) => fc.double({ min, max, noNaN: true });

  test('makes a refresh more valuable, and due sooner, the more likely the move is', () => {
    fc.assert(
      fc.property(
        positive(0.01, 100),
        positive(0.1, 20),
        positive(1, 4320),
        positive(0.01, 3),
        positive(0, 500),
        (weight, alpha, beta, hazard, tau) => {
          const rate = { alpha, beta };
          expect(boostedValue({ weight, rate, minutes: tau, hazard }, terms(1, 120))).toBeGreaterThanOrEqual(
            boostedValue({ weight, rate, minutes: tau, hazard: hazard / 2 }, terms(1, 120)),
          );
          const minutes = boostedMinutes({ weight, rate, hazard }, terms(1, 120));
          expect(minutes).toBeGreaterThanOrEqual(0);
          expect(minutes).toBeLessThanOrEqual(
            boostedMinutes({ weight, rate, hazard: hazard / 2 }, terms(1, 120)),
          );
          expect(minutes).toBeLessThanOrEqual(120);
        },
      ),
    );
  });

  test('without a hazard gives about the usual wait', () => {
    const rate = { alpha: 10, beta: 10_000 };
    const usual = nextRefreshMinutes({ weight: 1, rate }, terms(0.5, 1e6));
    expect(boostedMinutes({ weight: 1, rate, hazard: 0 }, terms(0.5, 1e6)) / usual).toBeGreaterThan(0.9);
    expect(boostedMinutes({ weight: 1, rate, hazard: 0 }, terms(0.5, 1e6)) / usual).toBeLessThan(1.1);
  });

  test('decides between candidates', () => {
    const candidates = ['usual', 'boosted'].map((sku) => ({ sku, weight: 1, rate: PRIOR, tau: 30 }));
    const chosen = chooseLive([candidates[0]!, { ...candidates[1]!, hazard: 1 }], 1, 100);
    expect(chosen.map(({ sku }) => sku)).toEqual(['boosted']);
    expect(chooseLive([candidates[0]!, { ...candidates[1]!, hazard: 0 }], 1, 100)[0]?.sku).toBe('usual');
  });
});

describe('the cost of releases', () => {
  test('is remembered for two hours, and half of it is set aside', () => {
    const one = { ...NO_RELEASES, early: earlyAfter(NO_RELEASES, 240, NOW), earlyAt: NOW };
    expect(one.early).toBeCloseTo(2, 9);
    expect(setAside(one, NOW)).toBeCloseTo(1, 9);
    expect(setAside(one, NOW + 120)).toBeCloseTo(1 / Math.E, 9);
    expect(setAside(one, NOW - 120)).toBeCloseTo(1, 9);
  });

  test('leaves at least four fifths of the refreshes to the schedule', () => {
    const groups = [{ count: 1000, lambda: 1 / 100, weight: 1 }];
    const threshold = (aside: number) => solveThreshold(groups, 100, 1e6, aside);
    expect(threshold(5)).toBeGreaterThan(threshold(0));
    expect(threshold(17)).toBeCloseTo(threshold(1000), 9);
  });
});
