import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import type { QueueBackend } from '../../src/queues/backend.ts';
import type { Handler } from '../../src/queues/runner.ts';
import { createRunner } from '../../src/queues/runner.ts';
import { connect } from '../../src/store/connection/db.ts';
import { TASKS, type TaskName } from '../../src/store/ledger/tasks.ts';
import { useStore } from '../store/support.ts';
import { ofThisDatabase } from '../support/db.ts';

const store = useStore();
const done = () => Promise.resolve();

/** Queues whose store takes longer for a schedule than a session may be idle within a transaction. */
function slowQueues(put: () => Promise<unknown>): QueueBackend {
  return {
    kind: 'redis',
    prepare: done,
    openQueue: async () => ({
      add: done,
      upsertJobScheduler: put,
      getJobScheduler: () => Promise.resolve(undefined),
      removeJobScheduler: done,
      close: done,
    }),
    openWorker: async () => ({ run: done, close: done }),
    onReconnect: () => {},
    ping: done,
    describe: () => '',
    close: done,
  };
}

test('schedules are stored under one lock, however slow the store of the queues is', async () => {
  const idle = connect(store.url, { max: 1 });
  Object.assign(idle.options.connection, {
    options: `${String(idle.options.connection['options'])} -c idle_in_transaction_session_timeout=200`,
  });
  const errors: Error[] = [];
  const locked: boolean[] = [];
  const put = async () => {
    await store.sql`select pg_sleep(0.5)`;
    const held = await store.sql`
      select from pg_locks where relation = 'catalog_internal.lock_schedules'::regclass and mode = 'ExclusiveLock' and granted
        and ${ofThisDatabase(store.sql)}`;
    locked.push(held.length === 1);
  };
  const handler: Handler = () => Promise.resolve('idle');
  const runner = createRunner({
    backend: slowQueues(put),
    sql: idle,
    clock: systemClock,
    schedules: [
      { job: 'reprice', everyMs: 1000 },
      { job: 'delta', everyMs: 5000 },
    ],
    handlers: Object.fromEntries(TASKS.map((task) => [task, handler])) as Record<TaskName, Handler>,
    onTaken: () => {},
    onJob: () => {},
    onError: (error) => errors.push(error),
    onFault: () => {},
  });
  await runner.start();
  expect({ locked, errors }).toEqual({ locked: [true, true], errors: [] });
  await runner.stop();
  await idle.end({ timeout: 2 });
});
