import { describe, it } from 'vitest';
import { liveSkus, quietSkus } from './calls.ts';
import { envelope } from './catalog.ts';
import { HandClock, open } from './support.ts';

describe.concurrent('price lookup', () => {
  it('4.1.lowest, 7.3.0000, 7.3.0009 a known SKU returns a record, an unknown one 400 with 0009', async ({
    expect,
  }) => {
    await using partner = await open();
    const known = await partner.lowest(quietSkus(partner)[0] ?? '');
    expect([known.status, known.json['code']]).toEqual([200, '0000']);
    for (const sku of ['NOPE-1', 'valueOf', 'a b/c?d=é%']) {
      const { status, json } = await partner.lowest(sku);
      expect([sku, status, json]).toEqual([sku, 400, { code: '0009', message: expect.any(String) }]);
    }
  });

  it('4.1.lowest accepts SKUs that need percent-encoding', async ({ expect }) => {
    await using partner = await open();
    const odd = partner.sandbox.world.add('CT8012/005 ü?&#%');
    expect((await partner.lowest(odd)).status).toBe(200);
    expect(Object.keys((await envelope(partner, [odd])).results)).toEqual([odd]);
  });

  it('4.1.lowest, 7.2.500-service a transient failure returns the 500 of the service', async ({ expect }) => {
    await using partner = await open();
    const [sku = ''] = quietSkus(partner);
    partner.sandbox.world.setFailing(sku, true);
    const failed = await partner.lowest(sku);
    expect([failed.status, failed.text]).toEqual([500, '{"errorMessage":"Internal Server Error"}']);
    partner.sandbox.world.setFailing(sku, false);
    expect((await partner.lowest(sku)).status).toBe(200);
  });

  it('4.1.lowest a live SKU is answered, and counts as one request like any other', async ({ expect }) => {
    const clock = new HandClock();
    await using partner = await open({ liveShare: 0.2, rateLimit: 3, now: clock.now });
    const statuses: number[] = [];
    for (const sku of liveSkus(partner).slice(0, 4)) statuses.push((await partner.lowest(sku)).status);
    expect(statuses).toEqual([200, 200, 200, 403]);
  });

  it('4.1.bulk, 8.bulk accepts 100 SKUs and rejects 101', async ({ expect }) => {
    await using partner = await open({ skus: 150, liveShare: 0 });
    const skus = quietSkus(partner);
    expect((await partner.bulk(skus.slice(0, 100))).status).toBe(200);
    const refused = await partner.bulk(skus.slice(0, 101));
    expect(refused.status).toBe(400);
    expect(refused.json).toMatchObject({ message: expect.any(String) });
  });

  it('4.1.bulk collapses duplicates and ignores unknown keys', async ({ expect }) => {
    await using partner = await open();
    const [sku = ''] = quietSkus(partner);
    const { status, json } = await partner.post('/partner/lowest/bulk', {
      skus: [sku, sku],
      limit: 1,
      mode: { deep: true },
    });
    expect([status, json]).toEqual([200, expect.objectContaining({ requested: 2, deduped: 1 })]);
    expect(Object.keys(json['results'] as object)).toEqual([sku]);
  });

  it('4.1.1, 7.1.200 an answer may be 200 although it resolved nothing', async ({ expect }) => {
    await using partner = await open();
    const { status, json } = await partner.bulk(['NOPE-1', 'NOPE-2']);
    expect([status, json['results'], json['not_found']]).toEqual([200, {}, ['NOPE-1', 'NOPE-2']]);
  });

  it('4.1.2 SKUs in deferred and errors exist', async ({ expect }) => {
    await using partner = await open({ liveShare: 0.5, rateLimit: 1000 });
    const [failing = ''] = quietSkus(partner);
    partner.sandbox.world.setFailing(failing, true);
    const { deferred, errors } = await envelope(partner, [failing, ...liveSkus(partner)]);
    expect(errors).toEqual([failing]);
    expect(deferred.length).toBeGreaterThan(0);
    partner.sandbox.world.setFailing(failing, false);
    for (const sku of [...deferred, ...errors]) expect((await partner.lowest(sku)).json['code']).toBe('0000');
  });

  it('4.1.3, 8.bulk a request computes five live SKUs, whatever precedes them', async ({ expect }) => {
    await using partner = await open({ skus: 80, liveShare: 0.5, ghostShare: 0 });
    const live = liveSkus(partner).slice(0, 30);
    const quiet = quietSkus(partner).slice(0, 20);
    for (const asked of [live, [...quiet, ...live], [...live, ...quiet]]) {
      const { results, deferred } = await envelope(partner, asked);
      expect(live.filter((sku) => Object.hasOwn(results, sku))).toHaveLength(5);
      expect(deferred).toHaveLength(25);
      expect(Object.keys(results)).toHaveLength(5 + asked.length - 30);
    }
  });

  it('4.1.3 a ceiling across requests defers further live SKUs, and no others', async ({ expect }) => {
    const clock = new HandClock();
    await using partner = await open({ liveShare: 0.5, liveCeilingPerMinute: 7, now: clock.now });
    const [quiet = ''] = quietSkus(partner);
    const asked = [quiet, ...liveSkus(partner).slice(0, 5)];
    const resolved = async (): Promise<number> =>
      Object.keys((await envelope(partner, asked)).results).length;
    expect([await resolved(), await resolved(), await resolved()]).toEqual([6, 3, 1]);
    clock.advance(60_000);
    expect(await resolved()).toBe(6);
  });

  it('4.1.5, 8.cache.bulk a bulk answer must not be cached', async ({ expect }) => {
    await using partner = await open();
    const cacheControl = (await partner.bulk(['NOPE'])).headers['cache-control'];
    expect(cacheControl ?? 'no-store').toMatch(/no-store|no-cache/);
    expect(cacheControl ?? '').not.toMatch(/public|s-maxage/);
  });
});
