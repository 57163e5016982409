import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { MirrorStats } from '../store/stats-types.ts';
import { registerMirrorGauges } from './mirror-gauges.ts';

const PREFIX = 'catalog_mirror_';

/** The client's routes (partner/errors.ts): each has its series from the start, so that a first error shows in a rate. */
const ROUTES = ['manifest', 'delta', 'bulk', 'lowest', 'manifest-file'];

/** Why a manifest line is rejected (partner/manifest-lines.ts). */
const REJECTIONS = [
  'not-json',
  'not-an-object',
  'no-sku',
  'bad-sku',
  'unknown-price-source',
  'bad-hash',
  'bad-sizes',
  'bad-updated-at',
  'too-long',
];

/** From a cached answer to a manifest download. */
const REQUEST_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
const JOB_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800];

/** Every metric of the daemon. Counters and histograms are fed where things happen; the rest is read from the mirror. */
export interface Metrics {
  /** Prometheus text format, with the Node.js runtime's own metrics. */
  text(): Promise<string>;
  /** Replaces everything that is read from the mirror; null when it could not be read. */
  setMirrorStats(stats: MirrorStats | null): void;
  readonly bulkSkus: Counter<'outcome'>;
  readonly bulkUnaccountedSkus: Counter;
  readonly priceChanges: Counter;
  readonly metadataChanges: Counter;
  readonly unpricedEntries: Counter;
  readonly partnerRequests: Counter<'route' | 'outcome'>;
  readonly partnerRequestDuration: Histogram<'route'>;
  readonly manifestLines: Counter<'outcome'>;
  readonly manifestRejectedLines: Counter<'reason'>;
  readonly syncs: Counter<'kind' | 'outcome'>;
  readonly jobs: Counter<'queue' | 'outcome'>;
  readonly jobDuration: Histogram<'queue' | 'outcome'>;
}

function counter<Label extends string = string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: Label[] = [],
) {
  return new Counter<Label>({ name: PREFIX + name, help, labelNames, registers: [registry] });
}

function callMetrics(registry: Registry) {
  const bulkSkus = counter(registry, 'bulk_skus_total', 'SKUs in bulk answers, by what became of them.', [
    'outcome',
  ]);
  for (const outcome of ['resolved', 'not_found', 'deferred', 'error']) bulkSkus.inc({ outcome }, 0);

  const partnerRequests = counter(
    registry,
    'partner_requests_total',
    'Requests sent, by route and outcome (ok or the kind of error).',
    ['route', 'outcome'],
  );
  const partnerRequestDuration = new Histogram({
    name: `${PREFIX}partner_request_duration_seconds`,
    help: 'Time from sending a request to the end of its answer, by route.',
    labelNames: ['route'],
    buckets: REQUEST_BUCKETS,
    registers: [registry],
  });
  for (const route of ROUTES) {
    partnerRequests.inc({ route, outcome: 'ok' }, 0);
    partnerRequestDuration.zero({ route });
  }
  return {
    bulkSkus,
    bulkUnaccountedSkus: counter(
      registry,
      'bulk_unaccounted_skus_total',
      'SKUs that a bulk answer left out or named with two fates (they stay due), or named unasked (nothing happens).',
    ),
    partnerRequests,
    partnerRequestDuration,
  };
}

function changeMetrics(registry: Registry) {
  return {
    priceChanges: counter(
      registry,
      'price_changes_total',
      'Prices that changed, appeared or went after a first observation.',
    ),
    metadataChanges: counter(registry, 'metadata_changes_total', 'Metadata fields that changed.'),
    unpricedEntries: counter(
      registry,
      'unpriced_entries_total',
      'size_map entries that carried no readable price.',
    ),
  };
}

function syncMetrics(registry: Registry) {
  const manifestLines = counter(registry, 'manifest_lines_total', 'Manifest lines read, by outcome.', [
    'outcome',
  ]);
  for (const outcome of ['applied', 'rejected']) manifestLines.inc({ outcome }, 0);
  const manifestRejectedLines = counter(
    registry,
    'manifest_rejected_lines_total',
    'Rejected manifest lines, by reason.',
    ['reason'],
  );
  for (const reason of REJECTIONS) manifestRejectedLines.inc({ reason }, 0);
  const syncs = counter(registry, 'syncs_total', 'Manifest and delta runs, by outcome.', ['kind', 'outcome']);
  for (const kind of ['manifest', 'delta']) syncs.inc({ kind, outcome: 'ok' }, 0);
  return {
    manifestLines,
    syncs,
    manifestRejectedLines,
    jobs: counter(registry, 'jobs_total', 'Jobs ended, by queue and outcome.', ['queue', 'outcome']),
    jobDuration: new Histogram({
      name: `${PREFIX}job_duration_seconds`,
      help: 'Time one job took, by queue and outcome.',
      labelNames: ['queue', 'outcome'],
      buckets: JOB_BUCKETS,
      registers: [registry],
    }),
  };
}

/**
 * The metrics of one daemon in a registry of their own. In: the program's version, and the wall clock (epoch ms) that
 * `backing_off` is judged by. Names are those of CONTRACT.md, section 6.
 */
export function createMetrics(options: { readonly version: string; readonly now?: () => number }): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const info = new Gauge({
    name: `${PREFIX}build_info`,
    help: 'Always 1; the labels tell the versions.',
    labelNames: ['version', 'node'],
    registers: [registry],
  });
  info.set({ version: options.version, node: process.versions.node }, 1);
  return {
    ...callMetrics(registry),
    ...changeMetrics(registry),
    ...syncMetrics(registry),
    setMirrorStats: registerMirrorGauges(registry, PREFIX, options.now ?? Date.now),
    text: () => registry.metrics(),
  };
}
