import { hostname } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import type { HttpServerOptions } from '../../src/daemon/http-server.ts';
import { startTestServer, stopTestServers } from './http-server.ts';
import { exchange, headsOf } from './raw-http.ts';

afterEach(stopTestServers);

/** Sends one request with these header lines and returns the status and the text of its answer. */
async function ask(port: number, path: string, lines: readonly string[], version = 'HTTP/1.1') {
  const text = [`GET ${path} ${version}`, ...lines, 'Connection: close', '', ''].join('\r\n');
  const answer = await exchange(port, [Buffer.from(text, 'latin1')], { ends: false });
  return { status: headsOf(answer.text)[0]?.status, text: answer.text };
}

/** Returns the status for each Host on `/status.json`, which contains prices. */
async function statuses(hosts: readonly string[], options: Partial<HttpServerOptions> = {}) {
  const { server } = await startTestServer(options);
  return await Promise.all(
    hosts.map(async (host) => [host, (await ask(server.port, '/status.json', [`Host: ${host}`])).status]),
  );
}

const all = (hosts: readonly string[], status: number) => hosts.map((host) => [host, status]);

const ADDRESSES = [
  '127.0.0.1',
  '127.0.0.1:9464',
  '127.0.0.1:',
  '0.0.0.0:1',
  '10.1.2.3:65535',
  '[::1]',
  '[::1]:9464',
  '[2001:DB8::1]:80',
  '[::ffff:127.0.0.1]:80',
];
const LOCALHOST = ['localhost', 'localhost:9464', 'LOCALHOST', 'LocalHost.', 'localhost.:9464'];

/** Names of others, and forms that could be mistaken for an address or a name of ours. */
const OTHERS = [
  'evil.example',
  'evil.example:9464',
  'EVIL.EXAMPLE',
  '127.0.0.1.evil.example',
  '127.0.0.1.evil.example:9464',
  'localhost.evil.example',
  'evil.localhost',
  'localhost..',
  'localhosts',
  'xlocalhost',
  'a.127.0.0.1',
  '',
  '.',
  ':9464',
  'evil.example@127.0.0.1',
  '127.0.0.1@evil.example',
  'user:password@localhost',
  'localhost:9464:80',
  'localhost:port',
  'localhost:123456',
  'localhost:-1',
  'localhost,evil.example',
  'localhost evil.example',
  'evil.example/localhost',
  'localhost/',
  'localhost#',
  'localhost?',
  'localhost\\@evil.example',
  'http://localhost',
  '2130706433',
  '0x7f000001',
  '0x7f.0.0.1',
  '0177.0.0.1',
  '127.1',
  '127.0.0.1.1',
  '127.0.0.256',
  '::1',
  '[::1',
  '::1]',
  '[::1]evil.example',
  '[evil.example]',
  '[127.0.0.1]',
  '[]',
  '[v1.evil]',
  'xn--lcalhost-2ya',
  'l\u00f6calhost',
  'localhost\u00a0',
  '%6cocalhost',
  'l%6fcalhost',
];

describe('a page whose own host name leads here reads nothing', () => {
  test('addresses and localhost are accepted, with any port', async () => {
    expect(await statuses([...ADDRESSES, ...LOCALHOST])).toEqual(all([...ADDRESSES, ...LOCALHOST], 200));
  });

  test('every other Host is refused', async () => {
    expect(await statuses(OTHERS)).toEqual(all(OTHERS, 421));
  });

  test("this machine's own name is refused, because whoever assigns addresses on a network assigns names too", async () => {
    if (hostname() !== 'localhost') expect(await statuses([hostname()])).toEqual([[hostname(), 421]]);
  });

  test('HTTP_HOST and HTTP_ALLOWED_HOSTS are accepted, but no subdomain or similar name', async () => {
    const options = { host: 'localhost', allowedHosts: ['worker', 'mirror.shop.example'] };
    const known = ['worker:9464', 'WORKER', 'mirror.shop.example', 'Mirror.Shop.Example.:443', '127.0.0.1'];
    const unknown = [
      'shop.example',
      'a.mirror.shop.example',
      'worker.evil.example',
      'mirror.shop.example.evil.example',
    ];
    expect(await statuses([...known, ...unknown], options)).toEqual([
      ...all(known, 200),
      ...all(unknown, 421),
    ]);
  });

  test.each(['/', '/status.json', '/metrics', '/nothing'])('%s refuses an unknown Host', async (path) => {
    const { server } = await startTestServer();
    const { status, text } = await ask(server.port, path, ['Host: evil.example']);
    expect(status).toBe(421);
    expect(text).not.toMatch(/DD1391|up 1|evil/);
    expect(text).toContain('HTTP_ALLOWED_HOSTS');
  });

  test('headers of proxies neither grant nor deny access', async () => {
    const { server } = await startTestServer();
    const forwarded = (host: string) => [
      `X-Forwarded-Host: ${host}`,
      `X-Original-Host: ${host}`,
      `X-Host: ${host}`,
      `Forwarded: host=${host}`,
    ];
    const evil = ['Host: evil.example', ...forwarded('localhost')];
    const known = ['Host: localhost', ...forwarded('evil.example')];
    expect((await ask(server.port, '/metrics', evil)).status).toBe(421);
    expect((await ask(server.port, '/metrics', known)).status).toBe(200);
  });

  test('two Host headers are a bad request, whatever they contain and wherever they are sent', async () => {
    const { server } = await startTestServer();
    for (const [one, other] of [
      ['localhost', 'evil.example'],
      ['evil.example', 'localhost'],
      ['localhost', 'localhost'],
    ])
      for (const path of ['/metrics', '/livez', '/readyz'])
        expect((await ask(server.port, path, [`Host: ${one}`, `host: ${other}`])).status).toBe(400);
  });

  test('a target that contains a host is never served, and its Host header is checked first', async () => {
    const { server } = await startTestServer();
    for (const target of ['http://localhost/metrics', 'http://evil.example/metrics', '//localhost/metrics'])
      for (const [host, status] of [
        ['localhost', 404],
        ['evil.example', 421],
      ] as const)
        expect([target, (await ask(server.port, target, [`Host: ${host}`])).status]).toEqual([
          target,
          status,
        ]);
  });

  test('without a Host header, HTTP/1.0 is answered, which no browser speaks; HTTP/1.1 is a bad request', async () => {
    const { server } = await startTestServer();
    expect((await ask(server.port, '/metrics', [], 'HTTP/1.0')).status).toBe(200);
    expect((await ask(server.port, '/metrics', ['Host: evil.example'], 'HTTP/1.0')).status).toBe(421);
    expect((await ask(server.port, '/metrics', [])).status).toBe(400);
  });
});

describe('a probe with an unknown Host', () => {
  test('gets the usual answer of /livez: it reveals nothing, and a restart would not help', async () => {
    const { server } = await startTestServer();
    const { status, text } = await ask(server.port, '/livez', ['Host: pod.probe.example']);
    expect(status).toBe(200);
    expect(text).toContain('{"ok":true}');
  });

  test.each([
    [true, 200],
    [false, 503],
  ])('gets the status of /readyz without its reasons (ok: %s)', async (ok, status) => {
    const { server } = await startTestServer({ ready: async () => ({ ok, reason: 'DD1391-100 is late' }) });
    const unknown = await ask(server.port, '/readyz', ['Host: pod.probe.example']);
    expect(unknown.status).toBe(status);
    expect(unknown.text).toMatch(new RegExp(`\r\n\r\n{"ok":${ok}}\n$`));
    const known = await ask(server.port, '/readyz', ['Host: localhost']);
    expect([known.status, known.text.includes('DD1391-100 is late')]).toEqual([status, true]);
  });
});

test('refused names are logged as one line, with a name that is safe to read', async () => {
  const { server, logged } = await startTestServer();
  for (const host of ['evil.example', 'other.example', 'evil.example', '"}\u001b[31m', 'a'.repeat(4000)])
    await ask(server.port, '/metrics', [`Host: ${host}`]);
  expect(logged()).toMatchObject([{ event: 'http.unknown-host', host: 'evil.example', times: 1 }]);
});
