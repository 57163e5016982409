import { expect, test } from 'vitest';
import { followLines, lifeLines } from '../../src/cli/follow/lines.ts';
import type { Place } from '../../src/store/history/followers.ts';
import { clockLines } from '../../src/telemetry/log/lines.ts';
import { createLogger, type Log } from '../../src/telemetry/log/logger.ts';
import { storeLines, waitLines } from '../../src/telemetry/log/store-lines.ts';
import { createLogThrottle, type LogThrottle } from '../../src/telemetry/log/throttle.ts';

/* Everything that the operator was told about ends in the log, with how often it happened and how long it lasted. */

function said(
  work: (log: Log, throttle: LogThrottle, passes: (seconds: number) => void) => void,
  level: 'info' | 'debug' = 'info',
) {
  let seconds = 0;
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) };
  const log = createLogger({ level, secrets: () => [], destination });
  const throttle = createLogThrottle({
    now: () => 0,
    monotonic: () => seconds * 1000,
    sleep: () => Promise.resolve(),
  });
  work(log, throttle, (by) => (seconds += by));
  return lines;
}

const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
const OVER = { level: 'info', times: 2, lastedSeconds: 40 };

test('a failing job ends with a line when it works again', () => {
  const lines = said((log, throttle, passes) => {
    const { onFault, worked } = storeLines(log, throttle, false);
    onFault('delta', new Error('unexpected'));
    passes(40);
    onFault('delta', new Error('unexpected'));
    worked('delta');
  });
  expect(lines.at(-1)).toMatchObject({ ...OVER, event: 'job.recovered', job: 'delta' });
});

test('a slow statement ends with a line when it is over', () => {
  const slow = {
    pid: 7,
    seconds: 31,
    waitsFor: null,
    blockers: [],
    tables: ['catalog.prices'],
    attached: [],
  };
  const lines = said((log, throttle, passes) => {
    const { onSlow } = waitLines(log, throttle);
    onSlow([slow]);
    passes(40);
    onSlow([slow]);
    onSlow([]);
  });
  expect(lines.at(-1)).toMatchObject({ ...OVER, event: 'store.slow-ended' });
});

test('differing clocks end with a line when they agree again', () => {
  const lines = said((log, throttle, passes) => {
    const tell = clockLines(log, throttle);
    const wrong = { clock: 'postgres', aheadMs: 90_000 } as const;
    tell({ event: 'clock.compared', wrong });
    passes(40);
    tell({ event: 'clock.compared', wrong });
    tell({ event: 'clock.compared', wrong: null });
  });
  expect(lines.map(({ event }) => event)).toEqual(['clock.differs', 'clock.agrees']);
  expect(lines.at(-1)).toMatchObject(OVER);
});

test('a failing receiver and a lost Postgres end with a line when they are back', () => {
  const lines = said((log, throttle, passes) => {
    const tell = followLines(log, throttle, 'shop');
    const life = lifeLines(log, throttle, 'shop');
    const result = { outcome: 'failed', status: 503, said: 'busy', retryAfterMs: null } as const;
    for (let failures = 1; failures <= 2; failures += 1) {
      tell({ event: 'failed', to: 9n, failures, result, retryInMs: 1000 });
      life.storeLost(reset, 1000);
      if (failures === 1) passes(40);
    }
    tell({ event: 'delivered', changes: 3, to: 9n, ms: 4 });
    life.storeBack();
  });
  const of = (event: string) => lines.find((line) => line['event'] === event);
  expect(of('follower.failing')).toMatchObject({ level: 'warn', to: '9', status: 503, failures: 1 });
  expect(of('follower.store-lost')).toMatchObject({ level: 'warn', retryInMs: 1000 });
  expect(of('follower.recovered')).toMatchObject({ ...OVER, follower: 'shop' });
  expect(of('follower.store-back')).toMatchObject({ ...OVER, follower: 'shop' });
});

test('batches that a receiver rejects, or takes only in smaller pieces, are logged with its answer', () => {
  const result = { outcome: 'refused', status: 413, said: 'too large', retryAfterMs: null } as const;
  const lines = said((log, throttle) => {
    const tell = followLines(log, throttle, 'shop');
    tell({ event: 'smaller', changes: 500, bytes: 90_000, result });
    tell({ event: 'buried', first: 7n, last: 9n, changes: 3, attempts: 10, result });
    tell({ event: 'copied', position: 12n });
  });
  expect(lines).toMatchObject([
    { level: 'warn', event: 'follower.smaller', changes: 500, bytes: 90_000, status: 413, said: 'too large' },
    {
      level: 'error',
      event: 'follower.dead-letter',
      first: '7',
      last: '9',
      changes: 3,
      attempts: 10,
      status: 413,
    },
    { level: 'info', event: 'follower.copied', position: '12' },
  ]);
});

test.each([
  ['stopped', 'info', 'follower.stopped'],
  ['unwanted', 'error', 'follower.unwanted'],
  ['undelivered', 'error', 'follower.undelivered'],
] as const)('a follower that has ended (%s) says where', (end, level, event) => {
  const lines = said((log, throttle) =>
    lifeLines(log, throttle, 'shop').ended(end, { position: 12n } as Place),
  );
  expect(lines).toMatchObject([{ level, event, follower: 'shop', position: '12' }]);
});

test('each batch that a receiver takes is a debug line', () => {
  const work = (log: Log, throttle: LogThrottle) =>
    followLines(log, throttle, 'shop')({ event: 'delivered', changes: 3, to: 9n, ms: 4.4 });
  expect(said(work)).toEqual([]);
  expect(said(work, 'debug')).toMatchObject([
    { level: 'debug', event: 'follower.delivered', follower: 'shop', to: '9', changes: 3, durationMs: 4 },
  ]);
});
