import type { Handler } from '../queues/runner.ts';
import { runTask } from '../queues/task-run.ts';
import type { RunTask, TaskEnd, TaskName, TaskRun } from '../store/ledger/tasks.ts';
import { checkCatalog } from '../sync/catalog-check.ts';
import type { StopSignals } from '../sync/context.ts';
import { syncDelta } from '../sync/delta.ts';
import { planLive } from '../sync/live/plan.ts';
import { type Retention, maintain, newMemory, syncMetadata } from '../sync/maintenance.ts';
import { syncManifest } from '../sync/manifest.ts';
import type { TaskOutcome } from '../sync/outcome.ts';
import { repriceSlices } from '../sync/reprice/slice.ts';
import { tracedTask } from '../sync/traces.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { Parts } from './parts.ts';

export interface JobControl extends StopSignals {
  readonly wake: (task: TaskName) => Promise<void>;
}

/**
 * What each job does: it runs its task if that is due, wakes what follows from it, and rests while Postgres takes no
 * writes. A job whose task is not due ends as `not-due`.
 */
export function handlersOf(
  {
    config,
    sync,
    telemetry,
    pause,
  }: Pick<Parts, 'config' | 'sync' | 'pause'> & {
    readonly telemetry: Pick<Telemetry, 'onTask'>;
  },
  { stopping, hard, wake }: JobControl,
): Readonly<Record<TaskName, Handler>> {
  const runner = { sql: sync.sql, clock: sync.clock, signal: stopping, report: telemetry.onTask };
  const slice = repriceSlices(sync, config.partner.timeoutMs);
  const retention: Retention = {
    windowMs: config.rate.windowMs,
    historyMs: config.history.retentionMs,
    dailyMs: config.history.dailyRetentionMs,
  };
  const memory = newMemory();

  async function task(
    name: RunTask,
    work: (run: TaskRun) => Promise<TaskOutcome>,
  ): Promise<TaskEnd | 'not-due'> {
    const outcome = await runTask(runner, name, (run) => tracedTask(sync, name, () => work(run)));
    return outcome?.kind ?? 'not-due';
  }

  const jobs: Readonly<Record<TaskName, Handler>> = {
    async manifest() {
      const ended = await task('manifest', (run) => syncManifest(sync, run, stopping));
      if (ended === 'done') await wake('delta');
      return ended;
    },
    'catalog-check': () => task('catalog-check', (run) => checkCatalog(sync, run, stopping)),
    async delta() {
      const ended = await task('delta', (run) => syncDelta(sync, run.failures, hard));
      if (ended === 'postponed') await wake('manifest');
      return ended;
    },
    async reprice() {
      return (await slice(stopping, hard)).end;
    },
    metadata: () => task('metadata', () => syncMetadata(sync)),
    maintenance: () => task('maintenance', () => maintain(sync, retention, memory)),
    'live-plan': () => task('live-plan', () => planLive(sync)),
  };
  const paused = Object.entries(jobs).map(([job, work]) => [job, () => pause.guard(job, work, 'enough')]);
  return Object.fromEntries(paused) as typeof jobs;
}
