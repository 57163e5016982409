import type { Job } from 'bullmq';
import { type Sql, transaction } from '../store/db.ts';
import { takeTurn } from '../store/locks.ts';
import type { TaskName } from '../store/tasks.ts';
import { type JobQueue, type JobWorker, type QueueBackend, within } from './backend.ts';
import { CONCURRENCY, QUEUE_OF, type QueueName, QUEUES, type Schedule } from './jobs.ts';

/** What a job does. Returns how it ended, for metrics; throws only what is a defect. */
export type Handler = () => Promise<string>;

export interface RunnerOptions {
  readonly backend: QueueBackend;
  readonly sql: Sql;
  readonly schedules: readonly Schedule[];
  readonly handlers: Readonly<Record<TaskName, Handler>>;
  readonly onTaken: () => void;
  readonly onJob: (job: { queue: QueueName; job: string; outcome: string; ms: number }) => void;
  /** Errors of the queues and of the connections to their store. */
  readonly onError: (error: Error) => void;
  /** A handler threw: Postgres is away, or there is a defect. */
  readonly onFault: (job: string, error: unknown) => void;
}

export interface Runner {
  /** Opens queues and workers and puts the schedules in place. */
  start(): Promise<void>;
  /** Lets a job run soon, without waiting for its schedule; gives up, with a report, when the store is down. */
  wake(job: TaskName): Promise<void>;
  /** When the last job of any queue ended (monotonic ms), or null: the sign that workers live. */
  lastJobAt(): number | null;
  /** Puts the schedules back where the store has lost them. */
  restoreSchedules(): Promise<void>;
  /** Takes no more jobs and waits for those under way, some seconds at most. */
  stop(): Promise<void>;
}

const STORE_PATIENCE_MS = 5000;
const PING_PATIENCE_MS = 500;
/** Somewhat longer than requests under way are given at a stop. */
const STOP_PATIENCE_MS = 6000;

/** The queues and workers of one process: schedules wake, handlers do, and pending work is stored in Postgres. */
export function createRunner(options: RunnerOptions): Runner {
  const { backend, handlers, onTaken, onJob, onError, onFault } = options;
  const queues = new Map<QueueName, JobQueue>();
  const restoreSchedules = () => restore(options, queues);
  const workers: JobWorker[] = [];
  let lastJobAt: number | null = null;
  let underWay = 0;

  function processorOf(queue: QueueName) {
    return async (job: Pick<Job, 'name'>) => {
      onTaken();
      const startedAt = performance.now();
      underWay += 1;
      const handler = Object.hasOwn(handlers, job.name) ? handlers[job.name as TaskName] : undefined;
      let outcome = 'unknown-job';
      try {
        if (handler !== undefined) outcome = await handler();
      } catch (error) {
        // A job that throws would be kept as failed and retried by the store; the next wake job does the same, and cleaner.
        outcome = 'fault';
        onFault(job.name, error);
      }
      underWay -= 1;
      lastJobAt = performance.now();
      onJob({ queue, job: job.name, outcome, ms: lastJobAt - startedAt });
      return outcome;
    };
  }

  async function wake(job: TaskName): Promise<void> {
    const adding = queues.get(QUEUE_OF[job])?.add(job, {}, { deduplication: { id: `wake-${job}` } });
    if (adding !== undefined) await within(adding, STORE_PATIENCE_MS).catch(onError);
  }

  return {
    async start() {
      await Promise.all(
        QUEUES.map(async (name) => {
          queues.set(name, await backend.openQueue(name));
          workers.push(await backend.openWorker(name, processorOf(name), CONCURRENCY[name]));
        }),
      );
      // With the store down they are put when it is back, and by the periodic check.
      await putSchedules(options, queues).catch(onError);
      for (const worker of workers) void worker.run().catch(onError);
      backend.onReconnect(() => void restoreSchedules().catch(onError));
      // A schedule that was kept comes in its own time, up to some seconds later: what is due now does not wait for it.
      for (const { job } of options.schedules) void wake(job);
    },
    wake,
    lastJobAt: () => lastJobAt,
    restoreSchedules,
    async stop() {
      const closed = Promise.allSettled(workers.map((worker) => worker.close())).then(() =>
        Promise.allSettled([...queues.values()].map((queue) => queue.close())),
      );
      // With the store away bullmq's `close` never ends: then only jobs under way are worth waiting for.
      const answers = await backend.ping(PING_PATIENCE_MS).then(
        () => true,
        () => false,
      );
      await within(closed, answers || underWay > 0 ? STOP_PATIENCE_MS : 0).catch(() => {});
    },
  };
}

type Queues = ReadonlyMap<QueueName, JobQueue>;

async function putSchedules({ sql, schedules }: RunnerOptions, queues: Queues): Promise<void> {
  await transaction(sql, async (tx) => {
    // bullmq's Postgres backend corrupts schedules that are upserted concurrently, by whatever process.
    await takeTurn(tx, 'schedules');
    for (const { job, everyMs } of schedules) {
      const upsert = queues
        .get(QUEUE_OF[job])
        ?.upsertJobScheduler(job, { every: everyMs }, { name: job, data: {} });
      if (upsert !== undefined) await within(upsert, STORE_PATIENCE_MS);
    }
  });
}

/** Puts the schedules back if one is missing or differs: after a FLUSHALL, a restart without persistence, an upgrade. */
async function restore(options: RunnerOptions, queues: Queues): Promise<void> {
  for (const { job, everyMs } of options.schedules) {
    const found = await within(
      queues.get(QUEUE_OF[job])?.getJobScheduler(job) ?? Promise.resolve(undefined),
      STORE_PATIENCE_MS,
    );
    // A store without the schedule answers null, whatever the types say.
    if (Number(found?.every) !== everyMs) return await putSchedules(options, queues);
  }
}
