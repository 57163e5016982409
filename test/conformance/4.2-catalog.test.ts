import { describe, it } from 'vitest';
import { liveSkus, quietSkus } from './calls.ts';
import { deltaAfter, deltaSince, envelope, file, lines } from './catalog.ts';
import { open, type Partner } from './support.ts';

/** Returns what the price routes say about SKUs, if they say anything. */
async function records(partner: Partner, skus: readonly string[]): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  for (let owed = [...skus]; owed.length > 0;) {
    const asked = owed.slice(0, 100);
    const { results, deferred } = await envelope(partner, asked);
    for (const [sku, record] of Object.entries(results)) found.set(sku, record);
    owed = [...owed.slice(100), ...deferred];
  }
  return found;
}

describe.concurrent('catalog endpoints', () => {
  it('4.2.manifest, 7.3.0012, 7.3.0014, 7.1.503 without a servable snapshot answer 503 with 0012 or 0014', async ({
    expect,
  }) => {
    await using partner = await open({ initialSnapshot: false });
    const { world } = partner.sandbox;
    expect(await partner.manifest()).toMatchObject({ status: 503, json: { code: '0012' } });
    const since = world.buildSnapshot();
    expect((await partner.manifest()).status).toBe(200);
    world.stopBuilder();
    for (const answer of [await partner.manifest(), await partner.delta(since)])
      expect(answer).toMatchObject({ status: 503, json: { code: '0014' } });
    world.startBuilder();
    expect([(await partner.manifest()).status, (await partner.delta(since)).status]).toEqual([200, 200]);
  });

  it('4.2.manifest a fault of the service returns the general 500', async ({ expect }) => {
    await using partner = await open();
    partner.sandbox.faults.add({ route: 'manifest', status: 500 });
    const { status, text } = await partner.manifest();
    expect([status, text]).toEqual([500, '{"errorMessage":"Internal Server Error"}']);
  });

  it('4.2.delta, 7.3.0010, 7.3.0011, 7.3.0013, 7.2.code an unusable since returns 400 with its code', async ({
    expect,
  }) => {
    await using partner = await open({ deltaMaxChanges: 2 });
    const { world } = partner.sandbox;
    const since = world.newestSnapshot() ?? '';
    const code = async (query: string): Promise<unknown[]> => {
      const { status, json } = await partner.get(`/partner/catalog/delta${query}`);
      return [status, json];
    };
    const refusal = (code: string): unknown => [400, { code, message: expect.any(String) }];
    expect(await code('')).toEqual(refusal('0011'));
    expect(await code('?since=')).toEqual(refusal('0011'));
    expect(await code('?other=1')).toEqual(refusal('0011'));
    expect(await code('?since=never-issued')).toEqual(refusal('0010'));
    for (const sku of quietSkus(partner).slice(0, 3)) world.setPrice(sku, '42', 99);
    world.buildSnapshot();
    expect(await code(`?since=${since}`)).toEqual(refusal('0013'));
    world.breakChain();
    expect(await code(`?since=${since}`)).toEqual(refusal('0010'));
  });

  it('4.2.delta, 7.3.0010 an expired snapshot breaks the chain, and the newest still works', async ({
    expect,
  }) => {
    await using partner = await open();
    const since = partner.sandbox.world.newestSnapshot() ?? '';
    const newest = partner.sandbox.world.buildSnapshot();
    partner.sandbox.world.expireSnapshots(1);
    expect(await partner.delta(since)).toMatchObject({ status: 400, json: { code: '0010' } });
    expect((await partner.delta(newest)).status).toBe(200);
  });

  it('4.2.1 the price routes show a new price before any snapshot does', async ({ expect }) => {
    await using partner = await open();
    const [sku = ''] = quietSkus(partner);
    const before = await lines(partner);
    partner.sandbox.world.setPrice(sku, '42', 4321);
    expect((await partner.lowest(sku)).json).toMatchObject({ size_map: { '42': 4321 } });
    expect(await lines(partner)).toEqual(before);
    expect((await deltaSince(partner, partner.sandbox.world.newestSnapshot() ?? '')).changed).toEqual([]);
  });

  it('4.2.2 corrections of metadata and size_type change neither hash nor delta', async ({ expect }) => {
    await using partner = await open();
    const [renamed = '', resized = ''] = quietSkus(partner);
    const before = await lines(partner);
    const delta = await deltaAfter(partner, () => {
      partner.sandbox.world.setProduct(renamed, { name: 'Another Name', category: 'other' });
      partner.sandbox.world.correctSizeType(resized, 'CM');
    });
    expect(delta.changed).toEqual([]);
    const after = await lines(partner);
    for (const sku of [renamed, resized]) expect(after.get(sku)?.hash).toBe(before.get(sku)?.hash);
    expect((await partner.lowest(renamed)).json).toMatchObject({ product: { name: 'Another Name' } });
    expect((await partner.lowest(resized)).json).toMatchObject({ size_map: { size_type: 'CM' } });
  });

  it('4.2.3 some priceable SKUs are not listed, and some listed SKUs return 0009', async ({ expect }) => {
    await using partner = await open({ unlistedShare: 0.1, ghostShare: 0.1 });
    const listed = await lines(partner);
    const all = [...partner.sandbox.world.truth().keys(), ...listed.keys()];
    const { not_found, results } = await envelope(partner, [...new Set(all)]);
    expect(Object.keys(results).filter((sku) => !listed.has(sku)).length).toBeGreaterThan(0);
    expect(not_found.filter((sku) => listed.has(sku)).length).toBeGreaterThan(0);
  });

  it('4.2.4 a withdrawn SKU stays listed with another hash and no sizes, and a deleted one is removed', async ({
    expect,
  }) => {
    await using partner = await open();
    const [withdrawn = '', deleted = ''] = quietSkus(partner);
    const before = await lines(partner);
    const delta = await deltaAfter(partner, () => {
      partner.sandbox.world.withdraw(withdrawn);
      partner.sandbox.world.remove(deleted);
    });
    const after = await lines(partner);
    expect(delta.removed).toEqual([deleted]);
    expect(delta.changed).toEqual([withdrawn]);
    expect(after.get(withdrawn)).toMatchObject({ sizes: 0, hash: expect.any(String) });
    expect(after.get(withdrawn)?.hash).not.toBe(before.get(withdrawn)?.hash);
    expect(after.has(deleted)).toBe(false);
    const { json } = await partner.lowest(withdrawn);
    expect(json).toMatchObject({ code: '0000', size_map: { size_type: expect.any(String) } });
    expect(Object.keys(json['size_map'] as object)).toEqual(['size_type']);
  });

  it('4.2.5, 4.2.6 a price move is reported for a snapshot SKU and never for a live one', async ({
    expect,
  }) => {
    await using partner = await open({ liveShare: 0.2 });
    const [quiet = ''] = quietSkus(partner);
    const [live = ''] = liveSkus(partner);
    const delta = await deltaAfter(partner, () => {
      for (const sku of [quiet, live]) partner.sandbox.world.setPrice(sku, '42', 4321);
    });
    expect(delta).toMatchObject({ changed: [quiet], removed: [], now_live: [] });
    expect((await lines(partner)).get(live)?.hash).toBeNull();
    expect((await partner.lowest(live)).json).toMatchObject({ size_map: { '42': 4321 } });
  });

  it('4.2.7 a crossing is reported once each way, in now_live if it went live', async ({ expect }) => {
    await using partner = await open({ liveShare: 0.2 });
    const { world } = partner.sandbox;
    const [sku = ''] = quietSkus(partner);
    expect(await deltaAfter(partner, () => world.cross(sku, 'live'))).toMatchObject({
      changed: [sku],
      now_live: [sku],
    });
    expect(await deltaAfter(partner, () => world.setPrice(sku, '42', 99))).toMatchObject({
      changed: [],
      now_live: [],
    });
    expect(await deltaAfter(partner, () => world.cross(sku, 'snapshot'))).toMatchObject({
      changed: [sku],
      now_live: [],
    });
    expect(await deltaAfter(partner, () => {})).toMatchObject({ changed: [], now_live: [] });
  });

  it('4.2.7 across several snapshots now_live gives the cohort as of to_snapshot', async ({ expect }) => {
    await using partner = await open({ liveShare: 0.2 });
    const { world } = partner.sandbox;
    const [stays = '', returns = '', removed = ''] = quietSkus(partner);
    const since = world.newestSnapshot() ?? '';
    for (const sku of [stays, returns, removed]) world.cross(sku, 'live');
    world.buildSnapshot();
    world.cross(returns, 'snapshot');
    world.setPrice(returns, '42', 77);
    world.remove(removed);
    const to_snapshot = world.buildSnapshot();
    const delta = await deltaSince(partner, since);
    expect(delta).toMatchObject({ now_live: [stays], removed: [removed], to_snapshot });
    expect(delta.changed).toEqual(expect.arrayContaining([stays, returns]));
  });

  it('4.2.9 a presigned URL may expire early, and the next manifest response has a working one', async ({
    expect,
  }) => {
    await using partner = await open();
    const manifest = await partner.manifest();
    partner.sandbox.world.revokeUrls();
    expect((await file(partner, manifest)).status).toBe(403);
    expect((await file(partner, await partner.manifest())).status).toBe(200);
  });

  it('4.2.9 an altered URL opens nothing', async ({ expect }) => {
    await using partner = await open();
    const url = new URL(String((await partner.manifest()).json['url']));
    for (const key of url.searchParams.keys()) {
      const altered = new URL(url);
      altered.searchParams.set(key, `${altered.searchParams.get(key) ?? ''}1`);
      expect([key, (await partner.raw('GET', altered.href, {})).status]).toEqual([key, 403]);
    }
    expect((await partner.raw('GET', url.origin + url.pathname, {})).status).toBe(403);
  });

  it('4.2.11 following manifest, delta and bulk yields the prices of the market', async ({ expect }) => {
    await using partner = await open({ skus: 200, liveShare: 0.05, rateLimit: 10_000 });
    const { world } = partner.sandbox;
    const manifest = await lines(partner);
    const mirror = await records(partner, [...manifest.keys()]);
    let since = world.newestSnapshot() ?? '';
    const live = new Set([...manifest.values()].filter(({ hash }) => hash === null).map(({ sku }) => sku));
    for (let round = 0; round < 6; round += 1) {
      world.step(40);
      world.buildSnapshot();
      const delta = await deltaSince(partner, since);
      since = delta.to_snapshot;
      for (const sku of delta.removed) mirror.delete(sku);
      for (const sku of [...delta.changed, ...delta.removed]) live.delete(sku);
      for (const sku of delta.now_live) live.add(sku);
      for (const [sku, record] of await records(partner, [...new Set([...delta.changed, ...live])]))
        mirror.set(sku, record);
    }
    const prices = (record: unknown): unknown => {
      const { size_type: _, ...sizes } = (record as { size_map: Record<string, unknown> }).size_map;
      return sizes;
    };
    const wrong = [...world.truth().values()].filter(
      (row) =>
        row.listed &&
        row.answer === 'record' &&
        JSON.stringify(prices(mirror.get(row.sku))) !== JSON.stringify(row.sizeMap),
    );
    expect(wrong.map(({ sku }) => sku)).toEqual([]);
  });
});
