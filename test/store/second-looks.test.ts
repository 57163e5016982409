import { describe, expect, test } from 'vitest';
import { testsOf } from '../../src/store/answer/calibration-evidence.ts';
import {
  secondLookIn,
  findingBeside,
  type HeldSecondLook,
  secondLookOf,
  wasLate,
} from '../../src/store/answer/second-looks.ts';
import { type Standing, LONGEST_CACHED_SECONDS } from '../../src/store/catalog/audit.ts';
import { secondLooksOf } from '../../src/store/trust/calibration.ts';
import {
  lateMovesOf,
  learnSecondLooks,
  pricesLag,
  type SecondLooks,
} from '../../src/store/trust/late-prices.ts';

const SKU: HeldSecondLook & Standing = {
  live: false,
  comparable: true,
  listedSnapshot: true,
  standing: 'own',
  kept: null,
  keptOnce: false,
  missedMoves: null,
  listedLive: false,
};
const TOLD = { ...SKU, told: true, standing: 'report' } as const;
const GONE = { comparable: false, standing: 'other' } as const;

describe('the role of an answer in the second check of its SKU', () => {
  test.each([
    ['nothing without a report or a second look to come', SKU, 'none'],
    ['a first look where a delta has reported the SKU', TOLD, 'report'],
    ['a first look where a manifest has, by the hash', { ...TOLD, standing: 'masked' as const }, 'report'],
    ['nothing where only the mirror has seen a move', { ...TOLD, standing: 'own' as const }, 'none'],
    ['nothing where the report came after it was asked', { ...TOLD, standing: 'overtaken' as const }, 'none'],
    [
      'an early one where that came during it',
      { ...TOLD, standing: 'overtaken' as const, againInSeconds: 60 },
      'early',
    ],
    [
      'nothing where it came during the second',
      { ...TOLD, standing: 'overtaken' as const, againInSeconds: 0 },
      'none',
    ],
    ['nothing of a live SKU', { ...TOLD, live: true }, 'none'],
    ['nothing of one that nobody lists', { ...TOLD, comparable: false, listedSnapshot: false }, 'none'],
    ['a first look where it had no record', { ...TOLD, ...GONE }, 'report'],
    ['nothing where it had none, and only a manifest lists it', { ...SKU, ...GONE }, 'none'],
    [
      'nothing where it had none, and the report came after it was asked',
      { ...TOLD, ...GONE, standing: 'overtaken' as const },
      'none',
    ],
    ['nothing of a live one that had none', { ...TOLD, ...GONE, live: true }, 'none'],
    ['the second one at its time', { ...SKU, againInSeconds: 0 }, 'second'],
    ['an early one before', { ...SKU, againInSeconds: 1 }, 'early'],
    ['the second one where a wrong clock has dated it', { ...SKU, againInSeconds: 1021 }, 'second'],
    ['a first look again where it is reported meanwhile', { ...TOLD, againInSeconds: 60 }, 'report'],
  ])('%s', (_, row, look) => {
    expect(secondLookOf(row, 'record', false)).toBe(look);
  });

  test('is early before its time even if it finds a change, and none if it is no record', () => {
    expect(secondLookOf({ ...SKU, againInSeconds: 60 }, 'record', true)).toBe('early');
    expect(secondLookOf(TOLD, 'not_found', false)).toBe('none');
  });

  const FOUND = { ...SKU, kept: 'overdue', keptOnce: true, askedBecause: 'again' } as const;

  test.each([
    [
      'says that the answer before was late, where no report has come of the change that was found',
      FOUND,
      'late',
    ],
    [
      'also where that was found before its time',
      { ...FOUND, askedBecause: 'refresh', againInSeconds: 60 },
      'late',
    ],
    ['not where another change may hide behind it', { ...FOUND, keptOnce: false }, 'none'],
    ['not as long as the report may come', { ...FOUND, kept: 'waiting' as const }, 'none'],
    ['not where a report has come', { ...FOUND, ...TOLD, kept: 'reported' as const }, 'report'],
    ['not where the change was found without a report', { ...FOUND, askedBecause: 'sweep' }, 'none'],
    ['not where nobody knows what the delta has told', { ...FOUND, standing: 'masked' as const }, 'none'],
  ])('%s', (_, row, look) => {
    expect(secondLookOf(row, 'record', false)).toBe(look);
  });

  test('an answer that shows a late one does not blame the delta for what it had reported', () => {
    const found = (row: HeldSecondLook & Standing, moved = false) =>
      findingBeside(secondLookOf(row, 'record', moved), row, 'record', { moved, isUnpriced: false }, false);
    expect(found(FOUND)).toBe('left');
    expect(found({ ...FOUND, kept: 'waiting' })).toBe('left');
    expect(found({ ...FOUND, askedBecause: 'sweep' })).toBe('overdue');
    expect(found({ ...FOUND, kept: 'waiting', askedBecause: 'sweep' })).toBeNull();
    expect(found({ ...FOUND, kept: 'waiting', againInSeconds: 60 })).toBeNull();
    expect(found({ ...SKU, againInSeconds: 0 }, true)).toBe('seen');
    expect(found(FOUND, true)).toBe('seen');
  });
});

test('a report of a new SKU is not judged before its second check, which is not judged either', () => {
  const found = (
    row: HeldSecondLook & Standing,
    isAskedAgain: boolean,
    said = { moved: false, isUnpriced: true },
  ) => findingBeside(secondLookOf(row, 'record', said.moved), row, 'record', said, isAskedAgain);
  const reported = { ...SKU, kept: 'reported' } as const;
  expect(found({ ...TOLD, ...GONE }, true)).toBe('overtaken');
  expect(found({ ...TOLD, ...GONE }, false)).toBeNull();
  expect(found({ ...TOLD, kept: 'reported' }, true)).toBe('overtaken');
  expect(found({ ...TOLD, kept: 'reported' }, true, { moved: false, isUnpriced: false })).toBe('unchanged');
  expect(found({ ...TOLD, kept: 'reported' }, true, { moved: true, isUnpriced: true })).toBe('confirmed');
  expect(found(TOLD, true)).toBe('unchanged');
  expect(found({ ...reported, againInSeconds: 60 }, true)).toBeNull();
  expect(found({ ...reported, againInSeconds: 60 }, true, { moved: true, isUnpriced: false })).toBe('seen');
  expect(found({ ...reported, againInSeconds: 0 }, false)).toBe('left');
  expect(wasLate('second', reported, false)).toBeNull();
});

test('an earlier answer is judged late or not only if nothing else explains what the check found', () => {
  expect(wasLate('late', { ...SKU, kept: 'overdue' }, false)).toBe(true);
  expect(wasLate('second', SKU, false)).toBe(false);
  expect(wasLate('second', SKU, true)).toBeNull();
  expect(wasLate('second', { ...SKU, kept: 'waiting' }, false)).toBeNull();
  expect(wasLate('second', { ...SKU, standing: 'masked' }, false)).toBeNull();
  for (const look of ['early', 'report', 'none'] as const)
    for (const moved of [false, true]) expect(wasLate(look, SKU, moved)).toBeNull();
});

test('the longest cache time is what the partner declares', () => expect(LONGEST_CACHED_SECONDS).toBe(1020));

describe('a SKU is requested again', () => {
  const SAME = { moved: false, isUnpriced: false, state: 'priced' };
  const MOVED = { ...SAME, moved: true };

  test('after the longest cache time if an answer to a report contains nothing new and is sampled', () => {
    expect(secondLookIn('report', SKU, SAME, true)).toBe(1020);
    expect(secondLookIn('report', SKU, SAME, false)).toBeNull();
    expect(secondLookIn('report', SKU, MOVED, true)).toBeNull();
  });

  test.each(['reported', 'waiting', 'overdue'] as const)(
    'if a change was reported after a refresh had found one (%s), because a cache may have the older price',
    (kept) => {
      expect(secondLookIn('report', { ...TOLD, kept }, MOVED, true)).toBe(1020);
      expect(secondLookIn('report', { ...TOLD, kept }, MOVED, false)).toBeNull();
    },
  );

  test('only once', () => {
    for (const moved of [false, true])
      expect(secondLookIn('second', { ...SKU, againInSeconds: 0 }, { ...SAME, moved }, true)).toBeNull();
    expect(secondLookIn('none', SKU, SAME, true)).toBeNull();
  });

  test('at the planned time if an answer before it finds nothing', () => {
    expect(secondLookIn('early', { ...SKU, againInSeconds: 300 }, SAME, false)).toBe(300);
  });

  test('after another report during its wait, whatever the answer, which may be the late one to the first', () => {
    const waits = { ...TOLD, againInSeconds: 300 };
    for (const moved of [false, true])
      expect(secondLookIn('report', waits, { ...SAME, moved }, false)).toBe(1020);
    expect(secondLookIn('report', { ...TOLD, againInSeconds: -1 }, MOVED, false)).toBe(1020);
  });

  test('after its first record since it was gone, if sampled, and always if a first record has no price', () => {
    const gone = { ...TOLD, ...GONE };
    for (const said of [SAME, MOVED].map((each) => ({ ...each, state: 'removed' }))) {
      expect(secondLookIn('report', gone, said, true)).toBe(1020);
      expect(secondLookIn('report', gone, said, false)).toBeNull();
      expect(secondLookIn('report', gone, { ...said, state: 'pending' }, true)).toBeNull();
      expect(secondLookIn('report', gone, { ...said, isUnpriced: true }, false)).toBe(1020);
    }
    expect(secondLookIn('report', TOLD, { ...SAME, isUnpriced: true }, false)).toBeNull();
  });

  test('always if it still has no price after a report during the request of its first record', () => {
    const reported = { ...TOLD, kept: 'reported' } as const;
    expect(secondLookIn('report', reported, { ...SAME, isUnpriced: true }, false)).toBe(1020);
    expect(secondLookIn('report', reported, { ...MOVED, isUnpriced: true }, false)).toBeNull();
    expect(secondLookIn('report', reported, SAME, false)).toBeNull();
  });
});

const NONE: SecondLooks = { looks: 0, found: 0, share: 1 };
/** Returns the state after rounds of second checks, each with the number of checks and of changes found. */
const after = (held: SecondLooks, ...rounds: readonly (readonly [looks: number, found: number])[]) =>
  rounds.reduce((known, [looks, found]) => learnSecondLooks(known, { looks, found }), held);
const times = (n: number, looks: number, found: number) =>
  Array.from({ length: n }, () => [looks, found] as const);

describe('the share that gets a second check', () => {
  test('is all while little is known, and one in twenty after sixty without a change', () => {
    expect(after(NONE, [59, 0]).share).toBe(1);
    expect(after(NONE, [60, 0]).share).toBe(0.05);
    expect(after(NONE, ...times(60, 1, 0)).share).toBe(0.05);
    expect(after(NONE, ...times(59, 1, 0)).share).toBe(1);
  });

  test('does not change after no checks', () => expect(after(NONE, [0, 0])).toEqual(NONE));

  test('stays one in twenty if hardly any finds a change, and is all if more do', () => {
    expect(after(NONE, ...times(3, 60, 1)).share).toBe(0.05);
    expect(after(NONE, ...times(3, 60, 3)).share).toBe(1);
  });

  test('is all as soon as a sampled one finds a change, and falls again once enough have found none', () => {
    const sampled = after(NONE, [600, 0]);
    const doubted = after(sampled, [1, 1]);
    expect(doubted.share).toBe(1);
    expect(after(sampled, [100, 1]).share).toBe(1);
    expect(after(doubted, ...times(20, 1, 0)).share).toBe(1);
    expect(after(doubted, ...times(60, 1, 0)).share).toBe(0.05);
    expect(after(sampled, ...times(30, 1, 0)).share).toBe(0.05);
  });

  test('falls within some hundred checks after a cache ends', () => {
    const cache = after(NONE, ...times(30, 10, 6));
    expect(cache.share).toBe(1);
    expect(after(cache, ...times(20, 10, 0)).share).toBe(0.05);
  });
});

test('second checks are counted separately, and those that come too early not at all', () => {
  const refresh = {
    cohort: 'snapshot',
    pRight: 0.9,
    sizePRight: 0.9,
    minutes: 17,
    random: false,
    finding: null,
    standing: 'own',
    kept: null,
    alpha: null,
    beta: null,
    priorMinutes: 30,
  } as const;
  const tests = testsOf(
    [
      { ...refresh, sku: 'A', look: 'second', moved: true },
      { ...refresh, sku: 'B', look: 'early', moved: false },
      { ...refresh, sku: 'B', look: 'early', moved: true },
      { ...refresh, sku: 'D', look: 'second', moved: false },
      { ...refresh, sku: 'E', look: 'late', moved: false, kept: 'overdue' },
      { ...refresh, sku: 'C', look: 'report', moved: false, cohort: 'reported' },
    ],
    new Map(),
  );
  expect(tests.map(({ cohort, looks, right, judged, late }) => [cohort, looks, right, judged, late])).toEqual(
    [
      ['again', 1, 0, 0, 0],
      ['again', 1, 1, 1, 0],
      ['again', 0, 0, 1, 1],
      ['reported', 1, 1, undefined, undefined],
    ],
  );
  const bin = { bin: 9, claimed: 0, minutes: 0, missed: 0, leverage: 0, judged: 0, late: 0 };
  const counts = [
    { ...bin, cohort: 'again', looks: 7, right: 4, judged: 4 },
    { ...bin, cohort: 'again', looks: 0, right: 0, judged: 3, late: 3 },
    { ...bin, cohort: 'reported', looks: 5, right: 1 },
  ];
  expect(secondLooksOf(counts)).toEqual({ looks: 7, found: 3 });
});

describe('prices lag behind the reports', () => {
  test('if more than one in twenty answers is wrong, and at least three, until half as many are', () => {
    expect(pricesLag({ looks: 20, found: 2.9 }, false)).toBe(false);
    expect(pricesLag({ looks: 20, found: 3 }, false)).toBe(true);
    expect(pricesLag({ looks: 55, found: 3.5 }, false)).toBe(false);
    expect(pricesLag({ looks: 55, found: 3.6 }, false)).toBe(true);
    expect(pricesLag({ looks: 60, found: 1.9 }, true)).toBe(true);
    expect(pricesLag({ looks: 60, found: 1.7 }, true)).toBe(false);
  });

  test('with the probability that second checks show, and one in a hundred before there are any', () => {
    expect(lateMovesOf(NONE)).toBeCloseTo(0.01, 5);
    expect(lateMovesOf({ looks: 40, found: 20 })).toBeCloseTo(0.337, 3);
  });
});
