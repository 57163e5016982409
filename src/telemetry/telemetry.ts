import type { Clock } from '../lib/clock.ts';
import type { PacerEvents } from '../pace/pacer.ts';
import { letsThrough } from '../pace/policy.ts';
import type { RequestObservation } from '../partner/client.ts';
import type { StoreEvent } from '../queues/store-pause.ts';
import type { TaskReport } from '../queues/task-run.ts';
import type { StatementAtWork } from '../store/connection/at-work.ts';
import type { LockHolder } from '../store/status/holders.ts';
import type { ClockEvent } from '../sync/clocks.ts';
import type { SyncEvent } from '../sync/events.ts';
import { clockLines, createTaskLines, paceLines } from './log/lines.ts';
import type { Log } from './log/logger.ts';
import { storeLines, waitLines } from './log/store-lines.ts';
import { createBulkLines, createSyncLines, type BacklogCounts } from './log/sync-lines.ts';
import { createLogThrottle } from './log/throttle.ts';
import type { Metrics } from './metrics/metrics.ts';

/*
 * Where log lines and counters come from: the ends of tasks and jobs, events within them, and requests to the partner.
 * Nothing in sync, queues or store logs or counts by itself.
 */

export interface Telemetry {
  readonly onSync: (event: SyncEvent) => void;
  readonly onTask: (report: TaskReport) => void;
  readonly onRequest: (observation: RequestObservation) => void;
  readonly onStore: (event: StoreEvent) => void;
  readonly onLocks: (holders: readonly LockHolder[]) => void;
  readonly onSlow: (statements: readonly StatementAtWork[]) => void;
  readonly onClock: (event: ClockEvent) => void;
  /** The queues have delivered a job; some jobs run without them. */
  readonly onTaken: () => void;
  readonly onJob: (job: { queue: string; job: string; outcome: string; ms: number }) => void;
  readonly onFault: (job: string, error: unknown) => void;
  readonly onQueueError: (error: unknown) => void;
  readonly pace: Required<Pick<PacerEvents, 'backedOff' | 'resumed' | 'waited'>>;
}

export interface TelemetryOptions {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Reads what is left to fetch, for a line of progress. */
  readonly backlog: () => Promise<BacklogCounts>;
  readonly queuesInPostgres: boolean;
}

/** Turns everything the daemon does into log lines and metrics. */
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
  const { worked, unknownJob, ...store } = storeLines(log, throttle, queuesInPostgres);
  const syncLine = createSyncLines(log, throttle, clock, bulk);

  return {
    ...store,
    ...waitLines(log, throttle),
    onClock: clockLines(log, throttle),
    onSync(event) {
      metrics.count(event);
      syncLine(event);
    },
    onTask(report) {
      metrics.count({ event: 'task.ended', ...report });
      taskLine(report);
    },
    onJob({ queue, job, outcome, ms }) {
      metrics.count({ event: 'job.ended', queue, outcome, ms });
      if (outcome === 'unknown-job') unknownJob(queue);
      else if (outcome !== 'fault' && outcome !== 'paused') worked(job);
      bulk.tick();
    },
    pace: {
      ...pace,
      waited: (event) => metrics.count({ event: 'request.waited', ...event }),
    },
    onRequest(observation) {
      const { route, outcome, ms, status, waitedMs, skus } = observation;
      metrics.count({ event: 'request.ended', ...observation });
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
