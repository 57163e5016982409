import { setTimeout as pause } from 'node:timers/promises';
import {
  createPostgresBackend,
  type IQueueBackend,
  type JobProgress,
  type JobsOptions,
  type Processor,
  Queue,
  runMigrations,
  Worker,
} from 'bullmq';
import { Redis, type RedisOptions, ReplyError } from 'ioredis';
import pg from 'pg';
import { connectionOf } from '../lib/tls.ts';
import { QUEUE_SCHEMA } from '../store/migrations.ts';
import { sessionConnection } from '../store/session.ts';
import type { QueueName } from './jobs.ts';

/** What is used of a BullMQ queue and worker; their full types differ by backend. */
export interface JobQueue {
  add(name: string, data: object, options: JobsOptions): Promise<unknown>;
  upsertJobScheduler(
    id: string,
    repeat: { every: number },
    template: { name: string; data: object },
  ): Promise<unknown>;
  /** `next`: when its next job comes, or should have come, by the clock of the host that made that (epoch ms). */
  getJobScheduler(id: string): Promise<{ every?: number | undefined; next?: number | undefined } | undefined>;
  removeJobScheduler(id: string): Promise<unknown>;
  close(): Promise<void>;
}
export interface JobWorker {
  /** Starts to take jobs; resolves when the worker is closed. */
  run(): Promise<void>;
  close(): Promise<void>;
}

/** Where BullMQ keeps its jobs. Both backends are used in the same way by everything above. */
export interface QueueBackend {
  readonly kind: 'redis' | 'postgres';
  /** Creates the backend's own tables, where it has any. Call this before creating a queue. */
  prepare(): Promise<void>;
  /** With Redis away it waits for nothing, and what is asked of it later does; Postgres has to answer. */
  openQueue(name: QueueName): Promise<JobQueue>;
  /** A worker that takes no jobs before `run` is called. */
  openWorker(name: QueueName, process: Processor, concurrency: number): Promise<JobWorker>;
  /** Called when a lost connection is back: whatever lived in the store may be gone. */
  onReconnect(listener: () => void): void;
  /** Rejects when the store does not answer within `timeoutMs`. */
  ping(timeoutMs: number): Promise<void>;
  describe(error: unknown): string;
  close(): Promise<void>;
}

export interface QueueBackendOptions {
  readonly redisUrl: string | null;
  readonly databaseUrl: string;
  readonly prefix: string;
  /** Errors of connections; they come by the dozen while a store is down, and each is retried. */
  readonly onError: (error: Error) => void;
}

const KEEP = { removeOnComplete: { count: 0 }, removeOnFail: { count: 20 } };
/** A job that its worker could not end, as while the store took no writes, is taken up again after so long: a few wake jobs are lost with it. */
const STALLED = { lockDuration: 10_000, stalledInterval: 5000 };
const READY_PATIENCE_MS = 15_000;
const READY_AGAIN_MS = 250;
const CLOSE_PATIENCE_MS = 1000;
const REFUSED_AGAIN_MS = 1000;

export function createQueueBackend(options: QueueBackendOptions): QueueBackend {
  return options.redisUrl === null ? postgresBackend(options) : redisBackend(options, options.redisUrl);
}

const PING_KEPT_MS = 10_000;
/** First words of Redis's error replies, which are their codes. */
const REFUSALS: Readonly<Record<string, string>> = {
  OOM: 'out of memory (OOM)',
  READONLY: 'it is a read-only replica (READONLY)',
  MISCONF: 'it cannot save to disk (MISCONF)',
  LOADING: 'it is still loading its data (LOADING)',
};

/** The code of an error that Redis replied with; null for any other. */
export function redisCode(error: unknown): string | null {
  if (!(error instanceof ReplyError) || !(error instanceof Error)) return null;
  return /^[A-Z]+/.exec(error.message)?.[0] ?? null;
}

/** A client of the Redis at this URL, which says whether and how it is spoken to by TLS. */
export function openRedis(url: string, options: RedisOptions): Redis {
  const { url: bare, tls } = connectionOf(url);
  return new Redis(bare, { ...options, ...(tls !== null && { tls }) });
}

function redisBackend({ prefix, onError }: QueueBackendOptions, url: string): QueueBackend {
  // BullMQ wants commands of a worker to wait for the connection rather than fail; `add` is bounded by the caller.
  const connection = openRedis(url, {
    maxRetriesPerRequest: null,
    retryStrategy: (n) => Math.min(5000, 200 * n),
  });
  connection.on('error', onError);
  return {
    kind: 'redis',
    prepare: () => Promise.resolve(),
    openQueue: async (name) =>
      new Queue(name, { connection, prefix, defaultJobOptions: KEEP }).on('error', onError),
    openWorker: async (name, process, concurrency) =>
      new PatientWorker(name, process, {
        connection,
        prefix,
        concurrency,
        autorun: false,
        ...KEEP,
        ...STALLED,
      }).on('error', onError),
    onReconnect(listener) {
      connection.on('ready', listener);
    },
    ping: async (timeoutMs) => {
      // A write: a Redis without memory still answers PING, and takes no job.
      await within(connection.set(`${prefix}:ping`, '1', 'PX', PING_KEPT_MS), timeoutMs);
    },
    describe: (error) => {
      const code = redisCode(error);
      return code === null
        ? 'the queues (redis) do not answer'
        : `the queues (redis) accept no jobs: ${REFUSALS[code] ?? code}`;
    },
    async close() {
      connection.disconnect();
      await Promise.resolve();
    },
  };
}

function postgresBackend({ databaseUrl, onError }: QueueBackendOptions): QueueBackend {
  // A configuration and not a shared pool for each object: with a pool, recovery after an outage is slow.
  const { url: connectionString, ...session } = sessionConnection(databaseUrl);
  const settings = { connectionString, ...session, application_name: 'catalog-mirror queues' };
  // BullMQ adds the schema as the search path; of what is set twice, the last counts.
  const connection = { ...settings, max: 2, schema: QUEUE_SCHEMA };
  const pool = new pg.Pool({ ...settings, max: 1 });
  pool.on('error', onError);
  return {
    kind: 'postgres',
    async prepare() {
      const client = await pool.connect();
      try {
        await runMigrations(client, QUEUE_SCHEMA);
      } finally {
        client.release();
      }
    },
    openQueue: (name) =>
      ready(
        () =>
          new Queue(name, { connection, defaultJobOptions: KEEP }, createPostgresBackend).on(
            'error',
            onError,
          ),
        onError,
      ),
    openWorker: (name, process, concurrency) =>
      ready(
        () =>
          new PatientWorker(
            name,
            process,
            { connection, concurrency, autorun: false, ...KEEP, ...STALLED },
            createPostgresBackend,
          ).on('error', onError),
        onError,
      ),
    // Postgres keeps what was committed: nothing to put back after an outage.
    onReconnect: () => {},
    describe: () => 'the queues (postgres) do not answer',
    ping: async (timeoutMs) => {
      await within(pool.query('select 1'), timeoutMs);
    },
    close: () => pool.end(),
  };
}

/**
 * A worker that its store refuses asks for the next job again after a second. BullMQ's own asks at once, hundreds of times a
 * second where the store takes no writes.
 */
class PatientWorker<B extends IQueueBackend, Connection> extends Worker<
  unknown,
  unknown,
  string,
  B,
  JobProgress,
  Connection
> {
  protected override async moveToActive(token: string, name?: string) {
    try {
      return await super.moveToActive(token, name);
    } catch (error) {
      await pause(REFUSED_AGAIN_MS);
      throw error;
    }
  }
}

/**
 * Makes a queue or a worker that has reached Postgres. BullMQ caches the result of each one's first statement forever: where
 * that failed, all others fail, and a worker retries without a pause, which starves the process of everything else, signals
 * included. A failed one is discarded and replaced, for some seconds; then this rejects with the reason.
 */
async function ready<T extends { waitUntilReady(): Promise<unknown>; close(): Promise<void> }>(
  make: () => T,
  onError: (error: Error) => void,
): Promise<T> {
  const over = performance.now() + READY_PATIENCE_MS;
  for (;;) {
    const made = make();
    try {
      await within(made.waitUntilReady(), Math.max(0, over - performance.now()));
      return made;
    } catch (error) {
      await within(made.close(), CLOSE_PATIENCE_MS).catch(() => {});
      if (performance.now() + READY_AGAIN_MS > over) throw error;
      if (error instanceof Error) onError(error);
    }
    await pause(READY_AGAIN_MS);
  }
}

/** The promise's result, or a rejection after `timeoutMs`: with Redis down, a command would wait forever. */
export async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    const late = Object.assign(new Error(`no answer within ${timeoutMs} ms`), { code: 'ETIMEDOUT' });
    timer = setTimeout(() => reject(late), timeoutMs);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
