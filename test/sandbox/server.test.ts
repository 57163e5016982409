import { get } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import { eventually } from '../support/eventually.ts';
import { skusWhere, start, type Caller } from './support.ts';

let caller: Caller;
afterEach(() => caller.sandbox.close());

/** Returns the Content-Encoding of an answer, which fetch hides. */
function encodingOf(path: string, accept?: string): Promise<string | undefined> {
  const headers = { authorization: caller.basic(), ...(accept ? { 'accept-encoding': accept } : {}) };
  return new Promise((resolve, reject) => {
    get(caller.sandbox.url + path, { headers }, (response) => {
      response.resume();
      resolve(response.headers['content-encoding']);
    }).on('error', reject);
  });
}

describe('general conventions (partner rules 1, 7)', () => {
  it('gzips successful answers if asked to, but not rejections', async () => {
    caller = await start();
    expect(await encodingOf('/partner/catalog/manifest', 'gzip, deflate')).toBe('gzip');
    expect(await encodingOf('/partner/catalog/manifest')).toBeUndefined();
    expect(await encodingOf('/partner/lowest/NOPE', 'gzip')).toBeUndefined();
    expect((await caller.manifest()).json).toMatchObject({ sku_count: 60 });
  });

  it('answers 404 for an unknown route or method, after the authorizer', async () => {
    caller = await start();
    for (const [path, method] of [
      ['/partner/no/such', 'GET'],
      ['/partner', 'GET'],
      ['/partner/catalog/manifest', 'POST'],
      ['/partner/lowest/', 'GET'],
      ['/partner/lowest/A/B', 'GET'],
      ['/', 'POST'],
    ] as const) {
      expect([path, (await caller.send(path, { method })).status]).toEqual([path, 404]);
    }
    expect((await fetch(`${caller.sandbox.url}/partner/catalog`)).status).toBe(401);
  });

  it('records every request', async () => {
    caller = await start({ liveShare: 0.5 });
    const asked = skusWhere(caller, (row) => row.priceSource === 'live').slice(0, 2);
    await caller.bulk(asked);
    expect(caller.sandbox.requests.at(-1)).toEqual({
      at: expect.any(Number),
      route: 'bulk',
      method: 'POST',
      path: '/partner/lowest/bulk',
      query: '',
      body: null,
      fault: null,
      status: 200,
      code: null,
      apiKey: true,
      authorization: true,
      skus: asked,
      liveComputed: 2,
    });
  });

  it('moves by itself if told to, and stops with the server', async () => {
    caller = await start({ marketIntervalMs: 5, snapshotIntervalMs: 10, marketMoves: 20 });
    const first = caller.sandbox.world.newestSnapshot() ?? '';
    await eventually(async () => expect((await caller.delta(first)).json.changed.length).toBeGreaterThan(0));
    caller.sandbox.world.stopBuilder();
    const kept = caller.sandbox.world.newestSnapshot();
    const before = JSON.stringify([...caller.sandbox.world.truth()]);
    await eventually(() => expect(JSON.stringify([...caller.sandbox.world.truth()]) !== before).toBe(true));
    expect(caller.sandbox.world.newestSnapshot()).toBe(kept);
    await caller.sandbox.close();
    await expect(fetch(caller.sandbox.url)).rejects.toThrow('fetch failed');
  });

  it('rejects an address that is taken', async () => {
    caller = await start();
    const { port } = new URL(caller.sandbox.url);
    await expect(startSandbox({ skus: 1, port: Number(port) })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  it('rejects intervals too long for a timer, except those that a stopped clock never starts', async () => {
    const long = { marketIntervalMs: 2 ** 31, snapshotIntervalMs: 30 * 86_400_000 };
    const named = (name: string) =>
      expect.stringMatching(`^${name}: expected milliseconds from 0 to `) as string;
    await expect(startSandbox({ ...long, latencyMs: Number.NaN })).rejects.toMatchObject({
      kind: 'sandbox-options',
      problems: ['latencyMs', 'marketIntervalMs', 'snapshotIntervalMs'].map(named),
    });
    await using stands = await startSandbox({ ...long, skus: 1, startAt: 0 });
    await expect(startSandbox({ startAt: 0, latencyMs: 2 ** 31 })).rejects.toMatchObject({
      problems: [named('latencyMs')],
    });
    expect(stands.options).toMatchObject(long);
  });

  it('builds the same world for the same seed', async () => {
    caller = await start({ seed: 7 });
    await using twin = await startSandbox({ skus: 60, noopShare: 0, seed: 7 });
    await using other = await startSandbox({ skus: 60, noopShare: 0, seed: 8 });
    for (const { world } of [caller.sandbox, twin, other]) {
      world.step(200);
      world.buildSnapshot();
    }
    expect(twin.world.truth()).toEqual(caller.sandbox.world.truth());
    expect(other.world.truth()).not.toEqual(caller.sandbox.world.truth());
  });
});

describe('dialects (the parts the partner does not document)', () => {
  it('rename and reshape everything that is undocumented', async () => {
    caller = await start({
      liveShare: 0.2,
      liveBudget: 1,
      dialect: {
        bulkBodyKey: 'items',
        urlField: 'download',
        snapshotIdField: 'version',
        elements: 'object',
        skuField: 'id',
        entries: 'object',
        priceField: 'amount',
        counts: 'string',
        changedElements: 'object',
      },
    });
    const { world } = caller.sandbox;
    const live = skusWhere(caller, (row) => row.priceSource === 'live').slice(0, 2);
    const { json: manifest } = await caller.manifest();
    expect(manifest['version']).toBe(world.newestSnapshot());
    expect(manifest['download']).toContain('/files/');
    const { json } = await caller.bulk([...live, 'NOPE'], 'items');
    expect(json).toMatchObject({
      not_found: [{ id: 'NOPE' }],
      deferred: [{ id: live[1] }],
      requested: '3',
      deduped: '3',
    });
    world.add('ONE', { sizes: { '7': 500, '8': null } });
    world.buildSnapshot();
    const record = (await caller.lowest('ONE')).json;
    expect(record).toMatchObject({ size_map: { '7': { amount: 500 }, '8': { amount: null } } });
    expect((await caller.delta(String(manifest['version']))).json.changed).toEqual([{ id: 'ONE' }]);
  });

  it('send prices as text, and undocumented members', async () => {
    caller = await start({ dialect: { entries: 'string', extraFields: true } });
    caller.sandbox.world.add('ONE', { sizes: { '7': 500, '8': null } });
    const { json } = await caller.lowest('ONE');
    expect(json).toMatchObject({ size_map: { '7': '500', '8': null }, region: 'TH' });
    expect((await caller.manifest()).json).toHaveProperty('schema_version');
    expect((await caller.lines())[0]).toHaveProperty('rank');
  });
});
