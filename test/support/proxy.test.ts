import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { type Proxy, proxyTo, when } from './proxy.ts';

/** An echo server that records what it got and how its connections ended. */
let got = '';
let ends: string[] = [];
const server = createServer({ allowHalfOpen: true }, (socket) => {
  const mine = ends;
  socket.on('data', (data) => {
    got += data.toString();
    socket.write(data);
  });
  socket.on('end', () => {
    mine.push('end');
    socket.end('bye');
  });
  socket.on('error', (error: NodeJS.ErrnoException) => mine.push(error.code ?? ''));
});
let proxy: Proxy;

beforeEach(async () => {
  got = '';
  ends = [];
  if (!server.listening) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  proxy = await proxyTo(`tcp://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterEach(async () => {
  await proxy[Symbol.asyncDispose]();
});

interface Line {
  readonly socket: Socket;
  readonly pieces: string[];
  readonly over: string[];
}

async function dial(): Promise<Line> {
  const socket = connect({ host: '127.0.0.1', port: proxy.port, allowHalfOpen: true });
  const pieces: string[] = [];
  const over: string[] = [];
  socket.on('data', (data) => pieces.push(data.toString()));
  socket.on('end', () => over.push('end'));
  socket.on('error', (error: NodeJS.ErrnoException) => over.push(error.code ?? ''));
  await once(socket, 'connect');
  return { socket, pieces, over };
}

async function echoes({ socket, pieces }: Line, word: string): Promise<void> {
  socket.write(word);
  await eventually(() => expect(pieces.join('')).toContain(word));
}

test('passes data both ways, and counts connections', async () => {
  const line = await dial();
  await echoes(line, 'hello');
  expect({ connections: proxy.connections, living: proxy.living }).toEqual({ connections: 1, living: 1 });
  line.socket.end();
  await eventually(() => expect(line.pieces.join('')).toBe('hellobye'));
  await eventually(() => expect(proxy.living).toBe(0));
});

test('delays and slices data on an existing connection', async () => {
  const line = await dial();
  await echoes(line, 'quick');
  proxy.set({ latencyMs: 60, sliceBytes: 1 });
  const startedAt = performance.now();
  await echoes(line, 'slowly');
  expect(performance.now() - startedAt).toBeGreaterThan(110);
  expect(got).toBe('quickslowly');
});

test('limits the bandwidth', async () => {
  proxy.set({ bytesPerSecond: 1000 });
  const line = await dial();
  const startedAt = performance.now();
  await echoes(line, 'x'.repeat(300));
  expect(performance.now() - startedAt).toBeGreaterThan(200);
});

test('swallows data as a black hole, and resets those connections when healed', async () => {
  const line = await dial();
  const spared = await dial();
  proxy.set({ blackHole: true });
  line.socket.write('lost');
  await eventually(() => expect(proxy.swallowed).toBe(4));
  proxy.heal();
  await echoes(spared, 'kept');
  expect(got).not.toContain('lost');
  await eventually(() => expect(line.over).toEqual(['ECONNRESET']));
});

test('rejects new connections and leaves existing ones alone', async () => {
  const line = await dial();
  await echoes(line, 'old');
  proxy.set({ refuse: true });
  const refused = await dial().catch(() => null);
  if (refused !== null) await eventually(() => expect(refused.over).toEqual(['ECONNRESET']));
  await echoes(line, 'still');
  proxy.heal();
  await echoes(await dial(), 'again');
});

test('resets all connections at once, on both sides', async () => {
  const lines = [await dial(), await dial()];
  for (const line of lines) await echoes(line, 'up');
  expect(proxy.reset()).toBe(2);
  for (const line of lines) await eventually(() => expect(line.over).toEqual(['ECONNRESET']));
  await eventually(() => expect(ends).toEqual(['ECONNRESET', 'ECONNRESET']));
});

test('half-closes one direction while the other goes on', async () => {
  const line = await dial();
  await echoes(line, 'up');
  proxy.halfClose('to-client');
  await eventually(() => expect(line.over).toEqual(['end']));
  line.socket.write('heard');
  await eventually(() => expect(got).toBe('upheard'));
});

test('cuts after a number of bytes, with or without the piece that reached it', async () => {
  const rule = when('to-server', { bytes: 5 }, 'cut');
  proxy.watch(() => rule.watcher());
  const line = await dial();
  await echoes(line, 'abc');
  line.socket.write('defg');
  await eventually(() => expect(line.over).toEqual(['ECONNRESET']));
  expect({ got, hits: rule.hits() }).toEqual({ got: 'abc', hits: 1 });
  await echoes(await dial(), 'the next passes');
});

test('cuts after a pattern, even if two pieces share it, on an existing connection', async () => {
  const line = await dial();
  await echoes(line, 'begin');
  const rule = when('to-server', { pattern: 'COMMIT' }, 'pass-and-cut');
  proxy.watch(rule.watcher);
  await echoes(line, 'COM');
  line.socket.write('MIT');
  await eventually(() => expect(line.over).toEqual(['ECONNRESET']));
  expect(rule.hits()).toBe(1);
});

test('forwards new connections to where it is aimed', async () => {
  const other = createServer((socket) => socket.on('error', () => {}).end('other'));
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  proxy.aim(`tcp://127.0.0.1:${(other.address() as AddressInfo).port}`);
  const line = await dial();
  await eventually(() => expect(line.pieces.join('')).toBe('other'));
  other.close();
});

test('silenced connections pass nothing and stay open even if one end leaves, and new ones are served', async () => {
  const line = await dial();
  await echoes(line, 'before');
  expect(proxy.silence()).toBe(1);
  line.socket.write('lost');
  await eventually(() => expect(proxy.swallowed).toBe(4));
  const next = await dial();
  await echoes(next, 'after');
  line.socket.end();
  next.socket.end();
  await eventually(() => expect(next.over).toEqual(['end']));
  expect({ pieces: line.pieces.join(''), over: line.over, got }).toEqual({
    pieces: 'before',
    over: [],
    got: 'beforeafter',
  });
  expect(ends).toEqual(['end']);
});
