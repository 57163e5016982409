import type { AgeDistribution } from '../../store/catalog-counts.ts';
import type { Registry } from 'prom-client';
import type { MirrorStats } from '../../status/stats.ts';
import { filled, MACHINE_VIEWS, type Moment, one, oneOf, seconds, type View } from './views.ts';
import { type GaugeSample, type Sampled, sampledCounter, sampledGauge, sampledHistogram } from './sampled.ts';

const STATES = ['pending', 'priced', 'not_found', 'removed'];
const PRICE_SOURCES = ['snapshot', 'live'];
const INCIDENT_CAUSES = ['live-count', 'deferrals'];
const CATALOG_STATES = ['ok', 'stale', 'none'];
/** Reasons that are always shown, at 0 when nothing is due for them; others appear when they occur. */
const REASONS = ['new', 'changed', 'live', 'deferred', 'error', 'metadata', 'sweep'];

const NOTHING: AgeDistribution = { buckets: [], count: 0, sumSeconds: 0 };

const bySource = PRICE_SOURCES.map((source) => ({ price_source: source }));
const byReason = REASONS.map((reason) => ({ reason }));
const byState = STATES.flatMap((state) =>
  [...PRICE_SOURCES, 'unknown'].map((source) => ({ state, price_source: source })),
);

const VIEWS: readonly View[] = [
  {
    name: 'snapshot_generated_timestamp_seconds',
    help: 'Build time of the snapshot that the mirror follows.',
    samples: (s) => one(seconds(s.snapshotGeneratedAt)),
  },
  {
    name: 'manifest_applied_timestamp_seconds',
    help: 'When a manifest was last applied.',
    samples: (s) => one(seconds(s.manifestAppliedAt)),
  },
  {
    name: 'delta_checked_timestamp_seconds',
    help: 'When the delta was last checked with success.',
    samples: (s) => one(seconds(s.deltaCheckedAt)),
  },
  {
    name: 'catalog_state',
    help: 'State of the catalog: 1 for the present one of ok, stale and none, else 0.',
    samples: (s) => oneOf('state', CATALOG_STATES, s.catalogState),
  },
  {
    name: 'catalog_counted_timestamp_seconds',
    help: 'When the catalog was last counted: what skus, fresh_skus, due_skus, deferred_skus and all ages are as of. Counting takes a twentieth of the time at most.',
    samples: (s) => one(seconds(s.countedAt)),
  },
  {
    name: 'skus',
    help: 'SKUs in the mirror, by state and price source.',
    samples: (s) =>
      filled(
        s.skus.map((row) => ({
          labels: { state: row.state, price_source: row.priceSource },
          value: row.count,
        })),
        byState,
      ),
  },
  {
    name: 'fresh_skus',
    help: "SKUs whose price is no older than its class's target and for which nothing is owed.",
    samples: (s) =>
      filled(
        s.freshSkus.map((row) => ({ labels: { price_source: row.priceSource }, value: row.count })),
        bySource,
      ),
  },
  {
    name: 'oldest_price_age_seconds',
    help: 'Age of the oldest price, by price source.',
    samples: (s) =>
      filled(
        s.priceAge.map((row) => ({ labels: { price_source: row.priceSource }, value: row.oldestSeconds })),
        bySource,
      ),
  },
  {
    name: 'oldest_metadata_age_seconds',
    help: 'Age of the oldest metadata.',
    samples: (s) => one(s.oldestMetadataAgeSeconds),
  },
  {
    name: 'due_skus',
    help: 'SKUs owed a re-price now, by reason.',
    samples: (s) =>
      filled(
        s.due.map((row) => ({ labels: { reason: row.reason }, value: row.count })),
        byReason,
      ),
  },
  {
    name: 'oldest_due_age_seconds',
    help: 'How long the SKU owed for longest has been due, by reason.',
    samples: (s) =>
      filled(
        s.due.map((row) => ({ labels: { reason: row.reason }, value: row.oldestAgeSeconds })),
        byReason,
      ),
  },
  {
    name: 'deferred_skus',
    help: 'SKUs that the partner deferred, waiting or due again.',
    samples: (s) => one(s.deferredSkus),
  },
  {
    name: 'oldest_deferred_age_seconds',
    help: 'Age of the oldest deferral that is still open.',
    samples: (s) => one(s.oldestDeferredAgeSeconds),
  },
  {
    name: 'unreported_moves',
    help: 'SKUs on which a look found a price moved that no delta has reported so far.',
    samples: (s) => one(s.deltaAudit.movesWaiting),
  },
  {
    name: 'live_budget_per_call',
    help: 'Live SKUs put into one bulk call at present.',
    samples: (s) => one(s.liveBudgetPerCall),
  },
  {
    name: 'live_computations_last_minute',
    help: 'Prices that the partner computed live for the mirror in the last minute.',
    samples: (s) => one(s.live.computedPerMinute),
  },
  {
    name: 'live_ceiling_per_minute',
    help: "The partner's ceiling on live computations as far as it is learned; no series while none was met.",
    samples: (s) => one(s.live.ceilingPerMinute),
  },
  {
    name: 'live_longest_wait_seconds',
    help: 'Longest planned wait between two looks at a live SKU, while looks are too few for LIVE_INTERVAL; no series otherwise.',
    samples: (s) => one(s.live.longestWaitSeconds),
  },
  {
    name: 'incident',
    help: '1 while the whole catalog is taken for live-priced, by the evidence for it, else 0.',
    samples: (s) => oneOf('because', INCIDENT_CAUSES, s.incident?.because ?? null),
  },
];

/** Counted in Postgres since the mirror began: the same in every replica. */
const COUNTERS: readonly View[] = [
  {
    name: 'delta_reports_total',
    help: 'Reports of snapshot-priced SKUs by what the look they ask for found: confirmed = a price moved, unchanged = none.',
    samples: ({ deltaAudit: audit }) => [
      { labels: { outcome: 'confirmed' }, value: audit.reportsConfirmed },
      { labels: { outcome: 'unchanged' }, value: audit.reportsUnchanged },
    ],
  },
  {
    name: 'moves_seen_first_total',
    help: 'Price moves that a look found before the delta reported them: reported = later, never = not at all.',
    samples: ({ deltaAudit: audit }) => [
      { labels: { reported: 'later' }, value: audit.movesSeenFirst },
      { labels: { reported: 'never' }, value: audit.movesNeverReported },
    ],
  },
  {
    name: 'moves_seen_first_seconds_total',
    help: 'By how long moves seen first were seen before the delta reported them, in all.',
    samples: (s) => one(s.deltaAudit.seenFirstSeconds),
  },
];

/** Shows what was read, and why this daemon cannot write where that is so. */
export type SetMirrorStats = (stats: MirrorStats | null, storeTrouble?: Moment['storeTrouble']) => void;

/**
 * Registers every metric that is read from the mirror. Returns the function that fills them; null empties them, so that a
 * database that does not answer shows as absent series (and `mirror_stats_available` 0), not as old numbers.
 */
export function registerMirrorGauges(registry: Registry, prefix: string, now: () => number): SetMirrorStats {
  const available = sampledGauge(registry, {
    name: `${prefix}mirror_stats_available`,
    help: '1 when Postgres answered this scrape, 0 when it did not and the metrics read from the mirror are missing.',
  });
  const gauges = [...VIEWS, ...MACHINE_VIEWS].map(
    ({ name, help, samples }): [Sampled<GaugeSample>, View['samples']] => [
      sampledGauge(registry, { name: `${prefix}${name}`, help }),
      samples,
    ],
  );
  const counters = COUNTERS.map(({ name, help, samples }): [Sampled<GaugeSample>, View['samples']] => [
    sampledCounter(registry, { name: `${prefix}${name}`, help }),
    samples,
  ]);
  const priceAge = sampledHistogram(registry, {
    name: `${prefix}price_age_seconds`,
    help: 'Age of the prices of all priced SKUs now, by price source. Counts may fall: use no rate.',
  });
  const metadataAge = sampledHistogram(registry, {
    name: `${prefix}metadata_age_seconds`,
    help: 'Age of the metadata of all priced SKUs now. Counts may fall: use no rate.',
  });
  available.set([{ value: 0 }]);

  return (stats, storeTrouble = null) => {
    const moment = { now: now(), storeTrouble };
    available.set([{ value: stats === null ? 0 : 1 }]);
    for (const [metric, samples] of [...gauges, ...counters])
      metric.set(stats === null ? [] : samples(stats, moment));
    if (stats === null) {
      priceAge.set([]);
      metadataAge.set([]);
      return;
    }
    const rest = PRICE_SOURCES.filter((source) => !stats.priceAge.some((row) => row.priceSource === source));
    priceAge.set([
      ...stats.priceAge.map((row) => ({ labels: { price_source: row.priceSource }, ages: row.ages })),
      ...rest.map((source) => ({ labels: { price_source: source }, ages: NOTHING })),
    ]);
    metadataAge.set([{ ages: stats.metadataAge }]);
  };
}
