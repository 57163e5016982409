import type { Suspicion } from '../../src/pace/view.ts';
import type { Facts } from '../../src/status/facts.ts';
import { type Health, judgeHealth } from '../../src/status/health.ts';
import type { MirrorStats, Status } from '../../src/status/status.ts';
import type { TaskState } from '../../src/store/ledger/tasks.ts';
import { STATS as EVERY_MEMBER } from '../telemetry/stats.ts';

/* Mirrors as the status may find them, all at one moment. */

export const NOW = new Date('2026-11-21T12:00:00.000Z');
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1000);
const ahead = (seconds: number) => ago(-seconds);

const BOUNDS = [60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000];

/** Builds a distribution from the count in each bucket; buckets beyond the list are empty. */
function ages(counts: readonly number[]): MirrorStats['metadataAge'] {
  let below = 0;
  const buckets = BOUNDS.map((le, i) => ({ le, count: (below += counts[i] ?? 0) }));
  const count = counts.reduce((a, b) => a + b, 0);
  return { buckets, count, sumSeconds: count * 100 };
}

const WINDOW = { othersInWindow: 0, mostInWindow: 118, limitInWindow: 200, paused: null };

const NO_PRICES = { priceAge: [], freshSkus: [], metadataAge: ages([]), oldestMetadataAgeSeconds: 0 };

const NO_PROMISES = { promises: 0, feasible: 0, leftOut: 0, cases: 0, kept: 0 };

const STATS: MirrorStats = {
  ...EVERY_MEMBER,
  countedAt: ago(2),
  countedInMs: 150,
  snapshotId: 'snap-0042',
  tasks: [],
  snapshotGeneratedAt: ago(7500),
  manifestAppliedAt: ago(3 * 86_400),
  deltaCheckedAt: ago(100),
  catalogState: 'ok',
  skus: [
    { state: 'priced', priceSource: 'snapshot', count: 18_900 },
    { state: 'priced', priceSource: 'live', count: 1000 },
    { state: 'not_found', priceSource: 'unknown', count: 100 },
  ],
  priceAge: [
    {
      priceSource: 'snapshot',
      ages: ages([900, 1500, 1000, 1200, 2300, 4000, 4000, 3500, 500]),
      oldestSeconds: 80_000,
    },
    { priceSource: 'live', ages: ages([80, 320, 300, 280, 20]), oldestSeconds: 1900 },
  ],
  freshSkus: [
    { priceSource: 'snapshot', count: 18_850 },
    { priceSource: 'live', count: 980 },
  ],
  metadataAge: ages([19_900]),
  oldestMetadataAgeSeconds: 80_000,
  due: [
    { reason: 'changed', count: 50, oldestAgeSeconds: 20 },
    { reason: 'live', count: 20, oldestAgeSeconds: 100 },
  ],
  failing: [],
  unsteadyColumns: [],
  deferredSkus: 0,
  oldestDeferredAgeSeconds: 0,
  pace: {
    ceilingPerMinute: 118,
    backingOffUntil: null,
    usedInWindow: 64,
    ...WINDOW,
    refusal: null,
    refused: null,
  },
  liveBudgetPerCall: 5,
  live: { ...EVERY_MEMBER.live, computedPerMinute: 34, ceilingPerMinute: null, longestWaitSeconds: null },
  incident: null,
  hints: { unread: 0, sources: [] },
  refreshes: { asked: 0, refused: 0 },
  promises: { ...NO_PROMISES, neededPerMinute: 0, availablePerMinute: 94 },
  followers: [],
  deltaAudit: {
    since: ago(86_400),
    reportsConfirmed: 800,
    reportsUnchanged: 40,
    movesSeenFirst: 12,
    seenFirstSeconds: 7200,
    movesNeverReported: 0,
    movesWaiting: 3,
  },
};

const task = (name: TaskState['task'], more: Partial<TaskState> = {}): TaskState => ({
  task: name,
  nextAt: ahead(200),
  running: false,
  startedAt: ago(101),
  finishedAt: ago(100),
  succeededAt: ago(100),
  failures: 0,
  outcome: 'done',
  progress: null,
  ...more,
});

const HEALTHY: Status = {
  stats: STATS,
  sync: {
    readAt: ago(0),
    snapshotId: 'snap-0042',
    snapshotGeneratedAt: ago(7500),
    manifestAppliedAt: ago(3 * 86_400),
    manifestLines: 20_000,
    deltaCheckedAt: ago(100),
    snapshotMovedAt: null,
    livePricedSkuCount: 1000,
    catalogFault: null,
    chainBrokenAt: null,
    rejectedSnapshotId: null,
    manifestRefused: null,
    shrinkConfirmed: false,
    liveBudget: 5,
    catalogState: 'ok',
    deltaLate: false,
    deltaBehindSince: null,
    deltaStillSince: null,
    catalogDiffersAt: null,
    catalogDifference: null,
    ownTokens: false,
  },
  tasks: [
    task('catalog-check', { nextAt: ahead(2000) }),
    task('delta'),
    task('live-plan', { nextAt: ahead(500) }),
    task('maintenance', { nextAt: ahead(30) }),
    task('manifest', { nextAt: ahead(4 * 86_400), succeededAt: ago(3 * 86_400) }),
    task('metadata', { nextAt: ahead(60) }),
    task('reprice'),
  ],
  targets: {
    liveSeconds: 1800,
    snapshotSeconds: 86_400,
    metadataSeconds: 604_800,
    deltaIntervalSeconds: 300,
    deltaLateAfterSeconds: 1800,
  },
  failedCalls: 0,
  daemons: 1,
  bulkMaxSkus: 100,
  fullPerMinute: 118,
  mostInWindow: 118,
};

type Change = Partial<Omit<Status, 'stats' | 'sync'>> & {
  readonly stats?: Partial<MirrorStats>;
  readonly sync?: Partial<Status['sync']>;
};

/** Returns the healthy mirror with some changes. */
export function mirrorWith({ stats, sync, ...rest }: Change): Status {
  const { manifestAppliedAt, deltaCheckedAt, catalogState } = { ...STATS, ...stats };
  const same = { manifestAppliedAt, deltaCheckedAt, catalogState };
  return { ...HEALTHY, ...rest, stats: { ...STATS, ...stats }, sync: { ...HEALTHY.sync, ...same, ...sync } };
}

/** Returns the facts from which such a status is judged. */
export function factsOf({ stats, sync, tasks, targets, daemons, failedCalls }: Status): Facts {
  const { pace, incident } = stats;
  return {
    now: NOW,
    sync,
    tasks,
    targets,
    daemons,
    failedCalls,
    daemonSeconds: daemons * 86_400,
    idle: { answeredSeconds: 1, dueSeconds: 30 },
    windowSeconds: 60,
    clock: {
      now: NOW.getTime(),
      highWater: NOW.getTime() - 4000,
      setBackSeconds: null,
      aheadSeconds: null,
    },
    lockHolders: [],
    slowStatements: [],
    snapshotHolder: null,
    watchlistLeftOut: 0,
    scope: { scoped: stats.outOfScope !== null, rules: 3, moving: false, otherwise: 0 },
    notStored: { skus: 0, last: null, sample: null },
    unsteadyColumns: stats.unsteadyColumns,
    doubts: { implausible: 0, massMoved: 0, last: null, massMove: null },
    pace,
    incident: incident !== null,
    liveOutage: stats.liveOutage?.since ?? null,
    counts: stats,
  };
}

/** Judges such a mirror as a process that knows nothing about itself. */
export const healthOf = (status: Status): Health => judgeHealth(factsOf(status));

const withTask = (name: TaskState['task'], more: Partial<TaskState>) =>
  HEALTHY.tasks.map((one) => (one.task === name ? task(name, more) : one));

const refused = (suspected: Suspicion, times: number, since: number) => ({
  refusal: `throttled or refused; a 403 since ${ago(since).toISOString()}${times === 1 ? '' : `, ${times} times in a row`}${suspected === 'credential' ? ', in windows without other own requests: the credential is suspected, or other traffic constantly fills the limit' : '; own requests were 110 of 118: the rate limit is suspected'}`,
  refused: {
    outcome: 'throttled-or-forbidden',
    times,
    since: ago(since),
    ownRequests: suspected === 'credential' ? 0 : 110,
    ownMost: 118,
    suspected,
  },
});

const UNFILLED = {
  snapshotId: null,
  snapshotGeneratedAt: null,
  manifestAppliedAt: null,
  deltaCheckedAt: null,
  catalogState: 'none' as const,
  skus: [],
  due: [],
  ...NO_PRICES,
};
const NEVER = { succeededAt: null, startedAt: null, finishedAt: null, outcome: null, nextAt: ago(1) };

export const CASES = {
  'empty database': mirrorWith({
    stats: UNFILLED,
    daemons: 0,
    tasks: HEALTHY.tasks.map((one) => ({ ...one, ...NEVER })),
  }),
  'first manifest': mirrorWith({
    stats: UNFILLED,
    tasks: withTask('manifest', { ...NEVER, running: true, progress: { lines: 12_000 } }),
  }),
  'first manifest failed': mirrorWith({
    stats: UNFILLED,
    tasks: withTask('manifest', { ...NEVER, failures: 2, outcome: 'unavailable', nextAt: ahead(110) }),
  }),
  'first fill': mirrorWith({
    stats: {
      skus: [
        { state: 'priced', priceSource: 'snapshot', count: 5000 },
        { state: 'pending', priceSource: 'snapshot', count: 14_000 },
        { state: 'pending', priceSource: 'live', count: 1000 },
      ],
      priceAge: [{ priceSource: 'snapshot', ages: ages([4000, 1000]), oldestSeconds: 190 }],
      freshSkus: [{ priceSource: 'snapshot', count: 5000 }],
      manifestAppliedAt: ago(200),
      due: [{ reason: 'new', count: 15_000, oldestAgeSeconds: 200 }],
    },
  }),
  healthy: HEALTHY,
  'backing off': mirrorWith({
    stats: {
      pace: {
        ceilingPerMinute: 59,
        backingOffUntil: ahead(42),
        usedInWindow: 110,
        ...WINDOW,
        ...refused('rate', 1, 18),
      },
      due: [{ reason: 'changed', count: 5000, oldestAgeSeconds: 300 }],
      deferredSkus: 30,
      oldestDeferredAgeSeconds: 600,
    },
  }),
  'wrong secret suspected': mirrorWith({
    stats: {
      pace: {
        ceilingPerMinute: 24,
        backingOffUntil: ahead(300),
        usedInWindow: 0,
        ...WINDOW,
        ...refused('credential', 7, 1500),
      },
    },
  }),
  paused: mirrorWith({
    stats: {
      pace: {
        ...STATS.pace,
        usedInWindow: 0,
        paused: { since: ago(7200), until: ahead(3600), by: 'ann@desk' },
      },
      due: [{ reason: 'live', count: 900, oldestAgeSeconds: 6900 }],
      deltaCheckedAt: ago(7230),
    },
    sync: { deltaLate: true },
    tasks: withTask('delta', { nextAt: ahead(4), outcome: 'paused', succeededAt: ago(7230) }),
  }),
  'paused and forgotten': mirrorWith({
    stats: {
      pace: { ...STATS.pace, usedInWindow: 0, paused: { since: ago(100_000), until: null, by: 'ann@desk' } },
    },
  }),
  incident: mirrorWith({
    stats: {
      incident: { since: ago(5400), because: 'live-count' },
      live: {
        ...EVERY_MEMBER.live,
        computedPerMinute: 190,
        ceilingPerMinute: 200,
        longestWaitSeconds: 18_000,
      },
      due: [{ reason: 'live', count: 9000, oldestAgeSeconds: 1200 }],
    },
  }),
  'stale catalog': mirrorWith({
    stats: { catalogState: 'stale', snapshotGeneratedAt: ago(2 * 86_400) },
    sync: { catalogFault: '0012', chainBrokenAt: ago(600), manifestRefused: 'rejected-token' },
    tasks: withTask('delta', { failures: 4, outcome: 'no-snapshot', succeededAt: ago(90_000) }),
  }),
  'calls failing': mirrorWith({ failedCalls: 5 }),
  'daemon gone': mirrorWith({ daemons: 0, tasks: withTask('delta', { nextAt: ago(900) }) }),
  'daemon long gone': mirrorWith({ daemons: 0, tasks: withTask('delta', { nextAt: ago(90_000) }) }),
  'refreshes late': mirrorWith({
    stats: {
      due: [
        { reason: 'deferred', count: 3, oldestAgeSeconds: 99_000 },
        { reason: 'sweep', count: 4000, oldestAgeSeconds: 9000 },
      ],
    },
  }),
} as const satisfies Record<string, Status>;

/** A mirror in which every nullable member has a value. */
export const EVERYTHING: Status = mirrorWith({
  stats: {
    live: { ...EVERY_MEMBER.live, computedPerMinute: 190, ceilingPerMinute: 200, longestWaitSeconds: 18_000 },
    incident: { since: ago(5400), because: 'deferrals' },
    liveOutage: { since: ago(720) },
    pace: { ...CASES['backing off'].stats.pace, paused: CASES.paused.stats.pace.paused },
    hints: EVERY_MEMBER.hints,
    failing: EVERY_MEMBER.failing,
    unsteadyColumns: EVERY_MEMBER.unsteadyColumns,
  },
});
