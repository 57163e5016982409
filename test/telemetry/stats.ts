import type { MirrorStats } from '../../src/status/stats.ts';
import type { MirrorScrape } from '../../src/telemetry/metrics/mirror-gauges.ts';

export const NOW = Date.parse('2026-11-21T00:00:00Z');
export const ages = {
  buckets: [
    { le: 300, count: 4 },
    { le: 60, count: 1 },
  ],
  count: 6,
  sumSeconds: 4200.5,
};

/** A mirror in an incident, backing off. */
export const STATS: MirrorStats = {
  countedAt: new Date('2026-11-20T23:59:30Z'),
  countedInMs: 1500,
  snapshotId: 's1',
  snapshotGeneratedAt: new Date('2026-11-20T00:00:00.250Z'),
  manifestAppliedAt: new Date('2026-11-20T01:00:00Z'),
  deltaCheckedAt: null,
  catalogState: 'stale',
  skus: [{ state: 'priced', priceSource: 'live', count: 7 }],
  priceAge: [{ priceSource: 'live', ages, oldestSeconds: 900 }],
  freshSkus: [{ priceSource: 'live', count: 5 }],
  metadataAge: ages,
  oldestMetadataAgeSeconds: 1234,
  due: [
    { reason: 'changed', count: 3, oldestAgeSeconds: 42 },
    { reason: 'watched', count: 1, oldestAgeSeconds: 2 },
  ],
  deferredSkus: 2,
  oldestDeferredAgeSeconds: 30,
  pace: {
    ceilingPerMinute: 60,
    backingOffUntil: new Date(NOW + 1),
    usedInWindow: 17,
    othersInWindow: 3,
    mostInWindow: 118,
    limitInWindow: 200,
    refusal: null,
    refused: null,
  },
  liveBudgetPerCall: 5,
  live: { computedPerMinute: 12, ceilingPerMinute: 196, longestWaitSeconds: null },
  incident: { since: new Date(0), because: 'deferrals' },
  deltaAudit: {
    since: new Date(NOW),
    reportsConfirmed: 90,
    reportsUnchanged: 10,
    movesSeenFirst: 4,
    seenFirstSeconds: 3600.5,
    movesNeverReported: 1,
    movesWaiting: 3,
  },
  tasks: [],
};

/** A scrape of these statistics by a daemon that says it is healthy; null: they could not be read. */
export const scrapeOf = (stats: MirrorStats | null, more: Partial<MirrorScrape> = {}): MirrorScrape => ({
  stats,
  health: { state: 'healthy', reasons: [] },
  storeFailure: null,
  ...more,
});

/** The samples of our own metrics. */
export const own = (text: string) => text.split('\n').filter((line) => line.startsWith('catalog_mirror_'));
