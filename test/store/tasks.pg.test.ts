import { describe, expect, test } from 'vitest';
import { readSyncState } from '../../src/store/catalog/sync-state.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import {
  callPause,
  endTask,
  readTasks,
  renewTask,
  requestTask,
  showProgress,
  startTask,
  type TaskEnd,
  type TaskRun,
} from '../../src/store/ledger/tasks.ts';
import { refreshManifest } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';
import { HOUR, useStore, failCall } from './support.ts';

const store = useStore();

async function next(): Promise<TaskRun> {
  const run = await startTask(store.sql, 'delta', HOUR);
  if (run === null) throw new Error('not its time');
  return run;
}

const started = async (): Promise<string> => (await next()).run;

async function end(run: string, how: TaskEnd, nextInMs: number): Promise<void> {
  await endTask(store.sql, 'delta', run, { how, outcome: how, nextInMs });
}

async function delta() {
  const task = (await readTasks(store.sql)).find((row) => row.task === 'delta');
  if (task === undefined) throw new Error('no such task');
  return task;
}

/** Hours until the task runs next. */
async function nextIn(): Promise<number> {
  const [row] = await store.sql<[{ hours: number }]>`
    select (extract(epoch from next_at - clock_timestamp()) / 3600)::float8 as hours
    from catalog_internal.tasks where task = 'delta'`;
  return row.hours;
}

async function passHours(hours: number): Promise<void> {
  await store.sql`
    update catalog_internal.tasks set next_at = next_at - make_interval(hours => ${hours}),
      started_at = started_at - make_interval(hours => ${hours}), running_until = running_until - make_interval(hours => ${hours})`;
}

describe('a task', () => {
  test('that many replicas start at once is run by one', async () => {
    const runs = await Promise.all(Array.from({ length: 12 }, () => startTask(store.sql, 'delta', HOUR)));
    expect(runs.filter((run) => run !== null)).toHaveLength(1);
  });

  test('is not run before its time', async () => {
    await end(await started(), 'done', 2 * HOUR);
    expect(await startTask(store.sql, 'delta', HOUR)).toBeNull();
    await passHours(1);
    expect(await startTask(store.sql, 'delta', HOUR)).toBeNull();
    await passHours(1);
    expect(await startTask(store.sql, 'delta', HOUR)).not.toBeNull();
  });

  test('whose worker died is taken over when its lease ends, and not before', async () => {
    await started();
    expect(await startTask(store.sql, 'delta', HOUR)).toBeNull();
    await passHours(2);
    expect(await startTask(store.sql, 'delta', HOUR)).not.toBeNull();
  });

  test('is kept by a worker that renews its lease', async () => {
    const run = await started();
    await renewTask(store.sql, 'delta', run, 5 * HOUR);
    await passHours(4);
    expect(await startTask(store.sql, 'delta', HOUR)).toBeNull();
  });

  test('taken over belongs to the new run: the old one can neither end, renew nor show progress', async () => {
    const old = await started();
    await passHours(2);
    const run = await started();
    await end(old, 'failed', 9 * HOUR);
    await renewTask(store.sql, 'delta', old, 9 * HOUR);
    await showProgress(store.sql, 'delta', old, { lines: 1 });
    expect(await delta()).toMatchObject({ running: true, failures: 0, progress: null });
    await end(run, 'done', HOUR);
    expect(await delta()).toMatchObject({ running: false, outcome: 'done' });
    await end(old, 'failed', 9 * HOUR);
    expect(await delta()).toMatchObject({ outcome: 'done', failures: 0 });
  });

  test('asked for while it runs runs once more, whatever its end says', async () => {
    for (const how of ['done', 'failed', 'postponed'] as const) {
      await requestTask(store.sql, 'delta');
      const run = await started();
      await requestTask(store.sql, 'delta');
      expect(await startTask(store.sql, 'delta', HOUR)).toBeNull();
      await end(run, how, 9 * HOUR);
      expect(await nextIn()).toBeLessThanOrEqual(0);
    }
  });

  test('asked for is due at once, and its failures are forgotten', async () => {
    await end(await started(), 'failed', 9 * HOUR);
    await requestTask(store.sql, 'delta');
    expect(await startTask(store.sql, 'delta', HOUR)).toMatchObject({ failures: 0 });
  });

  test('counts its failures in a row; success starts anew, a postponement counts neither way', async () => {
    const failures: number[] = [];
    for (const how of ['failed', 'failed', 'postponed', 'failed', 'done', 'postponed', 'failed'] as const) {
      await end(await started(), how, 0);
      failures.push((await delta()).failures);
    }
    expect(failures).toEqual([1, 2, 2, 3, 0, 0, 1]);
  });

  const REFUSED = { how: 'failed', outcome: 'refused', nextInMs: 0, isRefusal: true } as const;

  test('has no refusals from before its failures began, whoever has forgotten these', async () => {
    for (let times = 0; times < 2; times += 1) await endTask(store.sql, 'delta', await started(), REFUSED);
    const third = await next();
    expect(third).toMatchObject({ failures: 2, refusals: 2 });
    await end(third.run, 'postponed', 0);
    const fourth = await next();
    expect(fourth).toMatchObject({ failures: 2, refusals: 2 });
    await end(fourth.run, 'postponed', 0);
    // As a version does that knows of no refusals.
    await store.sql`update catalog_internal.tasks set failures = 0 where task = 'delta'`;
    const first = await next();
    expect(first).toMatchObject({ failures: 0, refusals: 0 });
    await end(first.run, 'failed', 0);
    const second = await next();
    expect(second).toMatchObject({ failures: 1, refusals: 0 });
    await endTask(store.sql, 'delta', second.run, REFUSED);
    expect(await next()).toMatchObject({ failures: 2, refusals: 1 });
  });

  test('asked for just as a run of it ends that was refused has no refusals either', async () => {
    const run = await started();
    let asked: Promise<void> | undefined;
    await store.sql.begin(async (tx) => {
      await endTask(tx as unknown as Sql, 'delta', run, REFUSED);
      asked = requestTask(store.sql, 'delta');
      await eventually(async () => {
        const waiting = await store.sql`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        return waiting.count === 1;
      });
    });
    await asked;
    expect(await next()).toMatchObject({ failures: 0, refusals: 0 });
  });

  test('that fails keeps the time of its last success', async () => {
    await end(await started(), 'done', 0);
    const { succeededAt } = await delta();
    expect(succeededAt).not.toBeNull();
    await end(await started(), 'failed', 0);
    await end(await started(), 'postponed', 0);
    expect((await delta()).succeededAt).toEqual(succeededAt);
  });

  test('shows its progress while it runs and not after', async () => {
    const run = await started();
    await showProgress(store.sql, 'delta', run, { lines: 5, of: null });
    expect((await delta()).progress).toEqual({ lines: 5, of: null });
    await end(run, 'done', 0);
    expect((await delta()).progress).toBeNull();
  });
});

test('a manifest asked for by hand is due at once, and may list far fewer SKUs only where that is confirmed', async () => {
  await refreshManifest(store.sql);
  expect(await readSyncState(store.sql)).toMatchObject({ shrinkConfirmed: false });
  await refreshManifest(store.sql, true);
  expect(await readSyncState(store.sql)).toMatchObject({ shrinkConfirmed: true });
  expect(await startTask(store.sql, 'manifest', HOUR)).not.toBeNull();
});

describe('the pause between failing calls', () => {
  test('holds for everyone, and is never shortened by another failure', async () => {
    const { sql } = store;
    expect(await callPause(sql)).toEqual({ ms: 0, failures: 0, rejections: 0 });
    await failCall(sql, 3 * HOUR, 0);
    await failCall(sql, HOUR, 1);
    const pause = await callPause(sql);
    expect(pause.failures).toBe(2);
    expect(pause.ms / HOUR).toBeCloseTo(3, 1);
  });

  test('is lengthened once by all calls that were under way together', async () => {
    const { sql } = store;
    const failing = [2, 4, 8, 16].map((hours) => failCall(sql, hours * HOUR, 0));
    await Promise.all(failing);
    const once = await callPause(sql);
    expect(once.failures).toBe(1);
    await failCall(sql, 32 * HOUR, 0);
    expect((await callPause(sql)).failures).toBe(1);
    expect((await callPause(sql)).ms).toBeLessThanOrEqual(once.ms);
  });
});
