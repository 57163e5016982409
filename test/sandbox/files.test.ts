import { get } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { HandClock, parseLines, read, skusWhere, start, type Caller } from './support.ts';

let caller: Caller;
afterEach(() => caller.sandbox.close());

/** Returns the bytes as sent: fetch would undo Content-Encoding, so this uses node:http. */
function rawGet(url: string): Promise<{ encoding: string | undefined; body: Buffer }> {
  return new Promise((resolve, reject) => {
    get(url, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () => {
        resolve({ encoding: response.headers['content-encoding'], body: Buffer.concat(parts) });
      });
      response.on('error', reject);
    }).on('error', reject);
  });
}

describe('files origin (partner rules 2.7, 4.2.9)', () => {
  it('needs no credential, and records whether one was sent', async () => {
    caller = await start();
    const { url } = (await caller.manifest()).json;
    expect(await caller.lines(url)).toHaveLength(60);
    expect(caller.sandbox.requests.at(-1)).toMatchObject({
      route: 'file',
      authorization: false,
      status: 200,
    });
    await fetch(url, { headers: { authorization: caller.basic() } });
    expect(caller.sandbox.requests.at(-1)).toMatchObject({ route: 'file', authorization: true });
  });

  it('answers 403 in XML to a URL that has expired, was revoked or was altered', async () => {
    const clock = new HandClock();
    caller = await start({ now: clock.now, urlTtlMs: 1000 });
    const { url } = (await caller.manifest()).json;
    clock.advance(999);
    expect((await fetch(url)).status).toBe(200);
    caller.sandbox.world.revokeUrls();
    const revoked = await read(await fetch(url));
    expect([revoked.status, revoked.text]).toEqual([403, expect.stringContaining('<Code>ExpiredToken')]);
    const fresh = (await caller.manifest()).json.url;
    expect((await fetch(fresh)).status).toBe(200);
    clock.advance(1000);
    const expired = await read(await fetch(fresh));
    expect([expired.status, expired.text]).toEqual([403, expect.stringContaining('<Code>AccessDenied')]);
    expect(expired.headers.get('content-type')).toBe('application/xml');
    const later = fresh.replace(/X-Expires=\d+/, `X-Expires=${clock.now() + 99_999}`);
    expect((await fetch(later)).status).toBe(403);
  });

  it('answers 404 for a snapshot that has expired', async () => {
    caller = await start();
    const { url } = (await caller.manifest()).json;
    caller.sandbox.world.buildSnapshot();
    expect((await fetch(url)).status).toBe(200);
    caller.sandbox.world.expireSnapshots(1);
    const seen = await read(await fetch(url));
    expect([seen.status, seen.text]).toEqual([404, expect.stringContaining('<Code>NoSuchKey')]);
  });

  it('serves an older snapshot unchanged, whatever came after', async () => {
    caller = await start({ skus: 200, liveShare: 0.2 });
    const { world } = caller.sandbox;
    const { url } = (await caller.manifest()).json;
    const frozen = await caller.lines(url);
    for (let round = 0; round < 5; round += 1) {
      world.step(100);
      world.buildSnapshot();
    }
    world.step(50);
    expect(await caller.lines(url)).toEqual(frozen);
    const now = await caller.lines();
    expect(now).not.toEqual(frozen);
    expect(now.map((line) => line.sku)).toEqual(skusWhere(caller, (row) => row.listed));
  });

  it.each([
    ['content', undefined, 1],
    ['encoding', 'gzip', 1],
    ['both', 'gzip', 2],
  ] as const)('compresses by %s', async (gzipFile, encoding, layers) => {
    caller = await start({ dialect: { gzipFile } });
    const raw = await rawGet((await caller.manifest()).json.url);
    expect(raw.encoding).toBe(encoding);
    let body = raw.body;
    for (let layer = 0; layer < layers; layer += 1) body = gunzipSync(body);
    expect(parseLines(body)).toHaveLength(60);
  });

  it('stops reading when the client disconnects, and closes despite open downloads', async () => {
    caller = await start({ skus: 20_000 });
    const { url } = (await caller.manifest()).json;
    const abort = new AbortController();
    const response = await fetch(url, { signal: abort.signal });
    await response.body?.getReader().read();
    abort.abort();
    expect((await caller.manifest()).status).toBe(200);
    const open = await fetch(url);
    await caller.sandbox.close();
    await expect(open.arrayBuffer()).rejects.toThrow('terminated');
  });
});
