import { afterEach, expect, test } from 'vitest';
import { captureLibraryOutput } from '../../src/cli/process.ts';
import { libraryLines } from '../../src/telemetry/log/lines.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { noticeLines } from '../../src/telemetry/log/store-lines.ts';

let at = 0;
const clock = { now: () => at, monotonic: () => at, sleep: () => Promise.resolve() };

function logged() {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    level: 'debug',
    secrets: () => ['hunter2-secret'],
    destination: { write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  return { log, lines };
}

const ours = { ...console };
const listeners = process.listeners('warning');
afterEach(() => {
  Object.assign(console, ours);
  process.removeAllListeners('warning');
  for (const listener of listeners) process.on('warning', listener);
});

test('output of libraries and Node.js warnings become scrubbed lines, and repetitions debug lines', async () => {
  const { log, lines } = logged();
  captureLibraryOutput(libraryLines(log, clock));
  console.warn('IMPORTANT! Eviction policy is %s, hunter2-secret', 'allkeys-lru');
  console.warn('IMPORTANT! Eviction policy is %s, hunter2-secret', 'allkeys-lru');
  console.error(new Error('from a library'));
  process.emitWarning('too many listeners', 'MaxListenersExceededWarning');
  await new Promise(setImmediate);
  Object.assign(console, ours);
  const text = 'IMPORTANT! Eviction policy is allkeys-lru, [redacted]';
  expect(lines).toMatchObject([
    { level: 'warn', event: 'library.noise', from: 'console.warn', text, times: 1 },
    { level: 'debug', event: 'library.noise', from: 'console.warn', text, times: 2 },
    {
      level: 'warn',
      event: 'library.noise',
      from: 'console.error',
      text: expect.stringContaining('from a library') as unknown,
    },
    {
      level: 'warn',
      event: 'library.noise',
      from: 'MaxListenersExceededWarning',
      text: 'too many listeners',
    },
  ]);
});

test('texts that differ only in numbers count as the same, and at most a hundred different ones are logged', () => {
  const { log, lines } = logged();
  const tell = libraryLines(log, clock);
  const told = () => lines.filter(({ level }) => level === 'warn').length;
  for (let n = 0; n < 500; n += 1) tell('console.error', `Missing lock for job ${n}. moveToFinished`);
  expect(told()).toBe(1);
  for (let n = 0; n < 500; n += 1) tell('console.warn', `no such job: ${'x'.repeat(n % 450)}`);
  expect(told()).toBeLessThanOrEqual(1 + 100);
  tell('console.warn', 'something else');
  expect(told()).toBeLessThanOrEqual(1 + 100);
  at += 3_600_000;
  tell('console.warn', 'something else');
  expect(lines.at(-1)).toMatchObject({ level: 'warn', text: 'something else' });
});

test('Postgres warnings become lines, throttled when repeated; notices are logged only at debug', () => {
  const { log, lines } = logged();
  const tell = noticeLines(log, clock);
  const collation = { severity: 'WARNING', code: '01000', message: 'collation version mismatch' };
  tell(collation);
  tell(collation);
  tell({ severity: 'NOTICE', code: '42P07', message: 'relation exists, skipping' });
  at += 60_000;
  tell(collation);
  expect(new Set(lines.map(({ event }) => event))).toEqual(new Set(['postgres.notice']));
  expect(lines.map(({ level, code, times }) => [level, code, times])).toEqual([
    ['warn', '01000', 1],
    ['debug', '01000', 2],
    ['debug', '42P07', undefined],
    ['warn', '01000', 3],
  ]);
});
