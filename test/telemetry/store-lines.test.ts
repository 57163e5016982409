import { ReplyError } from 'ioredis';
import { expect, test } from 'vitest';
import { createLogger } from '../../src/telemetry/log/logger.ts';
import { storeLines } from '../../src/telemetry/log/store-lines.ts';
import { createLogThrottle } from '../../src/telemetry/log/throttle.ts';

function said(errors: readonly unknown[]): string[] {
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    secrets: () => [],
    destination: { write: (line: string) => lines.push(line) },
  });
  const clock = { now: () => 0, monotonic: () => 0, sleep: () => Promise.resolve() };
  const { onQueueError } = storeLines(log, createLogThrottle(clock), false);
  for (const error of errors) onQueueError(error);
  return lines.map((line) => (JSON.parse(line) as { err: { message: string } }).err.message);
}

test('what Redis refuses for one reason is one error, whichever script met it', () => {
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
