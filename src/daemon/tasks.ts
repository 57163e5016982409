import type { Handler } from '../queues/runner.ts';
import { runTask, type TaskReport } from '../queues/task-run.ts';
import type { StorePause } from '../queues/store-pause.ts';
import type { RunTask, TaskName, TaskRun } from '../store/tasks.ts';
import type { SyncContext } from '../sync/context.ts';
import { syncDelta } from '../sync/delta.ts';
import { planLive } from '../sync/live/plan.ts';
import { checkCatalog, syncManifest } from '../sync/manifest.ts';
import type { TaskOutcome } from '../sync/outcome.ts';
import { createSlice } from '../sync/reprice/slice.ts';
import { type Retention, maintain, syncMetadata } from '../sync/maintenance.ts';

export interface HandlerParts {
  readonly ctx: SyncContext;
  /** Ends waiting and long downloads. */
  readonly stopping: AbortSignal;
  /** Breaks off single requests too. */
  readonly hard: AbortSignal;
  readonly requestTimeoutMs: number;
  readonly retention: Retention;
  readonly report: (report: TaskReport) => void;
  readonly wake: (task: TaskName) => Promise<void>;
  /** Pauses jobs while Postgres takes no writes. */
  readonly pause: StorePause;
}

/** Which piece of sync each job runs. */
export function handlersOf(parts: HandlerParts): Readonly<Record<TaskName, Handler>> {
  const { ctx, stopping, hard, report, wake } = parts;
  const runner = { sql: ctx.sql, clock: ctx.clock, signal: stopping, report };
  const slice = createSlice(ctx, parts.requestTimeoutMs);

  async function task(name: RunTask, work: (run: TaskRun) => Promise<TaskOutcome>): Promise<string> {
    const outcome = await runTask(runner, name, work);
    return outcome?.kind ?? 'not-due';
  }

  const jobs: Readonly<Record<TaskName, Handler>> = {
    async manifest() {
      const ended = await task('manifest', (run) => syncManifest(ctx, run, stopping));
      if (ended === 'done') await wake('delta');
      return ended;
    },
    'catalog-check': () => task('catalog-check', (run) => checkCatalog(ctx, run, stopping)),
    async delta() {
      const ended = await task('delta', (run) => syncDelta(ctx, run.failures, hard));
      if (ended === 'postponed') await wake('manifest');
      return ended;
    },
    async reprice() {
      return (await slice(stopping, hard)).end;
    },
    metadata: () => task('metadata', () => syncMetadata(ctx)),
    maintenance: () => task('maintenance', () => maintain(ctx, parts.retention)),
    'live-plan': () => task('live-plan', () => planLive(ctx)),
  };
  const paused = Object.entries(jobs).map(([job, work]) => [job, () => parts.pause.guard(job, work)]);
  return Object.fromEntries(paused) as typeof jobs;
}
