import { TASK_ENDS, type TaskEnd, type TaskName } from '../store/ledger/tasks.ts';
import { SLICE_ENDS, type SliceEnd } from '../sync/reprice/slice.ts';

/** Names of BullMQ's queues. */
export const QUEUES = ['manifest', 'delta', 'reprice', 'metadata', 'maintenance'] as const;
export type QueueName = (typeof QUEUES)[number];

/** A recurring wake job. Jobs carry no data: Postgres stores what is to be done, and when. */
export interface Schedule {
  readonly job: TaskName;
  readonly everyMs: number;
}

const WAKE_MS = 5000;
const REPRICE_WAKE_MS = 1000;

/**
 * Returns the schedules of all queues. An early wake job costs one statement, so they come often enough to follow
 * short intervals (`shortestMs`, the shortest configured one) and external requests.
 */
export function schedules(shortestMs: number): Schedule[] {
  const everyMs = Math.max(250, Math.min(WAKE_MS, Math.floor(shortestMs / 2)));
  return [
    { job: 'manifest', everyMs },
    { job: 'catalog-check', everyMs: Math.max(everyMs, 2000) },
    { job: 'delta', everyMs },
    { job: 'reprice', everyMs: Math.min(everyMs, REPRICE_WAKE_MS) },
    { job: 'metadata', everyMs: WAKE_MS },
    { job: 'maintenance', everyMs: WAKE_MS },
    { job: 'live-plan', everyMs: WAKE_MS },
  ];
}

/**
 * Concurrent jobs of a queue in one process. Of the re-pricing jobs one plans and one is ready; the others await
 * calls that they have sent, for up to PARTNER_TIMEOUT.
 */
export const CONCURRENCY: Readonly<Record<QueueName, number>> = {
  manifest: 2,
  delta: 1,
  reprice: 8,
  metadata: 1,
  maintenance: 1,
};

/** How the work of a job ends if it does not throw: as a run of a task, as a slice, or without running. */
export type JobEnd = TaskEnd | SliceEnd | 'not-due' | 'paused';
/** How a job ends, including a fault and a job that this version does not know. */
export type JobOutcome = JobEnd | 'fault' | 'unknown-job';

/** Returns how the jobs of a queue can end: as their work does, without running (not due, paused), or with a fault. */
export function jobOutcomes(queue: QueueName): JobOutcome[] {
  return queue === 'reprice'
    ? [...SLICE_ENDS, 'paused', 'fault']
    : [...TASK_ENDS, 'not-due', 'paused', 'fault'];
}

/** The queue of each task's jobs. */
export const QUEUE_OF: Readonly<Record<TaskName, QueueName>> = {
  manifest: 'manifest',
  'catalog-check': 'manifest',
  delta: 'delta',
  reprice: 'reprice',
  metadata: 'metadata',
  maintenance: 'maintenance',
  'live-plan': 'maintenance',
};
