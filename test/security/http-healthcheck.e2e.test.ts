import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { runProgram } from '../support/process.ts';

test('healthcheck retries when its connection is reset, and gives up in time if that always happens', async () => {
  for (const [cuts, expected] of [
    [3, 0],
    [Infinity, 1],
  ] as const) {
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      socket.on('error', () => {});
      if (connections <= cuts) socket.resetAndDestroy();
      else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const env = { HTTP_PORT: String((server.address() as AddressInfo).port) };
    const { code } = await runProgram(['healthcheck'], env, { timeoutMs: 30_000 });
    expect([cuts, code, connections > 3]).toEqual([cuts, expected, true]);
    server.close();
  }
});

test('healthcheck connects directly even if Node.js is told to use the proxy of the environment', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const nobody = 'http://127.0.0.1:1';
  const { code } = await runProgram(['healthcheck'], {
    HTTP_PORT: String((server.address() as AddressInfo).port),
    NODE_USE_ENV_PROXY: '1',
    HTTP_PROXY: nobody,
    http_proxy: nobody,
  });
  expect(code).toBe(0);
});

test('healthcheck prints every error if localhost has two addresses and neither answers', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const bothAddresses = `import dns from 'node:dns';
    dns.lookup = (name, options, done) =>
      done(null, [{ address: '127.0.0.1', family: 4 }, { address: '127.0.0.2', family: 4 }]);`;
  const { code, stdout } = await runProgram(['healthcheck'], {
    HTTP_HOST: 'localhost',
    HTTP_PORT: String(port),
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(bothAddresses)}`,
  });
  const refused = (address: string) => `connect ECONNREFUSED ${address}:${port}`;
  expect([code, stdout]).toEqual([
    1,
    `http://localhost:${port}/livez: ${refused('127.0.0.1')}; ${refused('127.0.0.2')}`,
  ]);
});
