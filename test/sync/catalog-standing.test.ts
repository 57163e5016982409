import { describe, expect, test } from 'vitest';
import type { DeltaDoubt, CatalogStanding } from '../../src/store/catalog/standing.ts';
import {
  differenceOf,
  doubtAfter,
  isNewer,
  isRebuilt,
  nextCheckMs,
} from '../../src/sync/catalog-check-decision.ts';

const HOUR_MS = 3_600_000;
/** A time by the clocks of both mirror and partner. */
const at = (hour: number) => new Date(Date.UTC(2026, 10, 21, 0, hour * 60));

/** A mirror whose delta led to s6, built at six o'clock, some minutes later. */
const FOLLOWING: CatalogStanding = {
  now: at(13),
  snapshotId: 's6',
  manifestAppliedAt: at(0.1),
  tokenGeneratedAt: at(6),
  appliedGeneratedAt: at(6),
  tokenAt: at(6.05),
  firstNamedAt: at(13),
  hasLeft: false,
  chainBroken: false,
  doubt: null,
  behindSince: null,
  newerNamedAt: null,
  deltaCheckedAt: at(12.95),
  deltaLateAfterMs: HOUR_MS / 2,
  difference: null,
  rebuilds: 0,
  idleManifests: 0,
  unclear: 0,
  liveMiscount: 0,
};
const S12 = { snapshotId: 's12', generatedAt: at(12) };

describe('a snapshot that the manifest route names is newer than that of the token', () => {
  test.each<[string, boolean, Partial<typeof S12> | { generatedAt: null }, Partial<CatalogStanding>]>([
    ['where it was built later', true, {}, {}],
    ['not where it is the same, whatever its time', false, { snapshotId: 's6' }, {}],
    ['not where deltas have left it', false, {}, { hasLeft: true }],
    ['not where it was built earlier: the manifest route lags behind', false, { generatedAt: at(0) }, {}],
    ['where it was built after a token that was never named', true, {}, { tokenGeneratedAt: null }],
    [
      'not where it was built before a token that was never named, however late it is named',
      false,
      { generatedAt: at(6) },
      { tokenGeneratedAt: null },
    ],
    [
      'not where it was named before a token that was never named: the clock of the partner is ahead',
      false,
      {},
      { tokenGeneratedAt: null, firstNamedAt: at(6) },
    ],
    ['without times where it was named after the token came', true, { generatedAt: null }, {}],
    [
      'not without times where it was named before',
      false,
      { generatedAt: null },
      { tokenGeneratedAt: null, firstNamedAt: at(6) },
    ],
    [
      'of the same time where it was named after the token came',
      true,
      { generatedAt: at(6) },
      { tokenGeneratedAt: at(6) },
    ],
    [
      'not of the same time where it was named before',
      false,
      { generatedAt: at(6) },
      { firstNamedAt: at(6) },
    ],
    [
      'not where tokens are of each answer: the last one is newer than any name',
      false,
      {},
      { tokenGeneratedAt: null, tokenAt: at(13), firstNamedAt: at(12.5) },
    ],
    ['not where nobody knows when the token came', false, {}, { tokenGeneratedAt: null, tokenAt: null }],
  ])('%s', (_, is, named, standing) => {
    expect(isNewer({ ...S12, ...named }, { ...FOLLOWING, ...standing })).toBe(is);
  });
});

describe('the delta, when a newer snapshot is named,', () => {
  const SUSPECTED = { doubt: 'suspected', behindSince: at(12.5) } as const;
  test.each<[string, DeltaDoubt | null, Partial<CatalogStanding>]>([
    ['may lead to it in a moment', 'suspected', {}],
    ['is behind where that has lasted for as long as a delta may be late', 'behind', SUSPECTED],
    ['may yet lead to it before', 'suspected', { ...SUSPECTED, behindSince: at(12.6) }],
    ['is not judged where it was not read since', 'suspected', { ...SUSPECTED, deltaCheckedAt: at(12.5) }],
    ['is not judged where it was never read', 'suspected', { ...SUSPECTED, deltaCheckedAt: null }],
    [
      'is not judged where it was not read for long, as after a pause',
      'suspected',
      { doubt: 'suspected', behindSince: at(6), deltaCheckedAt: at(6.1) },
    ],
    ['stays behind', 'behind', { doubt: 'behind', behindSince: at(12.99) }],
    [
      'is behind soon where it was before: once it was read after a newer one was named',
      'behind',
      { doubt: 'distrusted', newerNamedAt: at(12.94) },
    ],
    [
      'may yet lead to it where it was read before',
      'distrusted',
      { doubt: 'distrusted', newerNamedAt: at(12.95) },
    ],
    ['may yet lead to it where it is named for the first time', 'distrusted', { doubt: 'distrusted' }],
    ['that is broken says so itself', null, { chainBroken: true }],
    ['that is broken stays suspected', 'suspected', { ...SUSPECTED, chainBroken: true }],
  ])('%s', (_, doubt, standing) => {
    expect(doubtAfter(S12, { ...FOLLOWING, ...standing })).toBe(doubt);
  });

  test.each<[DeltaDoubt | null, DeltaDoubt | null]>([
    [null, null],
    ['suspected', null],
    ['behind', null],
    ['distrusted', 'distrusted'],
  ])('otherwise turns from %s to %s', (before, after) => {
    const standing = { ...FOLLOWING, doubt: before, behindSince: at(1) };
    expect(doubtAfter({ snapshotId: 's6', generatedAt: at(6) }, standing)).toBe(after);
    expect(doubtAfter({ snapshotId: 's0', generatedAt: at(0) }, standing)).toBe(after);
  });
});

test.each<[DeltaDoubt | null, { catalogCheckMs?: number; deltaMs?: number }, number]>([
  [null, {}, 60],
  ['suspected', {}, 30],
  ['behind', {}, 30],
  ['behind', { catalogCheckMs: 10 }, 10],
  ['distrusted', {}, 5],
  ['distrusted', { deltaMs: 1 }, 5],
  ['distrusted', { deltaMs: 20 }, 20],
  ['distrusted', { deltaMs: 90 }, 60],
])(
  'if the delta is %s and the intervals are %j, the next check comes after %d minutes',
  (doubt, other, minutes) => {
    const intervals = { catalogCheckMs: 60, deltaMs: 5, ...other };
    const ms = { catalogCheckMs: intervals.catalogCheckMs * 60_000, deltaMs: intervals.deltaMs * 60_000 };
    expect(nextCheckMs(doubt, FOLLOWING, ms)).toBe(minutes * 60_000);
  },
);

describe("the mirror's own snapshot was built again", () => {
  const AGAIN = { snapshotId: 's6', generatedAt: at(7) };
  const WAITS = { firstMs: HOUR_MS, mostMs: 5 * HOUR_MS };
  test.each<[string, boolean, Partial<typeof AGAIN> | { generatedAt: null }, Partial<CatalogStanding>]>([
    ['where its time is later', true, {}, {}],
    ['where its time is later, and a newer one was named since', true, {}, { appliedGeneratedAt: at(9) }],
    ['where the check before has named it, and could not store that', true, {}, { tokenGeneratedAt: at(7) }],
    ['not where it is the same', false, { generatedAt: at(6) }, {}],
    ['not where it is earlier, as in a cache', false, { generatedAt: at(5) }, {}],
    ['not where it is unknown', false, { generatedAt: null }, {}],
    ['not where it was unknown', false, {}, { tokenGeneratedAt: null }],
    ['not where it is another one', false, { snapshotId: 's7' }, {}],
    [
      'an hour after the manifest of the last such, too',
      true,
      {},
      { rebuilds: 1, manifestAppliedAt: at(12) },
    ],
    ['not sooner', false, {}, { rebuilds: 1, manifestAppliedAt: at(12.1) }],
    ['two hours after that of the second', false, {}, { rebuilds: 2, manifestAppliedAt: at(11.1) }],
    ['after so many at the latest then', true, {}, { rebuilds: 30, manifestAppliedAt: at(8) }],
  ])('%s', (_, is, named, standing) => {
    expect(isRebuilt({ ...AGAIN, ...named }, { ...FOLLOWING, ...standing }, WAITS)).toBe(is);
  });
});

describe('counts of the manifest route', () => {
  const CLEAR = { unclear: 0, liveMiscount: 0 };
  test.each<
    [
      string,
      { listed: number; live: number } | null,
      [number | null, number | null],
      [number, number],
      object,
    ]
  >([
    ['that are those of the mirror', null, [1000, 100], [1000, 100], {}],
    ['that are next to those of the mirror', null, [1005, 95], [1000, 100], {}],
    ['of more SKUs', { listed: 6, live: 0 }, [1006, 100], [1000, 100], {}],
    ['of fewer SKUs', { listed: -6, live: 0 }, [994, 100], [1000, 100], {}],
    ['of more live SKUs', { listed: 0, live: 6 }, [1000, 106], [1000, 100], {}],
    ['of as many more as one in ten thousand', null, [1_000_100, 0], [1_000_000, 0], {}],
    ['of one more than that', { listed: 101, live: 0 }, [1_000_101, 0], [1_000_000, 0], {}],
    ['of as many more as lines were unclear', null, [1015, 100], [1000, 100], { unclear: 10 }],
    [
      'of one more than lines were unclear',
      { listed: 16, live: 0 },
      [1016, 100],
      [1000, 100],
      { unclear: 10 },
    ],
    ['that were miscounted before', null, [1000, 150], [1000, 100], { liveMiscount: 50 }],
    ['that are right now', { listed: 0, live: -50 }, [1000, 100], [1000, 100], { liveMiscount: 50 }],
    ['of an incident', null, [1000, 1000], [1000, 100], {}],
    ['of an incident, and more SKUs', { listed: 10, live: 0 }, [1010, 1010], [1000, 100], {}],
    ['that are not given', null, [null, null], [1000, 100], {}],
  ])('%s', (_, difference, [skuCount, livePricedSkuCount], [listed, live], more) => {
    expect(differenceOf({ skuCount, livePricedSkuCount }, { listed, live }, { ...CLEAR, ...more })).toEqual(
      difference,
    );
  });
});
