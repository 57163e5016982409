import { setTimeout as pause } from 'node:timers/promises';
import {
  type IQueueBackend,
  type JobProgress,
  type JobsOptions,
  type Processor,
  Queue,
  type Telemetry,
  Worker,
} from 'bullmq';
import { Redis, type RedisOptions, ReplyError } from 'ioredis';
import { within } from '../lib/clock.ts';
import { rereadingConnection, withoutTls } from '../lib/tls.ts';
import { type DatabaseUrl, KEEP_ALIVE_MS } from '../store/connection/db.ts';
import { isLoginRejected, isNotLetIn } from '../store/connection/sql-errors.ts';
import type { QueueName } from './jobs.ts';
import { createPostgresQueues, prepareTables } from './postgres-queues.ts';

/** The used parts of a BullMQ queue and worker, whose full types differ by backend. */
export interface JobQueue {
  add(name: string, data: object, options: JobsOptions): Promise<unknown>;
  upsertJobScheduler(
    id: string,
    repeat: { every: number },
    template: { name: string; data: object },
  ): Promise<unknown>;
  /** `next`: when its next job is or was due, by the clock of the host that created the job (epoch ms). */
  getJobScheduler(id: string): Promise<{ every?: number | undefined; next?: number | undefined } | undefined>;
  removeJobScheduler(id: string): Promise<unknown>;
  close(): Promise<void>;
}
export interface JobWorker {
  /** Begins to take jobs; resolves when the worker is closed. */
  run(): Promise<void>;
  close(): Promise<void>;
}

/** Where BullMQ stores its jobs. The code above uses both backends in the same way. */
export interface QueueBackend {
  readonly kind: 'redis' | 'postgres';
  /** Creates the backend's own tables, if it has any. Must be called before a queue is created. */
  prepare(): Promise<void>;
  /** Opens a queue. Without Redis this waits for nothing, but later calls of the queue do; Postgres must answer. */
  openQueue(name: QueueName): Promise<JobQueue>;
  /** Opens a worker that takes no jobs before `run` is called. */
  openWorker(name: QueueName, process: Processor, concurrency: number): Promise<JobWorker>;
  /** Calls `listener` when a lost connection is back: whatever lived in the store may be gone. */
  onReconnect(listener: () => void): void;
  /** Rejects if the store does not answer within `timeoutMs`. */
  ping(timeoutMs: number): Promise<void>;
  describe(error: unknown): string;
  close(): Promise<void>;
}

export interface QueueBackendOptions {
  /** Called for every new connection, like `databaseUrl`. */
  readonly redisUrl: (() => string) | null;
  readonly databaseUrl: DatabaseUrl;
  /** Maximum of connections for queues in Postgres. */
  readonly connections: number;
  /** How long a store may leave an answer due until its connection counts as dead. */
  readonly answerWithinMs: number;
  readonly prefix: string;
  /** Called with errors of connections, which come by the dozen while a store is down; each connection is retried. */
  readonly onError: (error: Error) => void;
  /** Traces queues and workers; no traces if absent or null. */
  readonly telemetry?: Telemetry | null;
}

const KEEP = { removeOnComplete: { count: 0 }, removeOnFail: { count: 20 } };
/**
 * Milliseconds after which a job is taken again if its worker could not finish it, for example while the store took
 * no writes. A few wake jobs are lost with it.
 */
const STALLED = { lockDuration: 10_000, stalledInterval: 5000 };
/** Milliseconds until a worker repeats what it could not report while the store was away. */
const SAY_AGAIN = { runRetryDelay: 1000 };
const REFUSED_AGAIN_MS = 1000;
/**
 * A worker's command waits ten seconds for a job at most. After that and the time for an answer, the connection is
 * dead.
 */
const REDIS_BLOCKS_MS = 10_000;

/** Creates the queues in Redis if `redisUrl` is set, else in Postgres. */
export function createQueueBackend(options: QueueBackendOptions): QueueBackend {
  return options.redisUrl === null ? postgresBackend(options) : redisBackend(options, options.redisUrl);
}

const PING_KEPT_MS = 10_000;
/** Redis's error replies by their first word, which is their code. */
const REFUSALS: Readonly<Record<string, string>> = {
  OOM: 'out of memory (OOM)',
  READONLY: 'it is a read-only replica (READONLY)',
  MISCONF: 'it cannot save to disk (MISCONF)',
  LOADING: 'it is still loading its data (LOADING)',
  NOAUTH: 'it wants a password (NOAUTH)',
  WRONGPASS: 'it rejects user or password (WRONGPASS)',
  NOPERM: 'its ACL denies this user a command, a key or the database (NOPERM)',
  ERR: 'it refuses a command (ERR); the log says which',
};

/** Returns the code of an error reply of Redis; null for any other error. */
export function redisCode(error: unknown): string | null {
  if (!(error instanceof ReplyError) || !(error instanceof Error)) return null;
  return /^[A-Z]+/.exec(error.message)?.[0] ?? null;
}

/**
 * Opens a client of the Redis at this URL, which also determines whether and how TLS is used. While Redis refuses
 * the URL's database there is no connection, because the driver would continue in the first database, which may be
 * somebody else's.
 */
export function openRedis(url: string, options: RedisOptions): Redis {
  const { url: bare, tls } = rereadingConnection(url);
  const redis = new Redis(bare, { ...options, ...(tls !== null && { tls }) });
  const select = redis.select.bind(redis);
  redis.select = async (db) => {
    try {
      return await select(db);
    } catch (error) {
      redis.disconnect(true);
      throw error;
    }
  };
  return redis;
}

/** What BullMQ gets for INFO if an ACL denies it (as `-@dangerous` does): a version whose commands it may use. */
const INFO_DENIED = 'redis_version:6.2.0';

/** BullMQ asks each of its clients for INFO once, and remembers a refusal for ever. */
function answerInfo(redis: Redis): void {
  const info = redis.info.bind(redis) as (...words: unknown[]) => Promise<string>;
  redis.info = async (...words: unknown[]) => {
    try {
      return await info(...words);
    } catch (error) {
      if (redisCode(error) !== 'NOPERM') throw error;
      return INFO_DENIED;
    }
  };
}

/**
 * Returns a function that decides for each error reply of one connection whether to reconnect. A primary that was
 * made a replica keeps its connections, while its name, address or proxy may lead to the new primary by now.
 * Returns true at most once a second, for as long as replies come from a replica.
 */
function leavesReplicas(): (error: Error) => boolean {
  let leftAt = -Infinity;
  return (error) => {
    // Before Redis 7, an error within a script is wrapped in other words.
    const isReplica = redisCode(error) === 'READONLY' || /-READONLY /.test(error.message);
    if (!isReplica || performance.now() - leftAt < REFUSED_AGAIN_MS) return false;
    leftAt = performance.now();
    return true;
  };
}

/** Opens a client that logs in, like every client that BullMQ duplicates from it, as the URL says at that moment. */
function openRereadingRedis(url: () => string, options: RedisOptions): Redis {
  const redis = openRedis(url(), { ...options, lazyConnect: true, reconnectOnError: leavesReplicas() });
  answerInfo(redis);
  const connect = redis.connect.bind(redis);
  redis.connect = (callback) => {
    // When the driver reconnects, nobody catches an error from here, so no file is read.
    const { username, password } = new Redis(withoutTls(url()), { lazyConnect: true }).options;
    Object.assign(redis.options, { username, password });
    return connect(callback);
  };
  redis.duplicate = (override) =>
    openRereadingRedis(url, Object.assign({ ...redis.options }, { lazyConnect: false }, override));
  if (options.lazyConnect !== true) void redis.connect().catch(() => {});
  return redis;
}

const tracedBy = ({ telemetry }: Pick<QueueBackendOptions, 'telemetry'>): { telemetry?: Telemetry } =>
  telemetry === undefined || telemetry === null ? {} : { telemetry };

function redisBackend(
  { prefix, onError, answerWithinMs, ...options }: QueueBackendOptions,
  url: () => string,
): QueueBackend {
  const connection = openRereadingRedis(url, {
    // BullMQ wants a worker's commands to wait for the connection rather than fail; the caller limits `add`.
    maxRetriesPerRequest: null,
    retryStrategy: (n) => Math.min(5000, 200 * n),
    keepAlive: KEEP_ALIVE_MS,
    // After a command: an unanswered one is sent again on a new connection.
    socketTimeout: REDIS_BLOCKS_MS + answerWithinMs,
  });
  // The error reply with which the connection was refused. A ping in vain gets no reply of its own until the next
  // connection is tried.
  let refused: string | null = null;
  connection.on('error', (error) => {
    refused = redisCode(error);
    onError(error);
  });
  connection.on('ready', () => (refused = null));
  const traced = tracedBy(options);
  let pinging: Promise<unknown> | null = null;
  return {
    kind: 'redis',
    prepare: () => Promise.resolve(),
    openQueue: async (name) =>
      new Queue(name, { connection, prefix, defaultJobOptions: KEEP, ...traced }).on('error', onError),
    openWorker: async (name, process, concurrency) =>
      new PatientWorker(name, process, {
        connection,
        prefix,
        concurrency,
        autorun: false,
        ...KEEP,
        ...STALLED,
        ...SAY_AGAIN,
        ...traced,
      }).on('error', onError),
    onReconnect(listener) {
      connection.on('ready', listener);
    },
    ping: async (timeoutMs) => {
      // A write, because a Redis without memory still answers PING but takes no job. One at a time, because the
      // driver keeps commands for an absent Redis until it is back.
      pinging ??= connection.set(`${prefix}:ping`, '1', 'PX', PING_KEPT_MS).finally(() => {
        pinging = null;
      });
      await within(pinging, timeoutMs);
    },
    describe: (error) => {
      const code = redisCode(error) ?? refused;
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

function postgresBackend(options: QueueBackendOptions): QueueBackend {
  const { onError } = options;
  const { pool, backendOf, wake, close } = createPostgresQueues(options);
  // BullMQ would open a connection from this; the backend gives it one instead.
  const connection = {};
  const traced = tracedBy(options);
  return {
    kind: 'postgres',
    prepare: () => prepareTables(options.databaseUrl),
    openQueue: async (name) => {
      const queue = new Queue(name, { connection, defaultJobOptions: KEEP, ...traced }, backendOf).on(
        'error',
        onError,
      );
      return Object.assign(queue, {
        add: async (...job: Parameters<JobQueue['add']>) => {
          const added = await Queue.prototype.add.apply(queue, job);
          wake(name);
          return added;
        },
      });
    },
    openWorker: async (name, process, concurrency) =>
      new PatientWorker(
        name,
        process,
        { connection, concurrency, autorun: false, ...KEEP, ...STALLED, ...SAY_AGAIN, ...traced },
        backendOf,
      ).on('error', onError),
    // Postgres keeps what was committed, so an outage leaves nothing to restore.
    onReconnect: () => {},
    describe: (error) => {
      const refused = isNotLetIn(error)
        ? ': its pg_hba.conf lets no such connection in'
        : isLoginRejected(error)
          ? ': Postgres rejects the login'
          : '';
      return `the queues (postgres) do not answer${refused}`;
    },
    ping: async (timeoutMs) => {
      await within(pool.query('select 1'), timeoutMs);
    },
    close,
  };
}

/**
 * A worker that asks for the next job only a second after its store has refused. BullMQ's own asks again at once,
 * hundreds of times a second while the store takes no writes.
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
