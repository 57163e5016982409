import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { rememberProblems } from '../../src/telemetry/log/problems.ts';
import { createScrubber } from '../../src/telemetry/log/scrub.ts';

function remembering() {
  const lines: string[] = [];
  const secrets = () => ['canary-secret'];
  const inner = createLogger({
    level: 'error',
    secrets,
    destination: { write: (line: string) => lines.push(line) },
  });
  return { lines, ...rememberProblems(inner, createScrubber(secrets), systemClock) };
}

test('warnings and worse are remembered, newest first, whatever the log level, and still logged', () => {
  const { log, lines, problems } = remembering();
  log.info({ event: 'app.started' });
  log.warn({ event: 'delta.failed', because: 'timeout' }, 'it failed');
  log.error({ event: 'once.timeout' });
  expect(problems()).toMatchObject([
    { level: 'error', event: 'once.timeout', message: '`run --once` timed out', times: 1 },
    { level: 'warn', event: 'delta.failed', message: 'it failed (timeout)', times: 1 },
  ]);
  expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual(['once.timeout']);
});

test('a repeated problem is counted, not listed again', () => {
  const { log, problems } = remembering();
  for (let n = 0; n < 5; n += 1) log.warn({ event: 'delta.failed' }, 'again');
  log.warn({ event: 'delta.failed' }, 'otherwise');
  expect(problems().map(({ message, times }) => [message, times])).toEqual([
    ['otherwise', 1],
    ['again', 5],
  ]);
});

test('problems are scrubbed, short and few', () => {
  const { log, problems } = remembering();
  for (let n = 0; n < 100; n += 1)
    log.warn(
      {
        event: 'delta.failed',
        because: 'canary-secret',
        hint: `canary-secret ${'y'.repeat(5000)}`,
        nextInSeconds: 7,
      },
      `${n} https://files.example.com/x?X-Amz-Signature=abc canary-secret ${'x'.repeat(5000)}`,
    );
  expect(problems()).toHaveLength(20);
  expect(JSON.stringify(problems())).not.toMatch(/canary|abc|nextInSeconds/);
  expect(JSON.stringify(problems()).length).toBeLessThan(20 * 800);
});

test('each problem has a hint: that of its error, or else what comes next, with the values of the line', () => {
  const { log, problems } = remembering();
  const until = new Date('2026-11-21T12:00:00Z');
  log.warn({ event: 'delta.failed', because: 'network', hint: 'check PARTNER_BASE_URL' });
  log.warn({ event: 'app.dispose-failed', err: Object.assign(new Error('x'), { hint: 'restart it' }) });
  log.warn({ event: 'pace.silenced', backoffUntil: until, outcome: 'throttled-or-forbidden' });
  log.warn({ event: 'bulk.failed', because: 'timeout', pausedMs: 90_000 });
  expect(problems().map(({ hint }) => hint)).toEqual([
    expect.stringContaining('on all wait for 90s, which doubles'),
    expect.stringMatching(/^all requests are paused until 2026-11-21T12:00:00.000Z, then one is sent/),
    'restart it',
    'check PARTNER_BASE_URL',
  ]);
});

test('a problem names a few of the SKUs of its line', () => {
  const { log, problems } = remembering();
  log.warn({ event: 'size-type.changed', count: 1, skus: ['DD1391-100'] });
  log.warn({ event: 'size-type.changed', count: 5, skus: ['A', 'B', 'C', 'D', 'E'] });
  expect(problems().map(({ message }) => message.slice(message.lastIndexOf('(')))).toEqual([
    '(A, B, C, …)',
    '(DD1391-100)',
  ]);
});

test('a line that is not JSON is replaced by one that says so, without its secrets', () => {
  const line = createScrubber(() => ['canary-secret']).line('{"level":"info" canary-secret');
  expect(JSON.parse(line)).toEqual({
    level: 'error',
    event: 'log.unreadable',
    text: '{"level":"info" [redacted]',
  });
});
