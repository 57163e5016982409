import type { AgeDistribution } from '../../store/catalog-counts.ts';
import type { Registry } from 'prom-client';
import { type Health, MIRROR_STATES, REASON_CODES } from '../../status/health.ts';
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
    help: 'Build time of the catalog snapshot that the mirror follows.',
    samples: (s) => one(seconds(s.snapshotGeneratedAt)),
  },
  {
    name: 'manifest_applied_timestamp_seconds',
    help: 'Time at which a manifest was last applied.',
    samples: (s) => one(seconds(s.manifestAppliedAt)),
  },
  {
    name: 'delta_checked_timestamp_seconds',
    help: 'Time of the last successful delta poll.',
    samples: (s) => one(seconds(s.deltaCheckedAt)),
  },
  {
    name: 'catalog_state',
    help: 'State of the catalog (ok, stale or none): 1 for the current one, else 0.',
    samples: (s) => oneOf('state', CATALOG_STATES, s.catalogState),
  },
  {
    name: 'catalog_counted_timestamp_seconds',
    help: 'Time at which the catalog was last counted; skus, fresh_skus, due_skus, deferred_skus and all ages are as of then. Counting takes at most a twentieth of the time.',
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
    help: "SKUs whose price is within its cohort's target and that have no refresh pending.",
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
    help: 'SKUs due for a refresh now, by reason.',
    samples: (s) =>
      filled(
        s.due.map((row) => ({ labels: { reason: row.reason }, value: row.count })),
        byReason,
      ),
  },
  {
    name: 'oldest_due_age_seconds',
    help: 'How long the longest-waiting SKU has been due, by reason.',
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
    help: 'SKUs whose refresh found a price change that no delta has reported so far.',
    samples: (s) => one(s.deltaAudit.movesWaiting),
  },
  {
    name: 'live_budget_per_call',
    help: 'Live SKUs currently put into one bulk call.',
    samples: (s) => one(s.liveBudgetPerCall),
  },
  {
    name: 'live_computations_last_minute',
    help: 'Prices that the partner computed live for the mirror in the last minute.',
    samples: (s) => one(s.live.computedPerMinute),
  },
  {
    name: 'live_ceiling_per_minute',
    help: "The partner's ceiling on live computations, as learned; no series while none was reached.",
    samples: (s) => one(s.live.ceilingPerMinute),
  },
  {
    name: 'live_longest_wait_seconds',
    help: 'Longest planned interval between two refreshes of a live SKU while the budget is too small for LIVE_INTERVAL; no series otherwise.',
    samples: (s) => one(s.live.longestWaitSeconds),
  },
  {
    name: 'incident',
    help: '1 while the whole catalog is treated as live-priced, by the evidence for it, else 0.',
    samples: (s) => oneOf('because', INCIDENT_CAUSES, s.incident?.because ?? null),
  },
];

/** Counted in Postgres since the mirror began: the same in every replica. */
const COUNTERS: readonly View[] = [
  {
    name: 'delta_reports_total',
    help: 'Delta reports of snapshot-priced SKUs by the result of their refresh: confirmed = a price changed, unchanged = none did.',
    samples: ({ deltaAudit: audit }) => [
      { labels: { outcome: 'confirmed' }, value: audit.reportsConfirmed },
      { labels: { outcome: 'unchanged' }, value: audit.reportsUnchanged },
    ],
  },
  {
    name: 'moves_seen_first_total',
    help: 'Price changes that a refresh found before the delta reported them: reported = later, never = not at all.',
    samples: ({ deltaAudit: audit }) => [
      { labels: { reported: 'later' }, value: audit.movesSeenFirst },
      { labels: { reported: 'never' }, value: audit.movesNeverReported },
    ],
  },
  {
    name: 'moves_seen_first_seconds_total',
    help: 'Total time by which refreshes found price changes before the delta reported them.',
    samples: (s) => one(s.deltaAudit.seenFirstSeconds),
  },
];

/** What a scrape shows of the mirror: null where it could not be read; `storeFailure`: why this daemon cannot write. */
export interface MirrorScrape {
  readonly health: Health;
  readonly stats: MirrorStats | null;
  readonly storeFailure: Moment['storeFailure'];
}

export type SetMirror = (scrape: MirrorScrape) => void;

/** Shown also while Postgres cannot be read: that is a state, too. */
function healthGauges(registry: Registry, prefix: string): (health: Health) => void {
  const state = sampledGauge(registry, {
    name: `${prefix}state`,
    help: 'State of the mirror (healthy, filling, degraded or broken) as this daemon judges it: 1 for the current one, else 0.',
  });
  const reasons = sampledGauge(registry, {
    name: `${prefix}state_reason`,
    help: 'Reasons for the state, by code: 1 if the reason applies, else 0.',
  });
  return (health) => {
    const codes = new Set<string>(health.reasons.map(({ code }) => code));
    state.set(oneOf('state', MIRROR_STATES, health.state));
    reasons.set(REASON_CODES.map((code) => ({ labels: { code }, value: codes.has(code) ? 1 : 0 })));
  };
}

/**
 * Registers every metric that is read from the mirror. Returns the function that fills them; stats that are null empty them, so that a
 * database that does not answer shows as absent series (and `mirror_stats_available` 0), not as old numbers.
 */
export function registerMirrorGauges(registry: Registry, prefix: string, now: () => number): SetMirror {
  const showHealth = healthGauges(registry, prefix);
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
    help: 'Current age of the prices of all priced SKUs, by price source. Counts may fall: do not use rate().',
  });
  const metadataAge = sampledHistogram(registry, {
    name: `${prefix}metadata_age_seconds`,
    help: 'Current age of the metadata of all priced SKUs. Counts may fall: do not use rate().',
  });
  available.set([{ value: 0 }]);

  return ({ health, stats, storeFailure }) => {
    showHealth(health);
    const moment = { now: now(), storeFailure };
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
