import { ReplyError } from 'ioredis';
import { expect, test } from 'vitest';
import { createLogger, type Log } from '../../src/telemetry/log/logger.ts';
import { type StoreLines, storeLines } from '../../src/telemetry/log/store-lines.ts';
import { createLogThrottle } from '../../src/telemetry/log/throttle.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';

const CLOCK = { now: () => 0, monotonic: () => 0, sleep: () => Promise.resolve() };

function logged(work: (log: Log) => void): Record<string, unknown>[] {
  const lines: string[] = [];
  const destination = { write: (line: string) => lines.push(line) };
  work(createLogger({ level: 'info', secrets: () => [], destination }));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

function linesOf(work: (lines: StoreLines) => void): Record<string, unknown>[] {
  return logged((log) => work(storeLines(log, createLogThrottle(CLOCK), false)));
}

function said(errors: readonly unknown[]): string[] {
  const lines = linesOf(({ onQueueError }) => errors.forEach(onQueueError));
  return lines.map((line) => (line['err'] as { message: string }).message);
}

test('Redis errors with the same reason are logged as one, whichever script or job met them', () => {
  const oom = (script: string) =>
    new ReplyError(
      `OOM command not allowed when used memory > 'maxmemory'. script: ${script}, on @user_script:20.`,
    );
  const readOnly = new ReplyError("READONLY You can't write against a read only replica.");
  expect(said([oom('76b1'), oom('f00d'), readOnly, oom('beef')])).toEqual([
    expect.stringContaining('76b1'),
    expect.stringContaining('READONLY'),
  ]);
  const missing = (job: number) => new Error(`Missing key for job repeat:reprice:${job}. moveToFinished`);
  expect(said([missing(1795316104774), missing(1795316105774)])).toEqual([missing(1795316104774).message]);
  expect(said([new Error('one'), new Error('another'), new Error('one')])).toEqual(['one', 'another']);
});

test('queues count as working once they deliver a job, not when a job without them ends', () => {
  const events = (work: (lines: StoreLines) => void) => linesOf(work).map(({ event }) => event);
  const away = new Error('connect ECONNREFUSED');
  expect(
    events(({ onQueueError, worked }) => {
      onQueueError(away);
      worked('reprice');
    }),
  ).toEqual(['queues.error']);
  expect(
    events(({ onQueueError, onTaken }) => {
      onQueueError(away);
      onTaken();
    }),
  ).toEqual(['queues.error', 'queues.recovered']);
});

test('a foreign job is logged once, by its queue alone, and does not count as a store that is back', () => {
  const lines = logged((log) => {
    const { onJob, onFault } = createTelemetry({
      log,
      metrics: createMetrics({ version: 'test' }),
      clock: CLOCK,
      backlog: () => Promise.reject(new Error('nobody asks')),
      queuesInPostgres: false,
    });
    onFault('delta', Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
    for (const ms of [1, 2]) onJob({ queue: 'reprice', job: 'canary', outcome: 'unknown-job', ms });
  });
  expect(lines).toMatchObject([
    { event: 'store.lost' },
    { event: 'queues.unknown-job', level: 'warn', queue: 'reprice' },
  ]);
  expect(JSON.stringify(lines)).not.toContain('canary');
});
