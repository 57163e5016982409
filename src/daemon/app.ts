import type { Config } from '../config/config.ts';
import { type Clock, within } from '../lib/clock.ts';
import { mirrorName } from '../lib/host-name.ts';
import { createCircuitBreaker } from '../pace/circuit-breaker.ts';
import { paceLimits } from '../pace/policy.ts';
import { schedules } from '../queues/jobs.ts';
import { createRunner, type Runner } from '../queues/runner.ts';
import { createStorePause } from '../queues/store-pause.ts';
import { leaveReadOnly, type Sql, statementsAtWork } from '../store/connection/db.ts';
import { dueNow } from '../store/ledger/due.ts';
import { endCallPause, type TaskName } from '../store/ledger/tasks.ts';
import { tellingOfLocks } from '../store/status/holders.ts';
import type { Log } from '../telemetry/log/logger.ts';
import { rememberProblems } from '../telemetry/log/problems.ts';
import { createScrubber } from '../telemetry/log/scrub.ts';
import { createMetrics } from '../telemetry/metrics/metrics.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import { openTracing } from '../telemetry/traces/tracing.ts';
import { VERSION } from '../version.ts';
import { createClockWatch } from './clock-watch.ts';
import {
  migrateMirror,
  needingConnections,
  openMirror,
  openQueues,
  type OnStop,
  type Waits,
  WAITS,
} from './database.ts';
import { createHealth, type HealthReader } from './health.ts';
import { type HttpServer, pageUrl, startHttpServer, tryListening } from './http-server.ts';
import { keepNames } from './learned-names.ts';
import type { Parts } from './parts.ts';
import { createStatusPages } from './status-page.ts';
import { createSettingsWatch, storeOwnSettings } from './stored-settings.ts';
import { createSync, handlersOf } from './sync.ts';
import { askPostgres, every, startWatches } from './watches.ts';

export interface App {
  readonly sql: Sql;
  readonly databaseUrl: string;
  readonly httpPort: number;
  /** Lets a task run soon, if it is due, without waiting for its schedule. */
  readonly wake: (task: TaskName) => Promise<void>;
  /**
   * Resolves when only another process can continue: with null if no job has ended for minutes although the stores
   * answer, or if a later version has migrated the database; with the error that also refuses a start if the mirror
   * has become another account's.
   */
  readonly stalled: Promise<Error | null>;
  /**
   * Stops taking work, gives work under way some seconds, and disposes of everything in reverse order of its start.
   */
  stop(): Promise<void>;
}

/** How long requests under way get at a stop. Later answers are lost, and their SKUs stay due. */
const GRACE_MS = 4000;
/** Process managers grant ten seconds. Whatever is not closed by then is left to the end of the process. */
const STOP_WITHIN_MS = 8000;
/** The least time that each part has to close, however long others took. */
const CLOSE_MIN_MS = 250;
/** How long a start that is stopped half-way has to end in good order. */
const GIVE_UP_WITHIN_MS = 3000;
const RESTORE_EVERY_MS = 10_000;
/** Well below the time within which due tasks must be under way, whatever becomes of the queues. */
const RUN_OVERDUE_EVERY_MS = 2500;

/**
 * Starts the daemon: database, migrations, partner client, queues, HTTP. They start in this order because BullMQ's
 * Postgres backend stays dead if its database is down at construction, and spins if its tables are missing. `giveUp`
 * ends the wait for the database.
 */
export async function startApp(
  config: Config,
  log: Log,
  clock: Clock,
  giveUp?: AbortSignal,
  waits: Waits = WAITS,
): Promise<App> {
  const disposal: (() => Promise<unknown>)[] = [];
  const stop = once(async () => {
    const over = clock.monotonic() + STOP_WITHIN_MS;
    for (const dispose of disposal.toReversed()) {
      const left = Math.max(CLOSE_MIN_MS, over - clock.monotonic());
      await within(dispose(), left).catch((error: unknown) =>
        log.warn({ event: 'app.dispose-failed', err: error }),
      );
    }
  });
  const over = new AbortController();
  try {
    const onStop: OnStop = (dispose) => disposal.push(dispose);
    const starting = start({ config, plainLog: log, clock, onStop, giveUp, waits });
    const started = await (giveUp === undefined
      ? starting
      : Promise.race([starting, givenUp(clock, giveUp, over.signal)]));
    return Object.assign(started, { stop });
  } catch (error) {
    await stop();
    throw error;
  } finally {
    over.abort();
  }
}

/**
 * Rejects if a start has been told to give up and has not ended by itself for some seconds, because a store may not
 * respond. Stops waiting once the start is `over`.
 */
async function givenUp(clock: Clock, giveUp: AbortSignal, over: AbortSignal): Promise<never> {
  await new Promise((resolve) => {
    giveUp.addEventListener('abort', resolve, { once: true, signal: over });
  });
  await clock.sleep(GIVE_UP_WITHIN_MS, over);
  throw new Error('the start was given up');
}

interface StartParts {
  readonly config: Config;
  readonly plainLog: Log;
  readonly clock: Clock;
  readonly onStop: OnStop;
  readonly giveUp: AbortSignal | undefined;
  readonly waits: Waits;
}

async function start(given: StartParts): Promise<Omit<App, 'stop'>> {
  const { config, plainLog, clock, onStop, giveUp, waits } = given;
  const tracing = await openTracing(config, plainLog, clock);
  onStop(() => tracing.close());
  const { log, problems } = rememberProblems(tracing.logOf(plainLog), createScrubber(config.secrets), clock);
  const metrics = createMetrics({ version: VERSION, mirror: mirrorName(config.log.mirrorName) });
  const limits = paceLimits(config);

  const { database, sql } = await needingConnections(config, () =>
    openMirror(config, { log, clock, onStop, giveUp, waits }),
  );
  const queuesInPostgres = config.queues.redisUrl === null;
  const telemetry = createTelemetry({ log, metrics, clock, backlog: () => dueNow(sql), queuesInPostgres });
  const telling = <T>(work: () => Promise<T>) => tellingOfLocks(sql, telemetry.onLocks, work);
  const pause = createStorePause(clock, telemetry.onStore, () => leaveReadOnly(sql));
  const onQueueError = (error: Error) => (telemetry.onQueueError(error), pause.queuesFail(error));
  // Daemons of the previous version end once the tables are of a later one.
  await tryListening(config.http);
  const { number, backend } = await needingConnections(config, async () => {
    const registered = await telling(() => migrateMirror(config, sql, database.url, { log, onStop }));
    // The operator who starts it may have removed the cause of failed calls.
    await telling(() => endCallPause(sql, null));
    const reporting = { onError: onQueueError, telemetry: tracing.queues };
    const queues = await openQueues(config, { ...reporting, databaseUrl: database.url, onStop, waits });
    return { number: registered, backend: queues };
  });

  const breaker = createCircuitBreaker(clock, limits);
  const clocks = createClockWatch(sql, clock, telemetry.onClock);
  // Before anything relies on a time that a wrong clock has written.
  await telling(() => clocks.check());
  const names = keepNames(sql, clock);
  await telling(() => names.read());
  const own = { config, clock, log, problems, metrics, telemetry, pause, backend, breaker, clocks, names };
  const sync = createSync(own, { sql, databaseUrl: database.url, limits, tracer: tracing.tracer, onStop });
  const parts: Parts = { ...own, sync };
  const runner = prepareRunner(parts, onStop);
  const postgresAnswers = () => askPostgres(database.url);
  const health = createHealth(parts, runner);
  const atWork = () => statementsAtWork(sql);
  const http = await openHttp(parts, health);
  onStop(() => http.close());
  // Only when the port is this daemon's: a start that fails leaves the settings of the others.
  await telling(() => storeOwnSettings({ config, sql, log, number }));
  await startRunner(parts, runner, onStop);
  const settings = createSettingsWatch({ config, sql, log, number });
  const stalled = startWatches({ ...parts, postgresAnswers, atWork, health, settings }, runner, onStop);
  log.info({
    event: 'app.started',
    version: VERSION,
    queues: backend.kind,
    host: config.http.host,
    port: http.port,
    ...(config.http.statusPage && { page: pageUrl(config.http.host, http.port) }),
  });
  return {
    sql,
    databaseUrl: database.url(),
    stalled,
    httpPort: http.port,
    wake: (task) => runner.wake(task),
  };
}

/** Starts the endpoints for machines, and the status page unless it is switched off. */
async function openHttp(parts: Parts, health: HealthReader): Promise<HttpServer> {
  const { http, access } = parts.config;
  const pages = http.statusPage ? { pages: createStatusPages(parts, health) } : {};
  return await startHttpServer({ ...http, ...access, ...health, ...pages, log: parts.log });
}

function prepareRunner(parts: Parts, onStop: OnStop): Runner {
  const { config, sync, backend, telemetry, pause } = parts;
  const stopping = new AbortController();
  const hard = new AbortController();
  const { intervals } = config;
  const runner: Runner = createRunner({
    backend,
    sql: sync.sql,
    clock: sync.clock,
    schedules: schedules(Math.min(intervals.deltaMs, intervals.manifestMs, intervals.catalogCheckMs)),
    handlers: handlersOf(parts, {
      stopping: stopping.signal,
      hard: hard.signal,
      wake: (task) => runner.wake(task),
    }),
    onTaken: () => (pause.queuesWork(), telemetry.onTaken()),
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
  return runner;
}

async function startRunner(parts: Parts, runner: Runner, onStop: OnStop): Promise<void> {
  const { telemetry } = parts;
  await runner.start();
  every(RESTORE_EVERY_MS, parts, onStop, () => runner.restoreSchedules().catch(telemetry.onQueueError));
  every(RUN_OVERDUE_EVERY_MS, parts, onStop, () => runner.runOverdue());
}

function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= work());
}
