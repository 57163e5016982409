import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/lib/clock.ts';
import { runTask, type TaskReport } from '../../src/queues/task-run.ts';
import { endTask, readTasks, requestTask, startTask } from '../../src/store/ledger/tasks.ts';
import type { TaskOutcome } from '../../src/sync/outcome.ts';
import { useStore } from '../store/support.ts';

const store = useStore();
const LEASE_MS = 20_000;
const DONE: TaskOutcome = { kind: 'done', nextInMs: 3_600_000, counts: {} };

/** Returns a clock whose sleeps pass at once, also for the leases in Postgres. `slept` is called after each sleep. */
function leaping(slept: (now: number) => Promise<void>): Clock {
  let now = 0;
  return {
    now: () => now,
    monotonic: () => now,
    async sleep(ms, signal) {
      if (signal?.aborted) return;
      now += ms;
      await store.sql`
        update catalog_internal.tasks set running_until = running_until - make_interval(secs => ${ms / 1000})
        where task = 'manifest'`;
      await slept(now);
    },
  };
}

function runner(clock: Clock, signal = new AbortController().signal) {
  const reports: TaskReport[] = [];
  return {
    reports,
    sql: store.sql,
    clock,
    signal,
    report: (report: TaskReport) => void reports.push(report),
  };
}

const manifest = async () => (await readTasks(store.sql)).find(({ task }) => task === 'manifest');

describe('a task that runs', () => {
  test('keeps its lease as long as its work takes: nobody else starts it', async () => {
    const over = Promise.withResolvers<void>();
    const taken: number[] = [];
    const clock = leaping(async (now) => {
      if ((await startTask(store.sql, 'manifest', LEASE_MS)) !== null) taken.push(now);
      if (now >= 60_000) over.resolve();
    });
    const outcome = await runTask(runner(clock), 'manifest', async () => {
      await over.promise;
      return DONE;
    });
    expect({ outcome, taken }).toEqual({ outcome: DONE, taken: [] });
    expect(await manifest()).toMatchObject({ running: false, outcome: 'done', failures: 0 });
  });

  test('renews its lease no longer once its work has ended', async () => {
    let sleeps = 0;
    const asleep = Promise.withResolvers<void>();
    const clock: Clock = {
      now: () => 0,
      monotonic: () => 0,
      async sleep(_ms, signal) {
        sleeps += 1;
        asleep.resolve();
        await new Promise<void>((resolve) => {
          signal?.addEventListener('abort', () => resolve());
        });
      },
    };
    await runTask(runner(clock), 'manifest', async () => {
      await asleep.promise;
      return DONE;
    });
    expect(sleeps).toBe(1);
    expect(await manifest()).toMatchObject({ running: false });
  });

  test('fails if something is thrown, and is retried after a minute, then two', async () => {
    const clock = leaping(() => Promise.resolve());
    const fault = new Error('a defect');
    const waits: unknown[] = [];
    for (const failures of [1, 2]) {
      await store.sql`update catalog_internal.tasks set next_at = clock_timestamp() where task = 'manifest'`;
      const one = runner(clock);
      const outcome = await runTask(one, 'manifest', () => Promise.reject(fault));
      waits.push(outcome?.nextInMs);
      expect(one.reports).toMatchObject([{ task: 'manifest', error: fault, outcome: { because: 'fault' } }]);
      expect(await manifest()).toMatchObject({ failures, outcome: 'fault' });
    }
    expect(waits).toEqual([60_000, 120_000]);
  });

  test('counts refusals separately from all failures, until it succeeds', async () => {
    const told: unknown[] = [];
    const ends = [
      'throttled-or-forbidden',
      'network',
      'account-not-configured',
      'silence',
      'done',
      'unauthorised',
    ];
    for (const because of ends) {
      await runTask(runner(leaping(() => Promise.resolve())), 'delta', ({ failures, refusals }) => {
        told.push([failures, refusals]);
        const kind = because === 'silence' ? 'postponed' : 'failed';
        return Promise.resolve(
          because === 'done'
            ? { kind: 'done', nextInMs: 0, counts: {} }
            : { kind, nextInMs: 0, because, hint: '' },
        );
      });
    }
    const next = await startTask(store.sql, 'delta', LEASE_MS);
    told.push([next?.failures, next?.refusals]);
    expect(told).toEqual([
      [0, 0],
      [1, 1],
      [2, 1],
      [3, 2],
      [3, 2],
      [0, 0],
      [1, 1],
    ]);
    await requestTask(store.sql, 'delta');
    await endTask(store.sql, 'delta', next?.run ?? '', { how: 'postponed', outcome: 'asked', nextInMs: 0 });
    expect(await startTask(store.sql, 'delta', LEASE_MS)).toMatchObject({ failures: 0, refusals: 0 });
  });

  test('does not fail if this process is stopping: the next one continues at once', async () => {
    const stopping = new AbortController();
    const outcome = await runTask(
      runner(
        leaping(() => Promise.resolve()),
        stopping.signal,
      ),
      'manifest',
      () => {
        stopping.abort();
        return Promise.reject(new Error('broken off'));
      },
    );
    expect(outcome).toEqual({ kind: 'postponed', nextInMs: 0, because: 'stopping' });
    const next = await startTask(store.sql, 'manifest', LEASE_MS);
    expect(next).toMatchObject({ failures: 0 });
    await endTask(store.sql, 'manifest', next?.run ?? '', { how: 'done', outcome: 'done', nextInMs: 0 });
  });

  test('does not run before its time, and reports nothing', async () => {
    await store.sql`update catalog_internal.tasks set next_at = clock_timestamp() + interval '1 hour' where task = 'manifest'`;
    const one = runner(leaping(() => Promise.resolve()));
    expect(await runTask(one, 'manifest', () => Promise.resolve(DONE))).toBeNull();
    expect(one.reports).toEqual([]);
  });
});
