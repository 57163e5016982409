import { afterEach, describe, expect, test } from 'vitest';
import type { SecretSource } from '../../src/config/secrets.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { startTestServer, stopTestServers } from './http-server.ts';
import { exchange, headsOf } from './raw-http.ts';

afterEach(stopTestServers);

const PASSWORD = 'a-long:pass%word+/=~';
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

/** A password file whose content can be replaced; `reads` counts how often it is read. */
function passwordFile(first: string) {
  const file = { content: first, reads: 0 };
  let value = first;
  const source: SecretSource = {
    read: () => value,
    refresh() {
      file.reads += 1;
      const changed = value !== file.content;
      value = file.content;
      return changed;
    },
  };
  return { file, source };
}

async function startGuarded() {
  let later = 0;
  const { file, source } = passwordFile(PASSWORD);
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + later };
  const { server, logged } = await startTestServer({ password: source, clock });
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers });
    return { status: answer.status, headers: answer.headers, body: await answer.text() };
  };
  const status = async (authorization: string, path = '/status.json') =>
    (await get(path, { authorization })).status;
  return { server, logged, file, get, status, wait: (ms: number) => (later += ms) };
}

describe('with a password', () => {
  test.each(['/', '/status.json', '/metrics', '/nothing'])(
    '%s asks for it and shows nothing',
    async (path) => {
      const { get } = await startGuarded();
      const { status, headers, body } = await get(path);
      expect([status, body]).toEqual([401, '{"reason":"a password is needed"}\n']);
      // A browser prompts for the first scheme that it knows.
      expect(headers.get('www-authenticate')).toBe(
        'Basic realm="catalog-mirror", charset="UTF-8", Bearer realm="catalog-mirror"',
      );
      expect(headers.get('cache-control')).toBe('no-store');
    },
  );

  test('the server accepts it as the password of any user, and as a bearer token', async () => {
    const { status } = await startGuarded();
    const right = [
      basic(`prometheus:${PASSWORD}`),
      basic(`:${PASSWORD}`),
      `basic  ${Buffer.from(`u:${PASSWORD}`).toString('base64').replace(/=+$/, '')}`,
      `Bearer ${PASSWORD}`,
      `bearer ${PASSWORD}`,
    ];
    for (const path of ['/', '/status.json', '/metrics'])
      expect(await Promise.all(right.map((one) => status(one, path)))).toEqual(right.map(() => 200));
  });

  test('the server accepts nothing else', async () => {
    const { status } = await startGuarded();
    const wrong = [
      PASSWORD,
      basic(PASSWORD),
      basic(`${PASSWORD}:`),
      basic(`u:${PASSWORD}x`),
      basic(`u:${PASSWORD.slice(0, -1)}`),
      basic(`u:${PASSWORD.toUpperCase()}`),
      basic(`u:${PASSWORD}\0`),
      basic(`u:\u00e9${PASSWORD}`),
      basic('u:'),
      'Basic',
      'Basic ????',
      'Bearer',
      `Bearer ${PASSWORD}x`,
      `Bearer ${PASSWORD} ${PASSWORD}`,
      `Bearer ${Buffer.from(`u:${PASSWORD}`).toString('base64')}`,
      `Digest ${PASSWORD}`,
      `Bearer ${'x'.repeat(4000)}`,
    ];
    expect(await Promise.all(wrong.map((one) => status(one)))).toEqual(wrong.map(() => 401));
  });

  test('only the first of two Authorization headers counts', async () => {
    const { server } = await startGuarded();
    const lines = ['GET /metrics HTTP/1.1', 'Host: localhost', 'Authorization: Bearer x'];
    const text = [...lines, `Authorization: Bearer ${PASSWORD}`, '', ''].join('\r\n');
    const answer = await exchange(server.port, [Buffer.from(text)]);
    expect(headsOf(answer.text).map(({ status }) => status)).toEqual([401]);
  });

  test('a known host name is still required, and its refusal reveals nothing about the password', async () => {
    const { server } = await startGuarded();
    const ask = async (authorization: string) => {
      const head = `GET /metrics HTTP/1.1\r\nHost: evil.example\r\nAuthorization: ${authorization}\r\n\r\n`;
      return headsOf((await exchange(server.port, [Buffer.from(head)])).text)[0]?.status;
    };
    expect([await ask(`Bearer ${PASSWORD}`), await ask('Bearer x')]).toEqual([421, 421]);
  });

  test('probes work without it: /livez unchanged, /readyz without its reasons', async () => {
    const { get } = await startGuarded();
    expect(await get('/livez')).toMatchObject({ status: 200, body: '{"ok":true}\n' });
    expect(await get('/readyz')).toMatchObject({ status: 200, body: '{"ok":true}\n' });
    const known = await get('/readyz', { authorization: `Bearer ${PASSWORD}` });
    expect(known).toMatchObject({ status: 200, body: '{"ok":true,"degraded":[]}\n' });
  });

  test('a new password in the file counts within a second, and the old one no longer does', async () => {
    const { file, status, wait } = await startGuarded();
    expect(await status(`Bearer ${PASSWORD}`)).toBe(200);
    file.content = 'another-long-password';
    wait(1000);
    expect(await status(`Bearer ${PASSWORD}`)).toBe(401);
    expect(await status('Bearer another-long-password')).toBe(200);
    // A pair without a colon contains no password.
    expect(await status(basic('another-long-password'))).toBe(401);
  });

  test('the file is read at most once a second, however many requests arrive', async () => {
    const { file, status } = await startGuarded();
    for (let n = 0; n < 20; n += 1) await status('Bearer wrong');
    expect(file.reads).toBeLessThan(4);
  });

  test('failed attempts are logged as one line with their count; requests without a password are not logged', async () => {
    const { status, get, logged, wait } = await startGuarded();
    await get('/');
    expect(logged()).toEqual([]);
    for (let n = 0; n < 30; n += 1) await status(`Bearer guess-${n}-of-a-password`);
    wait(60_000);
    await status('Bearer the-last-guess');
    expect(logged()).toMatchObject([
      { event: 'http.wrong-password', level: 'warn', from: '127.0.0.1', times: 1 },
      { event: 'http.wrong-password', times: 31 },
    ]);
    expect(JSON.stringify(logged())).not.toMatch(/guess/);
  });
});
