import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { listenOn, peerOf, reachedAt } from '../../src/daemon/http/listen.ts';

/** Returns a server on a host where listening on these addresses fails. */
function serverWhere(refused: Readonly<Record<string, string>>) {
  const tried: string[] = [];
  const server = Object.assign(new EventEmitter(), {
    listen(_port: number, host: string) {
      tried.push(host);
      const code = refused[host];
      queueMicrotask(() =>
        code === undefined
          ? server.emit('listening')
          : server.emit('error', Object.assign(new Error('no'), { code })),
      );
    },
  });
  return { tried, listen: (host: string) => listenOn(server as never, 9464, host) };
}

test.each(['EAFNOSUPPORT', 'EADDRNOTAVAIL'])(
  "'::' falls back to every IPv4 address if there is no IPv6 (%s)",
  async (code) => {
    const { tried, listen } = serverWhere({ '::': code });
    await listen('::');
    expect(tried).toEqual(['::', '0.0.0.0']);
  },
);

test('with IPv6, one socket serves both', async () => {
  const { tried, listen } = serverWhere({});
  await listen('::');
  expect(tried).toEqual(['::']);
});

test('any other error or address has no fallback', async () => {
  for (const [host, code] of [
    ['::', 'EADDRINUSE'],
    ['::', 'EACCES'],
    ['::1', 'EADDRNOTAVAIL'],
    ['0.0.0.0', 'EADDRNOTAVAIL'],
  ] as const) {
    const { tried, listen } = serverWhere({ [host]: code });
    await expect(listen(host)).rejects.toMatchObject({ code });
    expect(tried).toEqual([host]);
  }
  const { listen } = serverWhere({ '::': 'EAFNOSUPPORT', '0.0.0.0': 'EADDRINUSE' });
  await expect(listen('::')).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

test('a server that listens everywhere is reached on loopback', () => {
  expect(['::', '0.0.0.0', '::1', '10.0.0.7'].map(reachedAt)).toEqual([
    '127.0.0.1',
    '127.0.0.1',
    '::1',
    '10.0.0.7',
  ]);
});

test.each([
  ['::ffff:172.17.0.1', '172.17.0.1'],
  ['172.17.0.1', '172.17.0.1'],
  ['2001:db8::ffff:1', '2001:db8::ffff:1'],
  ['::1', '::1'],
  [undefined, undefined],
])('a connection from %s is reported as one from %s', (remoteAddress, peer) => {
  expect(peerOf({ remoteAddress })).toBe(peer);
});
