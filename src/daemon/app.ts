import type { Config } from '../config/config.ts';
import type { Clock } from '../lib/clock.ts';
import { createPartnerClient, type PartnerClient } from '../partner/client.ts';
import { AUTH_CLASS, type PartnerErrorKind } from '../partner/errors.ts';
import { paceLimits, sendsPerMinute } from '../pace/policy.ts';
import { schedules } from '../queues/jobs.ts';
import { createRunner, type Runner } from '../queues/runner.ts';
import { createStorePause } from '../queues/store-pause.ts';
import { handlersOf } from './tasks.ts';
import type { Sql } from '../store/db.ts';
import { dueNow } from '../store/due.ts';
import { MemberWatch } from '../store/answer/members.ts';
import { readLockHolders } from '../store/lock-holders.ts';
import { endCallPause, type TaskName } from '../store/tasks.ts';
import type { SyncContext } from '../sync/context.ts';
import { createCircuitBreaker } from '../pace/circuit-breaker.ts';
import { createPacer } from '../pace/pacer.ts';
import { createTelemetry, type Telemetry } from '../telemetry/telemetry.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { createMetrics } from '../telemetry/metrics/metrics.ts';
import { rememberProblems } from '../telemetry/log/problems.ts';
import { createScrubber } from '../telemetry/log/scrub.ts';
import { type HttpServer, startHttpServer } from './http-server.ts';
import { createHealth } from './health.ts';
import type { Parts } from './parts.ts';
import { createStatusPages } from './status-page.ts';
import { migrateMirror, openMirror, openQueues, type OnStop } from './database.ts';
import { VERSION } from '../version.ts';

export interface App {
  readonly sql: Sql;
  readonly databaseUrl: string;
  readonly httpPort: number;
  /** Lets a task run soon, if its time has come, without waiting for its schedule. */
  readonly wake: (task: TaskName) => Promise<void>;
  /** Stops taking work, gives what is under way some seconds, and disposes of everything in reverse order of its start. */
  stop(): Promise<void>;
}

/** Requests under way at a stop get this long; what they answer is then lost and stays due. */
const GRACE_MS = 4000;
const RESTORE_EVERY_MS = 10_000;
const WATCH_LOCKS_EVERY_MS = 2000;

/**
 * Starts the daemon: database, migrations, partner client, queues, HTTP. In this order, because BullMQ's Postgres backend
 * stays dead when its database is down at construction and spins when its tables are missing. `giveUp` ends the wait for
 * the database.
 */
export async function startApp(config: Config, log: Log, clock: Clock, giveUp?: AbortSignal): Promise<App> {
  const disposal: (() => Promise<unknown>)[] = [];
  const stop = once(async () => {
    for (const dispose of disposal.toReversed()) {
      await dispose().catch((error: unknown) => log.warn({ event: 'app.dispose-failed', err: error }));
    }
  });
  try {
    const started = await start(config, log, clock, (dispose) => disposal.push(dispose), giveUp);
    return Object.assign(started, { stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

async function start(
  config: Config,
  plainLog: Log,
  clock: Clock,
  onStop: OnStop,
  giveUp?: AbortSignal,
): Promise<Omit<App, 'stop'>> {
  const { log, problems } = rememberProblems(plainLog, createScrubber(config.secrets), clock);
  const metrics = createMetrics({ version: VERSION });
  const limits = paceLimits(config);

  const { database, sql } = await openMirror(config, { log, clock, onStop, giveUp });
  const queuesInPostgres = config.queues.redisUrl === null;
  const telemetry = createTelemetry({ log, metrics, clock, backlog: () => dueNow(sql), queuesInPostgres });
  const pause = createStorePause(clock, telemetry.onStore);
  const onQueueError = (error: Error) => {
    telemetry.onQueueError(error);
    pause.queuesFail(error);
  };
  await migrateMirror(config, sql, database.url, onStop);
  // Whoever starts it may have changed what calls failed for.
  await endCallPause(sql, null);
  const backend = await openQueues(config, database.url, onQueueError, onStop);

  const breaker = createCircuitBreaker(clock, limits);
  const rereadCredential = credentialReader(config, log, () => breaker.cleared());
  const client = openClient(config, clock, telemetry.onRequest, rereadCredential);
  onStop(() => client.close());
  const sync: SyncContext = {
    sql,
    databaseUrl: () => database.url,
    client,
    pacer: createPacer(sql, clock, limits, { ...telemetry.pace, afterRefusal: rereadCredential }, breaker),
    clock,
    random: Math.random,
    settings: { ...config, callsPerMinute: sendsPerMinute(limits) },
    emit: telemetry.onSync,
    members: new MemberWatch(),
  };
  const parts: Parts = { config, clock, log, problems, metrics, telemetry, pause, backend, breaker, sync };
  const runner = await startRunner(parts, onStop);
  watchLocks(parts, onStop);
  const http = await openHttp(parts, runner);
  onStop(() => http.close());
  log.info({
    event: 'app.started',
    version: VERSION,
    queues: backend.kind,
    host: config.http.host,
    port: http.port,
  });
  return {
    sql,
    databaseUrl: database.url,
    httpPort: http.port,
    wake: (task) => runner.wake(task),
  };
}

/** Tells who keeps the mirror waiting in Postgres. Where Postgres does not answer, others tell that. */
function watchLocks({ sync: { sql, clock }, telemetry }: Parts, onStop: OnStop): void {
  const stopping = new AbortController();
  const watching = async () => {
    while (!stopping.signal.aborted) {
      const holders = await readLockHolders(sql).catch(() => null);
      if (holders !== null) telemetry.onLocks(holders);
      await clock.sleep(WATCH_LOCKS_EVERY_MS, stopping.signal);
    }
  };
  void watching();
  onStop(async () => stopping.abort());
}

/** Endpoints for machines, and the status page unless it is switched off. */
async function openHttp(parts: Parts, runner: Runner): Promise<HttpServer> {
  const { http, access } = parts.config;
  const health = createHealth(parts, runner);
  const pages = http.statusPage ? { pages: createStatusPages(parts, health) } : {};
  return await startHttpServer({ ...http, ...access, ...health, ...pages, log: parts.log });
}

async function startRunner(parts: Parts, onStop: OnStop): Promise<Runner> {
  const { config, sync, backend, telemetry, pause } = parts;
  const stopping = new AbortController();
  const hard = new AbortController();
  const { intervals } = config;
  const runner: Runner = createRunner({
    backend,
    sql: sync.sql,
    schedules: schedules(Math.min(intervals.deltaMs, intervals.manifestMs, intervals.catalogCheckMs)),
    handlers: handlersOf(parts, {
      stopping: stopping.signal,
      hard: hard.signal,
      wake: (task) => runner.wake(task),
    }),
    onTaken: () => pause.queuesWork(),
    onJob: telemetry.onJob,
    onError: telemetry.onQueueError,
    onFault: telemetry.onFault,
  });
  onStop(async () => {
    stopping.abort();
    const timer = setTimeout(() => hard.abort(), GRACE_MS);
    await runner.stop();
    clearTimeout(timer);
  });
  await runner.start();
  const restoring = setInterval(
    () => void runner.restoreSchedules().catch(telemetry.onQueueError),
    RESTORE_EVERY_MS,
  );
  onStop(async () => clearInterval(restoring));
  return runner;
}

/**
 * Picks a rotated credential up from its files (partner rule 5.4). Read after an answer of the
 * auth class, and again before the next request: a file may be written between the two, or have been read half written.
 */
function credentialReader({ partner }: Config, log: Log, onChange: () => void): () => void {
  return () => {
    // An array, because `||` would skip the second refresh after the first change.
    const changed = [partner.apiKey.refresh(), partner.secret.refresh()].includes(true);
    if (!changed) return;
    log.info({ event: 'credential.changed' });
    onChange();
  };
}

function openClient(
  config: Config,
  clock: Clock,
  observe: Telemetry['onRequest'],
  rereadCredential: () => void,
): PartnerClient {
  const { partner } = config;
  return createPartnerClient({
    baseUrl: new URL(partner.baseUrl),
    credentials: () => ({ apiKey: partner.apiKey.read(), secret: partner.secret.read() }),
    timeoutMs: partner.timeoutMs,
    bodyKey: partner.fields.bulkBodyKey,
    priceFields: partner.fields.price,
    skuField: partner.fields.sku,
    manifestUrlField: partner.fields.manifestUrl ?? undefined,
    snapshotIdField: partner.fields.snapshotId ?? undefined,
    allowInsecure: partner.allowInsecure,
    userAgent: `catalog-mirror/${VERSION}`,
    clock,
    observe(observation) {
      observe(observation);
      if (AUTH_CLASS.has(observation.outcome as PartnerErrorKind)) rereadCredential();
    },
  });
}

function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= work());
}
