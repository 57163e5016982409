import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { randomFrom } from '../support/market.ts';
import { expectStopped, FILLED, holds, type Program, startProgram } from '../support/process.ts';
import { runs } from '../support/soak.ts';
import { createStack, type Stack } from '../support/stack.ts';
import { fuzzCase, SMUGGLED } from './http-cases.ts';
import { dial, endOf, exchange, headsOf } from './raw-http.ts';

const SEED = Number(process.env['SEED'] ?? 7);
/** How many lines an idle daemon may log per minute, whatever is sent to its HTTP port. */
const QUIET_LINES = 10;

let stack: Stack;
let daemon: Program;
let port: number;

beforeAll(async () => {
  stack = await createStack({ sandbox: { skus: 50, liveShare: 0, seed: 3 }, env: { LOG_LEVEL: 'info' } });
  daemon = startProgram(['run'], stack.env);
  port = Number((await daemon.until('app.started'))['port']);
  await eventually(() => holds(stack.sql, FILLED), { what: 'the fill' });
});

afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  await stack[Symbol.asyncDispose]();
});

/** Scrapes like Prometheus and returns the value of one metric of the process. */
async function scraped(metric: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(5000) });
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(text).toContain('catalog_mirror_build_info');
  return Number(new RegExp(`^${metric} (.*)$`, 'm').exec(text)?.[1] ?? 0);
}

/** Runs `work`, and then checks that the daemon is unharmed. */
async function unharmed(work: () => Promise<void>): Promise<void> {
  const before = {
    memory: await scraped('process_resident_memory_bytes'),
    files: await scraped('process_open_fds'),
  };
  const lines = daemon.stdout.length;
  await work();
  await eventually(async () => (await scraped('process_open_fds')) <= before.files + 4, {
    what: 'the sockets to be closed',
    within: 12_000,
  });
  expect((await scraped('process_resident_memory_bytes')) - before.memory).toBeLessThan(64 * 1024 ** 2);
  expect(daemon.stdout.length - lines).toBeLessThan(QUIET_LINES);
  expect(daemon.stderr).toEqual([]);
  for (const path of ['/livez', '/readyz', '/metrics']) expect((await daemon.get(path)).status).toBe(200);
}

test('thousands of fuzzed requests are each answered or closed, and nothing else happens', async () => {
  console.log(`SEED=${SEED}`);
  const random = randomFrom(SEED);
  const statuses = new Map<number | 'closed', number>();
  const count = (status: number | 'closed') => statuses.set(status, (statuses.get(status) ?? 0) + 1);
  await unharmed(async () => {
    const cases = Array.from({ length: runs(3000) }, () => fuzzCase(random));
    const worker = async () => {
      for (let one = cases.pop(); one !== undefined; one = cases.pop()) {
        const { text, over } = await exchange(port, one);
        const shown = JSON.stringify(Buffer.concat(one).toString('latin1').slice(0, 300));
        expect(over, `SEED=${SEED}: left open by ${shown}`).toBe(true);
        const heads = headsOf(text);
        for (const { status, headers } of heads) {
          count(status);
          expect([200, 400, 404, 405, 408, 413, 417, 421, 431], `SEED=${SEED}: ${shown}`).toContain(status);
          if (![200, 404, 405, 417, 421].includes(status)) continue;
          expect(headers.get('cache-control')).toBe('no-store');
          expect(headers.get('x-content-type-options')).toBe('nosniff');
          expect(headers.get('content-type')).toMatch(
            /^(?:application\/json|text\/(?:plain|html)); .*charset=utf-8$/,
          );
          if (headers.get('content-type')?.startsWith('text/html') === true)
            expect(headers.get('content-security-policy')).toMatch(
              /^default-src 'none'; script-src 'sha256-/,
            );
          expect(headers.get('access-control-allow-origin')).toBeUndefined();
          expect(headers.get('x-powered-by') ?? headers.get('server')).toBeUndefined();
        }
        if (heads.length === 0) count('closed');
      }
    };
    await Promise.all(Array.from({ length: 24 }, worker));
  });
  // The cases cover every kind of answer.
  for (const status of [200, 400, 404, 405, 417, 421, 431, 'closed'] as const)
    expect([status, statuses.get(status) ?? 0]).not.toEqual([status, 0]);
});

test('no request is smuggled inside another: there is one answer, and the connection closes', async () => {
  await unharmed(async () => {
    for (const outer of SMUGGLED) {
      const inner = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';
      const { text, over } = await exchange(port, [Buffer.from(outer + inner, 'latin1')], { ends: false });
      const heads = headsOf(text);
      expect([outer, heads.length, over]).toEqual([outer, 1, true]);
      expect([200, 400, 405]).toContain(heads[0]?.status);
      expect(text).not.toContain('catalog_mirror_build_info');
    }
  });
});

test.each([
  ['one header', `A: ${'a'.repeat(8200)}`],
  ['many headers', Array.from({ length: 1500 }, (_, n) => `A${n}: b`).join('\r\n')],
  ['more than 100 MB of them', Array.from({ length: 100 }, () => `A: ${'a'.repeat(1_100_000)}`).join('\r\n')],
])('a head over 8 KiB is refused before it is complete: %s', async (_, headers) => {
  await unharmed(async () => {
    const head = Buffer.from(`GET /livez HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`);
    const { text, over } = await exchange(port, [head], { ends: false });
    expect(over).toBe(true);
    // A client that is still writing when the refusal comes may see the reset instead of the answer.
    if (head.length < 100_000 || text !== '') expect(text).toMatch(/^HTTP\/1\.1 431 /);
  });
});

describe.concurrent('a held connection', () => {
  test('is cut off if its headers never end', async ({ expect }) => {
    const socket = await dial(port);
    socket.write('GET /livez HTTP/1.1\r\n');
    const trickle = setInterval(() => socket.write('X: y\r\n'), 250);
    expect(await endOf(socket, 8000)).toBe(true);
    clearInterval(trickle);
  });

  test('is cut off if its body never ends', async ({ expect }) => {
    const socket = await dial(port);
    socket.write('POST /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n');
    let sent = 0;
    const pour = setInterval(() => {
      if (!socket.destroyed && socket.writableLength < 1_000_000)
        socket.write(`10000\r\n${'x'.repeat(65_536)}\r\n`);
      sent += 65_536;
    }, 5);
    expect(await endOf(socket, 3000)).toBe(true);
    clearInterval(pour);
    expect(sent).toBeLessThan(100_000_000);
  });

  test('is cut off if it is idle, before a request and after an answer', async ({ expect }) => {
    const [silent, idle] = [await dial(port), await dial(port)];
    idle.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(await Promise.all([endOf(silent, 9000), endOf(idle, 9000)])).toEqual([true, true]);
  });
});

test('connections beyond the limit do no harm, and are closed after the time limit', async () => {
  await unharmed(async () => {
    const held = await Promise.all(Array.from({ length: 300 }, () => dial(port)));
    for (const socket of held) socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n');
    expect(held.filter((socket) => !socket.destroyed).length).toBeGreaterThan(0);
    const ends = await Promise.all(held.map((socket) => endOf(socket, 9000)));
    expect(ends.filter((over) => !over)).toEqual([]);
    for (const socket of held) socket.destroy();
  });
});

test('the daemon stops in time, whoever holds connections', async () => {
  const held = await Promise.all(Array.from({ length: 40 }, () => dial(port)));
  const sent = [
    '',
    'GET /met',
    'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n',
  ];
  for (const [n, socket] of held.entries()) {
    socket.pause();
    socket.write(
      n % 5 === 4 ? 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(500) : (sent[n % 5] ?? ''),
    );
  }
  expectStopped(await daemon.end('SIGTERM'));
  for (const socket of held) socket.destroy();
});
