import type { Clock } from '../lib/clock.ts';
import { doubling } from '../lib/duration.ts';
import { type StoreFailure, storeFailure } from '../store/connection/sql-errors.ts';
import type { JobEnd } from './jobs.ts';

export type StoreEvent =
  | { readonly event: 'store.paused'; readonly kind: StoreFailure; readonly job: string; readonly ms: number }
  | { readonly event: 'store.resumed'; readonly kind: StoreFailure; readonly job: string };

/** Pauses jobs while Postgres takes no writes: each is retried separately, after growing waits. */
export interface StorePause {
  /**
   * Runs a job's work unless the job is paused. Returns its result, or 'paused', also if Postgres took no writes.
   * Other errors pass through. `untried` is a result that says nothing about Postgres.
   */
  guard(job: string, work: () => Promise<JobEnd>, untried?: JobEnd): Promise<JobEnd>;
  /** Records that a job was taken from the queues: they take writes. */
  queuesWork(): void;
  /** Records a failure of the queues. If their Postgres takes no writes, no job comes that could be paused. */
  queuesFail(error: unknown): void;
  /** Why jobs are paused or do not come now; null if neither. */
  readonly failure: () => StoreFailure | null;
}

const FIRST_MS = 1000;
const MAX_MS = 60_000;
/** Schedules wake every second, so this long without a job is no coincidence. */
const NO_JOB_MS = 5000;
/** Reconnecting everything costs the server something and may change nothing. */
const LEAVE_EVERY_MS = 1000;
/** Name of the queues in events that name a job. */
const QUEUES = 'queues';

interface PausedJob {
  readonly kind: StoreFailure;
  readonly until: number;
  readonly times: number;
  retrying: boolean;
}

/**
 * Creates the pause of one process. It lives in memory, because Postgres is what cannot be written to.
 * `leaveReadOnly` is called before the retry of a job that met read-only sessions, at most once a second.
 */
export function createStorePause(
  clock: Pick<Clock, 'monotonic'>,
  emit: (event: StoreEvent) => void,
  leaveReadOnly: () => void = () => {},
): StorePause {
  const jobs = new Map<string, PausedJob>();
  let queuesWorkedAt = clock.monotonic();
  let queues: StoreFailure | null = null;
  let leftAt = -Infinity;

  function tryAgain(paused: PausedJob): void {
    paused.retrying = true;
    if (paused.kind !== 'read-only' || clock.monotonic() - leftAt < LEAVE_EVERY_MS) return;
    leftAt = clock.monotonic();
    leaveReadOnly();
  }

  function failed(job: string, kind: StoreFailure, before: PausedJob | undefined): void {
    const now = clock.monotonic();
    const present = jobs.get(job);
    // Jobs that were under way fail with the first; together they are one failure.
    if (present !== undefined && present !== before) return;
    const times = (before?.times ?? 0) + 1;
    const ms = doubling(FIRST_MS, times, MAX_MS);
    jobs.set(job, { kind, until: now + ms, times, retrying: false });
    emit({ event: 'store.paused', kind, job, ms });
  }

  return {
    async guard(job, work, untried) {
      const paused = jobs.get(job);
      if (paused !== undefined && (paused.retrying || clock.monotonic() < paused.until)) return 'paused';
      if (paused !== undefined) tryAgain(paused);
      try {
        const outcome = await work();
        if (paused !== undefined && outcome === untried) paused.retrying = false;
        else if (paused !== undefined) {
          jobs.delete(job);
          emit({ event: 'store.resumed', kind: paused.kind, job });
        }
        return outcome;
      } catch (error) {
        const kind = storeFailure(error);
        if (paused !== undefined) paused.retrying = false;
        if (kind === null) throw error;
        failed(job, kind, paused);
        return 'paused';
      }
    },
    queuesWork() {
      queuesWorkedAt = clock.monotonic();
      if (queues === null) return;
      emit({ event: 'store.resumed', kind: queues, job: QUEUES });
      queues = null;
    },
    queuesFail(error) {
      const kind = storeFailure(error);
      if (kind === null || kind === queues || clock.monotonic() - queuesWorkedAt < NO_JOB_MS) return;
      queues = kind;
      emit({ event: 'store.paused', kind, job: QUEUES, ms: FIRST_MS });
    },
    failure: () => jobs.values().next().value?.kind ?? queues,
  };
}
