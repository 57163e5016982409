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

/** The means of all queues and workers of a process whose queues are in Postgres. */
export interface PostgresQueues {
  readonly pool: pg.Pool;
  /** What BullMQ makes a queue's or a worker's access to the store with. */
  readonly backendOf: BackendFactory<PostgresQueueBackend, object>;
  /** Lets a worker of this process that waits for a job of this queue look for it. */
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
 * All queues and workers of a process share one small pool. BullMQ by itself opens a pool for each of them, and for
 * each one more connection that listens for jobs: 30 and more in all. Here no connection listens. A worker asks when
 * its next scheduled job is due, or after five seconds, and this process tells it of jobs that it adds.
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
    // Where a pooler drops what a session starts with, this arrives all the same. The pool waits for it, which its
    // types do not say.
    onConnect: (client) => client.query(`set search_path = ${QUEUE_SCHEMA}`) as unknown as void,
    Client: class extends pg.Client {
      constructor(config?: pg.ClientConfig) {
        super({
          ...config,
          // The pool calls this where nobody hears an error: no file is read.
          connectionString: loneUrl(present()),
          ssl,
          // BullMQ's statements name no schema. Of what is set twice, the last counts.
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

/** Where BullMQ notes the version of its tables, and which one it wants. */
export const QUEUE_TABLES = { ledger: `${QUEUE_SCHEMA}.migration`, version: LATEST_SCHEMA_VERSION };

/** Creates or updates BullMQ's tables; where they are up to date it needs no right to create anything. */
export async function prepareTables(databaseUrl: DatabaseUrl): Promise<void> {
  const client = await connectAlone(databaseUrl, { application_name: 'catalog-mirror queues' });
  client.answers.withinMs = SCAN_WITHIN_MS;
  try {
    if (!(await tablesAreCurrent(client))) await runMigrations(client, QUEUE_SCHEMA);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Whether BullMQ's tables are there, and as this version of it wants them. */
async function tablesAreCurrent(client: Pick<pg.ClientBase, 'query'>): Promise<boolean> {
  try {
    return (await assertSchemaCompatibility(client, QUEUE_SCHEMA)) >= QUEUE_TABLES.version;
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError) return false;
    throw error;
  }
}

/** BullMQ's channel for what is added to any queue. */
const JOBS = 'bullmq_jobs';

/**
 * What BullMQ takes for its connection: a pool that is not its own, and, in place of a session that listens, an emitter
 * that tells what this process adds. BullMQ's own connection remembers for ever that its first statement failed; this
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

  /** Then BullMQ lets no worker wait for an hour. */
  override get hasListenClientKeepAlive(): boolean {
    return false;
  }
}

class Teller extends EventEmitter {
  query(): Promise<{ rows: never[] }> {
    return Promise.resolve({ rows: [] });
  }
}
