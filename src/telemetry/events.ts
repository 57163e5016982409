import type { Clock } from '../lib/clock.ts';
import type { RequestObservation } from '../partner/client.ts';
import type { StoreEvent } from '../queues/store-pause.ts';
import type { TaskReport } from '../queues/task-run.ts';
import type { SyncEvent } from '../sync/context.ts';
import type { PacerEvents } from '../sync/pacing.ts';
import type { Log } from './logger.ts';
import type { Metrics } from './metrics.ts';

/*
 * Where log lines and counters come from: the ends of tasks, the events inside them, and the requests to the partner.
 * Nothing in sync or store logs or counts by itself.
 */

export interface Telemetry {
  readonly onSync: (event: SyncEvent) => void;
  readonly onTask: (report: TaskReport) => void;
  readonly onRequest: (observation: RequestObservation) => void;
  readonly onStore: (event: StoreEvent) => void;
  readonly onTurn: NonNullable<PacerEvents['waited']>;
}

/** One line of re-pricing progress at most this often. */
const PROGRESS_EVERY_MS = 10_000;

export function createTelemetry(log: Log, metrics: Metrics, clock: Clock): Telemetry {
  const bulk = createBulkSummary(log, clock);
  let unpricedSeen = false;

  function onBulk(event: Extract<SyncEvent, { event: 'bulk.applied' }>): void {
    metrics.bulkSkus.inc({ outcome: 'resolved' }, event.resolved);
    metrics.bulkSkus.inc({ outcome: 'not_found' }, event.notFound);
    metrics.bulkSkus.inc({ outcome: 'deferred' }, event.deferred);
    metrics.bulkSkus.inc({ outcome: 'error' }, event.errors);
    metrics.bulkUnaccountedSkus.inc(event.omitted + event.contradictory + event.foreign);
    metrics.priceChanges.inc(event.priceChanges);
    metrics.metadataChanges.inc(event.metadataChanges);
    metrics.unpricedEntries.inc(event.unpricedEntries);
    metrics.unreadableRecords.inc({ source: 'bulk' }, event.unreadable);
    for (const seconds of event.reportSeconds) metrics.changeLatency.observe(seconds);
    if (event.omitted + event.contradictory + event.unreadable + event.foreign > 0) {
      const { reportSeconds: _, ...counts } = event;
      log.warn(
        { ...counts, event: 'bulk.unaccounted' },
        'a bulk answer does not add up; SKUs that were asked stay due, others are left as they are',
      );
    }
    if (event.unpricedEntries > 0 && !unpricedSeen) {
      unpricedSeen = true;
      log.warn(
        { event: 'bulk.unpriced-entries', entries: event.unpricedEntries },
        'size_map entries carry no readable price; see PARTNER_PRICE_FIELDS and `catalog-mirror doctor`',
      );
    }
    bulk.add(event);
  }

  return {
    onSync(event) {
      switch (event.event) {
        case 'bulk.applied':
          return onBulk(event);
        case 'manifest.downloaded':
          metrics.partnerRequests.inc({ route: 'manifest-file', outcome: event.outcome });
          metrics.partnerRequestDuration.observe({ route: 'manifest-file' }, event.ms / 1000);
          return log.debug(event);
        case 'manifest.rejected-lines':
          for (const [reason, count] of Object.entries(event.reasons)) {
            metrics.manifestRejectedLines.inc({ reason }, count);
            metrics.manifestLines.inc({ outcome: 'rejected' }, count);
          }
          return log.warn(event, 'manifest lines rejected; samples are in catalog_internal.quarantine');
        case 'delta.applied':
          metrics.unreadableRecords.inc({ source: 'delta' }, event.skipped);
          return log.info(event);
        default:
          return lineOf(log, event);
      }
    },
    onTask: (report) => onTask(log, metrics, report),
    onStore: (event) =>
      event.event === 'store.paused'
        ? log.warn(event, 'Postgres refuses to write; the job is held back and tried again')
        : log.info(event, 'Postgres takes writes again'),
    onTurn({ lane, ms, putOff }) {
      if (putOff === null) metrics.partnerRequestWait.observe({ lane }, ms / 1000);
      else metrics.partnerRequestPutOffs.inc({ lane, because: putOff });
    },
    onRequest({ route, outcome, ms, status }) {
      metrics.partnerRequests.inc({ route, outcome });
      metrics.partnerRequestDuration.observe({ route }, ms / 1000);
      log.debug({ event: 'partner.request', route, outcome, ms: Math.round(ms), status });
    },
  };
}

/** Events that are a log line and nothing else. */
function lineOf(
  log: Log,
  event: Exclude<
    SyncEvent,
    { event: 'bulk.applied' | 'delta.applied' | 'manifest.downloaded' | 'manifest.rejected-lines' }
  >,
): void {
  switch (event.event) {
    case 'bulk.failed':
      return log.warn(event, 'a bulk call failed; its SKUs stay due');
    case 'delta.chain-broken':
      return log.warn(event, 'the delta chain is broken; a fresh manifest is fetched');
    case 'size-type.changed':
      return log.warn(
        { event: event.event, count: event.skus.length, skus: event.skus.slice(0, 20) },
        'size_type was corrected: the size keys of these SKUs mean something else now',
      );
    case 'incident.began':
      return log.warn(
        event,
        'the whole catalog is live-priced: small calls, SKUs by worth, no sweeps; prices will be older for as long as this lasts',
      );
    case 'incident.ended':
      return log.info(event, 'the catalog is priced as usual again');
    case 'manifest.progress':
    case 'live-budget.learned':
    case 'live-ceiling.learned':
      return log.info(event);
  }
}

function onTask(log: Log, metrics: Metrics, { task, outcome, ms, error }: TaskReport): void {
  if ((task === 'manifest' || task === 'delta') && outcome.kind !== 'postponed') {
    metrics.syncs.inc({ kind: task, outcome: outcome.kind === 'done' ? 'ok' : outcome.because });
  }
  const line = {
    event: `${task}.${outcome.kind}`,
    ms: Math.round(ms),
    nextInSeconds: Math.round(outcome.nextInMs / 1000),
  };
  if (outcome.kind === 'failed') {
    const { because, hint } = outcome;
    return log.warn(
      { ...line, because, hint, ...(error === undefined ? {} : { err: error }) },
      `${task} failed`,
    );
  }
  if (outcome.kind === 'postponed') return log.debug({ ...line, because: outcome.because });
  if (task === 'manifest') {
    metrics.manifestLines.inc({ outcome: 'applied' }, appliedLines(outcome.counts));
    metrics.rebaselines.inc({ because: String(outcome.counts['because']) });
  }
  const worthALine =
    task === 'manifest' ||
    task === 'catalog-check' ||
    Object.values(outcome.counts).some((n) => Number(n) > 0);
  log[worthALine && task !== 'maintenance' ? 'info' : 'debug']({ ...line, ...outcome.counts });
}

function appliedLines(counts: Readonly<Record<string, number | string | null>>): number {
  return Number(counts['lines'] ?? 0) - Number(counts['rejected'] ?? 0);
}

/** Gathers bulk answers, of which there may be three a second, into one line in ten seconds. */
function createBulkSummary(log: Log, clock: Clock) {
  const zero = {
    calls: 0,
    skus: 0,
    resolved: 0,
    notFound: 0,
    deferred: 0,
    errors: 0,
    priceChanges: 0,
    metadataChanges: 0,
  };
  let sum = { ...zero };
  let since = clock.monotonic();
  return {
    add(event: Extract<SyncEvent, { event: 'bulk.applied' }>): void {
      sum = {
        calls: sum.calls + 1,
        skus: sum.skus + event.asked,
        resolved: sum.resolved + event.resolved,
        notFound: sum.notFound + event.notFound,
        deferred: sum.deferred + event.deferred,
        errors: sum.errors + event.errors,
        priceChanges: sum.priceChanges + event.priceChanges,
        metadataChanges: sum.metadataChanges + event.metadataChanges,
      };
      const now = clock.monotonic();
      if (now - since < PROGRESS_EVERY_MS) return;
      log.info({ event: 'reprice.progress', seconds: Math.round((now - since) / 1000), ...sum });
      sum = { ...zero };
      since = now;
    },
  };
}
