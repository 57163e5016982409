import { describe, expect, it } from 'vitest';
import { everyCall, list, quietSkus, send } from './calls.ts';
import { HandClock, open } from './support.ts';

const FORBIDDEN = [403, '{"message":"Forbidden"}'];

const MINUTE_CACHE = 'public, max-age=60, s-maxage=120, stale-while-revalidate=30';
const ORDER_CACHE = 'public, max-age=30, s-maxage=60, stale-while-revalidate=15';

/** Cache-Control of each GET endpoint, as the partner documents it. */
const CACHE_CONTROL: readonly (readonly [name: string, endpoint: string, value: string])[] = [
  [
    '8.cache.lowest ten minutes shared',
    '/partner/lowest/{sku}',
    'public, max-age=300, s-maxage=600, stale-while-revalidate=120',
  ],
  [
    '8.cache.settled twenty minutes shared',
    '/partner/settled/orders',
    'public, max-age=600, s-maxage=1200, stale-while-revalidate=180',
  ],
  ['8.cache.listings two minutes shared', '/partner/live/listings/{type}', MINUTE_CACHE],
  ['8.cache.processing two minutes shared', '/partner/processing/orders', MINUTE_CACHE],
  ['8.cache.order a minute shared', '/partner/{order_id}', ORDER_CACHE],
  ['8.cache.payout a minute shared', '/partner/payout/{order_id}', ORDER_CACHE],
  [
    '8.cache.manifest never shared, as its body is a credential',
    '/partner/catalog/manifest',
    'private, max-age=300',
  ],
  ['8.cache.delta a minute', '/partner/catalog/delta', 'public, max-age=60, s-maxage=60'],
];

describe.concurrent('limits', () => {
  it('8.rate 200 requests a minute pass across all endpoints and methods, and then none is answered', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ now: clock.now });
    const calls = await everyCall(partner);
    clock.advance(60_000);
    const statuses: number[] = [];
    for (let count = 0; count < 200; count += 1) {
      const call = calls[count % calls.length];
      if (call !== undefined) statuses.push((await send(partner, call)).status);
    }
    expect(statuses.filter((status) => status < 300)).toHaveLength(200);
    for (const call of calls) {
      const { status, text } = await send(partner, call);
      expect([call.endpoint, status, text]).toEqual([call.endpoint, ...FORBIDDEN]);
    }
  });

  it('8.rate the window rolls: a request counts for exactly 60 seconds', async ({ expect }) => {
    const clock = new HandClock();
    await using partner = await open({ now: clock.now });
    const passing = async (most: number): Promise<number> => {
      for (let count = 0; count < most; count += 1)
        if ((await partner.lowest('NOPE')).status === 403) return count;
      return most;
    };
    expect(await passing(120)).toBe(120);
    clock.advance(30_000);
    expect(await passing(80)).toBe(80);
    clock.advance(29_999);
    expect(await passing(1)).toBe(0);
    clock.advance(1);
    expect(await passing(200)).toBe(119);
  });

  it('8.over-rate a rejection has no Retry-After and no body of its own, and the write is not done', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ now: clock.now, listings: 0, rateLimit: 3 });
    for (let count = 0; count < 3; count += 1) await list(partner, 'ask');
    const body = { sku: quietSkus(partner)[0], size: '42', price: 900 };
    const refused = await partner.post('/partner/list/ask', body);
    expect([refused.status, refused.text]).toEqual(FORBIDDEN);
    const told = Object.keys(refused.headers).filter((name) => /retry|rate/i.test(name));
    expect(told).toEqual([]);
    clock.advance(60_000);
    expect((await partner.page('/partner/live/listings/ask')).listings).toHaveLength(3);
  });

  it('8.over-rate retries use up the same budget, so a client that never pauses is never let through', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ now: clock.now, rateLimit: 20 });
    const statuses: number[] = [];
    for (let second = 0; second < 180; second += 1) {
      statuses.push((await partner.manifest()).status);
      clock.advance(1000);
    }
    expect(statuses.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(new Set(statuses.slice(20))).toEqual(new Set([403]));
    clock.advance(60_000);
    expect((await partner.manifest()).status).toBe(200);
  });

  it('8.rate requests with other keys do not use up the budget of the key', async ({ expect }) => {
    await using partner = await open({ rateLimit: 2 });
    for (let count = 0; count < 5; count += 1) {
      await partner.raw('GET', '/partner/settled/orders', {});
      await partner.raw('GET', '/partner/settled/orders', { authorization: partner.basic('nobody') });
    }
    expect((await partner.manifest()).status).toBe(200);
  });

  it.each(CACHE_CONTROL)('%s', async (_name, endpoint, value) => {
    await using partner = await open();
    const call = (await everyCall(partner)).find((call) => call.endpoint === endpoint);
    if (call === undefined) throw new Error(`no call of ${endpoint}`);
    const { status, headers } = await send(partner, call);
    expect([status, headers['cache-control']]).toEqual([200, value]);
  });
});
