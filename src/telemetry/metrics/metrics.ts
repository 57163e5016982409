import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { kindsOf, ROUTES } from '../../partner/errors.ts';
import { REJECTIONS } from '../../partner/manifest-lines.ts';
import { jobOutcomes, QUEUES } from '../../queues/jobs.ts';
import { STORE_FAILURES } from '../../store/db.ts';
import { deltaRecovery } from '../../sync/delta.ts';
import { REBASELINE_CAUSES } from '../../sync/manifest.ts';
import { REFUSAL_HINTS } from '../../sync/manifest-decision.ts';
import { REQUEST_LANES, WAITS } from '../../pace/pacer.ts';
import { registerMirrorGauges, type SetMirror } from './mirror-gauges.ts';
import type { TaskReport } from '../../queues/task-run.ts';
import type { SyncEvent } from '../../sync/context.ts';

const PREFIX = 'catalog_mirror_';

/** From a cached answer to a manifest download. */
const REQUEST_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
/** A request waits 15 s for its permit before it is put off, and as long behind others of its process. */
const WAIT_BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60];
/** From the next call to a backlog of a day. */
const REPORT_BUCKETS = [2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 10_800, 21_600, 86_400];
const JOB_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800];

/** Every metric of the daemon. Counters and histograms are fed where things happen; the rest is read from the mirror. */
export interface Metrics {
  /** Prometheus text format, with the Node.js runtime's own metrics. */
  text(): Promise<string>;
  /** Replaces everything that is read from the mirror. */
  readonly setMirror: SetMirror;
  readonly bulkSkus: Counter<'outcome'>;
  readonly bulkUnaccountedSkus: Counter;
  readonly priceChanges: Counter;
  readonly metadataChanges: Counter;
  /** From a delta's report of a SKU to the commit of the answer that it asked for. */
  readonly changeLatency: Histogram;
  readonly unpricedEntries: Counter;
  readonly unreadableRecords: Counter<'source'>;
  readonly partnerRequests: Counter<'route' | 'outcome'>;
  readonly partnerRequestDuration: Histogram<'route'>;
  readonly partnerRequestWait: Histogram<'lane'>;
  readonly partnerRequestPutOffs: Counter<'lane' | 'because'>;
  readonly manifestLines: Counter<'outcome'>;
  readonly manifestRejectedLines: Counter<'reason'>;
  readonly syncs: Counter<'kind' | 'outcome'>;
  readonly rebaselines: Counter<'because'>;
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

function histogram<Label extends string = string>(
  registry: Registry,
  name: string,
  help: string,
  buckets: number[],
  labelNames: Label[] = [],
) {
  return new Histogram<Label>({ name: PREFIX + name, help, buckets, labelNames, registers: [registry] });
}

function callMetrics(registry: Registry) {
  const bulkSkus = counter(registry, 'bulk_skus_total', 'SKUs in bulk answers, by outcome.', ['outcome']);
  for (const outcome of ['resolved', 'not_found', 'deferred', 'error']) bulkSkus.inc({ outcome }, 0);

  const partnerRequests = counter(
    registry,
    'partner_requests_total',
    'Requests sent, by route and outcome (ok or the kind of error).',
    ['route', 'outcome'],
  );
  const partnerRequestDuration = histogram(
    registry,
    'partner_request_duration_seconds',
    'Time from sending a request to the end of its answer, by route.',
    REQUEST_BUCKETS,
    ['route'],
  );
  for (const route of ROUTES) {
    for (const outcome of ['ok', ...kindsOf(route)]) partnerRequests.inc({ route, outcome }, 0);
    partnerRequestDuration.zero({ route });
  }
  return {
    bulkSkus,
    bulkUnaccountedSkus: counter(
      registry,
      'bulk_unaccounted_skus_total',
      'SKUs that a bulk answer omitted or listed with two outcomes (they stay due), or listed without being requested (ignored).',
    ),
    partnerRequests,
    partnerRequestDuration,
  };
}

function turnMetrics(registry: Registry) {
  const partnerRequestWait = histogram(
    registry,
    'partner_request_wait_seconds',
    'How long a request waited for the rate limit, by lane; postponed ones are in partner_request_put_offs_total.',
    WAIT_BUCKETS,
    ['lane'],
  );
  const partnerRequestPutOffs = counter(
    registry,
    'partner_request_put_offs_total',
    'Requests that were postponed because the wait would have been too long, by lane and cause of the wait.',
    ['lane', 'because'],
  );
  for (const lane of REQUEST_LANES) {
    partnerRequestWait.zero({ lane });
    for (const because of WAITS) partnerRequestPutOffs.inc({ lane, because }, 0);
  }
  return { partnerRequestWait, partnerRequestPutOffs };
}

function changeMetrics(registry: Registry) {
  const unreadableRecords = counter(
    registry,
    'unreadable_records_total',
    'Unreadable entries of answers, by route: SKUs of a bulk answer stay due, those of a delta are skipped.',
    ['source'],
  );
  for (const source of ['bulk', 'delta']) unreadableRecords.inc({ source }, 0);
  return {
    changeLatency: histogram(
      registry,
      'change_latency_seconds',
      "Time from a delta's last report of a SKU to the commit of its refresh.",
      REPORT_BUCKETS,
    ),
    unreadableRecords,
    priceChanges: counter(
      registry,
      'price_changes_total',
      'Prices that changed, appeared or disappeared after the first observation.',
    ),
    metadataChanges: counter(registry, 'metadata_changes_total', 'Metadata fields that changed.'),
    unpricedEntries: counter(
      registry,
      'unpriced_entries_total',
      'size_map entries without a readable price.',
    ),
  };
}

function lineMetrics(registry: Registry) {
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
  return { manifestLines, manifestRejectedLines };
}

/** How the run of a manifest or a delta can end; a broken chain is no end, but a manifest's cause. */
const SYNC_OUTCOMES = {
  manifest: [...kindsOf('manifest'), ...kindsOf('manifest-file'), ...Object.keys(REFUSAL_HINTS)],
  delta: kindsOf('delta').filter((kind) => deltaRecovery({ kind }) !== 'fetch-manifest'),
};

function runMetrics(registry: Registry) {
  const syncs = counter(registry, 'syncs_total', 'Manifest and delta runs, by outcome.', ['kind', 'outcome']);
  for (const [kind, outcomes] of Object.entries(SYNC_OUTCOMES))
    for (const outcome of ['ok', ...outcomes, 'fault', ...STORE_FAILURES]) syncs.inc({ kind, outcome }, 0);
  const rebaselines = counter(registry, 'rebaselines_total', 'Manifests applied, by cause.', ['because']);
  for (const because of REBASELINE_CAUSES) rebaselines.inc({ because }, 0);
  const jobs = counter(registry, 'jobs_total', 'Jobs completed, by queue and outcome.', ['queue', 'outcome']);
  const jobDuration = histogram(
    registry,
    'job_duration_seconds',
    'Duration of a job, by queue and outcome.',
    JOB_BUCKETS,
    ['queue', 'outcome'],
  );
  for (const queue of QUEUES) {
    for (const outcome of jobOutcomes(queue)) {
      jobs.inc({ queue, outcome }, 0);
      jobDuration.zero({ queue, outcome });
    }
  }
  return { syncs, rebaselines, jobs, jobDuration };
}

/**
 * The metrics of one daemon in a registry of their own. In: the program's version, and the wall clock (epoch ms) that
 * `backing_off` is judged by. Names and labels are only added to: dashboards and alerts read them.
 */
export function createMetrics(options: { readonly version: string; readonly now?: () => number }): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const info = new Gauge({
    name: `${PREFIX}build_info`,
    help: 'Always 1; the labels hold the versions.',
    labelNames: ['version', 'node'],
    registers: [registry],
  });
  info.set({ version: options.version, node: process.versions.node }, 1);
  return {
    ...callMetrics(registry),
    ...changeMetrics(registry),
    ...turnMetrics(registry),
    ...lineMetrics(registry),
    ...runMetrics(registry),
    setMirror: registerMirrorGauges(registry, PREFIX, options.now ?? Date.now),
    text: () => registry.metrics(),
  };
}

/** Counts what happened inside a run. */
export function countEvent(metrics: Metrics, event: SyncEvent): void {
  switch (event.event) {
    case 'bulk.applied':
      metrics.bulkSkus.inc({ outcome: 'resolved' }, event.resolved);
      metrics.bulkSkus.inc({ outcome: 'not_found' }, event.notFound);
      metrics.bulkSkus.inc({ outcome: 'deferred' }, event.deferred);
      metrics.bulkSkus.inc({ outcome: 'error' }, event.errors);
      metrics.bulkUnaccountedSkus.inc(event.omitted + event.contradictory + event.unexpected);
      metrics.priceChanges.inc(event.priceChanges);
      metrics.metadataChanges.inc(event.metadataChanges);
      metrics.unpricedEntries.inc(event.unpricedEntries);
      metrics.unreadableRecords.inc({ source: 'bulk' }, event.unreadable);
      for (const seconds of event.reportSeconds) metrics.changeLatency.observe(seconds);
      return;
    case 'manifest.downloaded':
      metrics.partnerRequests.inc({ route: 'manifest-file', outcome: event.outcome });
      metrics.partnerRequestDuration.observe({ route: 'manifest-file' }, event.ms / 1000);
      return;
    case 'manifest.rejected-lines':
      for (const [reason, lines] of Object.entries(event.reasons)) {
        metrics.manifestRejectedLines.inc({ reason }, lines);
        metrics.manifestLines.inc({ outcome: 'rejected' }, lines);
      }
      return;
    case 'delta.applied':
      metrics.unreadableRecords.inc({ source: 'delta' }, event.skipped);
      return;
    default:
  }
}

/** Counts the end of a run. */
export function countTask(metrics: Metrics, { task, outcome }: TaskReport): void {
  if ((task === 'manifest' || task === 'delta') && outcome.kind !== 'postponed')
    metrics.syncs.inc({ kind: task, outcome: outcome.kind === 'done' ? 'ok' : outcome.because });
  if (task !== 'manifest' || outcome.kind !== 'done') return;
  const { lines, rejected, because } = outcome.counts;
  metrics.manifestLines.inc({ outcome: 'applied' }, Number(lines ?? 0) - Number(rejected ?? 0));
  metrics.rebaselines.inc({ because: String(because) });
}
