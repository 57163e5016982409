import type { Clock } from '../../lib/clock.ts';
import { redisCode } from '../../queues/backend.ts';
import type { StoreEvent } from '../../queues/store-pause.ts';
import type { StatementAtWork } from '../../store/connection/at-work.ts';
import type { Notice } from '../../store/connection/db.ts';
import { isLockNotAvailable } from '../../store/connection/locks.ts';
import { REMEDIES } from '../../store/connection/remedies.ts';
import { isConnectionLost, sqlState } from '../../store/connection/sql-errors.ts';
import type { LockHolder } from '../../store/status/holders.ts';
import { type Log, throttled } from './logger.ts';
import { createLogThrottle, type LogThrottle } from './throttle.ts';

/** Connection errors of the drivers, besides those that mean the end of a connection. */
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

/** Returns the fingerprint of an error: a repetition needs no line of its own. */
function fingerprintOf(error: unknown): string {
  if (isAway(error)) return 'away';
  if (!(error instanceof Error)) return typeof error;
  // Messages of Redis contain the hash of the script that met the error, those of BullMQ the number of the job.
  return sqlState(error) ?? redisCode(error) ?? `${error.name} ${error.message.replaceAll(/\d+/g, '#')}`;
}

export interface StoreLines {
  /** Errors of the queues and their connections, which come by the dozen while a store is down. */
  readonly onQueueError: (error: unknown) => void;
  readonly onFault: (job: string, error: unknown) => void;
  readonly onStore: (event: StoreEvent) => void;
  /** A job has ended without throwing: what it needs is available, which may not be true of the queues. */
  readonly worked: (job: string) => void;
  /** A job that does not belong to this program. Its name belongs to its owner and is not logged. */
  readonly unknownJob: (queue: string) => void;
  /** The queues have delivered a job. */
  readonly onTaken: () => void;
}

/** Creates log lines about Postgres and the queues. `inPostgres`: the queues are in Postgres, too, and fail with it. */
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

interface WaitLines {
  /** Who holds locks that the mirror waits for; read every few seconds. */
  readonly onLocks: (holders: readonly LockHolder[]) => void;
  /** Statements that Postgres has been executing for a long time; read every few seconds. */
  readonly onSlow: (statements: readonly StatementAtWork[]) => void;
}

/** Creates log lines about what the mirror waits for in a Postgres that answers. */
export function waitLines(log: Log, throttle: LogThrottle): WaitLines {
  return {
    onLocks(holders) {
      for (const { pid, role, application, table, seconds, heldSeconds, command } of holders) {
        const { say, ...facts } = throttle.again('locks', `${pid}`);
        const held = { heldSeconds: heldSeconds === null ? null : Math.round(heldSeconds), command };
        const waited = {
          holderPid: pid,
          role,
          application,
          table,
          ...held,
          waitedSeconds: Math.round(seconds),
        };
        throttled(log, 'warn', say, { event: 'store.locked', ...waited, ...facts });
      }
      if (holders.length > 0) return;
      const free = throttle.over('locks');
      if (free?.say === true)
        log.info({ event: 'store.unlocked', times: free.times, lastedSeconds: free.lastedSeconds });
    },
    onSlow(statements) {
      for (const { pid, seconds, waitsFor, blockers, tables, attached } of statements) {
        const { say, ...facts } = throttle.again('slow', `${pid}`);
        const work = { pid, ranSeconds: Math.round(seconds), waitsFor, blockers, tables, attached };
        throttled(log, 'warn', say, { event: 'store.slow', ...work, ...facts });
      }
      if (statements.length > 0) return;
      const over = throttle.over('slow');
      if (over?.say === true)
        log.info({ event: 'store.slow-ended', times: over.times, lastedSeconds: over.lastedSeconds });
    },
  };
}

/** Whether the statistics beside the facts could be read. The status page and all metrics from Postgres need them. */
export interface StatusLines {
  readonly unread: (error: unknown) => void;
  readonly read: () => void;
}

/** Creates log lines about reading the statistics, which scrapes and samples do several times a minute. */
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

/** Whether the catalog could be counted. All figures about it need that; meanwhile the last ones are shown. */
export interface CountLines {
  readonly failed: (error: unknown) => void;
  readonly counted: () => void;
}

/** Creates log lines about counting. Other lines report that Postgres is away, or a table locked. */
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

/** Creates log lines of Postgres's asynchronous messages: warnings are throttled, notices are logged only at debug. */
export function noticeLines(log: Log, clock: Clock): (notice: Notice) => void {
  const throttle = createLogThrottle(clock);
  return ({ severity, code, message: text }) => {
    if (severity !== 'WARNING') return log.debug({ event: 'postgres.notice', severity, code, text });
    const { say, ...facts } = throttle.again(code ?? '', text ?? '');
    throttled(log, 'warn', say, { event: 'postgres.notice', severity, code, text, ...facts });
  };
}
