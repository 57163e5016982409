import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/index.ts';

const START = Date.UTC(2026, 0, 1);
const JSON_TYPE = { 'content-type': 'application/json' };

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}

const open = (seed: number, more: SandboxOptions = {}) =>
  startSandbox({
    seed,
    startAt: START,
    publicUrl: 'http://sandbox.example',
    skus: 40,
    orders: 12,
    listings: 12,
    rateLimit: 100_000,
    marketIntervalMs: 5000,
    snapshotIntervalMs: 60_000,
    confirmDeadlineMs: 120_000,
    ...more,
  });

const order = fc.integer({ min: 1, max: 45 }).map((n) => `O-${String(n).padStart(6, '0')}`);
const listing = fc.integer({ min: 1, max: 60 }).map((n) => `L-${String(n).padStart(6, '0')}`);
const sku = fc.constantFrom('DD1391-100', 'FV5029-141', 'nobody');
const call: fc.Arbitrary<Call> = fc.oneof(
  order.map((order_id) => ({ method: 'PUT', path: '/partner/confirm/order', body: { order_id } })),
  order.map((order_id) => ({
    method: 'PUT',
    path: '/partner/update/tracking',
    body: { orders: [{ order_id, tracking_number: 'TH1' }] },
  })),
  fc
    .record({ sku, size: fc.constant('9'), price: fc.integer({ min: 1, max: 9000 }) })
    .chain((body) =>
      fc
        .constantFrom('ask', 'preorder')
        .map((kind) => ({ method: 'POST', path: `/partner/list/${kind}`, body })),
    ),
  listing.map((order_id) => ({
    method: 'PUT',
    path: '/partner/edit/listing',
    body: { order_id, price: 500 },
  })),
  sku.map((one) => ({ method: 'POST', path: '/partner/batch/r2s', body: { items: [{ sku: one }] } })),
  fc.array(sku).map((skus) => ({ method: 'POST', path: '/partner/lowest/bulk', body: { skus } })),
  fc
    .integer({ min: 1, max: 20 })
    .map((steps) => ({ method: 'POST', path: '/sandbox/step', body: { steps } })),
  fc
    .integer({ min: 0, max: 200 })
    .map((s) => ({ method: 'POST', path: '/sandbox/clock', body: { advance: `${s}s` } })),
  fc.constantFrom<Call>(
    { method: 'POST', path: '/sandbox/orders', body: {} },
    { method: 'POST', path: '/sandbox/snapshots' },
    { method: 'POST', path: '/sandbox/reset', body: { seed: 5 } },
    { method: 'PUT', path: '/sandbox/catalog', body: { incident: true } },
    { method: 'POST', path: '/sandbox/faults', body: { route: 'order', status: 500 } },
  ),
);

/** Returns an answer as sent, byte for byte. */
async function answer(sandbox: Sandbox, { method, path, body }: Call): Promise<string> {
  const control = path.startsWith('/sandbox');
  const authorization = `Basic ${Buffer.from(`${sandbox.apiKey}:${sandbox.secret}`).toString('base64')}`;
  const { port } = sandbox.address;
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { ...JSON_TYPE, 'accept-encoding': 'identity', ...(control ? {} : { authorization }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const bytes = Buffer.from(await response.arrayBuffer()).toString('base64');
  return JSON.stringify([response.status, [...response.headers], bytes]);
}

/** Returns the answers of every read, including the presigned files. */
async function readAll(sandbox: Sandbox): Promise<string[]> {
  const answers: string[] = [];
  const get = async (path: string) => {
    answers.push(await answer(sandbox, { method: 'GET', path }));
    return Buffer.from(
      (JSON.parse(answers.at(-1) ?? '') as [number, unknown, string])[2],
      'base64',
    ).toString();
  };
  const fileOf = (body: string) =>
    (/"url":"http:\/\/sandbox\.example([^"]+)"/.exec(body)?.[1] ?? '/').replaceAll('\\u0026', '&');
  await get(fileOf(await get('/partner/catalog/manifest')));
  await get(fileOf(await get('/partner/label/O-000003')));
  for (const path of [
    '/partner/processing/orders',
    '/partner/settled/orders',
    '/partner/live/listings/ask',
    '/partner/live/listings/preorder',
    '/partner/O-000001',
    '/partner/payout/O-000002',
    '/partner/lowest/DD1391-100',
    '/partner/catalog/delta?since=x',
    '/sandbox/state',
    '/sandbox/orders',
    '/sandbox/listings',
    '/sandbox/intake',
    '/sandbox/faults',
    '/sandbox/requests',
    '/',
  ])
    await get(path);
  return answers;
}

it('sandboxes with the same seed and clock give equal bytes on every route, after any calls', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { maxLength: 25 }),
      fc.integer({ min: 0, max: 3 }),
      fc.boolean(),
      async (calls, seed, ambiguous) => {
        await using one = await open(seed, { ambiguous });
        await using twin = await open(seed, { ambiguous });
        for (const each of calls) expect(await answer(twin, each)).toBe(await answer(one, each));
        expect(await readAll(twin)).toEqual(await readAll(one));
      },
    ),
    { numRuns: 25 },
  );
}, 120_000);

it('another seed or another start time gives different bytes', async () => {
  await using one = await open(1);
  await using seed = await open(2);
  await using clock = await open(1, { startAt: START + 1 });
  const [a, b, c] = [await readAll(one), await readAll(seed), await readAll(clock)];
  for (const at of [0, 1, 4, 5]) expect([b[at] === a[at], c[at] === a[at]]).toEqual([false, false]);
});

it('snapshots of different catalogs or start times share no identifier', async () => {
  const shoe = (price: number) => ({ catalog: [{ sku: 'MINE-1', sizes: { 9: price } }] });
  let moment = START;
  const running = { marketIntervalMs: 0, snapshotIntervalMs: 0, startAt: null, now: () => moment };
  await using sandbox = await open(1, running);
  const ids: string[] = [];
  const note = ({ world }: Sandbox) => ids.push(world.newestSnapshot() ?? '', world.buildSnapshot());
  note(sandbox);
  for (const more of [{ startAt: START + 1 }, { skus: 41 }, { liveShare: 0.9 }, shoe(100), shoe(101)]) {
    await using other = await open(1, more);
    note(other);
  }
  moment += 1000;
  await answer(sandbox, { method: 'POST', path: '/sandbox/reset' });
  note(sandbox);
  expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
});

it('a stopped clock does not move, nor does anything else', async () => {
  await using sandbox = await open(1, { marketIntervalMs: 1, snapshotIntervalMs: 1 });
  const before = JSON.stringify([...sandbox.world.truth(), sandbox.world.newestSnapshot()]);
  for (let n = 0; n < 20; n += 1) await answer(sandbox, { method: 'GET', path: '/sandbox/state' });
  expect(JSON.stringify([...sandbox.world.truth(), sandbox.world.newestSnapshot()])).toBe(before);
});
