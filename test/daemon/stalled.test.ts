import { expect, test } from 'vitest';
import { watchJobs } from '../../src/daemon/watches.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { Log } from '../../src/telemetry/log/logger.ts';

const MINUTE = 60_000;

/**
 * Watches a daemon for an hour whose last job ended at `lastJobAt(now)`. Returns when it was found stalled, in
 * minutes, and what was logged.
 */
async function found(daemon: {
  lastJobAt: (now: number) => number;
  queuesAnswer?: (now: number) => boolean;
  postgresAnswers?: (now: number) => boolean;
  isAtWork?: (now: number) => boolean;
  /** When the process is stopped, for ten minutes. */
  stoppedAt?: number;
}) {
  let now = 0;
  const lines: unknown[] = [];
  const ended = Promise.withResolvers<'never'>();
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    async sleep(ms: number, signal?: AbortSignal) {
      if (now > 60 * MINUTE) {
        ended.resolve('never');
        await new Promise((resolve) => {
          signal?.addEventListener('abort', resolve, { once: true });
        });
      }
      const jump = daemon.stoppedAt !== undefined && now < daemon.stoppedAt && now + ms >= daemon.stoppedAt;
      now += ms + (jump ? 10 * MINUTE : 0);
    },
  };
  const answersAt = (answers: ((now: number) => boolean) | undefined) => async () => {
    if (answers?.(now) === false) throw new Error('no answer');
  };
  let stop: () => Promise<unknown> = async () => {};
  const stalled = watchJobs(
    {
      log: { fatal: (line: unknown) => lines.push(line) } as unknown as Log,
      backend: { ping: answersAt(daemon.queuesAnswer) },
      sync: { clock },
      atWork: () => (daemon.isAtWork?.(now) === true ? ['a statement'] : []),
      postgresAnswers: answersAt(daemon.postgresAnswers),
    },
    { lastJobAt: () => daemon.lastJobAt(now) },
    (dispose) => (stop = dispose),
  );
  const at = await Promise.race([stalled.then(() => now / MINUTE), ended.promise]);
  await stop();
  return { at, lines };
}

test('a daemon whose jobs end is never stalled', async () => {
  expect(await found({ lastJobAt: (now) => now - 4.9 * MINUTE })).toEqual({ at: 'never', lines: [] });
});

test('a daemon that completes no job for five minutes is stalled, and logs that', async () => {
  const { at, lines } = await found({ lastJobAt: () => 0 });
  expect(at).toBeGreaterThanOrEqual(5);
  expect(at).toBeLessThan(7);
  expect(lines).toEqual([{ event: 'app.stalled', lastJobSecondsAgo: expect.any(Number) as number }]);
});

test('a daemon is not stalled while the queues or Postgres do not answer', async () => {
  const back = 30 * MINUTE;
  const answers = (now: number) => now >= back;
  for (const away of [{ queuesAnswer: answers }, { postgresAnswers: answers }])
    expect((await found({ lastJobAt: () => 0, ...away })).at).toBeGreaterThanOrEqual(30);
});

test('a daemon is not stalled while Postgres works on its statement', async () => {
  const isAtWork = (now: number) => now < 30 * MINUTE;
  expect((await found({ lastJobAt: () => 0, isAtWork })).at).toBeGreaterThanOrEqual(30);
});

test('a process that was stopped for minutes gets time to complete a job first', async () => {
  const stoppedAt = 20 * MINUTE;
  // It lost its connections meanwhile, and its first job afterwards ends half a minute later.
  const lastJobAt = (now: number) => (now > stoppedAt && now < stoppedAt + 10.5 * MINUTE ? stoppedAt : now);
  expect((await found({ lastJobAt, stoppedAt })).at).toBe('never');
});
