import { request } from 'node:http';
import { describe, it } from 'vitest';
import { lineOf, type RequestRecord } from '../../src/sandbox/requests.ts';
import { type Caller, start } from './support.ts';

/** Sends a GET with exactly these headers. */
async function get(caller: Caller, path: string, headers: Record<string, string>) {
  const { host, port } = caller.sandbox.address;
  return new Promise<{ headers: Record<string, unknown>; text: string }>((resolve, reject) => {
    const all = { authorization: caller.basic(), ...headers };
    request({ host, port, path, headers: all }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('end', () =>
        resolve({ headers: answer.headers, text: Buffer.concat(parts).toString('latin1') }),
      );
    })
      .on('error', reject)
      .end();
  });
}

describe.concurrent('content negotiation (partner rule 1.3)', () => {
  it.for([
    ['gzip', true],
    ['GZIP', true],
    ['deflate, gzip;q=0.5', true],
    ['br;q=1.0, gzip; q=0.001', true],
    ['gzip;q=0', false],
    ['gzip; Q=0.000, deflate', false],
    ['identity', false],
    ['x-gzipped', false],
    ['', false],
  ] as const)(
    'Accept-Encoding %j: gzip is %j, and the answer has a Vary header',
    async ([accepts, zipped], { expect }) => {
      const caller = await start();
      await using _ = caller.sandbox;
      const { headers } = await get(caller, '/partner/settled/orders', { 'accept-encoding': accepts });
      expect([headers['content-encoding'] === 'gzip', headers['vary']]).toEqual([zipped, 'Accept-Encoding']);
      expect(
        (await get(caller, '/partner/O-999999', { 'accept-encoding': accepts })).headers['vary'],
      ).toBeUndefined();
    },
  );
});

describe.concurrent('presigned URLs', () => {
  const baseOf = async (caller: Caller, headers: Record<string, string>) => {
    const bodies = await Promise.all(
      ['/partner/catalog/manifest', `/partner/label/${own(caller)}`].map((path) =>
        get(caller, path, headers),
      ),
    );
    return bodies.map(({ text }) => /"url":"(.*?)\/files\//.exec(text)?.[1]);
  };
  const own = ({ sandbox }: Caller) => [...sandbox.orders].find((order) => order.own)?.id ?? '';

  it('lead to the host by which the client reached the sandbox, unless it is invalid', async ({ expect }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const { url } = caller.sandbox;
    expect(await baseOf(caller, { host: 'sandbox:8080' })).toEqual([
      'http://sandbox:8080',
      'http://sandbox:8080',
    ]);
    expect(await baseOf(caller, { host: '192.0.2.7' })).toEqual(['http://192.0.2.7', 'http://192.0.2.7']);
    for (const host of ['a b', 'user@evil.example', 'x"y', 'a/b', ''])
      expect([host, await baseOf(caller, { host })]).toEqual([host, [url, url]]);
  });

  it('lead to the public URL if one is set', async ({ expect }) => {
    const caller = await start({ publicUrl: 'https://partner.example/api' });
    await using _ = caller.sandbox;
    const base = 'https://partner.example/api';
    expect(await baseOf(caller, { host: 'sandbox:8080' })).toEqual([base, base]);
    expect(caller.sandbox.url).toBe(base);
  });

  it('of a sandbox that listens on every address are reachable', async ({ expect }) => {
    const caller = await start({ host: '0.0.0.0' });
    await using _ = caller.sandbox;
    expect(caller.sandbox.url).toBe(`http://127.0.0.1:${caller.sandbox.address.port}`);
    expect((await fetch((await caller.manifest()).json.url)).status).toBe(200);
  });
});

describe.concurrent('the log', () => {
  const record: RequestRecord = {
    at: Date.UTC(2026, 0, 1),
    route: 'order',
    method: 'GET',
    path: '/partner/O-1',
    query: '',
    body: null,
    status: 200,
    code: null,
    fault: null,
    apiKey: true,
    authorization: true,
    skus: [],
    liveComputed: 0,
  };

  it.for<[Partial<RequestRecord>, string]>([
    [{}, '2026-01-01T00:00:00.000Z GET /partner/O-1 200'],
    [{ query: 'cursor=a', status: 403 }, '2026-01-01T00:00:00.000Z GET /partner/O-1?cursor=a 403'],
    [{ status: 0, fault: 'hang' }, '2026-01-01T00:00:00.000Z GET /partner/O-1 unanswered (fault: hang)'],
    [{ status: 503, code: '0014' }, '2026-01-01T00:00:00.000Z GET /partner/O-1 503 0014'],
    [{ route: 'bulk', skus: ['a', 'b'] }, '2026-01-01T00:00:00.000Z GET /partner/O-1 200 2 SKUs'],
    [{ route: 'file', query: 'X-Signature=s' }, '2026-01-01T00:00:00.000Z GET /partner/O-1 200'],
    [
      { body: '{"a":\n"\u001b[2J\u202e"}' },
      String.raw`2026-01-01T00:00:00.000Z GET /partner/O-1 200 {"a":\u000a"\u001b[2J\u202e"}`,
    ],
  ])('%j', ([members, line], { expect }) => {
    expect(lineOf({ ...record, ...members })).toBe(line);
  });

  it('has a line for each request with what was sent, and one for each control call', async ({ expect }) => {
    const lines: string[] = [];
    const caller = await start({ log: (line) => lines.push(line), startAt: Date.UTC(2026, 0, 1), orders: 0 });
    await using _ = caller.sandbox;
    const body = JSON.stringify({ order_id: 'O-999999' });
    await caller.send('/partner/confirm/order', { method: 'PUT', body });
    await caller.bulk(['a', 'b']);
    await fetch(`${caller.sandbox.url}/sandbox/state`);
    await fetch(`${caller.sandbox.url}/partner/x`);
    expect(lines.map((line) => line.replace('2026-01-01T00:00:00.000Z ', ''))).toEqual([
      `PUT /partner/confirm/order 400 ${body}`,
      'POST /partner/lowest/bulk 200 2 SKUs',
      'GET /sandbox/state 200 (control)',
      'GET /partner/x 401',
    ]);
  });
});
