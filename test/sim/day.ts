import { createClockWatch, type ClockWatch } from '../../src/daemon/clock-watch.ts';
import { createHealth, type HealthReader } from '../../src/daemon/health.ts';
import { handlersOf } from '../../src/daemon/sync.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { createCircuitBreaker } from '../../src/pace/circuit-breaker.ts';
import { createPacer } from '../../src/pace/pacer.ts';
import type { PartnerClient } from '../../src/partner/client.ts';
import { PartnerError, type RequestOutcome, type Route } from '../../src/partner/errors.ts';
import type { JobQueue, JobWorker, QueueBackend } from '../../src/queues/backend.ts';
import { schedules } from '../../src/queues/jobs.ts';
import { createRunner } from '../../src/queues/runner.ts';
import { createStorePause } from '../../src/queues/store-pause.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { dueNow } from '../../src/store/ledger/due.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { createTelemetry, type Telemetry } from '../../src/telemetry/telemetry.ts';
import { type SettingsEnv, settingsWith } from '../support/settings.ts';
import type { LogLine } from '../support/stack.ts';
import { CALM } from './fortune.ts';
import type { Pending, Raw } from './partner.ts';
import type { Rig } from './rig.ts';
import type { SimTime } from './time.ts';
import type { Worker } from './worker.ts';

const MINUTE = 60_000;
const LIMITS = { maxPerWindow: 120, windowMs: MINUTE, backoffMs: MINUTE };
const NEVER = new AbortController().signal;
/** How often every job is triggered and the market checked by default. */
const WAKE_MS = MINUTE;
const SNAPSHOT_MS = 5 * MINUTE;
/** Jobs that hardly ever have anything to do: their wake jobs for a day take longer than all the rest. */
const SELDOM: ReadonlySet<string> = new Set(['metadata', 'maintenance', 'live-plan']);
const SELDOM_MS = 5 * MINUTE;
const ANSWER_MS = 300;

/** What is wrong with the world. A test changes it as it likes. */
export interface Weather {
  /** Returns what the partner answers instead of its own answer. */
  answer: (pending: Pending) => Raw | null;
  /** Returns the error of a statement that goes to Postgres. */
  statement: (text: string) => Error | null;
  /** Decides which jobs do not come, or do not start. */
  missing: (job: string) => boolean;
}

type Process = (job: { name: string }) => Promise<unknown>;

/**
 * One daemon assembled like in app.ts (runner, handlers, pacer, telemetry, logger), on the simulation's clock,
 * database and partner. Only the queues' store is a plain table of wake jobs. `lines` contains every line that it
 * logs.
 */
export class Day {
  readonly lines: LogLine[] = [];
  readonly weather: Weather = { answer: () => null, statement: () => null, missing: () => false };
  /** What the daemon reports about itself and the mirror. */
  readonly health: HealthReader;
  readonly sql: Sql;
  readonly clock: Clock;
  /** How many moves the market makes before each build, and how often. */
  market = { moves: 3, everyMs: SNAPSHOT_MS };
  /** How often every job is triggered. */
  wakeMs = WAKE_MS;
  /** Called with each answer that the daemon gets. */
  onAnswer: (route: Route, raw: Raw) => void = () => undefined;
  readonly #rig: Rig;
  readonly #worker: Worker;
  readonly #processes = new Map<string, Process>();
  readonly #triggered = new Set<string>();
  readonly #start: () => Promise<void>;
  readonly #clocks: ClockWatch;
  #snapshotAt = 0;
  #seldomAt = 0;

  constructor(rig: Rig, level: 'info' | 'debug', settings: SettingsEnv = REAL) {
    this.#rig = rig;
    const [worker, base] = rig.worker(
      0,
      { alive: true, statements: 0, fortune: CALM, host: { ahead: 0 } },
      settings,
      false,
    );
    this.#worker = worker;
    const clock = dayClock(rig.time);
    const log = createLogger({
      level,
      secrets: () => [],
      destination: {
        write: (text: string) =>
          this.lines.push({ ...(JSON.parse(text) as LogLine), at: new Date(rig.time.at).toISOString() }),
      },
    });
    const metrics = createMetrics({ version: 'test' });
    const telemetry = createTelemetry({
      log,
      metrics,
      clock,
      backlog: () => dueNow(rig.sql),
      queuesInPostgres: true,
    });
    const sql = stormy(base.sql, this.weather);
    const config = settingsWith(settings);
    const breaker = createCircuitBreaker(clock, LIMITS);
    const pause = createStorePause(clock, telemetry.onStore);
    const clocks = createClockWatch(sql, clock, telemetry.onClock);
    const ctx = {
      ...base,
      sql,
      clock,
      client: observed(base.client, clock, telemetry),
      pacer: createPacer(sql, clock, LIMITS, telemetry.pace, breaker, () => 0.5),
      emit: telemetry.onSync,
    };
    const handlers = handlersOf(
      { config, sync: ctx, telemetry, pause },
      { stopping: NEVER, hard: NEVER, wake: (task) => runner.wake(task) },
    );
    const backend = this.#backend();
    const runner = createRunner({
      backend,
      sql: rig.sql,
      clock,
      schedules: schedules(5 * MINUTE),
      handlers,
      onTaken: telemetry.onTaken,
      onJob: telemetry.onJob,
      onError: telemetry.onQueueError,
      onFault: telemetry.onFault,
    });
    this.#start = () => runner.start();
    this.#clocks = clocks;
    // Readers wait for no worker.
    this.sql = stormy(rig.sql, this.weather);
    this.clock = clock;
    const parts = { config, sync: { sql: this.sql, clock }, backend, log, metrics, pause, breaker, clocks };
    this.health = createHealth(parts, {
      lastJobAt: () => runner.lastJobAt(),
      // Jobs come once a minute here instead of once a second.
      silentMs: () => Math.max(0, runner.silentMs() - WAKE_MS),
    });
  }

  /**
   * Lets `hours` pass: the market moves and is built every five minutes (`market`), and jobs are triggered every
   * minute, some more rarely.
   */
  async pass(hours: number): Promise<void> {
    const { time, partner } = this.#rig;
    if (this.#processes.size === 0) await this.#start();
    const end = time.at + hours * 60 * MINUTE;
    while (time.at < end) {
      const next = time.at + this.wakeMs;
      await this.#clocks.check().catch(() => {});
      if (time.at - this.#snapshotAt >= this.market.everyMs) {
        this.#snapshotAt = time.at;
        partner.world.step(this.market.moves);
        partner.world.buildSnapshot();
      }
      const all = time.at - this.#seldomAt >= SELDOM_MS;
      if (all) this.#seldomAt = time.at;
      for (const { job } of schedules(5 * MINUTE)) if (all || !SELDOM.has(job)) await this.#run(job);
      for (const job of this.#triggered) await this.#run(job);
      this.#triggered.clear();
      await time.pass(Math.max(1, next - time.at));
    }
  }

  /** Counts the lines from the nth on by level and event, the most frequent first. */
  tally(from = 0): [string, number][] {
    const counts = new Map<string, number>();
    for (const { event, level } of this.lines.slice(from)) {
      const key = `${String(level)} ${event}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts].toSorted(([, a], [, b]) => b - a);
  }

  async #run(job: string): Promise<void> {
    const { partner, time } = this.#rig;
    const run = this.#processes.get(job);
    if (run === undefined) throw new Error(`nobody works on ${job}`);
    if (this.weather.missing(job)) return;
    await time.pass(1);
    await this.#worker.start(async () => void (await run({ name: job })));
    while (this.#worker.busy) {
      const [pending] = partner.pending;
      if (pending === undefined) throw new Error(`${job} waits for nothing`);
      await time.pass(ANSWER_MS);
      this.#clocks.partnerAnswered(new Date(time.at));
      const answer = this.weather.answer(pending) ?? pending.compute();
      this.onAnswer(pending.route, answer);
      await pending.deliver(answer);
    }
  }

  /** Queues that only note which job was triggered. */
  #backend(): QueueBackend {
    const queue: JobQueue = {
      add: (name) => Promise.resolve(this.#triggered.add(name)),
      upsertJobScheduler: () => Promise.resolve(),
      getJobScheduler: () => Promise.resolve(undefined),
      removeJobScheduler: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
    const worker: JobWorker = { run: () => Promise.resolve(), close: () => Promise.resolve() };
    return {
      kind: 'postgres',
      prepare: () => Promise.resolve(),
      openQueue: () => Promise.resolve(queue),
      openWorker: (_, process) => {
        for (const { job } of schedules(5 * MINUTE)) this.#processes.set(job, process as unknown as Process);
        return Promise.resolve(worker);
      },
      onReconnect: () => undefined,
      ping: () => Promise.resolve(),
      describe: () => '',
      close: () => Promise.resolve(),
    };
  }
}

/** The defaults of the configuration, where the rig has others. */
const REAL: SettingsEnv = { DELTA_INTERVAL: '5m', SWEEP_MIN_AGE: '30m' };

/**
 * The simulation's clock. A sleep that only its own signal ends early is the renewal of a lease, and ends with its
 * run.
 */
function dayClock(time: SimTime): Clock {
  return {
    now: () => time.now(),
    monotonic: () => time.monotonic(),
    async sleep(ms, signal) {
      if (signal === undefined || signal === NEVER) return await time.pass(ms);
      if (signal.aborted) return;
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve, { once: true });
      });
    },
  };
}

/** Returns the same client, whose requests are reported like those of the real one. */
function observed(client: PartnerClient, clock: Clock, { onRequest }: Telemetry): PartnerClient {
  async function told<T>(route: Route, waitedMs: number | undefined, ask: () => Promise<T>, skus?: number) {
    const startedAt = clock.monotonic();
    const ended = (outcome: RequestOutcome, status: number | null) =>
      onRequest({ route, outcome, ms: clock.monotonic() - startedAt, waitedMs, skus, status, date: null });
    try {
      const answer = await ask();
      ended('ok', 200);
      return answer;
    } catch (error) {
      if (error instanceof PartnerError) ended(error.kind, error.status ?? null);
      throw error;
    }
  }
  return {
    ...client,
    manifest: (permit) => told('manifest', permit.waitedMs, () => client.manifest(permit)),
    delta: (permit, since) => told('delta', permit.waitedMs, () => client.delta(permit, since)),
    bulk: (permit, skus) => told('bulk', permit.waitedMs, () => client.bulk(permit, skus), skus.length),
  };
}

/** Returns the same database, subject to the weather. */
function stormy(sql: Sql, weather: Weather): Sql {
  return new Proxy(sql, {
    apply(target, self, args: unknown[]) {
      const text = Array.isArray(args[0]) && 'raw' in args[0] ? args[0].join('?') : '';
      const error = text === '' ? null : weather.statement(text);
      const query = Reflect.apply(target as never, self, args) as PromiseLike<unknown>;
      if (error === null) return query;
      // A statement is sent when it is awaited, and a part of another one never is.
      const failed: Pick<Promise<unknown>, 'then' | 'catch' | 'finally'> = {
        // oxlint-disable-next-line unicorn/no-thenable -- a query is one
        then: (...handlers) => Promise.reject(error).then(...handlers),
        catch: (handler) => Promise.reject(error).catch(handler),
        finally: (handler) => Promise.reject(error).finally(handler),
      };
      return Object.assign(query, failed);
    },
    get(target, key) {
      const error = key === 'begin' ? weather.statement('begin') : null;
      return error === null ? (Reflect.get(target, key) as unknown) : () => Promise.reject(error);
    },
  });
}
