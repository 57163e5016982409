import type { Job } from 'bullmq';
import { type Clock, within } from '../lib/clock.ts';
import { type Sql, transaction } from '../store/connection/db.ts';
import { waitForLock } from '../store/connection/locks.ts';
import { overdueTasks, type TaskName } from '../store/ledger/tasks.ts';
import type { JobQueue, JobWorker, QueueBackend } from './backend.ts';
import {
  CONCURRENCY,
  type JobEnd,
  type JobOutcome,
  QUEUE_OF,
  type QueueName,
  QUEUES,
  type Schedule,
} from './jobs.ts';

/** What a job does. Returns how it ended, for metrics; throws only because of a defect or while Postgres is away. */
export type Handler = () => Promise<JobEnd>;

export interface RunnerOptions {
  readonly backend: QueueBackend;
  readonly sql: Sql;
  readonly clock: Clock;
  readonly schedules: readonly Schedule[];
  readonly handlers: Readonly<Record<TaskName, Handler>>;
  readonly onTaken: () => void;
  readonly onJob: (job: { queue: QueueName; job: string; outcome: JobOutcome; ms: number }) => void;
  /** Called with errors of the queues and of the connections to their store. */
  readonly onError: (error: Error) => void;
  /** A handler threw: Postgres is away, or there is a defect. */
  readonly onFault: (job: string, error: unknown) => void;
}

export interface Runner {
  /** Opens queues and workers, and creates the schedules. */
  start(): Promise<void>;
  /** Runs a job soon, without waiting for its schedule; gives up, with a report, if the store is down. */
  wake(job: TaskName): Promise<void>;
  /** When the last job of any queue ended (monotonic ms), or null: the sign that workers are alive. */
  lastJobAt(): number | null;
  /** For how many milliseconds the queues have brought this process no job at all. */
  silentMs(): number;
  /** Restores schedules that the store has lost, or whose time never comes. */
  restoreSchedules(): Promise<void>;
  /**
   * Runs tasks that are due by the clock of Postgres but that the queues do not bring, because the queues go by the
   * clock of whichever host made the last job. Does not wait for the runs.
   */
  runOverdue(): Promise<void>;
  /** Takes no more jobs and waits a few seconds at most for those under way. */
  stop(): Promise<void>;
}

const STORE_PATIENCE_MS = 5000;
const PING_PATIENCE_MS = 500;
/** Somewhat longer than a stop gives to requests under way. */
const STOP_PATIENCE_MS = 6000;
/** How long a task is due before its process runs it without a job; jobs come every second, or every five. */
const LEFT_TO_QUEUES_MS = 10_000;
/** A schedule's next job counts as lost if it is later than this and than three of its intervals. */
const LOST_AFTER_MS = 15_000;

type Runs = ReturnType<typeof createRuns>;

/** Tracks the jobs of one process, whoever brings them. */
function createRuns({ handlers, clock, onTaken, onJob, onFault }: RunnerOptions) {
  const takenAt = new Map<string, number>();
  const beganAt = clock.monotonic();
  let anyTakenAt = beganAt;
  let lastJobAt: number | null = null;
  let underWay = 0;

  async function run(queue: QueueName, name: string): Promise<JobOutcome> {
    const startedAt = clock.monotonic();
    underWay += 1;
    const handler = Object.hasOwn(handlers, name) ? handlers[name as TaskName] : undefined;
    let outcome: JobOutcome = 'unknown-job';
    try {
      if (handler !== undefined) outcome = await handler();
    } catch (error) {
      // The store would keep a job that throws as failed and retry it. The next wake job does the same more cleanly.
      outcome = 'fault';
      onFault(name, error);
    }
    underWay -= 1;
    lastJobAt = clock.monotonic();
    onJob({ queue, job: name, outcome, ms: lastJobAt - startedAt });
    return outcome;
  }

  return {
    run,
    /** Runs a job that a queue has brought. */
    async taken(queue: QueueName, name: string): Promise<JobOutcome> {
      onTaken();
      anyTakenAt = clock.monotonic();
      takenAt.set(name, anyTakenAt);
      return await run(queue, name);
    },
    /** Returns whether the queues have not brought this job for `ms`. */
    isQuiet: (job: TaskName, ms: number) => clock.monotonic() - (takenAt.get(job) ?? beganAt) > ms,
    silentMs: () => clock.monotonic() - anyTakenAt,
    lastJobAt: () => lastJobAt,
    underWay: () => underWay,
  };
}

/** Creates the queues and workers of one process: schedules wake, handlers work, and Postgres stores pending work. */
export function createRunner(options: RunnerOptions): Runner {
  const { backend, onError } = options;
  const queues = new Map<QueueName, JobQueue>();
  const restoreSchedules = async () => {
    // A store that is away is asked nothing more, because its driver would keep each command until it is back.
    await backend.ping(STORE_PATIENCE_MS);
    await restore(options, queues);
  };
  const workers: JobWorker[] = [];
  const runs = createRuns(options);
  const own = new OwnRuns(options, runs);

  async function wake(job: TaskName): Promise<void> {
    const adding = queues.get(QUEUE_OF[job])?.add(job, {}, { deduplication: { id: `wake-${job}` } });
    if (adding !== undefined) await within(adding, STORE_PATIENCE_MS).catch(onError);
  }

  return {
    async start() {
      const processorOf = (queue: QueueName) => (job: Pick<Job, 'name'>) => runs.taken(queue, job.name);
      await Promise.all(
        QUEUES.map(async (name) => {
          queues.set(name, await backend.openQueue(name));
          workers.push(await backend.openWorker(name, processorOf(name), CONCURRENCY[name]));
        }),
      );
      // If the store is down, they are created when it is back, and by the periodic check.
      await putSchedules(options, queues).catch(onError);
      for (const worker of workers) void worker.run().catch(onError);
      backend.onReconnect(() => void restoreSchedules().catch(onError));
      // An existing schedule may come seconds later; what is due now does not wait for it.
      for (const { job } of options.schedules) void wake(job);
    },
    wake,
    lastJobAt: runs.lastJobAt,
    silentMs: runs.silentMs,
    restoreSchedules,
    runOverdue: () => own.start(),
    async stop() {
      own.stop();
      const closed = Promise.allSettled(workers.map((worker) => worker.close())).then(() =>
        Promise.allSettled([...queues.values()].map((queue) => queue.close())),
      );
      // While the store is away, bullmq's `close` never ends: then only jobs under way are worth waiting for.
      const answers = await backend.ping(PING_PATIENCE_MS).then(
        () => true,
        () => false,
      );
      const all = Promise.all([closed, own.ended()]);
      await within(all, answers || runs.underWay() > 0 ? STOP_PATIENCE_MS : 0).catch(() => {});
    },
  };
}

/** What this process runs itself because the queues do not bring it, one run of each task at a time. */
class OwnRuns {
  readonly #options: RunnerOptions;
  readonly #runs: Runs;
  readonly #present = new Map<TaskName, Promise<JobOutcome>>();
  #stopped = false;

  constructor(options: RunnerOptions, runs: Runs) {
    this.#options = options;
    this.#runs = runs;
  }

  async start(): Promise<void> {
    const { schedules, sql } = this.#options;
    const quiet = schedules.flatMap(({ job }) =>
      this.#isQuiet(job) && !this.#present.has(job) ? [job] : [],
    );
    if (quiet.length === 0) return;
    for (const job of await overdueTasks(sql, quiet, LEFT_TO_QUEUES_MS)) {
      if (this.#stopped || this.#present.has(job)) continue;
      this.#present.set(
        job,
        this.#untilEnded(job).finally(() => this.#present.delete(job)),
      );
    }
  }

  #isQuiet(job: TaskName): boolean {
    const everyMs = this.#options.schedules.find((schedule) => schedule.job === job)?.everyMs ?? 0;
    return this.#runs.isQuiet(job, Math.max(LEFT_TO_QUEUES_MS, 3 * everyMs));
  }

  /** Runs a job, and again if only its time was over: the queues would bring the next one within a second. */
  async #untilEnded(job: TaskName): Promise<JobOutcome> {
    for (;;) {
      const outcome = await this.#runs.run(QUEUE_OF[job], job);
      if (outcome !== 'over' || this.#stopped || !this.#isQuiet(job)) return outcome;
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  ended(): Promise<unknown> {
    return Promise.allSettled(this.#present.values());
  }
}

type Queues = ReadonlyMap<QueueName, JobQueue>;

/** Creates all schedules; an existing one keeps its next job. */
async function putSchedules(options: RunnerOptions, queues: Queues): Promise<void> {
  await eachSchedule(options, queues, putSchedule);
}

/** Replaces all schedules, including their next jobs. */
async function replaceSchedules(options: RunnerOptions, queues: Queues): Promise<void> {
  await eachSchedule(options, queues, async (queue, schedule) => {
    await within(queue.removeJobScheduler(schedule.job), STORE_PATIENCE_MS);
    await putSchedule(queue, schedule);
  });
}

async function putSchedule(queue: JobQueue, { job, everyMs }: Schedule): Promise<void> {
  const upsert = queue.upsertJobScheduler(job, { every: everyMs }, { name: job, data: {} });
  await within(upsert, STORE_PATIENCE_MS);
}

/** Calls `put` for one schedule after the other, in one process at a time. */
async function eachSchedule(
  { sql, schedules }: RunnerOptions,
  queues: Queues,
  put: (queue: JobQueue, schedule: Schedule) => Promise<void>,
): Promise<void> {
  // The transaction idles while the queues' store works, which may take the full time for a removal and an upsert of
  // each schedule.
  const idleMs = (2 * schedules.length + 1) * STORE_PATIENCE_MS;
  await transaction(sql, async (tx) => {
    await tx`select set_config('idle_in_transaction_session_timeout', ${String(idleMs)}, true)`;
    // bullmq's Postgres backend corrupts schedules that are upserted concurrently, by whatever process.
    await waitForLock(tx, 'schedules');
    for (const schedule of schedules) {
      const queue = queues.get(QUEUE_OF[schedule.job]);
      if (queue !== undefined) await put(queue, schedule);
    }
  });
}

/**
 * Restores the schedules if one is missing or differs: after a FLUSHALL, a restart without persistence, an upgrade.
 * Replaces them if one exists but its next job does not (half of the store was emptied), or is due at an impossible
 * time (the clock of the host that made it was ahead), because an upsert with the same interval would change
 * neither.
 */
async function restore(options: RunnerOptions, queues: Queues): Promise<void> {
  for (const { job, everyMs } of options.schedules) {
    const found = await within(
      queues.get(QUEUE_OF[job])?.getJobScheduler(job) ?? Promise.resolve(undefined),
      STORE_PATIENCE_MS,
    );
    // A store without the schedule returns null, whatever the types say.
    if (Number(found?.every) !== everyMs) return await putSchedules(options, queues);
    if (!isInTime(Number(found?.next) - options.clock.now(), everyMs))
      return await replaceSchedules(options, queues);
  }
}

/** Returns whether a schedule's next job comes when it should: in `inMs`, which is negative if it is late. */
export function isInTime(inMs: number, everyMs: number): boolean {
  return inMs <= 2 * everyMs && inMs >= -Math.max(LOST_AFTER_MS, 3 * everyMs);
}
