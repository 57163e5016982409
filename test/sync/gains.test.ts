import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CapacityInput, capacityOf } from '../../src/sync/live/capacity.ts';
import { gainsOf, type WhatIf } from '../../src/sync/live/gains.ts';
import { INPUT } from './default-capacity.ts';

const WHAT_IF: WhatIf = { requests: 10, hints: { recall: 0.5, precision: 0.5 }, watched: 100, weight: 10 };

const parts = fc.double({ min: 0, max: 1, noNaN: true });
const groups = fc.array(
  fc.record({
    count: fc.integer({ min: 1, max: 5000 }),
    lambda: fc.double({ min: 1e-5, max: 1, noNaN: true }),
    weight: fc.constantFrom(1, 1, 5, 0.2),
  }),
  { minLength: 1, maxLength: 12 },
);
const inputs = fc
  .record({
    skus: fc.integer({ min: 1000, max: 2_000_000 }),
    liveShare: fc.double({ min: 0.001, max: 1, noNaN: true }),
    liveCeiling: fc.option(fc.integer({ min: 20, max: 1000 })),
    livePolicy: fc.constantFrom('index' as const, 'round-robin' as const),
    liveGroups: fc.option(groups),
  })
  .map((drawn) => ({ ...INPUT, ...drawn }));

function gains(input: CapacityInput, whatIf: Partial<WhatIf> = {}) {
  const found = gainsOf(input, { ...WHAT_IF, ...whatIf });
  if (found === null) throw new Error('no live SKUs');
  return found;
}

describe('the estimate of what would help live prices', () => {
  test('starts from the freshness in the plan', () => {
    fc.assert(
      fc.property(inputs, (input) => {
        expect(gains(input).now).toBeCloseTo(capacityOf(input).live.freshness, 9);
      }),
    );
  });

  test('loses nothing by more requests, unless they suffice for LIVE_INTERVAL, nor by a source of hints', () => {
    fc.assert(
      fc.property(
        inputs,
        parts,
        fc.double({ min: 0.001, max: 1, noNaN: true }),
        (input, recall, precision) => {
          const { now, moreRequests, moreMeetInterval, hints } = gains(input, {
            hints: { recall, precision },
          });
          if (!moreMeetInterval) expect(moreRequests).toBeGreaterThanOrEqual(now - 1e-6);
          expect(hints).toBeGreaterThanOrEqual(now);
          expect(hints).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  test('falls if ten more requests just suffice for LIVE_INTERVAL, because all are then refreshed in turn', () => {
    // 17,701 live SKUs, 590 refreshes a minute: 30.002 minutes for all of them.
    const input = { ...INPUT, skus: 17_701, liveShare: 1 };
    const { now, moreRequests, moreMeetInterval } = gains(input);
    expect(moreMeetInterval).toBe(true);
    expect(moreRequests).toBeLessThan(now);
    for (const skus of [17_700, 25_000])
      expect(gains({ ...input, skus })).toMatchObject({ moreMeetInterval: false });
  });

  test('gains nothing by a source that tells of nothing', () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const { now, hints } = gains(input, { hints: { recall: 0, precision: 1 } });
        expect(hints).toBeCloseTo(now, 6);
      }),
    );
  });

  test('gains more by hints that are right more often, and nearly all by perfect ones', () => {
    const by = (recall: number, precision: number) => gains(INPUT, { hints: { recall, precision } }).hints;
    expect(by(0.5, 0.9)).toBeGreaterThan(by(0.5, 0.5));
    expect(by(0.5, 0.5)).toBeGreaterThan(by(0.5, 0.1));
    expect(by(0.9, 0.5)).toBeGreaterThan(by(0.5, 0.5));
    expect(gains({ ...INPUT, skus: 100_000 }, { hints: { recall: 1, precision: 1 } }).hints).toBeGreaterThan(
      0.97,
    );
  });

  test('with a watchlist takes from the others what its SKUs gain, as long as refreshes are scarce', () => {
    const { now, watched, others } = gains(INPUT);
    expect(watched).toBeGreaterThan(now + 0.04);
    expect(others).toBeLessThan(now);
    expect(now - (others ?? 0)).toBeLessThan(0.002);
    const enough = gains({ ...INPUT, skus: 50_000 });
    expect(enough.watched).toBeCloseTo(enough.now, 9);
  });

  test('limits a watchlist to the live SKUs, and says nothing of others if it contains all of them', () => {
    const all = gains(INPUT, { watched: 1e9 });
    expect(all).toMatchObject({ watchedSkus: 25_000, others: null });
    expect(all.watched).toBeCloseTo(all.now, 3);
    fc.assert(
      fc.property(inputs, fc.integer({ min: 1, max: 200_000 }), (input, watched) => {
        const live = Math.round(input.skus * input.liveShare);
        const found = gains(input, { watched });
        expect(found.watchedSkus).toBe(Math.min(watched, live));
        expect(found.others === null).toBe(watched >= live);
        expect(found.watched).toBeLessThanOrEqual(1);
      }),
    );
    expect(gains({ ...INPUT, skus: 300 }, { watched: 15 }).others).toBeNull();
    expect(gains({ ...INPUT, skus: 300 }, { watched: 14 }).others).not.toBeNull();
  });

  test('is null without live SKUs', () => {
    expect(gainsOf({ ...INPUT, liveShare: 0 }, WHAT_IF)).toBeNull();
  });
});

test('the plan uses the rates that refreshes have shown', () => {
  const liveGroups = [
    { count: 3, lambda: 1 / 10_000, weight: 1 },
    { count: 1, lambda: 1 / 60, weight: 1 },
  ];
  const { live } = capacityOf({ ...INPUT, liveGroups });
  expect(live.freshness).toBeGreaterThan(capacityOf(INPUT).live.freshness);
  expect(live.skus).toBe(25_000);
});
