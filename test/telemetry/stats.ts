import { judgeHealth } from '../../src/status/health.ts';
import type { MirrorStats } from '../../src/status/status.ts';
import { TASKS } from '../../src/store/ledger/tasks.ts';
import type { Observation } from '../../src/telemetry/metrics/declaration.ts';
import { createMetrics, type MirrorScrape } from '../../src/telemetry/metrics/metrics.ts';

export const NOW = Date.parse('2026-11-21T00:00:00Z');
export const ages = {
  buckets: [
    { le: 300, count: 4 },
    { le: 60, count: 1 },
  ],
  count: 6,
  sumSeconds: 4200.5,
};

/** A mirror in an incident that is backing off. */
export const STATS: MirrorStats = {
  countedAt: new Date('2026-11-20T23:59:30Z'),
  countedInMs: 1500,
  ofManifest: '2026-11-20 01:00:00+00',
  snapshotId: 's1',
  snapshotGeneratedAt: new Date('2026-11-20T00:00:00.250Z'),
  manifestAppliedAt: new Date('2026-11-20T01:00:00Z'),
  deltaCheckedAt: null,
  catalogState: 'stale',
  outOfScope: null,
  unanswered: 0,
  liveDeferred: false,
  skus: [{ state: 'priced', priceSource: 'live', count: 7 }],
  priceAge: [{ priceSource: 'live', ages, oldestSeconds: 900 }],
  freshSkus: [{ priceSource: 'live', count: 5 }],
  trust: [{ priceSource: 'live', actionable: 4, expectedRight: 6.5 }],
  metadataAge: ages,
  oldestMetadataAgeSeconds: 1234,
  due: [
    { reason: 'changed', count: 3, oldestAgeSeconds: 42 },
    { reason: 'watched', count: 1, oldestAgeSeconds: 2 },
  ],
  failing: [{ sku: 'BROKEN', failures: 9, oldestAgeSeconds: 7200, error: 'call-timeout' }],
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
    paused: null,
  },
  liveBudgetPerCall: 5,
  live: { computedPerMinute: 12, ceilingPerMinute: 196, longestWaitSeconds: null },
  incident: { since: new Date(0), because: 'deferrals' },
  doubted: { implausible: 2, 'mass-move': 3 },
  unsteadyColumns: ['brand'],
  deltaAudit: {
    since: new Date(NOW),
    reportsConfirmed: 90,
    reportsUnchanged: 10,
    movesSeenFirst: 4,
    seenFirstSeconds: 3600.5,
    movesNeverReported: 1,
    movesWaiting: 3,
  },
  calibration: [{ cohort: 'live', looks: 2000, rightShare: 0.91, claimedShare: 0.9, error: 0.02 }],
  refreshes: { asked: 50, refused: 2 },
  hints: {
    unread: 12,
    sources: [
      {
        source: 'orders',
        hints: 400,
        refreshesBroughtForward: 120,
        precision: 0.52,
        recall: 0.48,
        waiting: 9,
      },
    ],
  },
  promises: {
    promises: 40,
    feasible: 30,
    leftOut: 10,
    neededPerMinute: 160.2,
    availablePerMinute: 94.4,
    cases: 2000,
    kept: 1990,
  },
  followers: [
    {
      name: 'shop',
      delivery: 'webhook',
      position: '17',
      afterSku: null,
      behind: 21,
      behindSeconds: 34.5,
      lost: false,
      heldBy: 'host (process 1)',
      failures: 4,
      failingSince: new Date(NOW),
      lastStatus: 503,
      lastSaid: 'later',
      lastAt: new Date(NOW),
      deadLetters: 2,
    },
    {
      name: 'old',
      delivery: 'stdout',
      position: '3',
      afterSku: null,
      behind: null,
      behindSeconds: null,
      lost: true,
      heldBy: null,
      failures: 0,
      failingSince: null,
      lastStatus: null,
      lastSaid: null,
      lastAt: null,
      deadLetters: 0,
    },
  ],
  tasks: [],
  targets: { liveSeconds: 1800, snapshotSeconds: 86_400 },
};

/** Returns a scrape of these statistics by a healthy daemon; null: they could not be read. */
export const scrapeOf = (stats: MirrorStats | null, more: Partial<MirrorScrape> = {}): MirrorScrape => ({
  stats,
  health: { state: 'healthy', reasons: [] },
  storeFailure: null,
  now: NOW,
  ...more,
});

/** Returns the samples of our own metrics. */
export const own = (text: string) => text.split('\n').filter((line) => line.startsWith('catalog_mirror_'));

/** The same mirror with everything known: backing off, with too few refreshes, and each task done once. */
const EVERYTHING: MirrorStats = {
  ...STATS,
  deltaCheckedAt: new Date(NOW),
  pace: {
    ...STATS.pace,
    paused: { since: new Date(NOW), until: new Date(NOW), by: 'ann@desk' },
    refused: {
      outcome: 'unauthorised',
      times: 1,
      since: new Date(NOW),
      ownRequests: 1,
      ownMost: 1,
      suspected: 'credential',
    },
  },
  live: { computedPerMinute: 12, ceilingPerMinute: 196, longestWaitSeconds: 3600 },
  tasks: TASKS.map((task, at) => ({
    task,
    nextAt: new Date(NOW),
    running: false,
    startedAt: null,
    finishedAt: null,
    succeededAt: new Date(NOW + at),
    failures: at,
    outcome: null,
    progress: null,
  })),
};

/** One of each event that a metric counts. */
const OBSERVATIONS: readonly Observation[] = [
  { event: 'bulk.failed', skus: 2, pausedMs: 0, because: 'not-stored', hint: '' },
  {
    event: 'bulk.applied',
    asked: 100,
    resolved: 90,
    notFound: 3,
    deferred: 4,
    errors: 2,
    omitted: 1,
    contradictory: 1,
    unreadable: 5,
    unexpected: 6,
    late: 7,
    priceChanges: 8,
    metadataChanges: 9,
    unpricedEntries: 10,
    reportSeconds: [1, 100, 100_000],
    promises: { kept: 11, hindered: 12, broken: 13 },
  },
  { event: 'release.suspected', brand: 'Nike', model: 'Dunk Low', skus: 8 },
  { event: 'release.confirmed', brand: 'Nike', model: 'Dunk Low', skus: 120 },
  { event: 'release.dismissed', brand: 'Nike', model: 'Dunk Low' },
  { event: 'manifest.downloaded', outcome: 'file-corrupt', status: 200, ms: 45_000 },
  { event: 'manifest.rejected-lines', rejected: 3, reasons: { 'bad-sku': 1, 'not-json': 2 } },
  {
    event: 'delta.applied',
    toSnapshot: 's2',
    changed: 1,
    removed: 1,
    nowLive: 1,
    newSkus: 1,
    crossedToLive: 1,
    crossedToSnapshot: 1,
    skipped: 11,
  },
  {
    event: 'request.ended',
    route: 'bulk',
    outcome: 'ok',
    ms: 700,
    waitedMs: 5,
    skus: 100,
    status: 200,
    date: null,
  },
  { event: 'request.waited', lane: 'reprice', ms: 20, putOff: null },
  { event: 'request.waited', lane: 'delta', ms: 15_000, putOff: 'silence' },
  {
    event: 'task.ended',
    task: 'manifest',
    ms: 60_000,
    outcome: { kind: 'done', nextInMs: 1, counts: { lines: 1000, rejected: 3, because: 'fill' } },
  },
  {
    event: 'task.ended',
    task: 'delta',
    ms: 500,
    outcome: { kind: 'postponed', nextInMs: 1, because: 'silence' },
  },
  {
    event: 'task.ended',
    task: 'delta',
    ms: 500,
    outcome: { kind: 'failed', nextInMs: 1, because: 'network', hint: 'wait' },
  },
  { event: 'job.ended', queue: 'reprice', outcome: 'done', ms: 250 },
];

/**
 * Returns a scrape in which every metric of ours has a series, with types and help, after one of each counted
 * event. `npm run docs` keeps it in test/telemetry/every-metric.txt.
 */
export async function everyMetric(): Promise<string> {
  const metrics = createMetrics({ version: '1.2.3', mirror: 'prod' });
  for (const observation of OBSERVATIONS) metrics.count(observation);
  metrics.setMirror(scrapeOf(EVERYTHING, { health: judgeHealth(null), storeFailure: 'read-only' }));
  const lines = (await metrics.text())
    .split('\n')
    .filter((line) => /^(?:# (?:HELP|TYPE) )?catalog_mirror_/.test(line));
  return `${lines.join('\n')}\n`.replace(process.versions.node, '24.0.0');
}
