import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { messageOf, refusedSays, type WebhookOptions, webhookProblem } from '../../src/follow/webhook.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { bodyText, type Listener, serve } from '../partner/server.ts';
import { verified } from './verified.ts';
import { BATCH, NEVER, SECRET, webhook } from './webhooks.ts';

async function result(listener: Listener, more: Partial<WebhookOptions> = {}) {
  return await webhook(await serve(listener), more).deliver(BATCH!, NEVER);
}

const status =
  (code: number, headers: Record<string, string> = {}, body = ''): Listener =>
  (request, response) => {
    request.resume();
    response.writeHead(code, headers).end(body);
  };

describe('a post', () => {
  test('is one request with a valid signature, according to an independent implementation', async () => {
    const seen: { headers: Record<string, unknown>; body: string; url: string | undefined }[] = [];
    const base = await serve(async (request, response) => {
      seen.push({ headers: request.headers, body: await bodyText(request), url: request.url });
      response.end('ok');
    });
    const second = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
    const clock = { ...systemClock, now: () => 1_800_000_000_900 };
    const sink = webhook(new URL('/hook?a=1', base), { secrets: () => [SECRET, second], clock });
    const delivered = { outcome: 'delivered', status: 200, said: null, retryAfterMs: null };
    expect(await sink.deliver(BATCH!, NEVER)).toEqual(delivered);
    // After the clock was set back, the next attempt has the new time and the same id and body.
    clock.now = () => 1_700_000_000_000;
    await sink.deliver(BATCH!, NEVER);
    const [first, again] = seen;
    const id = messageOf('shop', BATCH!).messageId;
    expect(first).toMatchObject({
      url: '/hook?a=1',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'catalog-mirror/test',
        'webhook-id': id,
        'webhook-timestamp': '1800000000',
      },
    });
    expect(again).toMatchObject({
      body: first!.body,
      headers: { 'webhook-id': id, 'webhook-timestamp': '1700000000' },
    });
    for (const { headers, body } of seen)
      for (const secret of [SECRET, second]) expect(verified(headers, body, secret)).toBe(true);
    expect(verified(first!.headers, `${first!.body} `, SECRET)).toBe(false);
    expect(verified(first!.headers, first!.body, `whsec_${Buffer.alloc(32, 8).toString('base64')}`)).toBe(
      false,
    );
    expect(verified({ ...first!.headers, 'webhook-timestamp': '1800000001' }, first!.body, SECRET)).toBe(
      false,
    );
  });

  test('is signed with the secrets that are valid at that attempt', async () => {
    const signatures: unknown[] = [];
    let secrets = [SECRET];
    const base = await serve((request, response) => {
      signatures.push(request.headers['webhook-signature']);
      response.end();
    });
    const sink = webhook(base, { secrets: () => secrets });
    await sink.deliver(BATCH!, NEVER);
    secrets = [`whsec_${Buffer.alloc(32, 1).toString('base64')}`];
    await sink.deliver(BATCH!, NEVER);
    expect(new Set(signatures).size).toBe(2);
  });
});

describe('an answer', () => {
  test('decides by its status', async () => {
    expect(await result(status(204))).toMatchObject({ outcome: 'delivered', status: 204 });
    expect(await result(status(422, {}, '{"error":"no such field"}'))).toEqual({
      outcome: 'refused',
      status: 422,
      said: '{"error":"no such field"}',
      retryAfterMs: null,
    });
    expect(await result(status(429, { 'retry-after': '7' }))).toMatchObject({
      outcome: 'failed',
      retryAfterMs: 7000,
    });
    expect(await result(status(410))).toMatchObject({ outcome: 'unwanted' });
  });

  test('from a receiver with a different clock counts against no batch', async () => {
    const shifted = (ms: number) => ({ clock: { ...systemClock, now: () => systemClock.now() + ms } });
    expect(await result(status(400, {}, 'timestamp too old'), shifted(-6 * 60_000))).toMatchObject({
      outcome: 'failed',
      isByClock: true,
      status: 400,
      said: expect.stringMatching(/^this host's clock is 6m behind the receiver's; timestamp too old$/),
    });
    expect(await result(status(401), shifted(6 * 60_000))).toMatchObject({
      outcome: 'failed',
      said: "this host's clock is 6m ahead of the receiver's",
    });
    expect(await result(status(400), shifted(-3 * 60_000))).toMatchObject({ outcome: 'refused', said: null });
    expect(await result(status(204), shifted(-6 * 60_000))).toMatchObject({
      outcome: 'delivered',
      said: null,
    });
  });

  test('from a receiver that has accepted a batch with such a clock counts against the batch', async () => {
    let code = 422;
    const base = await serve((request, response) => {
      request.resume();
      response.writeHead(code, { date: 'Thu, 01 Jan 1970 00:00:00 GMT' }).end();
    });
    const sink = webhook(base);
    const outcomes: unknown[] = [];
    for (code of [422, 200, 422, 401]) outcomes.push((await sink.deliver(BATCH!, NEVER)).outcome);
    expect(outcomes).toEqual(['failed', 'delivered', 'refused', 'failed']);
  });

  test('that comes after five minutes, from a receiver whose clock is right, counts against the batch', async () => {
    const clock = { ...systemClock, now: () => Date.now() - 300_000 };
    const base = await serve((request, response) => {
      request.resume();
      clock.now = () => Date.now();
      response.writeHead(422).end();
    });
    expect(await webhook(base, { clock }).deliver(BATCH!, NEVER)).toMatchObject({
      outcome: 'refused',
      said: null,
    });
  });

  test('that redirects is not followed', async () => {
    let followed = 0;
    const elsewhere = await serve((_, response) => {
      followed += 1;
      response.end();
    });
    for (const code of [301, 302, 307, 308])
      expect(await result(status(code, { location: elsewhere.href }))).toMatchObject({
        outcome: 'failed',
        status: code,
        said: expect.stringContaining('redirects are not followed'),
      });
    expect(followed).toBe(0);
  });

  test('without end is read only up to some bytes, and its status counts', async () => {
    const endless: (code: number) => Listener = (code) => (_, response) => {
      response.writeHead(code);
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    };
    expect(await result(endless(200))).toMatchObject({ outcome: 'delivered' });
    expect(await result(endless(500))).toMatchObject({ outcome: 'failed', said: 'x'.repeat(200) });
  });

  test('that is cut off after its head counts by its status', async () => {
    const cutOff: (code: number) => Listener = (code) => (_, response) => {
      response.writeHead(code, { 'content-length': '100' });
      response.write('so far');
      setImmediate(() => response.destroy());
    };
    expect(await result(cutOff(200))).toMatchObject({ outcome: 'delivered' });
    expect(await result(cutOff(503))).toMatchObject({ outcome: 'failed', status: 503 });
  });

  test('that is missing or is not HTTP is a failure that names the cause', async () => {
    expect(await result((request) => request.socket.destroy())).toMatchObject({
      outcome: 'failed',
      status: null,
      said: 'UND_ERR_SOCKET',
    });
    expect(await result(() => {}, { timeoutMs: 50 })).toMatchObject({
      outcome: 'failed',
      said: expect.stringContaining('WEBHOOK_TIMEOUT'),
    });
    const garbage = createServer((socket) => {
      socket.on('error', () => {});
      socket.end('\u0000\u0001 hello, I am no HTTP\r\n\r\n');
    });
    await new Promise<void>((resolve) => {
      garbage.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => void garbage.close());
    const { port } = garbage.address() as AddressInfo;
    expect(await webhook(new URL(`http://127.0.0.1:${port}`)).deliver(BATCH!, NEVER)).toMatchObject({
      outcome: 'failed',
      status: null,
      said: expect.stringMatching(/^HPE_|^HTTPParserError/),
    });
    garbage.close();
    expect(await webhook(new URL(`http://127.0.0.1:${port}`)).deliver(BATCH!, NEVER)).toMatchObject({
      outcome: 'failed',
      said: 'ECONNREFUSED',
    });
  });
});

describe('the address of a webhook', () => {
  test.each<[string, boolean, RegExp | null]>([
    ['https://shop.example/hook', false, null],
    ['https://shop.example/hook', true, null],
    ['https://93.184.216.34/', false, null],
    ['http://shop.internal/hook', true, null],
    ['http://shop.internal/hook', false, /https/],
    ['http://93.184.216.34/', true, /public.*use https/],
    ['https://100.64.0.7/', true, null],
    ['http://100.127.255.254/', true, null],
    ['https://100.64.0.7/', false, /WEBHOOK_ALLOW_PRIVATE/],
    ['https://100.128.0.1/', false, null],
    ['http://100.100.100.200/', true, /metadata/],
    ['https://10.0.0.7/', false, /WEBHOOK_ALLOW_PRIVATE/],
    ['https://10.0.0.7/', true, null],
    ['https://localhost/', false, /WEBHOOK_ALLOW_PRIVATE/],
    ['https://127.1/', false, /WEBHOOK_ALLOW_PRIVATE/],
    ['https://[::1]/', false, /WEBHOOK_ALLOW_PRIVATE/],
    ['https://[::ffff:127.0.0.1]/', false, /WEBHOOK_ALLOW_PRIVATE/],
    ['http://127.0.0.1:8080/', true, null],
    ['https://169.254.169.254/', true, /metadata/],
    ['http://169.254.169.254/', true, /metadata/],
    ['https://[fd00:ec2::254]/', true, /metadata/],
    ['https://168.63.129.16/', true, /metadata/],
    ['https://100.100.100.200/', true, /metadata/],
    ['https://user:pass@shop.example/', true, /without user/],
    ['ftp://shop.example/', true, /https/],
    ['shop.example', true, /https/],
  ])('%s, private ones allowed: %s', (url, allowed, problem) => {
    const found = webhookProblem(URL.parse(url), allowed);
    if (problem === null) expect(found).toBeNull();
    else expect(found).toMatch(problem);
    // A variable that is already set is not suggested.
    if (allowed) expect(found ?? '').not.toContain('WEBHOOK_ALLOW_PRIVATE');
  });

  test.each<[string, boolean, RegExp]>([
    ['https://localhost', false, /private networks.*WEBHOOK_ALLOW_PRIVATE/],
    ['http://shop.example', true, /plain http.*use https/],
    ['https://shop.example', true, /never called/],
  ])('%s, private ones allowed: %s: is refused with the reason', (url, allowed, said) => {
    const refused = refusedSays(new URL(url), allowed);
    expect(refused).toMatch(said);
    if (allowed) expect(refused).not.toContain('WEBHOOK_ALLOW_PRIVATE');
  });

  test('is checked after resolution, whatever its name is', async () => {
    let asked = 0;
    const base = await serve((_, response) => {
      asked += 1;
      response.end();
    });
    // As after a DNS rebinding: a name that was accepted, and resolves to this machine.
    const url = new URL(`https://localhost:${base.port}/`);
    expect(await webhook(url, { allowPrivate: false }).deliver(BATCH!, NEVER)).toMatchObject({
      outcome: 'failed',
      status: null,
      said: expect.stringContaining('WEBHOOK_ALLOW_PRIVATE'),
    });
    expect(asked).toBe(0);
  });
});
