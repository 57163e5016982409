import type { StatementAtWork } from '../../store/connection/at-work.ts';
import type { LockHolder } from '../../store/status/lock-holders.ts';
import { type Log, throttled } from './logger.ts';
import type { LogThrottle } from './throttle.ts';

export interface WaitLines {
  /** Who holds locks that the mirror waits for; read every few seconds. */
  readonly onLocks: (holders: readonly LockHolder[]) => void;
  /** Statements that Postgres has been at work on for long; read every few seconds. */
  readonly onSlow: (statements: readonly StatementAtWork[]) => void;
}

/** Lines on what the mirror waits for in a Postgres that answers. */
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
