import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { read, start, type Caller } from './support.ts';

let caller: Caller;
afterEach(() => caller.sandbox.close());

describe('faults', () => {
  it('hit the given route, after a number of requests, a number of times', async () => {
    caller = await start();
    const hits = caller.sandbox.faults.add({ route: 'manifest', after: 1, times: 2, status: 500 });
    const statuses: number[] = [];
    for (let n = 0; n < 4; n += 1) {
      statuses.push((await caller.manifest()).status);
      expect((await caller.lowest('constructor')).status).toBe(200);
    }
    expect(statuses).toEqual([200, 500, 500, 200]);
    expect(hits()).toBe(2);
  });

  it('apply in order one after the other, until they are cleared', async () => {
    caller = await start();
    caller.sandbox.faults.add({ route: '*', status: 500 });
    caller.sandbox.faults.add({ route: 'manifest', status: 401 });
    caller.sandbox.faults.add({ route: 'manifest', times: Infinity, status: 403 });
    const statuses: number[] = [];
    for (let n = 0; n < 4; n += 1) statuses.push((await caller.manifest()).status);
    expect(statuses).toEqual([500, 401, 403, 403]);
    caller.sandbox.faults.clear();
    expect((await caller.manifest()).status).toBe(200);
  });

  it('answer as the partner does if no body is given', async () => {
    caller = await start();
    for (const [status, text] of [
      [500, '{"errorMessage":"Internal Server Error"}'],
      [403, '{"message":"Forbidden"}'],
      [401, '{"message":"Unauthorized"}'],
    ] as const) {
      caller.sandbox.faults.add({ route: 'bulk', status });
      expect(await caller.bulk([])).toMatchObject({ status, text });
    }
  });

  it('send a header only once, in whatever case its name is given', async () => {
    caller = await start();
    const headers = { 'CONTENT-TYPE': 'text/html', 'cache-control': 'no-store', date: 'yesterday' };
    for (const body of [{ status: 200, body: {} }, {}]) {
      caller.sandbox.faults.add({ route: 'manifest', ...body, headers });
      const seen = await caller.manifest();
      expect(Object.fromEntries(seen.headers)).toMatchObject({
        'content-type': 'text/html',
        'cache-control': 'no-store',
        date: 'yesterday',
      });
    }
  });

  it('send the body and headers they are given', async () => {
    caller = await start();
    caller.sandbox.faults.add({
      route: 'delta',
      status: 400,
      body: { message: 'x', code: '0013' },
      headers: { 'X-A': 'b' },
    });
    const seen = await caller.delta('any');
    expect([seen.status, seen.json, seen.headers.get('x-a')]).toEqual([
      400,
      { message: 'x', code: '0013' },
      'b',
    ]);
    expect(caller.sandbox.requests.at(-1)?.code).toBe('0013');
    caller.sandbox.faults.add({
      route: 'delta',
      status: 302,
      headers: { location: 'https://elsewhere.test/' },
    });
    const response = await fetch(`${caller.sandbox.url}/partner/catalog/delta`, { redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([302, 'https://elsewhere.test/']);
    caller.sandbox.faults.add({ route: 'delta', body: '<html>' });
    expect(await caller.delta('any')).toMatchObject({ status: 200, text: '<html>' });
  });

  it('count against the rate limit', async () => {
    caller = await start({ rateLimit: 3 });
    caller.sandbox.faults.add({ route: 'manifest', times: 3, status: 500 });
    for (let n = 0; n < 3; n += 1) expect((await caller.manifest()).status).toBe(500);
    expect((await caller.manifest()).status).toBe(403);
  });

  it('change JSON answers', async () => {
    caller = await start();
    caller.sandbox.faults.add({
      route: 'bulk',
      mutate: (json: { not_found: string[] }) => ({ ...json, not_found: [] }),
    });
    expect((await caller.bulk(['NOPE'])).json.not_found).toEqual([]);
    expect((await caller.bulk(['NOPE'])).json.not_found).toEqual(['NOPE']);
  });

  it('change the manifest file', async () => {
    caller = await start();
    const { url } = (await caller.manifest()).json;
    caller.sandbox.faults.add({
      route: 'file',
      file: (body) => gzipSync(gunzipSync(body).toString().replace('{', '[')),
    });
    const bent = gunzipSync(Buffer.from(await (await fetch(url)).arrayBuffer())).toString();
    expect(bent.startsWith('["sku"')).toBe(true);
    caller.sandbox.faults.add({ route: 'file', status: 403 });
    expect(await read(await fetch(url))).toMatchObject({
      status: 403,
      text: expect.stringContaining('<Error>'),
    });
  });

  it('truncate a body, either broken off or as if complete', async () => {
    caller = await start();
    const { url } = (await caller.manifest()).json;
    caller.sandbox.faults.add({ route: 'file', truncateAt: 100 });
    const cut = await fetch(url);
    expect(cut.status).toBe(200);
    await expect(cut.arrayBuffer()).rejects.toThrow('terminated');
    caller.sandbox.faults.add({ route: 'file', truncateAt: 100, clean: true });
    expect((await (await fetch(url)).arrayBuffer()).byteLength).toBe(100);
    caller.sandbox.faults.add({ route: 'manifest', truncateAt: 0 });
    await expect(caller.manifest()).rejects.toThrow('terminated');
    caller.sandbox.faults.add({ route: 'manifest', truncateAt: 10, clean: true });
    expect(await caller.manifest()).toMatchObject({ status: 200, json: null });
  });

  it('reset the connection, or hang until closed', async () => {
    caller = await start();
    caller.sandbox.faults.add({ route: 'manifest', reset: true });
    await expect(caller.manifest()).rejects.toThrow('fetch failed');
    caller.sandbox.faults.add({ route: 'manifest', hang: true });
    const hanging = caller.manifest().then(
      () => 'answered',
      (error: Error) => error.message,
    );
    await eventually(() => expect(caller.sandbox.counts('manifest')).toBe(2));
    await caller.sandbox.close();
    expect(await hanging).toBe('fetch failed');
    expect(caller.sandbox.requests.at(-1)?.status).toBe(0);
  });

  it('delay an answer', async () => {
    caller = await start();
    caller.sandbox.faults.add({ route: 'manifest', delayMs: 60 });
    const before = performance.now();
    expect((await caller.manifest()).status).toBe(200);
    expect(performance.now() - before).toBeGreaterThanOrEqual(55);
  });
});
