import { assert, boolean, integer, property, record } from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type DownloadedManifest,
  isAwaited,
  isCounted,
  judgeDownload,
  judgeOffer,
  keptFromBefore,
  type ManifestRefusal,
  refusedDownload,
  refusedOffer,
} from '../../src/sync/manifest-decision.ts';

const at = (hour: number) => new Date(Date.UTC(2026, 10, 21, hour));
const STANDING = { snapshotGeneratedAt: at(6), chainBrokenAt: null, rejectedSnapshotId: null };

test('a file predates its snapshot if a cache has kept it since over 15 minutes before the build', () => {
  const now = at(12).getTime();
  const kept = (ageSeconds: number, generatedAt: Date | null = at(11)) =>
    keptFromBefore(ageSeconds, generatedAt, now);
  expect([3600, 4500].map((age) => kept(age))).toEqual([null, null]);
  expect(kept(4501)).toEqual({ since: new Date(now - 4_501_000), builtAt: at(11) });
  expect(kept(0, at(13))).toBeNull();
  expect(kept(99_999, null)).toBeNull();
});

describe('an offered snapshot', () => {
  test('is accepted if it is newer than the current one, of the same age, or of unknown age', () => {
    expect(judgeOffer({ snapshotId: 's2', generatedAt: at(12) }, STANDING)).toBeNull();
    expect(judgeOffer({ snapshotId: 's1', generatedAt: at(6) }, STANDING)).toBeNull();
    expect(judgeOffer({ snapshotId: 's2', generatedAt: null }, STANDING)).toBeNull();
    expect(
      judgeOffer({ snapshotId: 's0', generatedAt: at(0) }, { ...STANDING, snapshotGeneratedAt: null }),
    ).toBeNull();
  });

  test('is refused if it is older than the current one', () => {
    expect(judgeOffer({ snapshotId: 's0', generatedAt: at(0) }, STANDING)).toBe('older-snapshot');
  });

  test('is refused if the delta has just rejected its token, and accepted with any other token', () => {
    const broken = { ...STANDING, chainBrokenAt: at(7), rejectedSnapshotId: 's1' };
    for (const generatedAt of [at(6), null])
      expect(judgeOffer({ snapshotId: 's1', generatedAt }, broken)).toBe('rejected-token');
    const undated = { ...broken, snapshotGeneratedAt: null };
    expect(judgeOffer({ snapshotId: 's1', generatedAt: at(12) }, undated)).toBe('rejected-token');
    expect(judgeOffer({ snapshotId: 's2', generatedAt: at(12) }, broken)).toBeNull();
  });

  test('is accepted despite that token if it was built since: another snapshot of the same name', () => {
    const broken = { ...STANDING, chainBrokenAt: at(7), rejectedSnapshotId: 's1' };
    expect(judgeOffer({ snapshotId: 's1', generatedAt: at(12) }, broken)).toBeNull();
  });

  test('is accepted again after a rejection once the chain holds', () => {
    expect(
      judgeOffer({ snapshotId: 's1', generatedAt: at(6) }, { ...STANDING, rejectedSnapshotId: 's1' }),
    ).toBeNull();
  });
});

describe('a snapshot that the manifest route names', () => {
  const offered = { snapshotId: 's2', generatedAt: null };
  const well = {
    snapshotId: 's1',
    deltaLate: false,
    chainBrokenAt: null,
    rejectedSnapshotId: null,
    snapshotGeneratedAt: at(6),
    manifestRefused: null,
    hasLeft: false,
  };

  test('is awaited while the delta is late, unless the mirror has it or deltas have left it', () => {
    expect(isAwaited(offered, well)).toBe(false);
    expect(isAwaited(offered, { ...well, deltaLate: null })).toBe(false);
    expect(isAwaited(offered, { ...well, deltaLate: true })).toBe(true);
    expect(isAwaited(offered, { ...well, deltaLate: true, snapshotId: 's2' })).toBe(false);
    expect(isAwaited(offered, { ...well, deltaLate: true, hasLeft: true })).toBe(false);
  });

  test('is awaited after a manifest with the rejected token was refused, if it has another token', () => {
    const broken = { ...well, chainBrokenAt: at(7), rejectedSnapshotId: 's1', deltaLate: true };
    expect(isAwaited(offered, broken)).toBe(false);
    expect(isAwaited(offered, { ...broken, manifestRefused: 'shrunk' })).toBe(false);
    const refused = { ...broken, manifestRefused: 'rejected-token' };
    expect(isAwaited(offered, refused)).toBe(true);
    expect(isAwaited(offered, { ...refused, hasLeft: true })).toBe(true);
    expect(isAwaited(offered, { ...refused, rejectedSnapshotId: 's2' })).toBe(false);
    expect(isAwaited({ snapshotId: 's1', generatedAt: at(12) }, refused)).toBe(true);
  });
});

describe('the counts of a snapshot that is not downloaded', () => {
  const mirror = { ...STANDING, manifestLines: 100_000, shrinkConfirmed: false };
  const named = { snapshotId: 's2', generatedAt: at(7), skuCount: 100_000 };
  test.each<[string, boolean, Partial<typeof named>, Partial<Parameters<typeof isCounted>[1]>]>([
    ['are believed', true, {}, {}],
    ['are believed of half of the catalog', true, { skuCount: 50_000 }, {}],
    ['are not believed of less', false, { skuCount: 49_999 }, {}],
    ['are believed of less where that was confirmed', true, { skuCount: 1 }, { shrinkConfirmed: true }],
    ['are believed before the first baseline', true, { skuCount: 1 }, { manifestLines: null }],
    ['are not believed of an older one', false, { generatedAt: at(0) }, {}],
    [
      'are believed of the token that the delta rejected',
      true,
      {},
      { chainBrokenAt: at(7), rejectedSnapshotId: 's2' },
    ],
  ])('%s', (_, believed, offered, present) => {
    expect(isCounted({ ...named, ...offered }, { ...mirror, ...present }, 0.5)).toBe(believed);
  });
});

describe('a downloaded manifest', () => {
  const GOOD: DownloadedManifest = {
    lines: 100_000,
    rejected: 0,
    skus: 100_000,
    skuCount: 100_000,
    live: 5000,
    livePricedSkuCount: 5000,
    failures: 0,
    lastRefusal: null,
    listedBefore: 100_000,
    shrinkConfirmed: false,
    minShare: 0.5,
  };
  const KEPT = { kept: { since: at(1), builtAt: at(6) } };

  test.each<[string, Partial<DownloadedManifest>, string | null]>([
    ['with all its lines is merged', {}, null],
    ['of unknown count is merged', { skuCount: null }, null],
    ['with a line too few is refused', { lines: 99_999 }, 'line-count-mismatch'],
    ['with a line too many is refused', { lines: 100_001 }, 'line-count-mismatch'],
    ['without any line, where some are promised, is refused', { lines: 0, skus: 0 }, 'line-count-mismatch'],
    ['with 0.1 % of its lines rejected is merged', { rejected: 100 }, null],
    ['with more than 0.1 % rejected is refused', { rejected: 101 }, 'too-many-rejected-lines'],
    [
      'of few lines with ten rejected is merged',
      { lines: 100, skus: 90, live: 5, livePricedSkuCount: 5, skuCount: 100, rejected: 10, listedBefore: 0 },
      null,
    ],
    [
      'of few lines with eleven rejected is refused',
      { lines: 100, skuCount: 100, rejected: 11 },
      'too-many-rejected-lines',
    ],
    ['with a live SKU too few is refused', { live: 4999 }, 'live-count-mismatch'],
    [
      'with a live SKU too many is refused the third time',
      { live: 5001, failures: 2, lastRefusal: 'live-count-mismatch' },
      'live-count-mismatch',
    ],
    [
      'with a live SKU too many is merged the fourth time',
      { live: 5001, failures: 3, lastRefusal: 'live-count-mismatch' },
      null,
    ],
    [
      'that a cache has from before its snapshot is refused the first time, with all its lines',
      KEPT,
      'kept-file',
    ],
    [
      'that a cache has from before its snapshot is refused the third time',
      { ...KEPT, failures: 2, lastRefusal: 'kept-file' },
      'kept-file',
    ],
    [
      'that a cache has from before its snapshot is merged the fourth time',
      { ...KEPT, failures: 3, lastRefusal: 'kept-file' },
      null,
    ],
    [
      'that a cache has from before its snapshot is refused the first time, also after failures of another kind',
      { ...KEPT, failures: 20, lastRefusal: 'shrunk' },
      'kept-file',
    ],
    [
      'with a live SKU too many is refused the fourth time where a cache has it from before its snapshot',
      { ...KEPT, live: 5001, failures: 3, lastRefusal: 'kept-file' },
      'live-count-mismatch',
    ],
    [
      'with a live SKU too many is refused the twelfth time where a cache has it from before its snapshot',
      { ...KEPT, live: 5001, failures: 11, lastRefusal: 'live-count-mismatch' },
      'live-count-mismatch',
    ],
    [
      'with a live SKU too many is merged the thirteenth time, whatever a cache says',
      { ...KEPT, live: 5001, failures: 12, lastRefusal: 'live-count-mismatch' },
      null,
    ],
    [
      'with a live SKU too many is refused the first time, also after three that a cache had from before',
      { live: 5001, failures: 3, lastRefusal: 'kept-file' },
      'live-count-mismatch',
    ],
    [
      'with a live SKU too many is refused the first time, also after failures of another kind',
      { live: 5001, failures: 9 },
      'live-count-mismatch',
    ],
    ['with unknown live SKUs is merged', { livePricedSkuCount: null }, null],
    ['with as many live SKUs too few as it has rejected lines is merged', { live: 4990, skus: 99_990 }, null],
    ['that lists half of the SKUs is merged', { skus: 50_000 }, null],
    ['that lists less than half is refused', { skus: 49_999 }, 'shrunk'],
    ['that shrank and was confirmed is merged', { skus: 1, shrinkConfirmed: true }, null],
    [
      'that is empty, as an empty mirror is, is merged',
      { lines: 0, skus: 0, skuCount: 0, listedBefore: 0 },
      null,
    ],
  ])('%s', (_, differs, decision) => {
    expect(judgeDownload({ ...GOOD, ...differs })).toBe(decision);
  });

  test.each<[ManifestRefusal, Partial<DownloadedManifest>, string]>([
    ['line-count-mismatch', { lines: 99_999 }, '99,999 lines were read, and sku_count is 100,000'],
    ['too-many-rejected-lines', { rejected: 101 }, '101 of 100,000 lines are unreadable; at most 100 may be'],
    [
      'too-many-rejected-lines',
      { lines: 300, rejected: 11 },
      '11 of 300 lines are unreadable; at most 10 may be',
    ],
    ['shrunk', { skus: 2110, listedBefore: 48_001 }, '2,110 of 48,001 SKUs; at least 24,001 are needed'],
    ['live-count-mismatch', { live: 5001 }, '5,001 live SKUs were read, and live_priced_sku_count is 5,000'],
    [
      'kept-file',
      KEPT,
      'a cache has kept it since 2026-11-21T01:00:00.000Z, and its snapshot was built at 2026-11-21T06:00:00.000Z',
    ],
  ])('refused as %s reports the numbers', (reason, differs, problem) => {
    expect(refusedDownload(reason, { ...GOOD, ...differs })).toBe(problem);
  });

  test('older than the one before reports both times', () => {
    const offered = { snapshotId: 'S', generatedAt: new Date('2026-01-01T00:00:00Z') };
    const present = {
      snapshotGeneratedAt: new Date('2026-01-01T06:00:00Z'),
      chainBrokenAt: null,
      rejectedSnapshotId: null,
    };
    expect(refusedOffer('older-snapshot', offered, present)).toBe(
      'it was built at 2026-01-01T00:00:00.000Z, and the newest one before at 2026-01-01T06:00:00.000Z',
    );
    expect(refusedOffer('rejected-token', offered, present)).toBe(undefined);
  });

  test('that a person confirmed is still refused if lines are missing or unreadable', () => {
    const anyManifest = record({
      lines: integer({ min: 0, max: 50_000 }),
      rejected: integer({ min: 0, max: 200 }),
      off: integer({ min: -2, max: 2 }),
      shrinkConfirmed: boolean(),
    });
    assert(
      property(anyManifest, ({ lines, rejected, off, shrinkConfirmed }) => {
        const decision = judgeDownload({
          ...GOOD,
          lines,
          skus: lines,
          rejected,
          skuCount: lines + off,
          listedBefore: 0,
          shrinkConfirmed,
        });
        const unreadable = rejected > 10 && rejected / lines > 0.001;
        expect(decision === null).toBe(off === 0 && !unreadable);
      }),
    );
  });
});
