import { expect, test } from 'vitest';
import type { Clock } from '../../src/lib/clock.ts';
import { createHealth, DEAD_AFTER_MS } from '../../src/daemon/health.ts';
import type { Sql } from '../../src/store/db.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { settingsWith } from '../support/settings.ts';

const STARTED_AT = 1_000_000;

/** A daemon whose Postgres is away, whose queues are or are not, and whose clock and last job are as the test says. */
function daemon({ queuesAnswer }: { readonly queuesAnswer: boolean }) {
  let now = STARTED_AT;
  let lastJobAt: number | null = null;
  const clock: Clock = { now: () => 0, monotonic: () => now, sleep: () => Promise.resolve() };
  // Fragments of statements are never waited for.
  const away = Promise.reject(new Error('away'));
  away.catch(() => undefined);
  const sql = (() => away) as unknown as Sql;
  const health = createHealth(
    {
      config: settingsWith(),
      sync: { sql, clock },
      log: createLogger({ level: 'silent', secrets: () => [] }),
      backend: {
        ping: () => (queuesAnswer ? Promise.resolve() : Promise.reject(new Error('away'))),
        describe: () => 'away',
      },
      metrics: createMetrics({ version: '1' }),
      pause: { failure: () => null },
      clocks: { wrong: () => null },
      breaker: { explain: () => null },
    },
    { lastJobAt: () => lastJobAt, silentMs: () => 0 },
  );
  return {
    health,
    pass: (ms: number) => {
      now += ms;
    },
    job: () => {
      lastJobAt = now;
    },
  };
}

test('a daemon lives for five minutes without a job, from its start and from the last one', () => {
  const { health, pass, job } = daemon({ queuesAnswer: true });
  expect(health.live()).toEqual({ ok: true, lastJobSecondsAgo: 0 });
  pass(DEAD_AFTER_MS - 1);
  expect(health.live()).toMatchObject({ ok: true });
  job();
  pass(DEAD_AFTER_MS - 1);
  expect(health.live()).toMatchObject({ ok: true });
  pass(1);
  expect(health.live()).toEqual({ ok: false, lastJobSecondsAgo: 300 });
});

test('while the queues are away no job can end: a restart would not help, and it lives', async () => {
  const { health, pass } = daemon({ queuesAnswer: false });
  await health.ready();
  pass(10 * DEAD_AFTER_MS);
  expect(health.live()).toEqual({ ok: true, lastJobSecondsAgo: 3000 });
});

test('where the queues answer it is dead, whatever Postgres does', async () => {
  const { health, pass } = daemon({ queuesAnswer: true });
  await health.ready();
  pass(DEAD_AFTER_MS);
  expect(health.live()).toMatchObject({ ok: false });
});
