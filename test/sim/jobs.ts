import { runTask } from '../../src/queues/task-run.ts';
import type { TaskName, TaskRun } from '../../src/store/ledger/tasks.ts';
import { checkCatalog } from '../../src/sync/catalog-check.ts';
import type { SyncContext } from '../../src/sync/context.ts';
import { syncDelta } from '../../src/sync/delta.ts';
import { planLive } from '../../src/sync/live/plan-live.ts';
import { maintain, syncMetadata } from '../../src/sync/maintenance.ts';
import { syncManifest } from '../../src/sync/manifest.ts';
import type { TaskOutcome } from '../../src/sync/outcome.ts';
import { repriceOnce } from '../../src/sync/reprice/reprice.ts';
import { isInjected } from './worker.ts';

/** What the queues would have a worker do. */
export type Job = TaskName;

const NEVER = new AbortController().signal;
const REQUEST_TIMEOUT_MS = 30_000;
const DAY_MS = 86_400_000;

/** Runs one job like the daemon's handlers. Returns whether it was a bulk call. Rejects with what the job throws. */
export async function runJob(ctx: SyncContext, job: Job): Promise<boolean> {
  if (job !== 'reprice') return await runOnce(ctx, job);
  const signals = { stopping: NEVER, hard: NEVER };
  const done = await repriceOnce(ctx, { sinceLastCallMs: Infinity }, REQUEST_TIMEOUT_MS, signals);
  return done.kind === 'called';
}

async function runOnce(ctx: SyncContext, task: Exclude<Job, 'reprice'>): Promise<false> {
  const works: Record<typeof task, (run: TaskRun) => Promise<TaskOutcome>> = {
    delta: (run) => syncDelta(ctx, run),
    manifest: (run) => syncManifest(ctx, run),
    'catalog-check': (run) => checkCatalog(ctx, run),
    'live-plan': () => planLive(ctx),
    metadata: () => syncMetadata(ctx),
    maintenance: () => maintain(ctx, { windowMs: 60_000, historyMs: DAY_MS, dailyMs: 2 * DAY_MS }),
  };
  let thrown: unknown;
  // Nobody renews a lease here: any run may be one whose process froze for longer.
  const clock = { now: () => ctx.clock.now(), monotonic: () => ctx.clock.monotonic(), sleep: untilAborted };
  const report = ({ error }: { error?: unknown }) => {
    thrown = error;
  };
  await runTask({ sql: ctx.sql, clock, signal: NEVER, report }, task, works[task]);
  if (thrown !== undefined && !isInjected(thrown)) throw thrown;
  return false;
}

async function untilAborted(_: number, signal?: AbortSignal): Promise<void> {
  if (signal === undefined || signal.aborted) return;
  await new Promise((resolve) => {
    signal.addEventListener('abort', resolve, { once: true });
  });
}
