import type { Clock } from '../lib/clock.ts';
import type { RequestObservation } from '../partner/client.ts';
import { letsThrough } from '../pace/policy.ts';
import type { StoreEvent } from '../queues/store-pause.ts';
import type { TaskReport } from '../queues/task-run.ts';
import type { SyncEvent } from '../sync/context.ts';
import type { PacerEvents } from '../pace/pacer.ts';
import { createBulkLines, createSyncLines, type BacklogCounts } from './log/sync-lines.ts';
import { countEvent, countTask, type Metrics } from './metrics/metrics.ts';
import { createTaskLines, paceLines, storeLines } from './log/lines.ts';
import type { Log } from './log/logger.ts';
import { createLogThrottle } from './log/throttle.ts';

/*
 * Where log lines and counters come from: the ends of tasks and jobs, the events inside them, and the requests to the
 * partner. Nothing in sync, queues or store logs or counts by itself.
 */

export interface Telemetry {
  readonly onSync: (event: SyncEvent) => void;
  readonly onTask: (report: TaskReport) => void;
  readonly onRequest: (observation: RequestObservation) => void;
  readonly onStore: (event: StoreEvent) => void;
  readonly onJob: (job: { queue: string; job: string; outcome: string; ms: number }) => void;
  readonly onFault: (job: string, error: unknown) => void;
  readonly onQueueError: (error: unknown) => void;
  readonly pace: Required<Pick<PacerEvents, 'backedOff' | 'resumed' | 'waited'>>;
}

export interface TelemetryOptions {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** What is left to fetch; asked for a line of progress. */
  readonly backlog: () => Promise<BacklogCounts>;
  /** The queues live in the same Postgres. */
  readonly queuesInPostgres: boolean;
}

export function createTelemetry({
  log,
  metrics,
  clock,
  backlog,
  queuesInPostgres,
}: TelemetryOptions): Telemetry {
  const throttle = createLogThrottle(clock);
  const bulk = createBulkLines(log, throttle, clock, backlog);
  const taskLine = createTaskLines(log, throttle);
  const { passed, ...pace } = paceLines(log, throttle, clock);
  const { worked, ...store } = storeLines(log, throttle, queuesInPostgres);
  const syncLine = createSyncLines(log, throttle, clock, bulk);

  return {
    ...store,
    onSync(event) {
      countEvent(metrics, event);
      syncLine(event);
    },
    onTask(report) {
      countTask(metrics, report);
      taskLine(report);
    },
    onJob({ queue, job, outcome, ms }) {
      metrics.jobs.inc({ queue, outcome });
      metrics.jobDuration.observe({ queue, outcome }, ms / 1000);
      if (outcome !== 'fault' && outcome !== 'paused') worked(job);
      bulk.tick();
    },
    pace: {
      ...pace,
      waited({ lane, ms, putOff }) {
        if (putOff === null) metrics.partnerRequestWait.observe({ lane }, ms / 1000);
        else metrics.partnerRequestPutOffs.inc({ lane, because: putOff });
      },
    },
    onRequest({ route, outcome, ms, status, waitedMs, skus }) {
      metrics.partnerRequests.inc({ route, outcome });
      metrics.partnerRequestDuration.observe({ route }, ms / 1000);
      log.debug({
        event: 'partner.request',
        route,
        outcome,
        httpStatus: status,
        durationMs: Math.round(ms),
        waitedMs: waitedMs === undefined ? undefined : Math.round(waitedMs),
        skus,
      });
      if (letsThrough(outcome)) passed();
    },
  };
}
