import { hostname } from 'node:os';
import { assert, property, string } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createLogger, type LoggerOptions } from '../../src/telemetry/log/logger.ts';

const SECRET = 'p@ss/w"rd+ é{hunter2}';
const KEY = 'supplier-key-1';

/** The log without the types that allow only declared members, because these tests use arbitrary ones. */
type AnyLog = Record<'debug' | 'info' | 'warn' | 'error', (fields: object, message?: string) => void>;

function logged(options: Partial<LoggerOptions> = {}) {
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    secrets: () => [SECRET, KEY, `${KEY}:${SECRET}`],
    destination: { write: (line: string) => lines.push(line) },
    ...options,
  });
  return {
    log: log as unknown as AnyLog,
    lines,
    last: () => JSON.parse(lines.at(-1) ?? 'null') as Record<string, unknown>,
  };
}

test('a line is one JSON object with level, UTC time, event, message and members', () => {
  const { log, lines, last } = logged();
  log.info({ event: 'delta.applied', changed: 3 }, 'delta applied');
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^\{.*\}\n$/);
  expect(last()).toMatchObject({
    level: 'info',
    event: 'delta.applied',
    msg: 'delta applied',
    changed: 3,
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  });
});

test('each line names its mirror', () => {
  const { log, last } = logged({ mirrorName: 'prod' });
  log.info({ event: 'app.started' });
  expect(last()).toMatchObject({ mirror: 'prod' });
  const unnamed = logged();
  unnamed.log.info({ event: 'app.started' });
  expect(unnamed.last()).toMatchObject({ mirror: hostname() });
});

test('lines below the level are not written, and from warn on a line says what comes next', () => {
  const { log, lines, last } = logged({ level: 'warn' });
  log.info({ event: 'app.started' }, 'no');
  expect(lines).toEqual([]);
  log.warn({ event: 'app.dispose-failed' });
  expect(last()).toMatchObject({
    event: 'app.dispose-failed',
    msg: 'a component could not be closed during shutdown',
    next: 'shutdown continues with the other components',
  });
});

test('control and direction characters are escaped, and parse back to the same text', () => {
  const { log, lines, last } = logged();
  const evil = '\u009b31m \u007f \u061c \u200e\u200f \u2028\u2029 \u202a\u202e \u2066\u2069 é 日本';
  log.info({ event: 'delta.applied', token: evil, nested: { [evil]: [evil] } });
  expect(last()).toMatchObject({ token: evil, nested: { [evil]: [evil] } });
  expect(lines.join('')).not.toMatch(/[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/);
  expect(lines.join('')).toContain('é 日本');
});

test('a secret with many backslashes is found, and a near match costs no extra time', () => {
  const secret = `a${'\\'.repeat(80)}b`;
  const { log, lines } = logged({ secrets: () => [secret] });
  const begun = performance.now();
  log.info({ event: 'delta.applied', token: `x${secret}y`, nearly: `a${'\\'.repeat(2000)}c` });
  expect(performance.now() - begun).toBeLessThan(1000);
  expect(lines.join('')).toContain('x[redacted]y');
  expect(lines.join('')).not.toContain(secret);
});

describe('secrets', () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const leaks: [string, string][] = [
    ['plain', SECRET],
    ['base64 of the pair', base64(`${KEY}:${SECRET}`)],
    ['base64 of the pair with a newline', base64(`${KEY}:${SECRET}\n`)],
    ['base64url', Buffer.from(`${KEY}:${SECRET}`).toString('base64url')],
    ['percent-encoded', encodeURIComponent(SECRET)],
    ['percent-encoded in lower case', encodeURIComponent(SECRET).replace(/%../g, (hex) => hex.toLowerCase())],
    ['form-encoded', new URLSearchParams({ s: SECRET }).toString().slice(2)],
    ['JSON-escaped', JSON.stringify({ s: SECRET })],
    [
      'JSON of an ASCII-only writer',
      JSON.stringify(SECRET)
        .replaceAll('é', String.raw`\u00E9`)
        .replaceAll('/', String.raw`\/`),
    ],
    ['JSON in JSON in JSON', JSON.stringify([JSON.stringify([JSON.stringify({ s: SECRET })])])],
    ['JSON in JSON', JSON.stringify({ body: JSON.stringify({ s: SECRET }) })],
  ];
  const inner = /hunter2|c3VwcGxpZXIta2V5/;

  test.each(leaks)('%s: is hidden in messages, members, names, causes and stacks', (_name, leak) => {
    const { log, lines } = logged({ level: 'debug' });
    const error = new Error(`outer ${leak}`, {
      cause: new Error(`inner ${leak}`, { cause: { deep: leak } }),
    });
    log.error({ event: 'app.started', err: error }, `message ${leak}`);
    log.error({ event: 'app.started', [leak]: { nested: [leak, { more: leak }] } }, 'members');
    log.error({ event: 'app.started', errors: new AggregateError([new Error(leak)], leak) }, 'aggregate');
    expect(lines).toHaveLength(3);
    expect(lines.join('')).toContain('[redacted]');
    expect(lines.join('')).not.toMatch(inner);
  });

  test('a rotated secret is hidden from the next line on', () => {
    const secrets = ['first-secret'];
    const { log, last } = logged({ secrets: () => secrets });
    log.info({ event: 'app.started' }, 'second-secret');
    expect(last()['msg']).toBe('second-secret');
    secrets.push('second-secret');
    log.info({ event: 'app.started' }, 'first-secret second-secret');
    expect(last()['msg']).toBe('[redacted] [redacted]');
  });

  test('leave valid JSON even if they are numbers, words of the line itself or empty', () => {
    const { log, last } = logged({ secrets: () => ['4711', 'level', '', '"', '}'] });
    log.info({ event: 'app.started', port: 4711, note: '"}' }, 'm');
    expect(last()).toMatchObject({ port: '[redacted]', note: '[redacted][redacted]', '[redacted]': 'info' });
    log.info({ event: 'app.started', port: 4711 }, 'm');
    expect(last()['port']).toBe('[redacted]');
  });

  test('are removed from any message, and the line stays JSON', () => {
    assert(
      property(string({ minLength: 4, unit: 'binary' }), string({ unit: 'binary' }), (secret, text) => {
        const { log, last } = logged({ secrets: () => [secret] });
        log.info({ event: 'app.started', s: `${text}${secret}${text}` }, 'm');
        // The replacement may itself contain a short secret; nothing else may.
        expect(String(last()['s']).replaceAll('[redacted]', '\u0000\u0000')).not.toContain(secret);
      }),
    );
  });
});

describe('the log hides without registration', () => {
  const url = 'https://files.example/m.gz?X-Amz-Signature=abcdef0123&X-Amz-Credential=AKIA';
  test.each([
    ['presigned URL', `GET ${url} failed`, 'GET https://files.example/m.gz?[redacted] failed'],
    ['path with a query', 'path: /m.gz?Signature=abc', 'path: /m.gz?[redacted]'],
    ['encoded URL', encodeURIComponent('X-Amz-Signature=abcdef'), 'X-Amz-Signature%3D[redacted]'],
    ['rest of a URL', '…&X-Amz-Signature=abcdef&x=1', '…&X-Amz-Signature=[redacted]&x=1'],
    ['a query without names', 'https://h/p?abcdef', 'https://h/p?[redacted]'],
    ['header', 'authorization: Basic a2V5OnNlY3JldA==', 'authorization: [redacted]'],
    ['header in JSON', '{"Authorization":"Basic a2V5OnNlY3JldA=="}', '{"Authorization":"[redacted]"}'],
    ['value on its own', 'sent Basic a2V5OnNlY3JldA== to', 'sent Basic [redacted] to'],
    ['bearer', 'Bearer eyJhbGciOi.J9', 'Bearer [redacted]'],
    ['userinfo', 'postgres://user:pw@db/x', 'postgres://[redacted]@db/x'],
  ])('%s', (_name, text, shown) => {
    const { log, last } = logged({ secrets: () => [] });
    log.info({ event: 'app.started' }, text);
    expect(last()['msg']).toBe(shown);
  });

  test.each(['is it due? yes, basic authentication = fine', 'see https://host/path#part', 'a?b', 'sig of 5'])(
    'but no prose: %s',
    (text) => {
      const { log, last } = logged({ secrets: () => [] });
      log.info({ event: 'app.started' }, text);
      expect(last()['msg']).toBe(text);
    },
  );

  test('an ERR_INVALID_URL, whose input is the URL', () => {
    const { log, lines } = logged({ level: 'debug', secrets: () => [] });
    let caught: unknown;
    try {
      void new URL('https://a b/m.gz?X-Amz-Signature=abcdef0123');
    } catch (error) {
      caught = error;
    }
    log.error({ event: 'app.started', err: caught, input: (caught as { input?: unknown }).input }, 'bad URL');
    expect(lines.join('')).toContain('ERR_INVALID_URL');
    expect(lines.join('')).not.toContain('abcdef');
  });

  test('headers by their names, whatever their values', () => {
    const { log, last } = logged({ secrets: () => [] });
    log.info(
      {
        event: 'app.started',
        headers: { Authorization: ['odd'], 'set-cookie': 'a', accept: 'gzip' },
        password: 1,
      },
      'm',
    );
    expect(last()).toMatchObject({
      headers: { Authorization: '[redacted]', 'set-cookie': '[redacted]', accept: 'gzip' },
      password: '[redacted]',
    });
  });

  test('long text is scrubbed before it is cut, in linear time', () => {
    const { log, last } = logged({ secrets: () => ['hunter2-secret'] });
    log.info(
      {
        event: 'app.started',
        a: `${'x'.repeat(16_380)}hunter2-secret`,
        b: '?'.repeat(200_000),
        c: '://'.repeat(50_000),
      },
      'm',
    );
    expect(String(last()['a'])).not.toContain('hunter2');
    expect(String(last()['b']).length).toBeLessThan(17_000);
  });
});

describe('logged errors', () => {
  class KindError extends Error {
    readonly kind = 'throttled';
    readonly hint = 'wait';
    readonly code = '0010';
    readonly parameters = ['row data'];
  }

  test('with a kind show kind, code, hint and causes, but no stack or other members', () => {
    const { log, last } = logged();
    log.error({ event: 'app.started', err: new KindError('refused', { cause: new Error('socket') }) }, 'm');
    expect(last()['err']).toEqual({
      type: 'Error',
      message: 'refused',
      kind: 'throttled',
      code: '0010',
      hint: 'wait',
      cause: { type: 'Error', message: 'socket', stack: expect.stringContaining('logger.test.ts') },
    });
  });

  test('show their stack at debug level', () => {
    const { log, last } = logged({ level: 'debug' });
    log.error({ event: 'app.started', err: new KindError('refused') }, 'm');
    expect(last()['err']).toMatchObject({ stack: expect.stringContaining('refused') });
  });

  test('that are circular, thrown values or unreadable do not prevent a line', () => {
    const { log, lines, last } = logged();
    const circular: Error & { cause?: unknown } = new Error('round');
    circular.cause = circular;
    log.error({ event: 'app.started', err: circular }, 'm');
    const hostile = new Error('x');
    Object.defineProperty(hostile, 'kind', {
      get() {
        throw new Error('no');
      },
    });
    log.error({ event: 'app.started', err: hostile }, 'm');
    expect(last()['err']).toEqual({ type: 'unknown', message: 'an error that cannot be read' });
    log.error({ event: 'app.started', err: new Error('m', { cause: 'just text' }) }, 'm');
    expect(last()['err']).toMatchObject({ cause: { type: 'string', message: 'just text' } });
    const loop: Record<string, unknown> = { event: 'app.started' };
    loop['self'] = loop;
    log.error({ event: 'app.started', loop }, 'm');
    expect(lines).toHaveLength(4);
  });
});
