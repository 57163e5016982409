import { expect, test } from 'vitest';
import { createHealth, DEAD_AFTER_MS } from '../../src/daemon/health.ts';
import { startWatches, type WatchedParts } from '../../src/daemon/watches.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { StatementAtWork } from '../../src/store/connection/at-work.ts';
import type { Sql } from '../../src/store/connection/db.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { settingsWith } from '../support/settings.ts';

const STARTED_AT = 1_000_000;

/**
 * Returns a clock that is advanced by hand. Sleepers wake when they are due, and finish their work before time
 * goes on.
 */
function handClock() {
  let now = STARTED_AT;
  const sleepers = new Set<{ readonly at: number; readonly wake: () => void }>();
  const clock: Clock = {
    now: () => 0,
    monotonic: () => now,
    sleep: (ms) => new Promise((resolve) => sleepers.add({ at: now + ms, wake: resolve })),
  };
  return {
    clock,
    skip: (ms: number) => {
      now += ms;
    },
    pass: async (ms: number) => {
      const end = now + ms;
      for (;;) {
        await new Promise(setImmediate);
        const [next] = [...sleepers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at);
        if (next === undefined) break;
        sleepers.delete(next);
        now = Math.max(now, next.at);
        next.wake();
      }
      now = end;
    },
  };
}

/**
 * Creates a daemon whose Postgres is down, whose queues are up or down, and whose clock and last job the test
 * controls.
 */
function daemon({
  queuesAnswer,
  because = new Error('away'),
  atWork = [],
}: {
  readonly queuesAnswer: boolean;
  readonly because?: Error;
  readonly atWork?: readonly StatementAtWork[];
}) {
  let lastJobAt: number | null = null;
  const { clock, skip, pass } = handClock();
  // Fragments of statements are never awaited.
  const away = Promise.reject(because);
  away.catch(() => undefined);
  const sql = Object.assign(() => away, {
    begin: () => away,
    unsafe: () => away,
    options: {},
  }) as unknown as Sql;
  const parts = {
    config: settingsWith(),
    clock,
    sync: { sql, clock },
    log: createLogger({ level: 'silent', secrets: () => [] }),
    backend: {
      ping: () => (queuesAnswer ? Promise.resolve() : Promise.reject(new Error('away'))),
      describe: () => 'away',
    },
    metrics: createMetrics({ version: '1' }),
    pause: { failure: () => null },
    clocks: { wrong: () => null, notPutRight: () => null, check: () => away },
    breaker: { explain: () => null },
  };
  const runner = { lastJobAt: () => lastJobAt, silentMs: () => 0 };
  const health = createHealth(parts, runner, () => atWork);
  return {
    health,
    /** Starts what a daemon does all the time by itself. */
    watch: () => {
      const watched = {
        ...parts,
        names: { read: () => away },
        telemetry: {},
        postgresAnswers: () => away,
        atWork: () => [],
        health,
        settings: () => away,
      } satisfies Record<keyof WatchedParts, unknown>;
      void startWatches(
        watched as unknown as WatchedParts,
        runner as unknown as Parameters<typeof startWatches>[1],
        () => {},
      );
    },
    skip,
    pass,
    job: () => {
      lastJobAt = clock.monotonic();
    },
  };
}

test('a daemon counts as live for five minutes without a job, from its start and from its last job', () => {
  const { health, skip, job } = daemon({ queuesAnswer: true });
  expect(health.live()).toEqual({ ok: true, lastJobSecondsAgo: 0 });
  skip(DEAD_AFTER_MS - 1);
  expect(health.live()).toMatchObject({ ok: true });
  job();
  skip(DEAD_AFTER_MS - 1);
  expect(health.live()).toMatchObject({ ok: true });
  skip(1);
  expect(health.live()).toEqual({ ok: false, lastJobSecondsAgo: 300 });
});

test('a daemon stays live while the queues are down, because a restart would not help', async () => {
  const { health, skip } = daemon({ queuesAnswer: false });
  await health.ready();
  skip(10 * DEAD_AFTER_MS);
  expect(health.live()).toEqual({ ok: true, lastJobSecondsAgo: 3000 });
});

test('a daemon without jobs is dead if the queues answer, whatever Postgres does', async () => {
  const { health, skip } = daemon({ queuesAnswer: true });
  await health.ready();
  skip(DEAD_AFTER_MS);
  expect(health.live()).toMatchObject({ ok: false });
});

test.each([true, false])(
  '/livez is right even if nothing else is requested; the queues answer: %s',
  async (queuesAnswer) => {
    const { health, watch, pass } = daemon({ queuesAnswer });
    watch();
    await pass(DEAD_AFTER_MS - 1);
    expect(health.live()).toMatchObject({ ok: true });
    await pass(1);
    expect(health.live()).toMatchObject({ ok: !queuesAnswer });
    await pass(2 * DEAD_AFTER_MS);
    expect(health.live()).toMatchObject({ ok: !queuesAnswer });
  },
);

const AT_WORK: StatementAtWork = {
  pid: 7,
  seconds: 400,
  waitsFor: null,
  blockers: [],
  tables: ['public.orders'],
  attached: [],
};

test('a daemon stays live while Postgres works on its statement, and readiness says on which tables', async () => {
  const { health, skip } = daemon({
    queuesAnswer: true,
    atWork: [{ ...AT_WORK, pid: 8, seconds: 30 }, AT_WORK],
  });
  skip(10 * DEAD_AFTER_MS);
  expect(health.live()).toMatchObject({ ok: true });
  expect(await health.ready()).toMatchObject({
    ok: false,
    reason:
      'Postgres has been at work on a statement of this daemon (process 7 of Postgres) for 7m: it is at public.orders; it is waited for',
  });
});

test('readiness names a certificate that is not trusted, instead of a server that does not answer', async () => {
  const because = Object.assign(new Error('self-signed'), { code: 'SELF_SIGNED_CERT_IN_CHAIN' });
  const { reason } = (await daemon({ queuesAnswer: true, because }).health.ready()) as { reason?: string };
  expect(reason).toContain('the certificate of Postgres is not trusted (SELF_SIGNED_CERT_IN_CHAIN)');
});
