import { describe, it } from 'vitest';
import { routeLines } from '../../src/sandbox/index.ts';
import { matchRoute, ROUTES } from '../../src/sandbox/routes.ts';
import { createMatcher } from '../../src/sandbox/routing.ts';
import { HandClock, skusWhere, start } from './support.ts';

describe.concurrent('the table of routes', () => {
  it.for([
    ['GET', '/partner/processing/orders', 'processing_orders', {}],
    ['GET', '/partner/catalog/manifest', 'manifest', {}],
    ['GET', '/partner/O-000001', 'order', { order_id: 'O-000001' }],
    ['GET', '/partner/catalog', 'order', { order_id: 'catalog' }],
    ['GET', '/partner/payout/settled', 'payout', { order_id: 'settled' }],
    ['GET', '/partner/lowest/bulk', 'lowest', { sku: 'bulk' }],
    ['POST', '/partner/lowest/bulk', 'bulk', {}],
    ['GET', '/partner/lowest/a%2Fb', 'lowest', { sku: 'a%2Fb' }],
    ['GET', '/files/labels/x.pdf', 'label_file', { file: 'x.pdf' }],
    ['GET', '/files/labels', 'file', { file: 'labels' }],
    ['PUT', '/partner/O-000001', null, {}],
    ['GET', '/partner/lowest/a/b', null, {}],
    ['GET', '/partner/', null, {}],
    ['GET', '/partner/payout/', null, {}],
    ['GET', '/partner/confirm/order', null, {}],
    ['POST', '/partner/confirm/order', null, {}],
    ['GET', '//partner/O-1', null, {}],
  ] as const)('%s %s is %s', ([method, path, name, params], { expect }) => {
    expect(matchRoute(method, path)).toEqual(name === null ? null : { name, params });
  });

  it('prefers a fixed path to one with parameters, whatever their order', ({ expect }) => {
    const route = { ...ROUTES.order, summary: '' };
    const matches = createMatcher({
      both: { ...route, path: '/partner/{a}/{b}' },
      one: { ...route, path: '/partner/{a}/x.y' },
      fixed: { ...route, path: '/partner/z/x.y' },
    });
    const names = ['/partner/z/x.y', '/partner/q/x.y', '/partner/q/xzy', '/partner/q'].map(
      (path) => matches('GET', path)?.name,
    );
    expect(names).toEqual(['fixed', 'one', 'both', undefined]);
  });

  it('matches what the help lists', ({ expect }) => {
    const lines = routeLines();
    expect(lines).toHaveLength(Object.keys(ROUTES).length);
    for (const [index, { method, path, summary }] of Object.values(ROUTES).entries())
      expect(lines[index]?.split(/ {2,}| (?=\/)/)).toEqual([method, path, summary]);
  });
});

describe.concurrent('every route of the API', () => {
  it('sends Cache-Control with a success (partner rules 8.cache), and none with a rejection', async ({
    expect,
  }) => {
    const caller = await start({ liveShare: 0 });
    await using _ = caller.sandbox;
    const sku = encodeURIComponent(skusWhere(caller, (row) => row.answer === 'record')[0] ?? '');
    const id = [...caller.sandbox.orders].find((order) => order.own)?.id ?? '';
    for (const [path, cacheControl] of [
      [`/partner/lowest/${sku}`, 'public, max-age=300, s-maxage=600, stale-while-revalidate=120'],
      ['/partner/settled/orders', 'public, max-age=600, s-maxage=1200, stale-while-revalidate=180'],
      ['/partner/processing/orders', 'public, max-age=60, s-maxage=120, stale-while-revalidate=30'],
      ['/partner/live/listings/ask', 'public, max-age=60, s-maxage=120, stale-while-revalidate=30'],
      [`/partner/${id}`, 'public, max-age=30, s-maxage=60, stale-while-revalidate=15'],
      [`/partner/payout/${id}`, 'public, max-age=30, s-maxage=60, stale-while-revalidate=15'],
      [`/partner/label/${id}`, 'no-store'],
      ['/partner/catalog/manifest', 'private, max-age=300'],
      [
        `/partner/catalog/delta?since=${caller.sandbox.world.newestSnapshot()}`,
        'public, max-age=60, s-maxage=60',
      ],
    ] as const) {
      const seen = await caller.send(path);
      expect([path, seen.status, seen.headers.get('cache-control')]).toEqual([path, 200, cacheControl]);
      expect(seen.headers.get('access-control-allow-origin')).toBe('*');
    }
    expect((await caller.send('/partner/O-999999')).headers.get('cache-control')).toBeNull();
  });

  it('counts against one limit, for reads and writes alike', async ({ expect }) => {
    const clock = new HandClock();
    const api = Object.values(ROUTES).filter(({ origin }) => origin === 'api');
    const caller = await start({ rateLimit: api.length, now: clock.now });
    await using _ = caller.sandbox;
    for (const { method, path } of api) {
      const seen = await caller.send(path, { method, ...(method === 'GET' ? {} : { body: '{}' }) });
      expect([path, seen.status]).not.toEqual([path, 403]);
      expect([404, 409, 422, 429, 500]).not.toContain(seen.status);
    }
    for (const { method, path } of api) expect((await caller.send(path, { method })).status).toBe(403);
    clock.advance(60_000);
    expect((await caller.manifest()).status).toBe(200);
  });

  it('gzips orders, listings and creations when asked to', async ({ expect }) => {
    const caller = await start();
    await using _ = caller.sandbox;
    const [sku = ''] = skusWhere(caller, (row) => row.listed);
    const body = JSON.stringify({ sku, size: '9', price: 900 });
    const encodings = await Promise.all(
      [
        caller.send('/partner/processing/orders'),
        caller.send('/partner/list/ask', { method: 'POST', body }),
        caller.send('/partner/O-999999'),
      ].map(async (seen) => (await seen).headers.get('content-encoding')),
    );
    expect(encodings).toEqual(['gzip', 'gzip', null]);
  });
});
