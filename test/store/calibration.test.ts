import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sizesFound, testsOf } from '../../src/store/answer/calibration-evidence.ts';
import {
  BINS,
  binOf,
  CalibrationCounts,
  type RefreshTest,
  priorLessonOf,
} from '../../src/store/trust/calibration.ts';
import { found } from './support.ts';

const refresh = (probability: number, more: Partial<RefreshTest> = {}): RefreshTest => ({
  cohort: 'live',
  probability,
  looks: 1,
  right: 1,
  minutes: 10,
  ...more,
});

/** Returns counts on a clock that the test sets. */
function counting() {
  const clock = { at: 0 };
  const counts = new CalibrationCounts({ monotonic: () => clock.at });
  return { clock, counts };
}

describe('the bin of a probability', () => {
  test('is the last one that begins at or below it', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (probability) => {
        const bin = binOf(probability);
        expect(BINS[bin]).toBeLessThanOrEqual(probability);
        expect(BINS[bin + 1] ?? Infinity).toBeGreaterThan(probability);
      }),
    );
    expect([0, 0.95, 0.989_999, 0.99, 1].map(binOf)).toEqual([0, 10, 10, 11, 11]);
  });

  test('has the same boundaries in the view', () => {
    const view = readFileSync('drizzle/objects/views/catalog.calibration.sql', 'utf8');
    expect(view).toContain(`ARRAY[${BINS.join(', ')}]`);
  });
});

describe('what refreshes have tested', () => {
  test('is summed by cohort and bin', () => {
    const { clock, counts } = counting();
    counts.note([
      refresh(0.96),
      refresh(0.97, { right: 0, missed: true }),
      refresh(0.5),
      refresh(0.5, { cohort: 'snapshot' }),
    ]);
    clock.at = 10_000;
    const taken = counts.take();
    expect(taken).toHaveLength(3);
    expect(taken[0]).toEqual({
      cohort: 'live',
      bin: 10,
      looks: 2,
      right: 1,
      claimed: expect.closeTo(1.93),
      minutes: 20,
      missed: 1,
      leverage: 0,
      judged: 0,
      late: 0,
    });
  });

  test('counts the claim and the minutes once for each size', () => {
    const { clock, counts } = counting();
    counts.note([refresh(0.9, { cohort: 'live sizes', looks: 20, right: 19 })]);
    clock.at = 10_000;
    expect(counts.take()).toMatchObject([{ looks: 20, right: 19, claimed: 18, minutes: 200 }]);
  });

  test('yields the surprise, relative to the noise of what was claimed', () => {
    const many = {
      cohort: 'live',
      bin: 9,
      looks: 100,
      right: 80,
      claimed: 90,
      minutes: 0,
      missed: 0,
      judged: 0,
      late: 0,
    };
    expect(
      priorLessonOf([
        { ...many, leverage: 7 },
        { ...many, leverage: 0 },
      ]),
    ).toEqual({
      surprise: -10,
      leverage: 7,
      noise: expect.closeTo(100 * 0.9 * 0.1),
    });
  });

  test('is added to what was counted meanwhile if it could not be written', () => {
    const { clock, counts } = counting();
    counts.note([refresh(0.9)]);
    clock.at = 10_000;
    const taken = counts.take();
    counts.note([refresh(0.9, { right: 0 }), refresh(0.1)]);
    counts.giveBack(taken);
    clock.at = 20_000;
    expect(counts.take()).toMatchObject([
      { bin: 9, looks: 2, right: 1, claimed: 1.8 },
      { bin: 1, looks: 1 },
    ]);
  });

  test('is taken every ten seconds, and nothing is taken twice', () => {
    const { clock, counts } = counting();
    counts.note([refresh(0.9)]);
    clock.at = 9000;
    expect(counts.take()).toEqual([]);
    clock.at = 10_000;
    expect(counts.take()).toHaveLength(1);
    clock.at = 200_000;
    expect(counts.take()).toEqual([]);
    counts.note([refresh(0.9)]);
    expect(counts.take()).toHaveLength(1);
  });
});

const price = (size: string, oldPrice: number | null, newPrice: number | null) => ({
  sku: 'A',
  size,
  how: 'moved' as const,
  oldPrice,
  newPrice,
  entry: null,
});

describe('the sizes found by an answer', () => {
  test('count if they had a price, and as moved if the price is now another one or none', () => {
    const answered = [found('A', { 1: 10, 2: 21, 4: 40 })];
    const differences = [price('2', 20, 21), price('3', 30, null), price('4', null, 40), price('1', 10, 10)];
    expect(sizesFound(answered, differences).get('A')).toEqual({ held: 3, moved: 2 });
  });

  test('are all gone if the partner no longer knows the SKU', () => {
    expect(sizesFound([{ sku: 'A', kind: 'not_found' }], [price('1', 10, null)]).get('A')).toEqual({
      held: 1,
      moved: 1,
    });
  });
});

describe('a refresh', () => {
  const held = {
    sku: 'A',
    cohort: 'live',
    pRight: 0.9,
    sizePRight: 0.97,
    minutes: 30,
    random: false,
    moved: true,
    finding: null,
    standing: 'own' as const,
    kept: null,
    alpha: null,
    beta: null,
    priorMinutes: 30,
  };
  const sizes = new Map([['A', { held: 4, moved: 1 }]]);

  test('tests the belief about the SKU and each size, and once more if the SKU was drawn at random', () => {
    const ofSku = {
      probability: 0.9,
      looks: 1,
      right: 0,
      minutes: 30,
      missed: false,
      leverage: expect.any(Number),
    };
    const ofSizes = { probability: 0.97, looks: 4, right: 3, minutes: 30 };
    expect(testsOf([held], sizes)).toEqual([
      { cohort: 'live', ...ofSku },
      { cohort: 'live sizes', ...ofSizes },
    ]);
    expect(testsOf([{ ...held, random: true }], sizes).map(({ cohort }) => cohort)).toEqual([
      'live',
      'live sizes',
      'random',
      'random sizes',
    ]);
  });

  test('teaches the prior of rates once, for cohorts whose SKUs have their own rates', () => {
    const leverages = (more: object) =>
      testsOf([{ ...held, random: true, ...more }], sizes).flatMap(({ cohort, leverage = 0 }) =>
        leverage === 0 ? [] : [cohort],
      );
    expect(leverages({})).toEqual(['live']);
    expect(leverages({ cohort: 'unlisted' })).toEqual(['unlisted']);
    expect(leverages({ cohort: 'snapshot' })).toEqual([]);
    expect(leverages({ cohort: 'reported' })).toEqual([]);
  });

  test('tests nothing if no price was believed', () => {
    expect(
      testsOf(
        [
          { ...held, pRight: null },
          { ...held, minutes: null },
        ],
        sizes,
      ),
    ).toEqual([]);
    expect(testsOf([held], new Map())).toHaveLength(1);
  });

  test('records when it settles that a move was never reported', () => {
    const [ofSku] = testsOf([{ ...held, cohort: 'snapshot', finding: 'overdue' }], sizes);
    expect(ofSku).toMatchObject({ cohort: 'snapshot', missed: true });
  });
});
