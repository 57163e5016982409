import { expect, test } from 'vitest';
import { untilCaughtUp } from '../../src/cli/run.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { endTask, startTask } from '../../src/store/ledger/tasks.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { HOUR, knownSkus, mark, useStore } from '../store/support.ts';

const store = useStore();

/** Runs `run --once` on its own clock and calls `meanwhile` while it sleeps, with how long it has waited. */
async function once(timeoutMs: number | null, meanwhile: (waitedMs: number) => Promise<void>) {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) };
  const log = createLogger({ level: 'info', secrets: () => [], destination });
  let at = 0;
  const clock: Clock = {
    now: () => at,
    monotonic: () => at,
    async sleep(ms) {
      at += ms;
      await meanwhile(at);
    },
  };
  const code = await untilCaughtUp({ sql: store.sql, wake: async () => {} }, log, clock, timeoutMs);
  return { code, waitedMs: at, lines };
}

async function ran(task: 'manifest' | 'delta'): Promise<void> {
  await store.sql`update catalog_internal.tasks set next_at = now() where task = ${task}`;
  const run = await startTask(store.sql, task, HOUR);
  await endTask(store.sql, task, run?.run ?? '', { how: 'done', outcome: 'done', nextInMs: HOUR });
}

test('says every half minute what it waits for, and at the end how long it took', async () => {
  await knownSkus(store.sql, ['A', 'B', 'C']);
  await mark(store.sql, ['A', 'B'], 'changed');
  await mark(store.sql, ['C'], 'new');
  await ran('manifest');
  const { code, waitedMs, lines } = await once(null, async (waited) => {
    if (waited === 40_000)
      await store.sql`update catalog_internal.sync set manifest_applied_at = clock_timestamp(), chain_broken_at = null`;
    if (waited === 50_000) await ran('delta');
    if (waited === 70_000)
      await store.sql`update catalog_internal.due set due_at = clock_timestamp() + interval '1 year'`;
  });
  expect([code, waitedMs]).toEqual([0, 70_000]);
  expect(lines).toMatchObject([
    { event: 'once.waiting', baseline: false, deltaCaughtUp: false, due: { changed: 2, new: 1 } },
    { event: 'once.waiting', baseline: true, deltaCaughtUp: true, due: { changed: 2, new: 1 } },
    { event: 'once.caught-up', durationSeconds: 70 },
  ]);
});

test('exits with 75 at its timeout, and says what is left', async () => {
  await knownSkus(store.sql, ['A']);
  await mark(store.sql, ['A'], 'changed');
  const { code, waitedMs, lines } = await once(45_000, async () => {});
  expect([code, waitedMs]).toEqual([75, 45_000]);
  expect(lines.map(({ event }) => event)).toEqual(['once.waiting', 'once.timeout']);
  expect(lines.at(-1)).toMatchObject({ level: 'error', due: { changed: 1 } });
});
