import { EventEmitter } from 'node:events';
import {
  assertSchemaCompatibility,
  type BackendFactory,
  LATEST_SCHEMA_VERSION,
  PostgresConnection,
  PostgresQueueBackend,
  runMigrations,
  SchemaMigrationRequiredError,
} from 'bullmq';
import pg from 'pg';
import {
  CONNECT_WITHIN_MS,
  connectAlone,
  type DatabaseUrl,
  KEEP_ALIVE_MS,
  SCAN_WITHIN_MS,
} from '../store/connection/db.ts';
import { applicationName, loneUrl, sessionConnection } from '../store/connection/session.ts';
import { QUEUE_SCHEMA } from '../store/setup/occupied.ts';

/** Shared resources of all queues and workers of a process whose queues are in Postgres. */
export interface PostgresQueues {
  readonly pool: pg.Pool;
  /** Creates the access to the store for a queue or a worker of BullMQ. */
  readonly backendOf: BackendFactory<PostgresQueueBackend, object>;
  /** Makes a worker of this process that waits for a job of this queue check for one. */
  readonly wake: (queue: string) => void;
  readonly close: () => Promise<void>;
}

interface Options {
  readonly databaseUrl: DatabaseUrl;
  readonly connections: number;
  readonly answerWithinMs: number;
  readonly onError: (error: Error) => void;
}

/**
 * Creates one small pool for all queues and workers of a process. BullMQ itself opens a pool for each of them, and
 * for each one more connection that listens for jobs: 30 and more in all. Here no connection listens. A worker asks
 * when its next scheduled job is due, or after five seconds, and is told of jobs that this process adds.
 */
export function createPostgresQueues({
  databaseUrl,
  connections,
  answerWithinMs,
  onError,
}: Options): PostgresQueues {
  const present = typeof databaseUrl === 'string' ? () => databaseUrl : databaseUrl;
  const { ssl, options } = sessionConnection(present());
  const pool = new pg.Pool({
    max: connections,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    // A statement that takes longer fails, and the pool closes its connection.
    query_timeout: answerWithinMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    application_name: applicationName('catalog-mirror queues', present()),
    // A pooler may drop the options with which a session starts, but not this. The pool waits for it, although its
    // types do not say so.
    onConnect: (client) => client.query(`set search_path = ${QUEUE_SCHEMA}`) as unknown as void,
    Client: class extends pg.Client {
      constructor(config?: pg.ClientConfig) {
        super({
          ...config,
          // When the pool calls this, nobody catches an error, so no file is read.
          connectionString: loneUrl(present()),
          ssl,
          // BullMQ's statements name no schema. The last of two settings counts.
          options: `${options} -c search_path=${QUEUE_SCHEMA}`,
        });
      }
    },
  });
  pool.on('error', onError);
  const connection = new SharedConnection(pool);
  return {
    pool,
    backendOf: (name, opts) =>
      new PostgresQueueBackend(connection, name, { ...opts, connection: pool }, false),
    wake: (queue) => connection.wake(queue),
    close: () => pool.end(),
  };
}

/** Where BullMQ records the version of its tables, and which version it needs. */
export const QUEUE_TABLES = { ledger: `${QUEUE_SCHEMA}.migration`, version: LATEST_SCHEMA_VERSION };

/** Creates or updates BullMQ's tables. If they are up to date, this needs no right to create anything. */
export async function prepareTables(databaseUrl: DatabaseUrl): Promise<void> {
  const client = await connectAlone(databaseUrl, { application_name: 'catalog-mirror queues' });
  client.answers.withinMs = SCAN_WITHIN_MS;
  try {
    if (!(await tablesAreCurrent(client))) await runMigrations(client, QUEUE_SCHEMA);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Returns whether BullMQ's tables exist, in the version that it needs. */
async function tablesAreCurrent(client: Pick<pg.ClientBase, 'query'>): Promise<boolean> {
  try {
    return (await assertSchemaCompatibility(client, QUEUE_SCHEMA)) >= QUEUE_TABLES.version;
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError) return false;
    throw error;
  }
}

/** BullMQ's channel for jobs added to any queue. */
const JOBS = 'bullmq_jobs';

/**
 * Serves BullMQ as its connection, with a pool that is not its own, and with an emitter of what this process adds
 * instead of a listening session. BullMQ's own connection remembers for ever that its first statement failed; this
 * one is always ready, and each statement finds out for itself.
 */
class SharedConnection extends PostgresConnection {
  override readonly schema = QUEUE_SCHEMA;
  readonly #teller = new Teller();

  wake(queue: string): void {
    this.#teller.emit('notification', { channel: JOBS, payload: queue });
  }

  override waitUntilReady(): Promise<void> {
    return Promise.resolve();
  }

  override getListenClient(): ReturnType<PostgresConnection['getListenClient']> {
    return Promise.resolve(this.#teller);
  }

  /** False, so that BullMQ lets no worker wait for an hour. */
  override get hasListenClientKeepAlive(): boolean {
    return false;
  }
}

class Teller extends EventEmitter {
  query(): Promise<{ rows: never[] }> {
    return Promise.resolve({ rows: [] });
  }
}
