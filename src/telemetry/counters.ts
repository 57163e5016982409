import type { TaskReport } from '../queues/task-run.ts';
import type { SyncEvent } from '../sync/context.ts';
import type { Metrics } from './metrics.ts';

/** Counts what happened inside a run. */
export function countEvent(metrics: Metrics, event: SyncEvent): void {
  switch (event.event) {
    case 'bulk.applied':
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
