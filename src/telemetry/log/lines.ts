import type { Clock } from '../../lib/clock.ts';
import type { PacerEvents } from '../../pace/pacer.ts';
import { refuses } from '../../pace/policy.ts';
import { redisCode } from '../../queues/backend.ts';
import type { StoreEvent } from '../../queues/store-pause.ts';
import type { TaskReport } from '../../queues/task-run.ts';
import type { Notice } from '../../store/connection/db.ts';
import { isLockNotAvailable } from '../../store/connection/locks.ts';
import { REMEDIES } from '../../store/connection/remedies.ts';
import { isConnectionLost, sqlState } from '../../store/connection/sql-errors.ts';
import type { TaskOutcome } from '../../sync/outcome.ts';
import { type Log, throttled } from './logger.ts';
import { createLogThrottle, type LogThrottle } from './throttle.ts';

/** Log lines of the pace; call `passed` for every request that was not refused. */
export function paceLines(
  log: Log,
  throttle: LogThrottle,
  clock: Pick<Clock, 'now'>,
): Required<Pick<PacerEvents, 'backedOff' | 'resumed'>> & { readonly passed: () => void } {
  function over(more: { readonly requestsPerWindow?: number }): void {
    const ended = throttle.over('pace');
    // The back-off may have been another daemon's: its own line is there.
    if (ended === null) {
      if (more.requestsPerWindow !== undefined) log.debug({ event: 'pace.resumed', ...more });
      return;
    }
    const { say, ...facts } = ended;
    throttled(log, 'info', say, { event: 'pace.resumed', ...more, ...facts });
  }
  return {
    backedOff({ outcome, suspected, explained, backoffUntil, refusals, occupancy }) {
      const { say, ...facts } = throttle.again('pace', `${outcome} ${suspected}`);
      throttled(
        log,
        'warn',
        say,
        {
          event: 'pace.silenced',
          outcome,
          suspected,
          backoffUntil: new Date(backoffUntil).toISOString(),
          backoffSeconds: Math.round((backoffUntil - clock.now()) / 1000),
          episodes: refusals,
          ownRequests: occupancy,
          ...facts,
        },
        `${explained ?? 'throttled or refused'}; all requests are paused until backoffUntil, then one is sent as a test`,
      );
    },
    resumed: ({ ceiling }) => over({ requestsPerWindow: Math.round(ceiling) }),
    passed: () => over({}),
  };
}

/** Connection errors of the drivers beside those that mean the end of a connection. */
const AWAY = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'CONNECT_TIMEOUT',
  'CONNECTION_ENDED',
]);

function isAway(error: unknown): boolean {
  return isConnectionLost(error) || AWAY.has(sqlState(error) ?? '');
}

/** The fingerprint of an error: a repetition needs no line of its own. */
function fingerprintOf(error: unknown): string {
  if (isAway(error)) return 'away';
  if (!(error instanceof Error)) return typeof error;
  // Messages of Redis have the hash of the script that met the error, those of BullMQ the number of the job.
  return sqlState(error) ?? redisCode(error) ?? `${error.name} ${error.message.replaceAll(/\d+/g, '#')}`;
}

export interface StoreLines {
  /** Errors of the queues and their connections: they come by the dozen while a store is down. */
  readonly onQueueError: (error: unknown) => void;
  readonly onFault: (job: string, error: unknown) => void;
  readonly onStore: (event: StoreEvent) => void;
  /** A job has ended, not by throwing: what it needs is there, which the queues need not be. */
  readonly worked: (job: string) => void;
  /** A job that is none of this program's. Its name is its owner's, and not told. */
  readonly unknownJob: (queue: string) => void;
  /** The queues have brought a job. */
  readonly onTaken: () => void;
}

/** Lines on Postgres and the queues. `inPostgres`: the queues live there too, and are away with it. */
export function storeLines(log: Log, throttle: LogThrottle, inPostgres: boolean): StoreLines {
  const pausedJobs = new Set<string>();
  let resumed: Extract<StoreEvent, { event: 'store.resumed' }> | null = null;

  function lost(err: unknown, job?: string): void {
    const { say, ...facts } = throttle.again('store', 'away');
    throttled(log, 'warn', say, { event: 'store.lost', err, job, ...facts });
  }

  function writes(): void {
    if (resumed === null || pausedJobs.size > 0) return;
    const ended = throttle.over('writes');
    if (ended === null) return;
    const { say, ...facts } = ended;
    throttled(log, 'info', say, { event: 'store.resumed', kind: resumed.kind, job: resumed.job, ...facts });
  }

  return {
    onQueueError(err) {
      if (inPostgres && isAway(err)) return lost(err);
      const { say, ...facts } = throttle.again('queues', fingerprintOf(err));
      throttled(log, 'warn', say, { event: 'queues.error', err, ...facts });
    },
    onFault(job, err) {
      if (isAway(err)) return lost(err, job);
      const { say, ...facts } = throttle.again(`job ${job}`, fingerprintOf(err));
      throttled(log, 'warn', say, { event: 'job.failed', job, err, ...facts });
    },
    onStore(event) {
      if (event.event === 'store.resumed') {
        pausedJobs.delete(event.job);
        resumed = event;
        return writes();
      }
      pausedJobs.add(event.job);
      const { kind, job, ms } = event;
      const { say, ...facts } = throttle.again('writes', kind);
      throttled(log, 'warn', say, {
        event: 'store.paused',
        kind,
        job,
        retryInMs: ms,
        hint: REMEDIES[kind].hint,
        ...facts,
      });
    },
    worked(job) {
      const back = throttle.over('store');
      if (back?.say === true)
        log.info({ event: 'store.back', times: back.times, lastedSeconds: back.lastedSeconds });
      const well = throttle.over(`job ${job}`);
      if (well?.say === true)
        log.info({ event: 'job.recovered', job, times: well.times, lastedSeconds: well.lastedSeconds });
      writes();
    },
    unknownJob(queue) {
      const { say, ...facts } = throttle.again('unknown jobs', queue);
      throttled(log, 'warn', say, { event: 'queues.unknown-job', queue, ...facts });
    },
    onTaken() {
      const ended = throttle.over('queues');
      if (ended?.say === true)
        log.info({ event: 'queues.recovered', times: ended.times, lastedSeconds: ended.lastedSeconds });
    },
  };
}

type Counts = Extract<TaskOutcome, { kind: 'done' }>['counts'];

/** One line for the end of each run of a task, at the level that it deserves. */
export function createTaskLines(log: Log, throttle: LogThrottle): (report: TaskReport) => void {
  let plan = '';

  /**
   * A plan is solved every ten minutes; what matters is that refreshes become scarce, or suffice again, or that more
   * is due than they can do.
   */
  function planIsNews(counts: Counts): boolean {
    const { scarce = 0, backlog = 0, incident = '' } = counts;
    const now = `${scarce} ${Number(backlog) > 0} ${incident}`;
    const news = plan !== '' && now !== plan;
    plan = now;
    return news;
  }

  return ({ task, outcome, ms, error }) => {
    const run = { durationMs: Math.round(ms), nextInSeconds: Math.round(outcome.nextInMs / 1000) };
    if (outcome.kind === 'postponed') {
      return log.debug({ event: `${task}.postponed`, ...run, because: outcome.because });
    }
    if (outcome.kind === 'failed') {
      const { kind: _, nextInMs: __, ...failure } = outcome;
      const line = { ...run, ...failure, ...(error === undefined ? {} : { err: error }) };
      // A refusal concerns all daemons, and the pace logs it.
      if (refuses(outcome.because)) return log.debug({ event: `${task}.failed`, ...line });
      const { say, ...facts } = throttle.again(`task ${task}`, outcome.because);
      return throttled(log, 'warn', say, { event: `${task}.failed`, ...line, ...facts });
    }
    const ended = throttle.over(`task ${task}`);
    if (ended?.say === true) {
      const { times, lastedSeconds } = ended;
      log.info({ event: `${task}.recovered`, times, lastedSeconds });
    }
    const done = { ...run, ...outcome.counts };
    if (task === 'manifest' || task === 'catalog-check') return log.info({ event: `${task}.done`, ...done });
    if (task === 'live-plan' && planIsNews(outcome.counts))
      return log.info({ event: 'live-plan.done', ...done });
    log.debug({ event: `${task}.done`, ...done });
  };
}

/** Whether the statistics beside the facts could be read, which the page and all metrics from Postgres need. */
export interface StatusLines {
  readonly unread: (error: unknown) => void;
  readonly read: () => void;
}

/** Lines on these readings: scrapes and samples read several times a minute. */
export function statusLines(log: Log, clock: Clock): StatusLines {
  const throttle = createLogThrottle(clock);
  return {
    unread(err) {
      const { say, ...facts } = throttle.again('status', fingerprintOf(err));
      throttled(log, 'warn', say, { event: 'status.unread', err, ...facts });
    },
    read() {
      const ended = throttle.over('status');
      if (ended === null) return;
      const { say, ...facts } = ended;
      throttled(log, 'info', say, { event: 'status.read', ...facts });
    },
  };
}

/** Whether the catalog could be counted, which all figures of it need; the last ones are shown meanwhile. */
export interface CountLines {
  readonly failed: (error: unknown) => void;
  readonly counted: () => void;
}

/** Lines on these counts. That Postgres is away, or a table locked, others tell. */
export function countLines(log: Log, clock: Clock): CountLines {
  const throttle = createLogThrottle(clock);
  return {
    failed(err) {
      const isSilent = sqlState(err) === 'ANSWER_TIMEOUT';
      if ((isAway(err) && !isSilent) || isLockNotAvailable(err)) return;
      const { say, ...facts } = throttle.again('counts', fingerprintOf(err));
      throttled(log, 'warn', say, { event: 'counts.failed', err, ...facts });
    },
    counted() {
      const ended = throttle.over('counts');
      if (ended === null) return;
      const { say, ...facts } = ended;
      throttled(log, 'info', say, { event: 'counts.recovered', ...facts });
    },
  };
}

/** Postgres' asynchronous messages: warnings are logged, repetitions throttled; notices only at debug. */
export function noticeLines(log: Log, clock: Clock): (notice: Notice) => void {
  const throttle = createLogThrottle(clock);
  return ({ severity, code, message: text }) => {
    if (severity !== 'WARNING') return log.debug({ event: 'postgres.notice', severity, code, text });
    const { say, ...facts } = throttle.again(code ?? '', text ?? '');
    throttled(log, 'warn', say, { event: 'postgres.notice', severity, code, text, ...facts });
  };
}

/** What libraries print and Node.js warns of. The same text is throttled, whatever numbers it has. */
export function libraryLines(log: Log, clock: Clock): (from: string, text: string) => void {
  const throttle = createLogThrottle(clock);
  return (from, text) => {
    // No text is a condition of its own: there may be no end of them.
    const { say, ...facts } = throttle.again(from, text.slice(0, 200).replaceAll(/\d+/g, '#'));
    throttled(log, 'warn', say, { event: 'library.noise', from, text, ...facts });
  };
}
