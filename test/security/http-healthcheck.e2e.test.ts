import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { runProgram } from '../support/process.ts';

test('healthcheck asks again where its connection is cut, and gives up in time where it always is', async () => {
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
