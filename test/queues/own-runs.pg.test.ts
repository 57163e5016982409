import { expect, test } from 'vitest';
import type { QueueBackend } from '../../src/queues/backend.ts';
import type { JobEnd, JobOutcome } from '../../src/queues/jobs.ts';
import { createRunner } from '../../src/queues/runner.ts';
import type { TaskName } from '../../src/store/ledger/tasks.ts';
import { useStore } from '../store/support.ts';
import { eventually } from '../support/eventually.ts';

const store = useStore();
const done = () => Promise.resolve();

/** Queues that accept everything and deliver only what the test hands to the workers of re-pricing. */
function silentQueues() {
  let bring: (job: { name: string }) => Promise<unknown> = done;
  const backend: QueueBackend = {
    kind: 'redis',
    prepare: done,
    openQueue: async () => ({
      add: done,
      upsertJobScheduler: done,
      getJobScheduler: () => Promise.resolve(undefined),
      removeJobScheduler: done,
      close: done,
    }),
    openWorker: async (name, process) => {
      if (name === 'reprice') bring = (job) => Promise.resolve(process(job as never, ''));
      return { run: done, close: done };
    },
    onReconnect: () => {},
    ping: done,
    describe: () => '',
    close: done,
  };
  return { backend, bring: (name: string) => bring({ name }) };
}

/** Creates a runner whose queues have delivered nothing for a minute. `ends` are the results of its re-pricing runs. */
async function quietRunner(ends: readonly (() => Promise<JobEnd> | JobEnd)[]) {
  await store.sql`update catalog_internal.tasks set next_at = clock_timestamp() - interval '1 hour'`;
  let now = 0;
  let runs = 0;
  const outcomes: JobOutcome[] = [];
  const { backend, bring } = silentQueues();
  const other = () => Promise.resolve<JobEnd>('not-due');
  const handlers: Record<TaskName, () => Promise<JobEnd>> = {
    manifest: other,
    'catalog-check': other,
    delta: other,
    metadata: other,
    maintenance: other,
    'live-plan': other,
    reprice: async () => (await ends[runs++]?.()) ?? 'idle',
  };
  const runner = createRunner({
    backend,
    sql: store.sql,
    clock: { now: () => now, monotonic: () => now, sleep: done },
    schedules: [{ job: 'reprice', everyMs: 1000 }],
    handlers,
    onTaken: () => {},
    onJob: ({ outcome }) => outcomes.push(outcome),
    onError: () => {},
    onFault: () => {},
  });
  await runner.start();
  now = 60_000;
  return { runner, outcomes, bring, runs: () => runs };
}

test('an overdue job that the queues do not deliver continues at once while only its time slice is over', async () => {
  const { runner, outcomes } = await quietRunner([() => 'over', () => 'over', () => 'idle']);
  await runner.runOverdue();
  await eventually(() => outcomes.includes('idle'), { what: 'an end' });
  expect(outcomes).toEqual(['over', 'over', 'idle']);
});

test('it does not continue if the queues deliver that job again, or the process stops', async () => {
  const { runner, outcomes, bring, runs } = await quietRunner([
    async () => {
      // Meanwhile, and before this one has ended.
      void bring('reprice');
      await eventually(() => runs() === 2, { what: 'a job that is brought' });
      return 'over' as const;
    },
    () => 'idle',
  ]);
  await runner.runOverdue();
  await eventually(() => outcomes.includes('over'), { what: 'an end' });
  await runner.stop();
  expect(outcomes).toEqual(['idle', 'over']);
  const stopping = await quietRunner([
    async () => {
      void stopping.runner.stop();
      return 'over' as const;
    },
  ]);
  await stopping.runner.runOverdue();
  await eventually(() => stopping.outcomes.length > 0, { what: 'an end' });
  await stopping.runner.stop();
  expect(stopping.outcomes).toEqual(['over']);
});
