import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { crowdedOut, type HeldConnection } from '../../src/daemon/http/connections.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { eventually } from '../support/eventually.ts';
import { startTestServer, stopTestServers } from './http-server.ts';
import { dial, exchange, headsOf } from './raw-http.ts';

afterEach(stopTestServers);

const ROOM = { most: 8, newcomers: 3 };
const many = (count: number, one: HeldConnection) => Array.from({ length: count }, () => ({ ...one }));
const asking = (address = 'a'): HeldConnection => ({ address, phase: 'request' });
const computed = (address = 'a'): HeldConnection => ({ address, phase: 'answer' });
const unread = (address = 'a'): HeldConnection => ({ address, phase: 'reader' });

describe('the connection that makes room', () => {
  test('is none while there is room', () => {
    expect(crowdedOut(many(8, asking()), ROOM)).toBeNull();
  });

  test('is the one that has waited longest without a request, before any that has sent one', () => {
    const held = [computed(), unread(), ...many(5, asking()), computed(), asking()];
    expect(crowdedOut(held, ROOM)).toBe(held[2]);
  });

  test('is one that does not read its answer, or else one that waits for it, while few have sent no request', () => {
    const held = [computed(), unread(), ...many(5, computed()), unread(), asking()];
    expect(crowdedOut(held, ROOM)).toBe(held[1]);
    const busy = [...many(6, computed()), ...many(3, asking())];
    expect(crowdedOut(busy, ROOM)).toBe(busy[0]);
  });

  test('belongs to the address with the most connections: neither a proxy nor a probe pays for others', () => {
    const held = [asking('probe'), asking('proxy'), asking('proxy'), ...many(6, asking('crowd'))];
    expect(crowdedOut(held, ROOM)).toBe(held[3]);
  });

  test('is not one that a proxy opens while answers go to the proxy’s clients', () => {
    const held = [...many(4, computed('proxy')), ...many(4, asking('crowd')), asking('proxy')];
    expect(crowdedOut(held, ROOM)).toBe(held[4]);
  });

  test('always exists, is never the newest, and is one that has asked only while few others have not', () => {
    const phase = fc.constantFrom('request', 'answer', 'reader' as const);
    const address = fc.constantFrom('a', 'b', 'c', 'd');
    const older = fc.array(fc.record({ address, phase }), { minLength: 8, maxLength: 30 });
    fc.assert(
      fc.property(older, address, (before, from) => {
        const held: HeldConnection[] = [...before, asking(from)];
        const chosen = crowdedOut(held, ROOM);
        expect(chosen).not.toBeNull();
        expect(chosen).not.toBe(held.at(-1));
        const waiting = held.filter(({ phase: is }) => is === 'request').length;
        expect(chosen?.phase === 'request').toBe(waiting > ROOM.newcomers);
      }),
    );
  });
});

const ASK = 'GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n';
/** More than the kernel buffers for a client that does not read. */
const LARGE = Buffer.alloc(8 * 1024 ** 2, 'x').toString();
const large = new Map([
  ['/status.json', async () => ({ type: 'text/plain; charset=utf-8', body: LARGE, headers: {} })],
]);

describe('the connections of a client', () => {
  test('get four pipelined requests answered in order; a fifth is not even read', async () => {
    let asked = 0;
    const live = () => {
      asked += 1;
      return { ok: true, asked };
    };
    const { server } = await startTestServer({ live });
    const get = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const four = await exchange(server.port, [Buffer.from(get.repeat(4))]);
    expect(headsOf(four.text).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect([...four.text.matchAll(/"asked":(\d)/g)].map(([, n]) => n)).toEqual(['1', '2', '3', '4']);
    asked = 0;
    const flood = await exchange(server.port, [Buffer.from(get.repeat(700))], { ends: false });
    expect(flood.over).toBe(true);
    expect(asked).toBe(4);
  });

  test('may carry any number of consecutive requests', async () => {
    const { server } = await startTestServer();
    const socket = await dial(server.port);
    for (let n = 0; n < 20; n += 1) {
      socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n');
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      expect(chunk.toString()).toMatch(/^HTTP\/1\.1 200 /);
    }
    socket.destroy();
  });

  test('are closed after a time limit if an answer is read only a little at a time', async () => {
    // The server's clock advances only by `later`, so it does not matter how long the test itself takes.
    let later = 0;
    const clock = { ...systemClock, monotonic: () => later };
    const { server } = await startTestServer({ pages: large, clock });
    const socket = connect({ port: server.port, host: '127.0.0.1' });
    socket.on('error', () => {});
    socket.write(ASK);
    await once(socket, 'readable');
    // So little at a time that reading it all would take half a minute.
    const reading = setInterval(() => void socket.read(), 200);
    later = 14_000;
    await eventually(() => socket.bytesRead > 500_000, { what: 'some more bytes' });
    expect(socket.destroyed).toBe(false);
    later = 16_000;
    await eventually(() => socket.destroyed, { what: 'the end', within: 10_000 });
    clearInterval(reading);
    expect(socket.bytesRead).toBeLessThan(LARGE.length);
  });

  test('make room for others if they send no request, and a client that waits for an answer gets it', async () => {
    const slow = Promise.withResolvers<string>();
    const { server, logged } = await startTestServer({ metrics: () => slow.promise });
    const scrape = exchange(server.port, [Buffer.from(ASK.replace('/status.json', '/metrics'))], {
      ends: false,
    });
    const silent = await Promise.all(Array.from({ length: 300 }, () => dial(server.port)));
    const livez = await fetch(`http://127.0.0.1:${server.port}/livez`, { headers: { connection: 'close' } });
    expect(livez.status).toBe(200);
    slow.resolve('up 1\n');
    expect((await scrape).text).toContain('up 1');
    expect(logged()).toMatchObject([{ event: 'http.crowded', from: '127.0.0.1', times: 1 }]);
    for (const socket of silent) socket.destroy();
  });
});
