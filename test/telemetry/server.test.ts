import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import {
  type HttpServer,
  type HttpServerOptions,
  ListenError,
  startHttpServer,
} from '../../src/daemon/http-server.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/telemetry/log/logger.ts';

const servers: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

/** A clock whose sleeps last until they are aborted, or, if `impatient`, end at once. */
const clock = (impatient = false): Clock => ({
  now: () => 0,
  monotonic: () => 0,
  sleep: async (_ms, signal) => {
    if (impatient || signal === undefined || signal.aborted) return;
    await once(signal, 'abort');
  },
});

async function start(options: Partial<HttpServerOptions> = {}) {
  const lines: string[] = [];
  const server = await startHttpServer({
    host: '127.0.0.1',
    port: 0,
    metrics: async () => 'up 1\n',
    live: () => ({ ok: true }),
    ready: async () => ({ ok: true, degraded: [] }),
    log: createLogger({
      level: 'info',
      secrets: () => [],
      destination: { write: (line: string) => lines.push(line) },
    }),
    clock: clock(),
    ...options,
  });
  servers.push(server);
  return { server, lines, url: `http://127.0.0.1:${server.port}` };
}

/** Sends text as it stands to a port, and returns the answer as text. */
async function raw(port: number, text: string) {
  const socket = connect(port, '127.0.0.1');
  socket.end(text);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

test('/metrics answers Prometheus text', async () => {
  const { url } = await start();
  const answer = await fetch(`${url}/metrics?name=x`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(await answer.text()).toBe('up 1\n');
});

test.each([
  [true, 200],
  [false, 503],
])('health with ok=%s answers status %i with its JSON', async (ok, status) => {
  const { url } = await start({
    live: () => ({ ok }),
    ready: async () => ({ ok, reason: 'no baseline yet' }),
  });
  const live = await fetch(`${url}/livez`);
  expect([live.status, await live.json()]).toEqual([status, { ok }]);
  const ready = await fetch(`${url}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([status, { ok, reason: 'no baseline yet' }]);
});

test('HEAD returns the headers of GET without a body', async () => {
  const { server } = await start();
  const answer = await raw(
    server.port,
    'HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
  );
  expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/);
  expect(answer).toMatch(/content-length: 5\r\n/i);
  expect(answer).toMatch(/\r\n\r\n$/);
});

test.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])(
  '%s is rejected without doing any work',
  async (method) => {
    let asked = 0;
    const metrics = async () => {
      asked += 1;
      return '';
    };
    const { url } = await start({ metrics });
    const answer = await fetch(`${url}/metrics`, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.get('allow')).toBe('GET, HEAD');
    expect(asked).toBe(0);
  },
);

test.each(['/', '/metrics/', '/METRICS', '/..%2fmetrics', '/__proto__', '//metrics'])(
  '%s answers 404',
  async (path) => {
    const { server } = await start();
    expect(
      await raw(server.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`),
    ).toMatch(/^HTTP\/1.1 404 /);
  },
);

test('the server survives nonsense, oversized headers and truncated requests', async () => {
  const { server, url } = await start();
  expect(await raw(server.port, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /);
  expect(
    await raw(server.port, `GET /livez HTTP/1.1\r\nHost: localhost\r\nA: ${'a'.repeat(9000)}\r\n\r\n`),
  ).toMatch(/^HTTP\/1.1 431 /);
  await raw(server.port, 'GET /livez HTT');
  expect((await fetch(`${url}/livez`)).status).toBe(200);
});

test('a request body is not waited for, and its connection is closed', async () => {
  const { server } = await start();
  const outgoing = request({
    port: server.port,
    host: '127.0.0.1',
    path: '/livez',
    method: 'GET',
    headers: { 'content-length': 1_000_000 },
  });
  outgoing.on('error', () => {});
  outgoing.flushHeaders();
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  expect([answer.statusCode, answer.headers.connection]).toEqual([200, 'close']);
  outgoing.destroy();
});

describe('a failing check', () => {
  test('answers 503 without a reason, and logs it', async () => {
    const fail = () => {
      throw new Error('inner reason');
    };
    const { url, lines } = await start({ metrics: async () => fail(), live: fail, ready: fail });
    for (const path of ['/metrics', '/livez', '/readyz', '/readyz']) {
      const answer = await fetch(url + path);
      expect(answer.status).toBe(503);
      expect(await answer.json()).toEqual({ ok: false, reason: 'the check failed' });
    }
    expect(lines).toHaveLength(3);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      event: 'http.failed',
      path: '/metrics',
      err: { message: 'inner reason' },
    });
  });

  test('that takes too long answers 503, and later requests start afresh', async () => {
    let asked = 0;
    const never = () => {
      asked += 1;
      return new Promise<never>(() => {});
    };
    const { url } = await start({ metrics: never, ready: never, clock: clock(true) });
    for (const path of ['/metrics', '/readyz', '/metrics'])
      expect((await fetch(url + path)).status).toBe(503);
    expect(asked).toBe(3);
  });

  test('that is not valid JSON answers 503', async () => {
    const { url } = await start({ live: () => ({ ok: true, big: 1n }) });
    expect((await fetch(`${url}/livez`)).status).toBe(503);
  });
});

test('simultaneous scrapes share one read, and the next one reads again', async () => {
  let asked = 0;
  const first = Promise.withResolvers<string>();
  const { server, url } = await start({
    metrics: () => {
      asked += 1;
      return asked === 1 ? first.promise : Promise.resolve('second 2\n');
    },
    live: () => {
      first.resolve('shared 1\n');
      return { ok: true };
    },
  });
  // Requests on one connection start in order, so the read ends only after both scrapes have started.
  const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`;
  const answers = await raw(
    server.port,
    get('/metrics') + get('/metrics') + get('/livez', 'Connection: close\r\n'),
  );
  expect(answers.match(/shared 1/g)).toHaveLength(2);
  expect(asked).toBe(1);
  expect(await (await fetch(`${url}/metrics`)).text()).toBe('second 2\n');
});

test('an address in use rejects with kind, code and hint', async () => {
  const { server } = await start();
  const error = await start({ port: server.port }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ListenError);
  expect(error).toMatchObject({
    kind: 'listen',
    code: 'EADDRINUSE',
    hint: expect.stringContaining('HTTP_PORT'),
  });
});

test('listening on every address, as in the image, covers IPv4 and IPv6', async () => {
  const { server } = await start({ host: '::' });
  const loopbacks = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal }) => internal)
    .map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address));
  expect(loopbacks).toContain('127.0.0.1');
  for (const address of loopbacks)
    expect((await fetch(`http://${address}:${server.port}/livez`)).status, `at ${address}`).toBe(200);
});

test('close finishes although a client holds its connection open, and may be called twice', async () => {
  const { server, url } = await start({ clock: clock(true) });
  const socket = connect(server.port, '127.0.0.1');
  await once(socket, 'connect');
  socket.on('error', () => {});
  await server.close();
  await server.close();
  await expect(fetch(`${url}/livez`)).rejects.toThrow('fetch failed');
  socket.destroy();
});
