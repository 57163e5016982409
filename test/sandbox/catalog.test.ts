import { afterEach, describe, expect, it } from 'vitest';
import { HandClock, skusWhere, start, type Body, type Caller } from './support.ts';

let caller: Caller;
afterEach(() => caller.sandbox.close());

const snapshotPriced = (): string[] =>
  skusWhere(caller, (row) => row.priceSource === 'snapshot' && row.answer === 'record');
const livePriced = (): string[] => skusWhere(caller, (row) => row.priceSource === 'live');

/** Makes a move between two snapshots and returns the delta across them. */
async function across(move: () => void): Promise<Body> {
  const since = caller.sandbox.world.newestSnapshot() ?? '';
  move();
  const to = caller.sandbox.world.buildSnapshot();
  const { json, status } = await caller.delta(since);
  expect([status, json.to_snapshot]).toEqual([200, to]);
  return json;
}

const report = (changed: string[], removed: string[] = [], now_live: string[] = []): object => ({
  changed,
  removed,
  now_live,
});

describe('manifest (partner rules 2.6, 2.7, 4.2)', () => {
  it('describes the newest snapshot and points to its file', async () => {
    const clock = new HandClock();
    caller = await start({ skus: 200, liveShare: 0.1, now: clock.now });
    const generatedAt = new Date(clock.now()).toISOString();
    clock.advance(5000);
    const { json, headers } = await caller.manifest();
    expect(json).toEqual({
      snapshot_id: caller.sandbox.world.newestSnapshot(),
      url: expect.stringContaining(`${caller.sandbox.url}/files/`),
      generated_at: generatedAt,
      url_expires_at: new Date(clock.now() + 3_600_000).toISOString(),
      sku_count: 200,
      live_priced_sku_count: 20,
    });
    expect(headers.get('cache-control')).toBe('private, max-age=300');
    expect(headers.get('date')).toBe(new Date(clock.now()).toUTCString());
  });

  it('lists the SKUs of the truth line by line', async () => {
    caller = await start({ skus: 300, liveShare: 0.1 });
    const listed = [...caller.sandbox.world.truth().values()].filter((row) => row.listed);
    const lines = await caller.lines();
    expect(lines.map(({ sku, hash, price_source }) => [sku, hash, price_source])).toEqual(
      listed.map(({ sku, hash, priceSource }) => [sku, hash, priceSource]),
    );
    for (const line of lines) {
      expect(line.hash === null).toBe(line.price_source === 'live');
      expect(line.updated_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(Object.keys(line)).toEqual(['sku', 'sizes', 'hash', 'price_source', 'updated_at']);
    }
    const priced = listed.filter((row) => row.answer === 'record');
    for (const row of priced) {
      expect(lines.find(({ sku }) => sku === row.sku)?.sizes).toBe(Object.keys(row.sizeMap).length);
    }
  });

  it('answers 503 with 0012 before the first snapshot and after all are dropped', async () => {
    caller = await start({ initialSnapshot: false });
    expect(await caller.manifest()).toMatchObject({ status: 503, json: { code: '0012' } });
    expect((await caller.lowest('constructor')).status).toBe(200);
    caller.sandbox.world.buildSnapshot();
    expect(await caller.manifest()).toMatchObject({ status: 200, json: { sku_count: 60 } });
    caller.sandbox.world.dropSnapshots();
    expect(await caller.manifest()).toMatchObject({ status: 503, json: { code: '0012' } });
    caller.sandbox.world.remove(snapshotPriced()[0] ?? 'constructor');
    caller.sandbox.world.buildSnapshot();
    expect(await caller.manifest()).toMatchObject({ status: 200, json: { sku_count: 59 } });
    expect(await caller.lines()).toHaveLength(59);
  });

  it('answers 503 with 0014 while the builder is stopped or the snapshot is too old', async () => {
    const clock = new HandClock();
    caller = await start({ now: clock.now, staleAfterMs: 1000 });
    const since = caller.sandbox.world.newestSnapshot() ?? '';
    caller.sandbox.world.stopBuilder();
    expect(await caller.manifest()).toMatchObject({ status: 503, json: { code: '0014' } });
    expect(await caller.delta(since)).toMatchObject({ status: 503, json: { code: '0014' } });
    caller.sandbox.world.startBuilder();
    clock.advance(1000);
    expect((await caller.manifest()).status).toBe(200);
    clock.advance(1);
    expect(await caller.manifest()).toMatchObject({ status: 503, json: { code: '0014' } });
    expect((await caller.lowest('constructor')).status).toBe(200);
  });

  it('counts the whole catalog as live during an incident, and reports the way back', async () => {
    caller = await start({ liveShare: 0.1 });
    const during = await across(() => caller.sandbox.world.setIncident(true));
    expect(during.now_live).toHaveLength(54);
    expect((await caller.manifest()).json).toMatchObject({ sku_count: 60, live_priced_sku_count: 60 });
    expect((await caller.lines()).every((line) => line.hash === null)).toBe(true);
    const after = await across(() => caller.sandbox.world.setIncident(false));
    expect([after.changed.length, after.now_live]).toEqual([54, []]);
    expect((await caller.manifest()).json).toMatchObject({ live_priced_sku_count: 6 });
  });
});

describe('delta (partner rules 2.8, 4.2.2 and 4.2.4 to 4.2.7)', () => {
  it('reports nothing since the newest snapshot, whatever the market has done', async () => {
    caller = await start();
    const since = caller.sandbox.world.newestSnapshot() ?? '';
    caller.sandbox.world.step(50);
    const { json, headers } = await caller.delta(since);
    expect(json).toEqual({ ...report([]), to_snapshot: since });
    expect(headers.get('cache-control')).toBe('public, max-age=60, s-maxage=60');
  });

  it('reports a moved price, a new size and a dropped size of snapshot-priced SKUs', async () => {
    caller = await start();
    const { world } = caller.sandbox;
    const [a = '', b = '', c = ''] = snapshotPriced();
    const gone = Object.keys(world.truth().get(c)?.sizeMap ?? {})[0] ?? '';
    const json = await across(() => {
      world.setPrice(a, '7', 99_999);
      world.setPrice(b, 'EU 42', 1234);
      world.dropSize(c, gone);
    });
    expect(json).toMatchObject(report([a, b, c]));
  });

  it('never reports price moves of live SKUs, or metadata of any', async () => {
    caller = await start({ liveShare: 0.2 });
    const { world } = caller.sandbox;
    const [a = ''] = livePriced();
    const [b = ''] = snapshotPriced();
    const before = world.truth().get(b);
    const json = await across(() => {
      world.setPrice(a, '7', 99_999);
      world.correctSizeType(b, 'XX');
      world.setProduct(b, { name: 'Renamed' });
    });
    expect(json).toMatchObject(report([]));
    expect(world.truth().get(b)).toMatchObject({
      hash: before?.hash,
      sizeType: 'XX',
      product: { name: 'Renamed', size_type: 'XX' },
    });
  });

  it('reports a crossing once in each direction, and now_live tells which', async () => {
    caller = await start({ liveShare: 0.2 });
    const { world } = caller.sandbox;
    const [a = ''] = livePriced();
    const [b = ''] = snapshotPriced();
    const there = await across(() => {
      world.cross(a, 'snapshot');
      world.cross(b, 'live');
    });
    expect(there).toMatchObject(report([a, b], [], [b]));
    expect(await across(() => world.setPrice(b, '7', 1))).toMatchObject(report([]));
    expect(await across(() => world.cross(b, 'snapshot'))).toMatchObject(report([b]));
  });

  it('keeps a withdrawn SKU listed with another hash and an empty size_map', async () => {
    caller = await start();
    const { world } = caller.sandbox;
    const [sku = ''] = snapshotPriced();
    const before = world.truth().get(sku)?.hash;
    expect(await across(() => world.withdraw(sku))).toMatchObject(report([sku]));
    const line = (await caller.lines()).find((each) => each.sku === sku);
    expect(line).toMatchObject({ sizes: 0, price_source: 'snapshot' });
    expect(line?.hash).not.toBe(before);
    const { json } = await caller.lowest(sku);
    expect(Object.keys(json['size_map'] as object)).toEqual(['size_type']);
    expect(await across(() => world.relist(sku))).toMatchObject(report([sku]));
    expect(Object.keys(world.truth().get(sku)?.sizeMap ?? {})).not.toHaveLength(0);
  });

  it('reports deleted SKUs in removed; they may stay priceable, and may come back', async () => {
    caller = await start({ liveShare: 0.2 });
    const { world } = caller.sandbox;
    const [a = '', b = ''] = snapshotPriced();
    const [c = ''] = livePriced();
    const json = await across(() => {
      world.remove(a);
      world.remove(b, { priceable: true });
      world.remove(c);
    });
    expect(json).toMatchObject(report([], [a, b, c]));
    expect((await caller.bulk([a, b, c])).json).toMatchObject({ not_found: [a, c], results: { [b]: {} } });
    expect((await caller.manifest()).json).toMatchObject({ sku_count: 57, live_priced_sku_count: 11 });
    expect(await across(() => world.relist(a))).toMatchObject(report([a]));
    expect((await caller.lowest(a)).status).toBe(200);
  });

  it('reports new SKUs, and live ones in now_live as well', async () => {
    caller = await start();
    const { world } = caller.sandbox;
    const json = await across(() => {
      world.add('NEW-1', { sizes: { '7': 100 } });
      world.add('NEW-2', { live: true });
      world.add('NEW-3', { listed: false });
      world.add('NEW-4', { priceable: false });
    });
    expect(json).toMatchObject(report(['NEW-1', 'NEW-2', 'NEW-4'], [], ['NEW-2']));
    expect((await caller.bulk(['NEW-1', 'NEW-3', 'NEW-4'])).json).toMatchObject({
      results: { 'NEW-1': { size_map: { '7': 100 } }, 'NEW-3': {} },
      not_found: ['NEW-4'],
    });
    expect(() => world.add('NEW-1')).toThrow(expect.objectContaining({ kind: 'sku_exists' }));
    expect(() => world.withdraw('NEVER')).toThrow(expect.objectContaining({ kind: 'unknown_sku' }));
  });

  it('merges several hops, and judges removed and now_live at the end', async () => {
    caller = await start({ liveShare: 0.2 });
    const { world } = caller.sandbox;
    const since = world.newestSnapshot() ?? '';
    const [moved = '', back = '', gone = '', there = '', visitor = ''] = snapshotPriced();
    const price = Object.entries(world.truth().get(moved)?.sizeMap ?? {})[0] ?? ['7', 100];
    world.setPrice(moved, price[0], 7);
    world.remove(back);
    world.remove(gone);
    world.cross(there, 'live');
    world.cross(visitor, 'live');
    world.add('BRIEF');
    world.buildSnapshot();
    world.setPrice(moved, ...price);
    world.relist(back);
    world.cross(visitor, 'snapshot');
    world.remove('BRIEF');
    const to = world.buildSnapshot();
    const { json } = await caller.delta(since);
    expect(json.changed.toSorted()).toEqual([moved, back, there, visitor].toSorted());
    expect(json).toMatchObject({ removed: [gone], now_live: [there], to_snapshot: to });
  });

  it('covers one snapshot per answer if told to', async () => {
    caller = await start({ deltaHops: 1 });
    const { world } = caller.sandbox;
    const since = world.newestSnapshot() ?? '';
    const [a = '', b = ''] = snapshotPriced();
    world.setPrice(a, '7', 11);
    const middle = world.buildSnapshot();
    world.setPrice(b, '7', 11);
    const last = world.buildSnapshot();
    expect((await caller.delta(since)).json).toEqual({ ...report([a]), to_snapshot: middle });
    expect((await caller.delta(middle)).json).toEqual({ ...report([b]), to_snapshot: last });
  });

  it('over-reports by the configured share, only listed snapshot-priced SKUs', async () => {
    caller = await start({ skus: 400, noopShare: 0.5, liveShare: 0.3 });
    const { world } = caller.sandbox;
    const before = world.truth();
    const moved = snapshotPriced().slice(0, 40);
    const json = await across(() => moved.forEach((sku) => world.setPrice(sku, '7', 11)));
    const noops = json.changed.filter((sku) => !moved.includes(sku));
    expect(noops).toHaveLength(20);
    for (const sku of noops) {
      expect(before.get(sku)).toMatchObject({ listed: true, priceSource: 'snapshot' });
      expect(world.truth().get(sku)?.hash).toBe(before.get(sku)?.hash);
    }
    expect(json.now_live).toEqual([]);
  });
});
