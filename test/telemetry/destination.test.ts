import { closeSync, openSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openDestination } from '../../src/telemetry/log/destination.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';

/** Logs to a file with room for a number of bytes, which fails with this code when it is full. */
function logging(code = 'ENOSPC') {
  let written = '';
  let room = Infinity;
  let waitedMs = 0;
  let onWait = () => {};
  const destination = openDestination(7, {
    write(fd, bytes) {
      expect(fd).toBe(7);
      if (room === 0) throw Object.assign(new Error('cannot write'), { code });
      const taken = bytes.subarray(0, room);
      room -= taken.length;
      written += Buffer.from(taken).toString();
      return taken.length;
    },
    pause(ms) {
      waitedMs += ms;
      onWait();
    },
  });
  const log = createLogger({ level: 'info', secrets: () => [], destination });
  return {
    tell: (version: number) => log.info({ event: 'app.started', version }),
    has: (bytes: number) => {
      room = bytes;
    },
    whileWaiting: (work: () => void) => {
      onWait = work;
    },
    waitedMs: () => waitedMs,
    /** Returns the version of each line, or what it reports as lost. */
    lines: () =>
      written
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .map(({ event, version, lines, code: why }) =>
          event === 'app.started' ? version : [event, lines, why],
        ),
  };
}

test.each(['ENOSPC', 'EIO', 'EPIPE', 'EDQUOT'])(
  'if writing fails with %s, only lines are lost, and one line later says how many',
  (code) => {
    const { tell, has, lines } = logging(code);
    tell(1);
    has(0);
    for (const version of [2, 3, 4]) tell(version);
    expect(lines()).toEqual([1]);
    has(Infinity);
    tell(5);
    tell(6);
    expect(lines()).toEqual([1, 5, ['log.lost', 3, code], 6]);
  },
);

test('if the disk fills up in the middle of a line, its rest is written once there is room', () => {
  const { tell, has, lines } = logging();
  has(20);
  tell(1);
  tell(2);
  tell(3);
  has(Infinity);
  tell(4);
  expect(lines()).toEqual([1, 4, ['log.lost', 2, 'ENOSPC']]);
});

test('the report of lost lines is repeated if there was no room for it', () => {
  const { tell, has, lines } = logging();
  tell(1);
  has(0);
  tell(2);
  tell(3);
  // Room for one line: the versions have one digit each.
  has(Buffer.byteLength(lengthOfOne()));
  tell(4);
  expect(lines()).toEqual([1, 4]);
  tell(5);
  has(Infinity);
  tell(6);
  expect(lines()).toEqual([1, 4, 6, ['log.lost', 3, 'ENOSPC']]);
});

/** Returns the length of a line as `tell` writes it, as text. */
function lengthOfOne(): string {
  let text = '';
  const destination = { write: (line: string) => (text = line) };
  createLogger({ level: 'info', secrets: () => [], destination }).info({ event: 'app.started', version: 1 });
  return text;
}

test('a slow reader is waited for briefly, and one that does not read at all only once', () => {
  const { tell, has, lines, whileWaiting, waitedMs } = logging('EAGAIN');
  has(0);
  whileWaiting(() => has(Infinity));
  tell(1);
  expect(lines()).toEqual([1]);
  const short = waitedMs();
  expect(short).toBeGreaterThan(0);

  has(0);
  whileWaiting(() => {});
  tell(2);
  const long = waitedMs() - short;
  expect(long).toBeLessThanOrEqual(200);
  tell(3);
  expect(waitedMs() - short).toBe(long);
  has(Infinity);
  tell(4);
  expect(lines()).toEqual([1, 4, ['log.lost', 2, 'EAGAIN']]);
});

test.skipIf(process.platform !== 'linux')('a full disk never makes a log call throw', () => {
  const fd = openSync('/dev/full', 'w');
  try {
    const log = createLogger({ level: 'info', secrets: () => [], destination: openDestination(fd) });
    for (let n = 0; n < 3; n += 1) expect(() => log.info({ event: 'app.started' })).not.toThrow();
    expect(() => log.fatal({ event: 'app.crashed' })).not.toThrow();
  } finally {
    closeSync(fd);
  }
});
