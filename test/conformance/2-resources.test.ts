import { gunzipSync } from 'node:zlib';
import { describe, it } from 'vitest';
import { list, liveSkus, ownOrder, quietSkus } from './calls.ts';
import { deltaAfter, deltaSince, envelope, file, lines, type Bulk, type Line } from './catalog.ts';
import { foreignOrder } from './levers.ts';
import { PRODUCT_MEMBERS } from './rows-resources.ts';
import { HandClock, open, STATUSES, type Json } from './support.ts';

const HOUR = 3_600_000;
const PROCESSING = '/partner/processing/orders';
const SETTLED = '/partner/settled/orders';

describe.concurrent('orders and listings', () => {
  it('2.1.type, 2.1.orders, 2.1.nextCursor, 8.order-page both lists come in pages of 100, the last with null', async ({
    expect,
  }) => {
    await using partner = await open({ orders: 900 });
    for (const path of [PROCESSING, SETTLED]) {
      const pages = await partner.pages(path);
      expect(pages.length).toBeGreaterThan(1);
      const last = pages.pop();
      expect(new Set(pages.map(({ type }) => type))).toEqual(new Set([last?.type]));
      expect(last?.type).toBe(path.split('/')[2]);
      expect(pages.map(({ orders }) => orders.length)).toEqual(pages.map(() => 100));
      expect(pages.map(({ nextCursor }) => typeof nextCursor)).toEqual(pages.map(() => 'string'));
      expect(last?.nextCursor).toBeNull();
      expect(last?.orders.length).toBeLessThanOrEqual(100);
    }
  });

  it('2.1.orders, 2.1.nextCursor an account without orders gets one empty page', async ({ expect }) => {
    await using partner = await open({ orders: 0 });
    for (const path of [PROCESSING, SETTLED])
      expect(await partner.page(path)).toMatchObject({ orders: [], nextCursor: null });
  });

  it('2.2.order_id, 2.2.status, 2.2.expected_payout have their types in every order', async ({ expect }) => {
    await using partner = await open({ orders: 400 });
    const pages = [...(await partner.pages(PROCESSING)), ...(await partner.pages(SETTLED))];
    const orders = pages.flatMap((page) => page.orders);
    expect(orders).toHaveLength(new Set(orders.map(({ order_id }) => order_id)).size);
    for (const order of orders) {
      expect(order).toMatchObject({ order_id: expect.any(String), expected_payout: expect.any(Number) });
      expect(STATUSES).toContain(order.status);
    }
    for (const { order_id, ...rest } of [...orders.slice(0, 5), ...orders.slice(-5)]) {
      expect((await partner.get(`/partner/${order_id}`)).json).toMatchObject({ order_id, ...rest });
    }
  });

  it('2.2.expected_payout falls by the fee of a confirmation only under seller shipping', async ({
    expect,
  }) => {
    for (const sellerShipping of [true, false]) {
      await using partner = await open({ sellerShipping });
      const { order_id, expected_payout: before } = await ownOrder(partner, 'process');
      await partner.put('/partner/confirm/order', { order_id });
      const after = (await partner.get(`/partner/${order_id}`)).json['expected_payout'];
      expect(after).toBe(before - (sellerShipping ? 60 : 0));
    }
  });

  it('2.2.owner no list contains an order of another supplier', async ({ expect }) => {
    await using partner = await open({ foreignOrders: 50 });
    const foreign = (['pending', 'process', 'settled'] as const).map((status) =>
      foreignOrder(partner, status),
    );
    const pages = [...(await partner.pages(PROCESSING)), ...(await partner.pages(SETTLED))];
    const ids = pages.flatMap(({ orders }) => orders.map(({ order_id }) => order_id));
    const others = [...partner.sandbox.orders].filter(({ own }) => !own).map(({ id }) => id);
    expect(others).toEqual(expect.arrayContaining(foreign));
    expect(ids.filter((id) => others.includes(id))).toEqual([]);
    for (const id of ids.slice(0, 20)) expect((await partner.get(`/partner/${id}`)).status).toBe(200);
  });

  it('2.3.order_id a listing is found by the order_id that its creation returned', async ({ expect }) => {
    await using partner = await open();
    for (const kind of ['ask', 'preorder'] as const) {
      const id = await list(partner, kind);
      const pages = await partner.pages<{ order_id: string }>(`/partner/live/listings/${kind}`);
      const ids = pages.flatMap(({ listings }) => listings.map(({ order_id }) => order_id));
      expect(ids.filter((known) => known === id)).toEqual([id]);
      expect(new Set(ids).size).toBe(ids.length);
    }
  });

  it('2.3.page, 8.listing-page 500 live listings fit on one page, 501 take two', async ({ expect }) => {
    await using partner = await open({ listings: 0, rateLimit: 10_000 });
    await Promise.all(Array.from({ length: 500 }, () => list(partner, 'ask')));
    const lengths = async (): Promise<number[]> =>
      (await partner.pages('/partner/live/listings/ask')).map(({ listings }) => listings.length);
    expect(await lengths()).toEqual([500]);
    await list(partner, 'ask');
    expect(await lengths()).toEqual([500, 1]);
  });
});

describe.concurrent('prices', () => {
  it('2.4.message, 2.4.code, 2.4.size_map, 2.4.product are in a price record', async ({ expect }) => {
    await using partner = await open();
    const [sku = ''] = quietSkus(partner);
    const { json } = await partner.lowest(sku);
    expect(json).toMatchObject({
      message: expect.any(String),
      code: '0000',
      size_map: expect.objectContaining({ size_type: expect.any(String) }),
      product: expect.any(Object),
    });
    expect(Object.keys(json['product'] as Json).toSorted()).toEqual(PRODUCT_MEMBERS.toSorted());
    const truth = partner.sandbox.world.truth().get(sku);
    expect(json['size_map']).toEqual({ ...truth?.sizeMap, size_type: truth?.sizeType });
  });

  it('2.5.results contain the bodies that single lookups return at the same moment', async ({ expect }) => {
    await using partner = await open();
    const skus = [...quietSkus(partner).slice(0, 8), ...liveSkus(partner).slice(0, 2)];
    const { results } = await envelope(partner, skus);
    expect(Object.keys(results).toSorted()).toEqual(skus.toSorted());
    for (const sku of skus) expect(results[sku]).toEqual((await partner.lowest(sku)).json);
  });

  it('2.5.not_found, 2.5.errors, 2.5.deferred agree with the single lookup of each SKU', async ({
    expect,
  }) => {
    await using partner = await open({ liveShare: 0.3, ghostShare: 0.05 });
    const [failing = '', quiet = ''] = quietSkus(partner);
    partner.sandbox.world.setFailing(failing, true);
    const ghosts = [...partner.sandbox.world.truth().values()].filter(
      (row) => row.listed && row.answer === 'not_found',
    );
    const live = liveSkus(partner).slice(0, 9);
    const asked = [failing, quiet, 'NOPE-1', ...ghosts.map(({ sku }) => sku), ...live];
    const bulk = await envelope(partner, asked);
    expect(bulk.errors).toEqual([failing]);
    expect(bulk.not_found.toSorted()).toEqual(['NOPE-1', ...ghosts.map(({ sku }) => sku)].toSorted());
    expect(bulk.deferred).toHaveLength(4);
    expect(live).toEqual(expect.arrayContaining(bulk.deferred));
    for (const sku of bulk.errors) expect((await partner.lowest(sku)).status).toBe(500);
    for (const sku of bulk.not_found) expect((await partner.lowest(sku)).json['code']).toBe('0009');
    for (const sku of bulk.deferred) expect((await partner.lowest(sku)).json['code']).toBe('0000');
  });

  it('2.5.requested, 2.5.deduped count the input before and after duplicates are collapsed', async ({
    expect,
  }) => {
    await using partner = await open();
    const [first = '', second = ''] = quietSkus(partner);
    const asked = [first, second, first, 'NOPE', 'NOPE', first];
    expect(await envelope(partner, asked)).toMatchObject({ requested: 6, deduped: 3 });
    expect(await envelope(partner, [])).toMatchObject({ requested: 0, deduped: 0 });
  });

  it('2.5.partition every SKU asked for is in exactly one of the four parts', async ({ expect }) => {
    await using partner = await open({ liveShare: 0.3, ghostShare: 0.1 });
    const known = [...partner.sandbox.world.truth().keys()];
    for (const sku of known.slice(0, 4)) partner.sandbox.world.setFailing(sku, true);
    for (const asked of [
      known,
      ['NOPE', ...known, 'NOPE', ...known.slice(0, 9)],
      ['toString', '__proto__', ''],
    ]) {
      const bulk: Bulk = await envelope(partner, asked.slice(0, 100));
      const fates = [...Object.keys(bulk.results), ...bulk.not_found, ...bulk.deferred, ...bulk.errors];
      expect(fates.toSorted()).toEqual([...new Set(asked.slice(0, 100))].toSorted());
    }
  });
});

describe.concurrent('catalog', () => {
  it('2.6.file, 2.6.sku, 2.6.sizes, 2.6.hash, 2.6.price_source, 2.6.updated_at are in every line', async ({
    expect,
  }) => {
    await using partner = await open({ liveShare: 0.2 });
    const { status, bytes } = await file(partner, await partner.manifest());
    expect(status).toBe(200);
    const rows = gunzipSync(bytes).toString('utf8').split('\n');
    expect(rows.pop()).toBe('');
    expect(rows).toHaveLength(60);
    const truth = partner.sandbox.world.truth();
    for (const row of rows) {
      const line = JSON.parse(row) as Line;
      const live = truth.get(line.sku)?.priceSource === 'live';
      expect(line.price_source).toBe(live ? 'live' : 'snapshot');
      expect(line.hash).toEqual(live ? null : expect.any(String));
      expect(Number.isInteger(line.sizes)).toBe(true);
      expect(line.updated_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    }
  });

  it('2.6.sizes is the number of sizes that the price route lists', async ({ expect }) => {
    await using partner = await open({ rateLimit: 1000 });
    const manifest = await lines(partner);
    for (const sku of quietSkus(partner)) {
      const { size_type: _, ...sizes } = (await partner.lowest(sku)).json['size_map'] as Json;
      expect([sku, manifest.get(sku)?.sizes]).toEqual([sku, Object.keys(sizes).length]);
    }
  });

  it('2.6.hash changes if a price moved, and only then', async ({ expect }) => {
    await using partner = await open();
    const [moved = '', still = ''] = quietSkus(partner);
    const before = await lines(partner);
    partner.sandbox.world.setPrice(moved, '42', 4321);
    partner.sandbox.world.buildSnapshot();
    const after = await lines(partner);
    expect(after.get(still)).toEqual(before.get(still));
    expect(after.get(moved)?.hash).not.toBe(before.get(moved)?.hash);
  });

  it('2.6.membership SKUs without market rows are not listed, although they may be priceable', async ({
    expect,
  }) => {
    await using partner = await open({ unlistedShare: 0.1 });
    const [removed = ''] = quietSkus(partner);
    partner.sandbox.world.remove(removed, { priceable: true });
    partner.sandbox.world.buildSnapshot();
    const listed = await lines(partner);
    expect(listed.has(removed)).toBe(false);
    expect((await partner.lowest(removed)).status).toBe(200);
    expect(listed.size).toBeLessThan(partner.sandbox.world.truth().size);
  });

  it('2.7.url, 2.7.url_expires_at, 8.manifest-url the URL needs no credential and works for an hour', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ now: clock.now });
    const manifest = await partner.manifest();
    expect(Date.parse(String(manifest.json['url_expires_at']))).toBe(clock.now() + HOUR);
    clock.advance(HOUR - 1);
    expect((await file(partner, manifest)).status).toBe(200);
    clock.advance(1);
    expect((await file(partner, manifest)).status).toBe(403);
  });

  it('2.7.generated_at, 4.2.10 is the time of the build, and so reveals an old snapshot', async ({
    expect,
  }) => {
    const clock = new HandClock();
    await using partner = await open({ now: clock.now });
    const built = clock.now();
    clock.advance(48 * HOUR);
    const generatedAt = async (): Promise<number> =>
      Date.parse(String((await partner.manifest()).json['generated_at']));
    expect(await generatedAt()).toBe(built);
    partner.sandbox.world.buildSnapshot();
    expect(await generatedAt()).toBe(clock.now());
  });

  it('2.7.sku_count, 2.7.live_priced_sku_count count the lines of the file', async ({ expect }) => {
    await using partner = await open({ liveShare: 0.2 });
    const counts = async (): Promise<unknown[]> => {
      const { json } = await partner.manifest();
      return [json['sku_count'], json['live_priced_sku_count']];
    };
    const rows = [...(await lines(partner)).values()];
    const live = rows.filter(({ price_source }) => price_source === 'live');
    expect(await counts()).toEqual([rows.length, live.length]);
    expect(live.length).toBeGreaterThan(0);
    partner.sandbox.world.setIncident(true);
    partner.sandbox.world.buildSnapshot();
    expect(await counts()).toEqual([60, 60]);
  });

  it('2.8.changed, 2.8.removed, 2.8.now_live, 2.8.to_snapshot describe what happened between two snapshots', async ({
    expect,
  }) => {
    await using partner = await open({ liveShare: 0.2 });
    const { world } = partner.sandbox;
    const [moved = '', crossing = '', removed = ''] = quietSkus(partner);
    const delta = await deltaAfter(partner, () => {
      world.setPrice(moved, '42', 4321);
      world.cross(crossing, 'live');
      world.remove(removed);
    });
    expect(delta.changed.toSorted()).toEqual([moved, crossing].toSorted());
    expect(delta).toMatchObject({
      removed: [removed],
      now_live: [crossing],
      to_snapshot: world.newestSnapshot(),
    });
    expect(await deltaSince(partner, delta.to_snapshot)).toMatchObject({
      changed: [],
      removed: [],
      now_live: [],
    });
  });

  it('2.8.to_snapshot as the next since leads to the newest snapshot without missing a change', async ({
    expect,
  }) => {
    await using partner = await open({ deltaHops: 2 });
    const { world } = partner.sandbox;
    const moved = quietSkus(partner).slice(0, 5);
    let since = world.newestSnapshot() ?? '';
    for (const sku of moved) {
      world.setPrice(sku, '42', 4321);
      world.buildSnapshot();
    }
    const reported: string[] = [];
    for (let asked = 0; asked < 4; asked += 1) {
      const delta = await deltaSince(partner, since);
      reported.push(...delta.changed);
      since = delta.to_snapshot;
    }
    expect(since).toBe(world.newestSnapshot());
    expect(reported.toSorted()).toEqual(moved.toSorted());
  });

  it('2.8.changed contains every price change, and possibly SKUs that did not change', async ({ expect }) => {
    await using partner = await open({ skus: 400, noopShare: 0.5, rateLimit: 10_000 });
    const before = await lines(partner);
    const delta = await deltaAfter(partner, () => partner.sandbox.world.step(80));
    const after = await lines(partner);
    const moved = [...after.values()].filter(
      ({ sku, hash }) => hash !== null && hash !== before.get(sku)?.hash,
    );
    expect(moved.length).toBeGreaterThan(10);
    expect(delta.changed).toEqual(expect.arrayContaining(moved.map(({ sku }) => sku)));
    const still = delta.changed.filter((sku) => before.get(sku)?.hash === after.get(sku)?.hash);
    expect(still.length).toBeGreaterThan(0);
  });
});
