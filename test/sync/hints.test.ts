import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { flood, informed, together } from '../../bench/freshness/hint-streams.ts';
import { simulateLive } from '../../bench/freshness/live.ts';
import { seeded } from '../../bench/freshness/random.ts';
import { BENCH_LIMITS } from '../../bench/freshness/world-figures.ts';
import { World } from '../../bench/freshness/worlds.ts';
import { UNTESTED } from '../../src/store/live/hint-state.ts';
import {
  predictionRecheckMinutes,
  hintedMinutes,
  hintHazard,
  hintPrecision,
  hintRecall,
  isHinted,
  jointHazard,
  jointPull,
  learnHints,
  mostWaiting,
  testHints,
  testPrediction,
  predictedMove,
  undonePart,
} from '../../src/sync/live/hints.ts';
import { boostedMinutes, PRIOR } from '../../src/sync/live/policy.ts';

const PLAN = { refreshThreshold: 1, maxIntervalMinutes: 120 };
const SKU = { weight: 1, rate: PRIOR, minutes: 10, dueIn: 60 };
const record = (over: Partial<typeof UNTESTED>) => ({ ...UNTESTED, ...over });

/**
 * Learns a source that is right with `precision`, from refreshes of SKUs that move in between with a probability
 * of 0.2.
 */
function learned(precision: number, refreshes: number, seed: number) {
  const random = seeded(seed);
  let known = UNTESTED;
  for (let n = 0; n < refreshes; n += 1) {
    const moved = random() < precision || random() < 0.2;
    known = learnHints(
      known,
      record({ tested: 1, expected: 0.8, unmoved: Number(!moved), moves: Number(moved) }),
    );
  }
  return known;
}

describe('the precision of a source', () => {
  test('starts at three right hints in ten, and needs few refreshes to change', () => {
    expect(hintPrecision(UNTESTED)).toBeCloseTo(0.3, 9);
    expect(hintPrecision(record({ tested: 4, expected: 4, unmoved: 4 }))).toBeCloseTo(0.15, 9);
    expect(hintPrecision(record({ tested: 4, expected: 4, unmoved: 0 }))).toBeCloseTo(0.65, 9);
  });

  test.for([0, 0.25, 0.5, 0.9])('approaches %d, the part of its hints that are right', (precision) => {
    expect(Math.abs(hintPrecision(learned(precision, 2000, 7)) - precision)).toBeLessThan(0.06);
  });

  test('is forgotten as it ages: a change of the source shows after some hundred refreshes', () => {
    const good = learned(0.8, 3000, 1);
    expect(good.tested).toBeCloseTo(500, 6);
    let now = good;
    for (let n = 0; n < 1000; n += 1)
      now = learnHints(now, record({ tested: 1, expected: 0.8, unmoved: n % 5 === 0 ? 0 : 1 }));
    expect(hintPrecision(now)).toBeLessThan(0.15);
  });

  test('yields its recall, the part of all moves that it told of', () => {
    const known = record({ tested: 100, expected: 100, unmoved: 50, moves: 200 });
    expect(hintRecall(known)).toBeCloseTo((100 * hintPrecision(known)) / 200, 9);
    expect(hintRecall(UNTESTED)).toBe(0);
    expect(hintRecall({ ...known, moves: 1 })).toBe(1);
  });

  test('stays within bounds, whatever refreshes find', () => {
    const shown = fc
      .record({
        tested: fc.nat(2000),
        found: fc.double({ min: 0, max: 1, noNaN: true }),
        moves: fc.nat(5000),
        left: fc.double({ min: 0, max: 1, noNaN: true }),
      })
      .chain(({ tested, found, moves, left }) =>
        fc.double({ min: 0, max: tested, noNaN: true }).map((expected) => ({
          tested,
          expected,
          unmoved: found * tested,
          moves,
          followed: found * tested,
          stayed: found * tested * left,
          undone: found * tested * (1 - left),
        })),
      );
    fc.assert(
      fc.property(fc.array(shown, { maxLength: 20 }), (all) => {
        const known = all.reduce(learnHints, UNTESTED);
        expect(known.tested).toBeLessThanOrEqual(500 + 1e-6);
        expect(hintPrecision(known)).toBeGreaterThanOrEqual(0);
        expect(hintPrecision(known)).toBeLessThanOrEqual(0.95);
        expect(hintHazard(known)).toBeGreaterThanOrEqual(0);
        expect(hintRecall(known)).toBeLessThanOrEqual(1);
        expect(undonePart(known)).toBeGreaterThanOrEqual(0);
        expect(undonePart(known)).toBeLessThanOrEqual(0.9);
        expect(mostWaiting(known)).toBeGreaterThanOrEqual(50);
        expect(mostWaiting(known)).toBeLessThanOrEqual(50 + 20 * 500 + 1);
      }),
    );
  });

  test('decides how many of its hints may wait: fifty at first and for a useless source', () => {
    expect(mostWaiting(UNTESTED)).toBe(50);
    expect(mostWaiting(record({ tested: 500, expected: 400, unmoved: 400 }))).toBe(50);
    expect(mostWaiting(record({ tested: 10, expected: 8, unmoved: 4 }))).toBe(250);
  });
});

describe('a move that a source told of', () => {
  /**
   * Finds moves, of which the part `undone` is undone, at SKUs that also move on their own in half of the
   * intervals.
   */
  function followed(undone: number, refreshes: number, seed: number) {
    const random = seeded(seed);
    const found = { followed: refreshes, stayed: 0, undone: 0 };
    for (let n = 0; n < refreshes; n += 1) {
      const [before, after, isUndone] = [random() < 0.5, random() < 0.5, random() < undone];
      if (after) continue;
      if (!isUndone) found.stayed += 1;
      else if (!before) found.undone += 1;
    }
    return record(found);
  }

  test.for([0, 0.1, 0.3, 0.5])('is undone as often as it is in truth: %d', (undone) => {
    expect(undonePart(UNTESTED)).toBe(0);
    expect(Math.abs(undonePart(followed(undone, 20_000, 5)) - undone)).toBeLessThan(0.04);
  });

  test('brings a refresh forward by less the more often it is undone, and not at all from a third on', () => {
    const pull = (undone: number) => jointPull([{ hazard: 0.6, undone }]);
    expect([0, 0.1, 0.4].map(pull)).toEqual([0.6, expect.closeTo(0.42, 9), 0]);
    expect(
      jointPull([
        { hazard: 0.6, undone: 0.4 },
        { hazard: 0.5, undone: 0 },
      ]),
    ).toBe(0.5);
  });

  test('is predicted by useful sources only if a hint explains it, and for twenty sizes at most', () => {
    const hints = [
      { source: 'good', hazard: 3, undone: 0 },
      { source: 'junk', hazard: 0, undone: 0 },
    ];
    expect(predictedMove(hints, 0.9, { 7: 100, 8: null })).toEqual({
      sources: ['good'],
      former: { 7: 100, 8: null },
    });
    expect(predictedMove(hints.slice(1), 0.9, { 7: 100 })).toBeNull();
    expect(predictedMove([{ source: 'weak', hazard: 0.01, undone: 0 }], 0.5, { 7: 100 })).toBeNull();
    // A size without an earlier price counts, too. If no price changed, nothing was predicted.
    expect(predictedMove(hints, 0.9, {})).toBeNull();
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`s${n}`, n]));
    expect(Object.keys(predictedMove(hints, 0.9, many)?.former ?? {})).toHaveLength(20);
  });

  test('counts as stayed, undone or moved on, depending on its sizes', () => {
    const told = { sources: ['a', 'b'], former: { 7: 100, 8: null } };
    const found = (moved: [string, number | null][]) =>
      testPrediction(told, new Map(moved)).map((each) => each.found);
    expect(found([['9', 5]])).toEqual(['stayed', 'stayed']);
    expect(
      found([
        ['7', 100],
        ['8', null],
        ['9', 5],
      ]),
    ).toEqual(['undone', 'undone']);
    expect(found([['7', 100]])).toEqual(['moved on', 'moved on']);
    expect(
      found([
        ['7', 100],
        ['8', 120],
      ]),
    ).toEqual(['moved on', 'moved on']);
  });

  test('is rechecked the sooner the more often such moves are undone, and not early if none are', () => {
    const again = (dueIn: number, ...undone: number[]) =>
      predictionRecheckMinutes(
        { weight: 1, rate: PRIOR, dueIn },
        undone.map((part) => ({ source: 'a', hazard: 1, undone: part })),
        { refreshThreshold: 60, maxIntervalMinutes: 2000 },
      );
    expect([again(2000), again(2000, 0)]).toEqual([null, null]);
    const [rarely, often] = [again(2000, 0.1) ?? 2000, again(2000, 0.4) ?? 2000];
    expect(often).toBeLessThan(rarely);
    expect(rarely).toBeLessThan(2000);
    expect(again(2000, 0.4, 0.1)).toBe(often);
    // Not before it can have been undone, and never later than due.
    expect(again(2000, 0.9)).toBe(6);
    expect(again(6, 0.9)).toBeNull();
    // A source that is useless now does not predict what is undone, either.
    const silent = [{ source: 'a', hazard: 0, undone: 0.9 }];
    const plan = { refreshThreshold: 60, maxIntervalMinutes: 2000 };
    expect(predictionRecheckMinutes({ weight: 1, rate: PRIOR, dueIn: 2000 }, silent, plan)).toBeNull();
  });
});

describe('a hint', () => {
  test('of a source that is hardly ever right has no effect', () => {
    expect(hintHazard(record({ tested: 200, expected: 160, unmoved: 160 }))).toBe(0);
    expect(1 - Math.exp(-hintHazard(UNTESTED))).toBeCloseTo(0.3, 9);
    expect(hintedMinutes(SKU, 0, PLAN)).toBeNull();
  });

  test('brings a refresh forward to where it gains as much as any other, and never delays one', () => {
    const at = boostedMinutes(
      { weight: 1, rate: PRIOR, hazard: 0.5 },
      { refreshThreshold: 1, maxIntervalMinutes: 120 },
    );
    expect(hintedMinutes({ ...SKU, minutes: 0, dueIn: 120 }, 0.5, PLAN)).toBeCloseTo(at, 9);
    expect(hintedMinutes({ ...SKU, minutes: at + 5, dueIn: 1 }, 0.5, PLAN)).toBe(0);
    expect(hintedMinutes({ ...SKU, minutes: 0, dueIn: at }, 0.5, PLAN)).toBeNull();
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 4, noNaN: true }),
        fc.double({ min: -10, max: 200, noNaN: true }),
        fc.double({ min: 0, max: 200, noNaN: true }),
        (hazard, dueIn, minutes) => {
          const inMinutes = hintedMinutes({ ...SKU, minutes, dueIn }, hazard, PLAN);
          if (inMinutes === null) return;
          expect(inMinutes).toBeGreaterThanOrEqual(0);
          expect(inMinutes).toBeLessThan(dueIn);
          const surer = hintedMinutes({ ...SKU, minutes, dueIn }, hazard + 0.5, PLAN);
          expect(surer ?? Infinity).toBeLessThanOrEqual(inMinutes);
        },
      ),
    );
  });

  test('adds to others for the same SKU, up to a bound', () => {
    expect(jointHazard([])).toBe(0);
    expect(jointHazard([{ hazard: 0.5 }, { hazard: 0.7 }])).toBeCloseTo(1.2, 9);
    expect(jointHazard(Array.from({ length: 50 }, () => ({ hazard: 3 })))).toBe(4);
  });
});

describe('a refresh', () => {
  test('tests each source against what the rate and the other sources leave unexplained', () => {
    const alone = 0.8;
    const itself = { source: null, expected: 0.8, alone, moved: true };
    expect(testHints([{ source: 'a', hazard: 0.5 }], alone, true)).toEqual([
      itself,
      { source: 'a', expected: 0.8, alone, moved: true },
    ]);
    const two = testHints(
      [
        { source: 'good', hazard: Math.LN2 },
        { source: 'junk', hazard: 0 },
      ],
      0.8,
      false,
    );
    expect(two.map(({ expected }) => expected)).toEqual([0.8, 0.8, expect.closeTo(0.4, 9)]);
    expect(testHints([], 0.8, true)).toEqual([itself]);
  });

  test('does not teach the rate if the move is as likely to be the hinted one', () => {
    const hint = (precision: number) => [{ source: 'a', hazard: -Math.log1p(-precision) }];
    // told / (1 − unmoved · (1 − told)) is one half where told = (1 − unmoved) / (2 − unmoved).
    const [below, above] = [0.2 / 1.2 - 1e-6, 0.2 / 1.2 + 1e-6];
    expect(isHinted(hint(below), 0.8)).toBe(false);
    expect(isHinted(hint(above), 0.8)).toBe(true);
    expect(isHinted([], 0.8)).toBe(false);
    expect(isHinted(hint(0), 1)).toBe(false);
  });
});

describe('a flood', () => {
  const run = (floods: boolean) => {
    const world = new World(2000, 'stationary', 5, 3);
    const good = informed(world, { source: 'good', recall: 0.5, precision: 0.5 }, 3);
    return simulateLive(world, {
      policy: 'index',
      minutes: 300,
      limits: BENCH_LIMITS,
      liveBudget: 1,
      liveCeiling: 40,
      hints: floods ? together([flood(world), good]) : good,
    }).sources;
  };
  const [alone, beside] = [run(false), run(true)];

  test('of hints for every SKU every minute causes hardly any refresh', () => {
    const source = beside.get('flood');
    expect(source?.hints).toBeGreaterThan(500_000);
    // Out of about 12,000 refreshes.
    expect(source?.pulled).toBeLessThan(400);
    expect(source?.waiting).toBeLessThanOrEqual(mostWaiting(source?.record ?? UNTESTED));
  });

  test('takes nothing from a source that is right half of the time', () => {
    const precision = (sources: typeof alone) => hintPrecision(sources.get('good')?.record ?? UNTESTED);
    expect(Math.abs(precision(alone) - 0.5)).toBeLessThan(0.12);
    expect(Math.abs(precision(beside) - precision(alone))).toBeLessThan(0.1);
    const pulled = (sources: typeof alone) => sources.get('good')?.pulled ?? 0;
    expect(pulled(beside)).toBeGreaterThan(0.85 * pulled(alone));
  });
});
