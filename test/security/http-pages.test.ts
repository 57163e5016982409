import { afterEach, describe, expect, test } from 'vitest';
import { startTestServer, stopTestServers } from './http-server.ts';
import { exchange, headsOf } from './raw-http.ts';

afterEach(stopTestServers);

/** Sends one request on a connection of its own and returns the answer. */
async function ask(port: number, first: string, headers: readonly string[] = []) {
  const text = [`${first} HTTP/1.1`, 'Host: localhost', ...headers, 'Connection: close', '', ''].join('\r\n');
  const answer = await exchange(port, [Buffer.from(text)], { ends: false });
  return { ...headsOf(answer.text)[0], text: answer.text, over: answer.over };
}

const fetchedBy = (site: string, mode = 'no-cors', dest = 'empty') => [
  `Sec-Fetch-Site: ${site}`,
  `Sec-Fetch-Mode: ${mode}`,
  `Sec-Fetch-Dest: ${dest}`,
];

describe('a web page of somebody else in a browser on this machine', () => {
  test.each([
    ['cross-site', 'no-cors', 'script'],
    ['cross-site', 'no-cors', 'image'],
    ['cross-site', 'cors', 'empty'],
    ['cross-site', 'navigate', 'iframe'],
    ['cross-site', 'navigate', 'object'],
    // Another port of this host counts as the same site.
    ['same-site', 'no-cors', 'image'],
    ['nonsense', 'cors', 'empty'],
  ])('has its requests refused before any work: %s, %s, %s', async (site, mode, dest) => {
    let reads = 0;
    const metrics = async () => String((reads += 1));
    const { server } = await startTestServer({ metrics });
    for (const path of ['/', '/status.json', '/metrics'])
      expect((await ask(server.port, `GET ${path}`, fetchedBy(site, mode, dest))).status).toBe(403);
    expect(reads).toBe(0);
    const readyz = await ask(server.port, 'GET /readyz', fetchedBy(site, mode, dest));
    expect([readyz.status, readyz.text.includes('degraded')]).toEqual([200, false]);
  });

  test('may be left by a link to this page, which may also refresh itself', async () => {
    const { server } = await startTestServer();
    for (const headers of [
      fetchedBy('cross-site', 'navigate', 'document'),
      fetchedBy('same-site', 'navigate', 'document'),
      fetchedBy('none', 'navigate', 'document'),
      fetchedBy('same-origin', 'cors'),
      [],
    ])
      expect((await ask(server.port, 'GET /', headers)).status).toBe(200);
  });

  test.each([
    'GET /',
    'GET /status.json',
    'GET /metrics',
    'GET /livez',
    'GET /readyz',
    'GET /nothing',
    'POST /',
  ])('cannot embed, frame, sniff, cache or read the answer to %s', async (first) => {
    const { server } = await startTestServer();
    const { headers } = await ask(server.port, first, ['Origin: https://evil.example']);
    expect(Object.fromEntries(headers ?? [])).toMatchObject({
      'content-security-policy': expect.stringMatching(/default-src 'none'.*frame-ancestors 'none'/),
      'cross-origin-resource-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
    expect(
      [...(headers ?? new Map<string, string>()).keys()].filter((name) =>
        /allow-|^server$|powered/.test(name),
      ),
    ).toEqual([]);
  });
});

describe('other HTTP features', () => {
  test('a preflight is refused, and allows nothing', async () => {
    const { server } = await startTestServer();
    const asked = [
      'Origin: https://evil.example',
      'Access-Control-Request-Method: GET',
      'Access-Control-Request-Private-Network: true',
    ];
    const { status, text } = await ask(server.port, 'OPTIONS /status.json', asked);
    expect([status, text.toLowerCase().includes('access-control')]).toEqual([405, false]);
  });

  test('TRACE echoes nothing of the request', async () => {
    const { server } = await startTestServer();
    const { status, text } = await ask(server.port, 'TRACE /livez', [
      'Cookie: session=canary',
      'X-Canary: canary',
    ]);
    expect([status, text.includes('canary')]).toEqual([405, false]);
  });

  test('CONNECT is closed and HTTP/2 is refused, both without content', async () => {
    const { server } = await startTestServer();
    const tunnel = await ask(server.port, 'CONNECT localhost:5432');
    expect([tunnel.over, tunnel.text]).toEqual([true, '']);
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';
    const two = await exchange(server.port, [Buffer.from(preface, 'latin1')], { ends: false });
    expect([two.over, two.text.split('\r\n', 1)]).toEqual([true, ['HTTP/1.1 400 Bad Request']]);
  });

  test('an upgrade is ignored: the request is answered over HTTP/1.1', async () => {
    const { server } = await startTestServer();
    for (const to of ['websocket', 'h2c', 'TLS/1.0'])
      expect((await ask(server.port, 'GET /livez', [`Upgrade: ${to}`, 'Connection: Upgrade'])).status).toBe(
        200,
      );
  });

  test('ranges and encodings are ignored: the answer is complete and not compressed', async () => {
    const { server } = await startTestServer();
    const { status, headers, text } = await ask(server.port, 'GET /metrics', [
      'Range: bytes=0-1',
      'Accept-Encoding: gzip, br',
    ]);
    expect([status, headers?.get('content-encoding'), text.endsWith('\r\n\r\nup 1\n')]).toEqual([
      200,
      undefined,
      true,
    ]);
  });

  test('no answer repeats parts of the request', async () => {
    const { server } = await startTestServer();
    for (const path of ['/canary', '/canary?canary', '/livez?canary', '/%63anary<canary>'])
      for (const headers of [
        [],
        ['Authorization: Basic canary'],
        ['Expect: canary'],
        ['Host: canary.example'],
      ])
        expect((await ask(server.port, `GET ${path}`, headers)).text).not.toContain('canary');
  });
});
