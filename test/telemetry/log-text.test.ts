import { expect, test } from 'vitest';
import { createLogger, logFormOf, textLine } from '../../src/telemetry/log/logger.ts';

const TTY = { isTerminal: true, colour: true };
const PIPE = { isTerminal: false, colour: false };

test.each([
  ['auto', TTY, { as: 'text', colour: true }],
  ['auto', PIPE, { as: 'json' }],
  ['json', TTY, { as: 'json' }],
  ['text', PIPE, { as: 'text', colour: false }],
  ['text', { isTerminal: true, colour: false }, { as: 'text', colour: false }],
] as const)('LOG_FORMAT=%s on a stdout like %j gives %j', (format, stdout, form) => {
  expect(logFormOf(format, stdout)).toEqual(form);
});

function logged(write: (log: ReturnType<typeof createLogger>) => void): string {
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    secrets: () => ['canary'],
    form: { as: 'text', colour: false },
    destination: { write: (line: string) => lines.push(line) },
  });
  write(log);
  return lines.join('').replace(/^\d\d:\d\d:\d\dZ/gm, 'TIME');
}

test('a line shows time, level, message, event and members, and below them causes and what comes next', () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', kind: 'away' });
  const err = Object.assign(new Error('no canary', { cause }), { kind: 'x', hint: 'start it' });
  const text = logged((log) => {
    log.info({ event: 'app.started', version: '1', queues: 'postgres', host: '::1', port: 9464 });
    log.warn({ event: 'database.waiting', waitedSeconds: 1, patienceSeconds: 60, err });
  });
  expect(text).toBe(`\
TIME info  the daemon is running (app.started) version=1 queues=postgres host=::1 port=9464
TIME warn  Postgres does not answer (database.waiting) waitedSeconds=1 patienceSeconds=60
                because: Error: no [redacted]; start it
                because: Error: connect ECONNREFUSED (ECONNREFUSED)
                next: it is retried four times a second for patienceSeconds; then the start fails with exit code 1
`);
});

test('no member lets a control character through to the terminal', () => {
  const evil = '\u001b[2J\u009b31m\r\n';
  const line = {
    level: evil,
    time: evil,
    event: evil,
    msg: evil,
    next: evil,
    [evil]: evil,
    err: { type: evil, message: evil, stack: `x\n    at ${evil}` },
  };
  // oxlint-disable-next-line no-control-regex
  expect(textLine(JSON.stringify(line), false)).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
});
