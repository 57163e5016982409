import { Redis } from 'ioredis';
import { afterEach, expect, test, vi } from 'vitest';
import type { App } from '../../src/daemon/app.ts';
import { refreshAll } from '../../src/store/sellers/refresh.ts';
import { eventually } from '../support/eventually.ts';
import { type Backend, backends, createStack, type Stack } from '../support/stack.ts';
import { get } from './harness.ts';

/*
 * The queues' jobs are scheduled by the clock of the host that created them, and their store may lose half of its
 * contents. With either backend, due work is still done within half a minute, or a minute on a busy machine, and
 * not an hour later.
 */

const HOUR_MS = 3_600_000;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Changes this host's clock, which BullMQ uses, by `offMs`. */
function setHostClock(offMs: number): void {
  const real = performance.timeOrigin;
  vi.spyOn(Date, 'now').mockImplementation(() => Math.round(real + performance.now() + offMs));
}

interface Working {
  readonly stack: Stack;
  readonly app: App;
  readonly backend: Backend;
}

/** Starts a filled and working daemon on each available backend. */
async function working(): Promise<Working[]> {
  return await Promise.all(
    backends().map(async (backend) => {
      const stack = await createStack({ backend, sandbox: { skus: 40 }, env: { DELTA_INTERVAL: '1s' } });
      const app = await stack.start();
      await stack.caughtUp();
      return { stack, app, backend };
    }),
  );
}

/** Checks that a delta and a refresh of everything complete, although nothing wakes their jobs. */
async function goesOn({ stack }: Working): Promise<void> {
  const { sql, sandbox } = stack;
  sandbox.world.step(10);
  sandbox.world.buildSnapshot();
  await refreshAll(sql, 'prices');
  const newest = String(sandbox.world.newestSnapshot());
  await eventually(
    async () => {
      const [row] = await sql<[{ there: boolean }]>`
        select snapshot_id = ${newest} and not exists (select from catalog_internal.due where due_at <= now() and reason <> 'live') as there
        from catalog_internal.sync`;
      return row.there;
    },
    { what: 'work that goes on' },
  );
}

async function stopAll(all: readonly Working[]): Promise<void> {
  await Promise.all(all.map(({ stack }) => stack[Symbol.asyncDispose]()));
}

const codes = async (app: App) =>
  (JSON.parse((await get(app, '/readyz')).text) as { reasons: { code: string }[] }).reasons.map(
    ({ code }) => code,
  );

test("work goes on when the host's clock is set back by an hour, and readyz says so", async () => {
  const all = await working();
  try {
    setHostClock(-HOUR_MS);
    await Promise.all(all.map(goesOn));
    for (const { app } of all) await eventually(async () => (await codes(app)).includes('clock'));
  } finally {
    await stopAll(all);
  }
});

test("another daemon works although the jobs were created while the host's clock was an hour ahead", async () => {
  setHostClock(HOUR_MS);
  const all = await working();
  try {
    await Promise.all(all.map(({ app }) => app.stop()));
    vi.restoreAllMocks();
    await Promise.all(all.map(({ stack }) => stack.start()));
    await Promise.all(all.map(goesOn));
  } finally {
    await stopAll(all);
  }
});

test("work goes on when the queues' store loses the jobs but keeps the schedules", async () => {
  const all = await working();
  try {
    await Promise.all(
      all.map(async (one) => {
        const taken = one.stack.logs.length;
        await loseJobs(one);
        await goesOn(one);
        expect(one.stack.logs.length).toBeGreaterThan(taken);
        // Later jobs come from the queues again, too.
        await eventually(async () => (await jobsWaiting(one)) > 0, { what: 'schedules that have jobs' });
      }),
    );
  } finally {
    await stopAll(all);
  }
});

async function withRedis<T>(
  { stack }: Working,
  work: (redis: Redis, keys: string[]) => Promise<T>,
): Promise<T> {
  const redis = new Redis(stack.env['REDIS_URL'] ?? '');
  try {
    return await work(redis, await redis.keys(`${stack.env['QUEUE_PREFIX']}:*:delayed`));
  } finally {
    redis.disconnect();
  }
}

async function loseJobs(one: Working): Promise<void> {
  if (one.backend === 'postgres') return void (await one.stack.sql`truncate catalog_queue.job cascade`);
  await withRedis(one, async (redis, keys) => {
    if (keys.length > 0) await redis.del(keys);
  });
}

async function jobsWaiting(one: Working): Promise<number> {
  if (one.backend === 'postgres') return (await one.stack.sql`select from catalog_queue.job`).length;
  return await withRedis(one, async (_, keys) => keys.length);
}
