import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import { inject } from 'vitest';
import { untilCaughtUp } from '../../src/cli/run.ts';
import { type Config, loadConfig } from '../../src/config/config.ts';
import { type App, startApp } from '../../src/daemon/app.ts';
import { type Waits, WAITS } from '../../src/daemon/database.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/index.ts';
import { connect, type Sql } from '../../src/store/connection/db.ts';
import { refreshAll } from '../../src/store/sellers/refresh.ts';
import { createLogger, type Log } from '../../src/telemetry/log/logger.ts';
import { createDatabase, type TestDatabase } from './db.ts';

export type Backend = 'postgres' | 'redis';

/** Returns the queue backends available here; Redis only if one answers. For describe.each. */
export function backends(): Backend[] {
  return inject('redisUrl') === null ? ['postgres'] : ['postgres', 'redis'];
}

export type LogLine = Record<string, unknown> & { event: string };

/** Settings with which a fill takes a second and nothing comes due by itself; tests change what they are about. */
export const QUICK: Readonly<Record<string, string>> = {
  DATABASE_POOL_MAX: '5',
  PARTNER_RATE_LIMIT: '100000',
  PARTNER_RATE_SHARE: '1',
  PARTNER_TIMEOUT: '5s',
  PARTNER_BACKOFF: '1s',
  DELTA_INTERVAL: '1h',
  DEFERRED_INTERVAL: '300ms',
  ERROR_INTERVAL: '300ms',
  LIVE_INTERVAL: '1h',
  HTTP_PORT: '0',
  LOG_LEVEL: 'debug',
};

const KNOCK_EVERY_MS = 100;

export interface StackOptions {
  /** Where the queues are; by default in Redis, if there is one. */
  readonly backend?: Backend;
  /** What the first daemon finds; migrated by default. */
  readonly database?: 'empty' | 'migrated';
  readonly sandbox?: SandboxOptions;
  readonly env?: Readonly<Record<string, string>>;
  /** Reads the files of `NAME_FILE` variables; by default there are none. */
  readonly readFile?: (path: string) => string;
}

/** A sandbox and a database, on which daemons can be started and stopped. */
export interface Stack extends AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly sql: Sql;
  readonly databaseUrl: string;
  readonly env: Readonly<Record<string, string>>;
  readonly logs: LogLine[];
  /** Starts a daemon in this process (a replica if one is running). */
  start(env?: Readonly<Record<string, string>>, waits?: Waits): Promise<App>;
  /** Starts a daemon, waits until nothing is due, and stops it. */
  once(timeoutMs?: number): Promise<void>;
  /** Waits until the running daemons have nothing due. */
  caughtUp(timeoutMs?: number): Promise<void>;
  /** Makes everything due, as time would: live SKUs, metadata and all else. */
  everythingDue(): Promise<void>;
}

/** A sandbox limit so high that only tests about the limit meet it, and an account with nothing but the catalog. */
const NO_LIMIT: SandboxOptions = { rateLimit: 1_000_000, orders: 0, listings: 0, foreignOrders: 0 };

export async function createStack(options: StackOptions = {}): Promise<Stack> {
  const sandbox = await startSandbox({ ...NO_LIMIT, ...options.sandbox });
  const database: TestDatabase = await createDatabase(options.database ?? 'migrated');
  const sql = connect(database.url, { max: 4 });
  const apps = new Set<App>();
  const logs: LogLine[] = [];
  let log: Log | null = null;
  const readFile = options.readFile ?? noFiles;
  const redisUrl = options.backend === 'postgres' ? null : inject('redisUrl');
  const env = {
    ...QUICK,
    ...(redisUrl === null ? {} : { REDIS_URL: redisUrl }),
    QUEUE_PREFIX: `test-${randomBytes(6).toString('hex')}`,
    DATABASE_URL: database.url,
    PARTNER_BASE_URL: sandbox.url,
    PARTNER_API_KEY: sandbox.apiKey,
    PARTNER_SECRET: sandbox.secret,
    ...options.env,
  };

  async function start(more: Readonly<Record<string, string>> = {}, waits: Waits = WAITS): Promise<App> {
    const config: Config = loadConfig({ ...env, ...more }, readFile);
    log = logTo(logs, config);
    const app = await startApp(config, log, systemClock, undefined, waits);
    const tracked = {
      ...app,
      async stop() {
        apps.delete(tracked);
        await app.stop();
      },
    };
    apps.add(tracked);
    return tracked;
  }

  async function caughtUp(timeoutMs = 60_000): Promise<void> {
    const [app] = apps;
    if (app === undefined || log === null) throw new Error('no daemon is running');
    const over = new AbortController();
    const knocking = keepKnocking(app, over.signal);
    const code = await untilCaughtUp({ sql, wake: app.wake }, log, systemClock, timeoutMs);
    over.abort();
    await knocking;
    if (code !== 0) throw new Error(`not caught up: ${JSON.stringify(logs.slice(-12), null, 1)}`);
  }

  return {
    sandbox,
    sql,
    databaseUrl: database.url,
    env,
    logs,
    start,
    caughtUp,
    async once(timeoutMs) {
      const app = await start();
      try {
        await caughtUp(timeoutMs);
      } finally {
        await app.stop();
      }
    },
    async everythingDue() {
      await refreshAll(sql, 'prices');
      await Promise.all([...apps].map((app) => app.wake('reprice')));
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...apps].map((app) => app.stop()));
      await sql.end({ timeout: 2 });
      await sandbox.close();
      await database.drop();
    },
  };
}

/** Wakes the daemon continuously, so that due work starts at once, not up to a second later by the schedule. */
async function keepKnocking(app: App, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await app.wake('reprice');
    await systemClock.sleep(KNOCK_EVERY_MS, signal);
  }
}

function noFiles(path: string): string {
  throw new Error(`no file ${path} in this test`);
}

function logTo(lines: LogLine[], config: Config) {
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split('\n'))
        if (line !== '') lines.push(JSON.parse(line) as LogLine);
      done();
    },
  });
  return createLogger({ ...config.log, secrets: config.secrets, destination });
}
