import * as fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { PRODUCT_MEMBERS } from '../conformance/rows-resources.ts';
import { HandClock, skusWhere, start, type Caller } from './support.ts';

let caller: Caller;
afterEach(() => caller.sandbox.close());

const live = (): string[] => skusWhere(caller, (row) => row.priceSource === 'live');
const quiet = (): string[] =>
  skusWhere(caller, (row) => row.priceSource === 'snapshot' && row.answer === 'record');
const unlisted = (): string[] => skusWhere(caller, (row) => !row.listed);
const ghosts = (): string[] => skusWhere(caller, (row) => row.listed && row.answer === 'not_found');

describe('single lookup (partner rules 4.1, 2.4)', () => {
  it('answers the record of the current market', async () => {
    caller = await start();
    const [sku = ''] = quiet();
    caller.sandbox.world.setPrice(sku, '7.5', 4321);
    caller.sandbox.world.setPrice(sku, '8', null);
    const truth = caller.sandbox.world.truth().get(sku);
    const seen = await caller.lowest(sku);
    expect(seen.status).toBe(200);
    expect(seen.json).toEqual({
      message: 'success',
      code: '0000',
      size_map: { ...truth?.sizeMap, size_type: truth?.sizeType },
      product: truth?.product,
    });
    expect(seen.json).toMatchObject({ size_map: { '7.5': 4321, '8': null } });
    expect(Object.keys(truth?.product ?? {}).toSorted()).toEqual(PRODUCT_MEMBERS.toSorted());
    expect(seen.headers.get('cache-control')).toBe(
      'public, max-age=300, s-maxage=600, stale-while-revalidate=120',
    );
    expect(seen.headers.get('access-control-allow-origin')).toBe('*');
  });

  it('answers 400 with 0009 for unknown SKUs, including ghosts of the manifest', async () => {
    caller = await start({ ghostShare: 0.05 });
    expect(ghosts()).toHaveLength(3);
    for (const sku of ['NOPE-001', 'hasOwnProperty', ...ghosts()]) {
      const seen = await caller.lowest(sku);
      expect([seen.status, seen.json]).toEqual([400, { message: 'SKU not found', code: '0009' }]);
    }
  });

  it('prices SKUs that no manifest lists', async () => {
    caller = await start({ unlistedShare: 0.05 });
    expect(unlisted()).toHaveLength(3);
    for (const sku of unlisted()) expect((await caller.lowest(sku)).json.code).toBe('0000');
  });

  it('finds SKUs whose names need percent-encoding or are prototype keys', async () => {
    caller = await start();
    const hostile = skusWhere(caller, () => true).filter((sku) => !/^[A-Z0-9-]+$/.test(sku));
    expect(hostile).toEqual(expect.arrayContaining(['__proto__', 'constructor', 'CT8012/005']));
    for (const sku of hostile) {
      expect([sku, (await caller.lowest(sku)).status]).toEqual([sku, 200]);
      expect(caller.sandbox.requests.at(-1)?.skus).toEqual([sku]);
    }
    const { json, text } = await caller.bulk(hostile);
    expect(Object.keys(json.results).toSorted()).toEqual(hostile.toSorted());
    expect(text).toContain('"__proto__":{"message"');
  });

  it('refuses a path that cannot be decoded', async () => {
    caller = await start();
    const seen = await caller.send('/partner/lowest/%E0%A4%A');
    expect(seen.status).toBe(400);
    expect(seen.json).toMatchObject({ statusCode: 400 });
  });

  it('answers the service 500 for a transient failure, which bulk lists in errors', async () => {
    caller = await start();
    const [sku = ''] = quiet();
    caller.sandbox.world.setFailing(sku, true);
    const seen = await caller.lowest(sku);
    expect([seen.status, seen.text]).toEqual([500, '{"errorMessage":"Internal Server Error"}']);
    expect((await caller.bulk([sku])).json).toMatchObject({ errors: [sku], results: {} });
    caller.sandbox.world.setFailing(sku, false);
    expect((await caller.lowest(sku)).status).toBe(200);
  });
});

describe('bulk lookup (partner rules 4.1, 2.5)', () => {
  it('gives every SKU exactly the body of its single lookup', async () => {
    caller = await start({ dialect: { extraFields: true, entries: 'object' } });
    const skus = quiet().slice(0, 5);
    const { json, headers } = await caller.bulk(skus);
    for (const sku of skus) expect(json.results[sku]).toEqual((await caller.lowest(sku)).json);
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('collapses duplicates and counts before and after', async () => {
    caller = await start();
    const [first = '', second = ''] = quiet();
    const { json } = await caller.bulk([first, second, first, 'NOPE', 'NOPE']);
    expect(json).toMatchObject({ requested: 5, deduped: 3, not_found: ['NOPE'], deferred: [], errors: [] });
    expect(Object.keys(json.results).toSorted()).toEqual([first, second].toSorted());
  });

  it('computes only the live budget per call, defers the rest and leaves other SKUs unaffected', async () => {
    caller = await start({ liveShare: 0.5, liveBudget: 5, ghostShare: 0.05 });
    const asked = [...live(), ...quiet(), ...ghosts()];
    const { json } = await caller.bulk(asked);
    expect(Object.keys(json.results).filter((sku) => live().includes(sku))).toEqual(live().slice(0, 5));
    expect(json.deferred).toEqual(live().slice(5));
    expect(json.not_found).toEqual(ghosts());
    expect(Object.keys(json.results)).toHaveLength(5 + quiet().length);
    expect(caller.sandbox.requests.at(-1)).toMatchObject({ liveComputed: 5, route: 'bulk' });
  });

  it('limits live computations of all calls and single lookups by a hidden ceiling', async () => {
    const clock = new HandClock();
    caller = await start({ liveShare: 0.5, liveCeilingPerMinute: 7, now: clock.now });
    const resolved = async (): Promise<number> =>
      Object.keys((await caller.bulk(live().slice(0, 10))).json.results).length;
    expect(await resolved()).toBe(5);
    expect((await caller.lowest(live()[0] ?? '')).status).toBe(200);
    expect(await resolved()).toBe(1);
    expect((await caller.lowest(live()[0] ?? '')).status).toBe(500);
    expect(await resolved()).toBe(0);
    clock.advance(60_000);
    expect(await resolved()).toBe(5);
  });

  it('computes mislisted SKUs live, and the whole catalog during an incident', async () => {
    caller = await start({ liveShare: 0, mislistedShare: 0.5, ghostShare: 0 });
    expect((await caller.bulk(quiet())).json.deferred).toHaveLength(25);
    caller.sandbox.world.setIncident(true);
    expect((await caller.bulk(quiet())).json.deferred).toHaveLength(55);
  });

  it('rejects more than 100 SKUs, duplicates included', async () => {
    caller = await start();
    const [sku = ''] = quiet();
    expect((await caller.bulk(Array.from({ length: 100 }, () => sku))).status).toBe(200);
    const seen = await caller.bulk(Array.from({ length: 101 }, () => sku));
    expect(seen.status).toBe(400);
    expect(Object.keys(seen.json)).toEqual(['statusCode', 'message']);
  });

  it('rejects a body without the list, and ignores unknown keys', async () => {
    caller = await start();
    for (const bad of [undefined, 'A', { 0: 'A' }, [1], null]) {
      expect(await caller.bulk(bad)).toMatchObject({ status: 400, json: { statusCode: 400 } });
    }
    const broken = await caller.send('/partner/lowest/bulk', { method: 'POST', body: '{' });
    expect(broken).toMatchObject({ status: 400, json: { statusCode: 400 } });
    expect((await caller.bulk(['NOPE'], 'skus', { since: 1, mode: 'x' })).status).toBe(200);
    expect((await caller.bulk(['NOPE'], 'items')).status).toBe(400);
  });

  it('puts each SKU asked for into exactly one of results, not_found, deferred and errors', async () => {
    caller = await start({ liveShare: 0.3, ghostShare: 0.1, rateLimit: 100_000, liveCeilingPerMinute: 40 });
    const known = skusWhere(caller, () => true);
    for (const sku of known.slice(5, 12)) caller.sandbox.world.setFailing(sku, true);
    const anySku = fc.oneof(fc.constantFrom(...known), fc.constantFrom('NOPE-1', 'NOPE-2', 'valueOf', ''));
    await fc.assert(
      fc.asyncProperty(fc.array(anySku, { maxLength: 100 }), async (asked) => {
        const { json } = await caller.bulk(asked);
        const fates = [...Object.keys(json.results), ...json.not_found, ...json.deferred, ...json.errors];
        expect(fates.toSorted()).toEqual([...new Set(asked)].toSorted());
        expect(json).toMatchObject({ requested: asked.length, deduped: new Set(asked).size });
      }),
      { numRuns: 60 },
    );
  });
});
