import { describe, expect, test } from 'vitest';
import type { Status } from '../../src/status/status.ts';
import { CASES, healthOf, mirrorWith, NOW } from './cases.ts';

/* A delta that the manifest route contradicts. */

const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000);

describe('a mirror with', () => {
  test.each<[string, Status, string, string[]]>([
    [
      'a newer snapshot named than the delta leads to',
      mirrorWith({ sync: { deltaLate: true, catalogState: 'stale', deltaBehindSince: at(-3600) } }),
      'degraded',
      ['delta-behind'],
    ],
    [
      'a delta that has stood still since a manifest took its place',
      mirrorWith({ sync: { deltaStillSince: at(-1200) } }),
      'degraded',
      ['delta-behind'],
    ],
    [
      'such a delta that is behind again',
      mirrorWith({
        sync: {
          deltaLate: true,
          catalogState: 'stale',
          deltaBehindSince: at(-60),
          deltaStillSince: at(-1200),
        },
      }),
      'degraded',
      ['delta-behind'],
    ],
    [
      'other counts of its snapshot',
      mirrorWith({
        sync: {
          deltaLate: true,
          catalogState: 'stale',
          catalogDiffersAt: at(-3600),
          catalogDifference: { listed: -12, live: 0 },
        },
      }),
      'degraded',
      ['catalog-differs'],
    ],
    [
      'both, and a delta last checked too long ago',
      mirrorWith({
        stats: { deltaCheckedAt: at(-1801) },
        sync: { deltaLate: true, deltaBehindSince: at(-3600), catalogDiffersAt: at(-3600) },
      }),
      'degraded',
      ['delta-late', 'delta-behind', 'catalog-differs'],
    ],
    [
      'one of them, and a delta checked at a time to come',
      mirrorWith({
        stats: { deltaCheckedAt: at(61) },
        sync: { deltaLate: true, deltaBehindSince: at(-3600) },
      }),
      'degraded',
      ['delta-late', 'delta-behind'],
    ],
  ])('%s', (_, status, state, codes) => {
    const judged = healthOf(status);
    expect([judged.state, judged.reasons.map(({ code }) => code)]).toEqual([state, codes]);
  });
});

test.each([
  [{ listed: -1200, live: 0 }, 'it lists 1,200 SKUs fewer;'],
  [{ listed: 7, live: -3 }, 'it lists 7 SKUs more and 3 live SKUs fewer;'],
  [{ rebuilt: true }, 'it was built again;'],
] as const)(
  'how the manifest differs from the mirrored snapshot is spelled out: %o',
  (catalogDifference, text) => {
    const status = mirrorWith({ sync: { deltaLate: true, catalogDiffersAt: at(-7300), catalogDifference } });
    expect(healthOf(status).reasons[0]?.text).toContain(
      `for 2.0h the manifest route has said of the mirrored snapshot that ${text}`,
    );
  },
);

test('contradictions of the delta are not reported while requests are paused', () => {
  const pause = { since: at(-60), until: null, by: 'somebody' };
  const { pace } = CASES.healthy.stats;
  const status = mirrorWith({
    stats: { pace: { ...pace, paused: pause } },
    sync: { deltaLate: true, deltaBehindSince: at(-3600), catalogDiffersAt: at(-3600) },
  });
  expect(healthOf(status).reasons.map(({ code }) => code)).toEqual(['paused']);
});
