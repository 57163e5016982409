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

test('warnings and worse are remembered, the newest first, whatever the log level; the log gets them all the same', () => {
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

test('the same again is one with a number', () => {
  const { log, problems } = remembering();
  for (let n = 0; n < 5; n += 1) log.warn({ event: 'delta.failed' }, 'again');
  log.warn({ event: 'delta.failed' }, 'otherwise');
  expect(problems().map(({ message, times }) => [message, times])).toEqual([
    ['otherwise', 1],
    ['again', 5],
  ]);
});

test('they are scrubbed, short and few', () => {
  const { log, problems } = remembering();
  for (let n = 0; n < 100; n += 1)
    log.warn(
      { event: 'delta.failed', because: 'canary-secret', hint: 'not kept' },
      `${n} https://files.example.com/x?X-Amz-Signature=abc canary-secret ${'x'.repeat(5000)}`,
    );
  expect(problems()).toHaveLength(20);
  expect(JSON.stringify(problems())).not.toMatch(/canary|abc|not kept/);
  expect(JSON.stringify(problems()).length).toBeLessThan(20 * 500);
});
