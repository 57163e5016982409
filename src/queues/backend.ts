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
  /** For every connection anew, as the next. */
  readonly redisUrl: (() => string) | null;
  readonly databaseUrl: DatabaseUrl;
  /** Most connections of queues in Postgres. */
  readonly connections: number;
  /** How long a store may say nothing until its connection counts as dead. */
  readonly answerWithinMs: number;
  readonly prefix: string;
  /** Errors of connections; they come by the dozen while a store is down, and each is retried. */
  readonly onError: (error: Error) => void;
  /** What queues and workers are traced with; absent or null: nothing. */
  readonly telemetry?: Telemetry | null;
}

const KEEP = { removeOnComplete: { count: 0 }, removeOnFail: { count: 20 } };
/**
 * Milliseconds after which a job is taken up again if its worker could not end it, for example while the store took no
 * writes; a few wake jobs are lost with it.
 */
const STALLED = { lockDuration: 10_000, stalledInterval: 5000 };
/** Milliseconds until a worker repeats what it could not tell the store while that was away. */
const SAY_AGAIN = { runRetryDelay: 1000 };
const REFUSED_AGAIN_MS = 1000;
/**
 * A worker's own command waits for a job for ten seconds at most. If nothing comes for longer than that and the time
 * for an answer, the connection is dead.
 */
const REDIS_BLOCKS_MS = 10_000;

/** BullMQ in Redis where `redisUrl` is set, else in Postgres. */
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
  NOAUTH: 'it wants a password (NOAUTH)',
  WRONGPASS: 'it rejects user or password (WRONGPASS)',
  NOPERM: 'its ACL denies this user a command, a key or the database (NOPERM)',
  ERR: 'it refuses a command (ERR); the log says which',
};

/** The code of an error that Redis replied with; null for any other. */
export function redisCode(error: unknown): string | null {
  if (!(error instanceof ReplyError) || !(error instanceof Error)) return null;
  return /^[A-Z]+/.exec(error.message)?.[0] ?? null;
}

/**
 * A client of the Redis at this URL, which also says whether and how TLS is used. While Redis refuses the URL's
 * database there is no connection, because the driver would go on in the first database, which may be somebody else's.
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

/** What BullMQ reads of INFO where an ACL denies that (`-@dangerous` does): a version whose commands it may use. */
const INFO_DENIED = 'redis_version:6.2.0';

/** BullMQ asks each of its clients for INFO once, and remembers for ever that this was refused. */
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
 * Returns a function that says for each error reply of one connection whether to connect anew. A primary that was made
 * a replica keeps its connections, while what leads to it (a name, an address, a proxy) may lead to the new one by now.
 * True once a second at most, for as long as replies come from a replica.
 */
function leavesReplicas(): (error: Error) => boolean {
  let leftAt = -Infinity;
  return (error) => {
    // Before Redis 7, an error within a script is wrapped in words of its own.
    const isReplica = redisCode(error) === 'READONLY' || /-READONLY /.test(error.message);
    if (!isReplica || performance.now() - leftAt < REFUSED_AGAIN_MS) return false;
    leftAt = performance.now();
    return true;
  };
}

/** A client, and all that BullMQ makes like it, that logs in as the URL says at that moment. */
function openRereadingRedis(url: () => string, options: RedisOptions): Redis {
  const redis = openRedis(url(), { ...options, lazyConnect: true, reconnectOnError: leavesReplicas() });
  answerInfo(redis);
  const connect = redis.connect.bind(redis);
  redis.connect = (callback) => {
    // Nobody hears an error from here where the driver connects again: no file is read.
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
    // BullMQ wants commands of a worker to wait for the connection rather than fail; `add` is bounded by the caller.
    maxRetriesPerRequest: null,
    retryStrategy: (n) => Math.min(5000, 200 * n),
    keepAlive: KEEP_ALIVE_MS,
    // After a command: what is not answered is sent again on a new connection.
    socketTimeout: REDIS_BLOCKS_MS + answerWithinMs,
  });
  // What a connection was refused with; asked in vain, Redis says nothing until the next one is tried.
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
      // A write, because a Redis without memory still answers PING but takes no job. One at a time, because the driver
      // keeps what is asked of an absent Redis for as long as that is away.
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
  // What BullMQ would make a connection of; it is given one.
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
    // Postgres keeps what was committed: nothing to put back after an outage.
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
 * A worker that its store refuses asks for the next job again after a second. BullMQ's own asks at once, hundreds of
 * times a second where the store takes no writes.
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
