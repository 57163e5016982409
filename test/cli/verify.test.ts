import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  intervalOf,
  reportOf,
  sharesOf,
  verificationOf,
  type Verified,
  verified,
} from '../../src/cli/verify-report.ts';
import { createRng } from '../../src/sandbox/rng.ts';
import type { HeldSku } from '../../src/store/trust/verification.ts';
import { some } from '../support/soak.ts';

const held = (more: Partial<HeldSku> = {}): HeldSku => ({
  sku: 'A',
  priceSource: 'live',
  cohort: 'live',
  pRight: 0.9,
  pRightSoon: 0.88,
  actionable: false,
  doubt: null,
  owedReason: null,
  askedAt: '0.000000',
  ageSeconds: 600,
  ...more,
});
const moved = { size: '7', held: 100, partner: 120 };
const one = (more: Partial<HeldSku> = {}, isRight = true): Verified => ({
  held: held(more),
  pRight: more.pRight ?? 0.9,
  wrong: isRight ? [] : [moved],
});

/** Builds a catalog whose prices are each right with their own probability, from `least` up, already drawn. */
function catalogOf(skus: number, least: number, seed: number) {
  const rng = createRng(seed);
  const prices = Array.from({ length: skus }, (): Verified => {
    const pRight = least + (1 - least) * rng.next();
    return one({ pRight }, rng.chance(pRight));
  });
  /** Returns a sample of `drawn` prices. */
  const sample = (drawn: number) => {
    for (let at = 0; at < drawn; at += 1) {
      const other = at + rng.int(skus - at);
      [prices[at], prices[other]] = [prices[other] as Verified, prices[at] as Verified];
    }
    const [all] = sharesOf(prices.slice(0, drawn));
    if (all?.interval == null) throw new Error('nothing drawn');
    return { claimed: all.claimed, holds: all.holds, low: all.interval[0], high: all.interval[1] };
  };
  return { sample, truth: prices.filter(({ wrong }) => wrong.length === 0).length / skus };
}

describe('a thousand samples of a catalog', () => {
  test.each(
    some(
      [
        { drawn: 1000, least: 0.6 },
        { drawn: 1000, least: 0.9 },
        { drawn: 400, least: 0 },
        { drawn: 1000, least: 0.94 },
      ],
      1,
    ),
  )('have intervals that contain the truth in 94 to 96 % of cases: %j', ({ drawn, least }) => {
    const { sample, truth } = catalogOf(100_000, least, 1);
    const samples = Array.from({ length: 1000 }, () => sample(drawn));
    const holding = samples.filter(({ low, high }) => low <= truth && truth <= high).length;
    expect(holding).toBeGreaterThanOrEqual(940);
    expect(holding).toBeLessThanOrEqual(960);
    // A claim varies between samples with the SKUs they contain.
    expect(samples.filter(({ holds }) => holds).length).toBeGreaterThanOrEqual(940);
  });

  test('almost never confirm a claim that is four points too high', () => {
    const { sample } = catalogOf(20_000, 0.8, 2);
    const samples = Array.from({ length: 200 }, () => sample(1000));
    expect(samples.filter(({ claimed, high }) => claimed + 0.04 <= high).length).toBeLessThan(10);
  });
});

test('an interval lies within [0, 1], contains the share, and narrows with a larger sample', () => {
  const drawn = fc.integer({ min: 1, max: 1_000_000 });
  fc.assert(
    fc.property(drawn, fc.double({ min: 0, max: 1, noNaN: true }), (n, part) => {
      const hits = Math.round(part * n);
      const [low, high] = intervalOf(hits, n);
      expect(low).toBeGreaterThanOrEqual(0);
      expect(high).toBeLessThanOrEqual(1);
      expect(low).toBeLessThanOrEqual(hits / n + 1e-12);
      expect(high).toBeGreaterThanOrEqual(hits / n - 1e-12);
      const [lower, higher] = intervalOf(4 * hits, 4 * n);
      expect(higher - lower).toBeLessThan(high - low);
    }),
  );
});

test.each([
  [0, 0.9],
  [30, 0.89],
  [60, 0.88],
  [-5, 0.9],
  [36_000, 0],
])('the claim for an answer %d s later is %d', (seconds, expected) => {
  const answer = { sku: 'A', answeredAt: new Date(1000 * seconds), wrong: [] };
  expect(verified(held(), new Date(0), answer).pRight).toBeCloseTo(expected, 9);
});

describe('the report', () => {
  const about = { seed: 7, population: 5000, asked: 4, seconds: 3 };

  test('gives shares by actionability and source, and lists wrong SKUs, actionable ones first', () => {
    const sample = [
      one({ sku: 'unlikely', pRight: 0.3, doubt: 'owed' }, false),
      one(
        { sku: 'sure', priceSource: 'snapshot', cohort: 'snapshot', pRight: 0.99, actionable: true },
        false,
      ),
      one({ sku: 'right', priceSource: 'snapshot', cohort: 'snapshot', pRight: 0.99, actionable: true }),
    ];
    const found = verificationOf(sample, about);
    expect(found.shares.map(({ name, skus, right }) => [name, skus, right])).toEqual([
      ['all', 3, 1 / 3],
      ['actionable', 2, 0.5],
      ['live', 1, 0],
      ['snapshot', 2, 0.5],
    ]);
    expect(found.shares[0]?.claimed).toBeCloseTo(0.76, 9);
    expect(found.wrong.map(({ sku }) => sku)).toEqual(['sure', 'unlikely']);
    const text = reportOf(found).join('\n');
    for (const part of [
      '3 of 5,000 priced SKUs',
      '1 more were not answered',
      'sure: size 7 100 → 120',
      '10m old, p_right 0.990, actionable; snapshot-priced: no delta had reported this change',
      'p_right 0.300, not actionable: owed; live: nobody reports its changes',
    ])
      expect(text).toContain(part);
  });

  test('says how the claim relates to the interval', () => {
    const said = (right: number, claimed: number) => {
      const sample = Array.from({ length: 1000 }, (_, at) => one({ pRight: claimed }, at < right));
      return reportOf(verificationOf(sample, about)).find((line) => line.startsWith('the claim'));
    };
    expect(said(950, 0.95)).toContain('within');
    expect(said(900, 0.95)).toContain('above');
    expect(said(999, 0.95)).toContain('below');
  });

  test('says that nothing is known if nothing was answered', () => {
    const text = reportOf(verificationOf([], about)).join('\n');
    expect(text).toContain('nothing is known');
    expect(text).not.toMatch(/NaN|Infinity/);
  });

  test('lists only some of many wrong SKUs, and a price that is gone as none', () => {
    const gone = { size: '8', held: 90, partner: null };
    const many = Array.from({ length: 40 }, (_, at) => ({
      ...one({ sku: `S${at}` }),
      wrong: [gone, gone, gone, gone, moved],
    }));
    const lines = reportOf(verificationOf(many, about));
    expect(lines.filter((line) => /^S\d/.test(line))).toHaveLength(30);
    expect(lines.find((line) => line.startsWith('S0:'))).toBe(
      'S0: size 8 90 → none, size 8 90 → none, size 8 90 → none, 2 sizes more',
    );
    expect(lines.at(-1)).toContain('10 more: --json');
  });
});
