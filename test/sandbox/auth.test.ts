import { afterEach, describe, expect, it } from 'vitest';
import { HandClock, start, type Caller } from './support.ts';

const MANIFEST = '/partner/catalog/manifest';
let caller: Caller;
afterEach(() => caller.sandbox.close());

describe('authentication outcomes (partner rules 5.5)', () => {
  it('answers 401 without a header, byte for byte', async () => {
    caller = await start();
    const response = await fetch(caller.sandbox.url + MANIFEST);
    expect(response.status).toBe(401);
    expect(await response.text()).toBe('{"message":"Unauthorized"}');
  });

  it.each([
    ['another scheme', 'Bearer abc'],
    ['no base64', 'Basic %%%'],
    ['cut base64', 'Basic YWJjZ'],
    ['base64 without a colon', `Basic ${Buffer.from('justakey').toString('base64')}`],
    ['an unknown api_key', `Basic ${Buffer.from('nobody:sandbox-secret').toString('base64')}`],
  ])('answers 500 for %s', async (_name, authorization) => {
    caller = await start();
    const seen = await caller.send(MANIFEST, { headers: { authorization } });
    expect(seen.status).toBe(500);
    expect(seen.text).toBe('{"message":"Internal Server Error"}');
    expect(caller.sandbox.requests.at(-1)).toMatchObject({ apiKey: false, authorization: true, status: 500 });
  });

  it('answers 403 for a wrong secret, and for a right one with a trailing newline', async () => {
    caller = await start();
    for (const secret of ['wrong', 'sandbox-secret\n', 'sandbox-secret ', '']) {
      const seen = await caller.send(MANIFEST, {
        headers: { authorization: caller.basic(undefined, secret) },
      });
      expect(seen.status).toBe(403);
      expect(seen.text).toBe('{"message":"Forbidden"}');
    }
  });

  it('accepts a secret that contains colons', async () => {
    caller = await start({ secret: 'a:b:c' });
    expect((await caller.manifest()).status).toBe(200);
  });

  it('tells an incomplete account from a wrong secret', async () => {
    caller = await start({ accountConfigured: false });
    const seen = await caller.manifest();
    expect(seen.status).toBe(403);
    expect(seen.text).toBe('{"statusCode":403,"message":"Supplier account not configured"}');
  });

  it('judges the header that a fault has changed, and accepts an account that is completed later', async () => {
    caller = await start({ accountConfigured: false });
    caller.sandbox.faults.add({ route: 'manifest', authorization: null });
    caller.sandbox.faults.add({ route: 'manifest', authorization: 'Basic %%%' });
    expect(await caller.manifest()).toMatchObject({ status: 401, text: '{"message":"Unauthorized"}' });
    expect(caller.sandbox.requests.at(-1)).toMatchObject({ authorization: false, apiKey: false });
    expect(await caller.manifest()).toMatchObject({ status: 500 });
    expect((await caller.manifest()).status).toBe(403);
    caller.sandbox.configureAccount(true);
    expect((await caller.manifest()).status).toBe(200);
  });

  it('accepts both secrets during the overlap of a rotation, then only the new one', async () => {
    const clock = new HandClock();
    caller = await start({ now: clock.now });
    const old = caller.basic();
    caller.sandbox.rotateSecret('next', 300_000);
    expect(caller.sandbox.secret).toBe('next');
    clock.advance(299_999);
    expect((await caller.send(MANIFEST, { headers: { authorization: old } })).status).toBe(200);
    expect((await caller.manifest()).status).toBe(200);
    clock.advance(1);
    expect((await caller.send(MANIFEST, { headers: { authorization: old } })).status).toBe(403);
    expect((await caller.manifest()).status).toBe(200);
  });
});

describe('request rate (partner rule 8.rate)', () => {
  it('rejects a request beyond the limit of the rolling window exactly like a wrong secret', async () => {
    const clock = new HandClock();
    caller = await start({ rateLimit: 3, now: clock.now });
    await caller.manifest();
    clock.advance(30_000);
    await caller.bulk(['A']);
    await caller.lowest('A');
    const throttled = await caller.manifest();
    const wrong = await caller.send(MANIFEST, { headers: { authorization: caller.basic(undefined, 'no') } });
    expect([throttled.status, throttled.text]).toEqual([403, '{"message":"Forbidden"}']);
    expect(throttled.headers.get('retry-after')).toBeNull();
    expect([...throttled.headers]).toEqual([...wrong.headers]);
    expect(wrong.text).toBe(throttled.text);
  });

  it('counts rejected requests, and the window rolls instead of resetting', async () => {
    const clock = new HandClock();
    caller = await start({ rateLimit: 2, now: clock.now });
    const statuses: number[] = [];
    for (const pause of [0, 30_000, 20_000, 10_000, 29_999, 1, 60_000]) {
      clock.advance(pause);
      statuses.push((await caller.manifest()).status);
    }
    // Passes: 0 s, 30 s. At 50 s it is the third request; at 60 s the first has left, but 30 and 50 count; at
    // 89.999 s 50 and 60 do.
    expect(statuses).toEqual([200, 200, 403, 403, 403, 403, 200]);
    expect(caller.sandbox.maxRequestsInWindow()).toBe(4);
  });

  it('counts wrong secrets and unknown routes of the key, but not unknown keys or the files origin', async () => {
    caller = await start({ rateLimit: 4 });
    const { url } = (await caller.manifest()).json;
    await fetch(caller.sandbox.url + MANIFEST);
    await caller.send(MANIFEST, { headers: { authorization: 'Basic %%%' } });
    for (let n = 0; n < 6; n += 1) expect((await fetch(url)).status).toBe(200);
    await caller.send(MANIFEST, { headers: { authorization: caller.basic(undefined, 'no') } });
    expect((await caller.send('/partner/no/such')).status).toBe(404);
    expect((await caller.manifest()).status).toBe(200);
    expect((await caller.manifest()).status).toBe(403);
    expect(caller.sandbox.counts('file')).toBe(6);
    expect(caller.sandbox.counts('unknown')).toBe(1);
    expect(caller.sandbox.counts()).toBe(13);
  });

  it('lets exactly the limit through from a burst of overlapping requests', async () => {
    caller = await start({ rateLimit: 20, latencyMs: 5 });
    const seen = await Promise.all(Array.from({ length: 50 }, () => caller.manifest()));
    expect(seen.filter(({ status }) => status === 200)).toHaveLength(20);
    expect(caller.sandbox.maxRequestsInWindow()).toBe(50);
  });
});
