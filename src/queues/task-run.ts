import type { Clock } from '../lib/clock.ts';
import { failpoint } from '../lib/failpoint.ts';
import { freeNotifications, type Sql } from '../store/connection/db.ts';
import { obstacleOf, remedyOf } from '../store/connection/remedies.ts';
import { isConnectionLost } from '../store/connection/sql-errors.ts';
import { endTask, renewTask, startTask, type RunTask, type TaskRun } from '../store/ledger/tasks.ts';
import { isRefusal, lostRetryInMs, otherThanRefused, type TaskOutcome, retryInMs } from '../sync/outcome.ts';

const LEASE_MS = 20_000;
const RENEW_EVERY_MS = 5000;

export interface TaskReport {
  readonly task: RunTask;
  readonly outcome: TaskOutcome;
  readonly ms: number;
  /** What was thrown, if the work did not end in an outcome of its own. */
  readonly error?: unknown;
}

export interface TaskRunner {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly report: (report: TaskReport) => void;
}

/**
 * Runs a task if it is due and no other process runs it, renews its lease meanwhile, and stores how it ended.
 * Returns null if it was not run. An error of `work` becomes a failed outcome; an error of the store is thrown.
 */
export async function runTask(
  runner: TaskRunner,
  task: RunTask,
  work: (run: TaskRun) => Promise<TaskOutcome>,
): Promise<TaskOutcome | null> {
  const { sql, clock, signal } = runner;
  const run = await startTask(sql, task, LEASE_MS);
  if (run === null) return null;
  const startedAt = clock.monotonic();
  const finished = new AbortController();
  const renewing = renew(runner, task, run, finished.signal);
  let outcome: TaskOutcome;
  let error: unknown;
  try {
    outcome = await work(run);
  } catch (thrown) {
    error = thrown;
    await freeNotifications(sql, thrown);
    outcome = {
      kind: 'failed',
      nextInMs: isConnectionLost(thrown)
        ? lostRetryInMs(otherThanRefused(run))
        : retryInMs(otherThanRefused(run), Infinity),
      because: obstacleOf(thrown) ?? 'fault',
      hint: remedyOf(thrown)?.hint ?? 'see `err` for the cause',
    };
  } finally {
    finished.abort();
    await renewing;
  }
  // Our own shutdown stopped it: that is not a failure, and the next process continues at once.
  if (outcome.kind === 'failed' && signal.aborted)
    outcome = { kind: 'postponed', nextInMs: 0, because: 'stopping' };
  failpoint('task.worked');
  await endTask(sql, task, run.run, {
    how: outcome.kind,
    outcome: outcome.kind === 'done' ? 'done' : outcome.because,
    nextInMs: outcome.nextInMs,
    isRefusal: isRefusal(outcome),
  });
  runner.report({
    task,
    outcome,
    ms: clock.monotonic() - startedAt,
    ...(error === undefined ? {} : { error }),
  });
  return outcome;
}

async function renew(
  { sql, clock }: TaskRunner,
  task: RunTask,
  run: TaskRun,
  finished: AbortSignal,
): Promise<void> {
  for (;;) {
    await clock.sleep(RENEW_EVERY_MS, finished);
    if (finished.aborted) return;
    // A failed renewal is no reason to stop: the lease may run out, but the work guards its own commits.
    await renewTask(sql, task, run.run, LEASE_MS).catch(() => {});
  }
}
