import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { PartnerClientOptions, Permit, RequestObservation } from '../../src/partner/client.ts';
import { PartnerError, type PartnerErrorKind } from '../../src/partner/errors.ts';
import { clientOf as plainClientOf } from './plain-client.ts';
import { answer, bodyText, serve, type Listener } from './server.ts';

const API_KEY = 'key-canary';
const SECRET = 'secret-canary:ü';
const BASIC = `Basic ${Buffer.from(`${API_KEY}:${SECRET}`).toString('base64')}`;
const RECORD = { message: 'ok', code: '0000', size_map: { '9': 1200 }, product: { name: 'N' } };
const DELTA = { changed: ['A'], removed: [], now_live: [], to_snapshot: 's2' };

class RecordingPermit implements Permit {
  readonly outcomes: string[] = [];

  async settle(outcome: string): Promise<void> {
    this.outcomes.push(outcome);
  }
}

function clientOf(baseUrl: URL, overrides: Partial<PartnerClientOptions> = {}) {
  const observed: RequestObservation[] = [];
  const client = plainClientOf(baseUrl, {
    credentials: () => ({ apiKey: API_KEY, secret: SECRET }),
    observe: (observation) => observed.push(observation),
    ...overrides,
  });
  return { client, observed, permit: new RecordingPermit() };
}

async function failureOf(promise: Promise<unknown>): Promise<PartnerError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof PartnerError)) throw new Error('no PartnerError', { cause: error });
  expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch(/canary|a2V5LWNhbmFyeT/);
  return error;
}

/** Makes one call to a server that answers everything alike, and checks the permit and the observation. */
async function failedBulk(
  listener: Listener,
  overrides: Partial<PartnerClientOptions> = {},
  signal?: AbortSignal,
) {
  const { client, observed, permit } = clientOf(await serve(listener), overrides);
  const error = await failureOf(client.bulk(permit, ['A'], signal));
  expect(permit.outcomes).toEqual([error.kind]);
  expect(observed).toMatchObject([{ route: 'bulk', outcome: error.kind }]);
  return error;
}

describe('a request', () => {
  test('to the bulk route has its path, the credential, and a body under the configured key', async () => {
    const seen: unknown[] = [];
    const base = await serve(async (request, response) => {
      const { method, url, headers } = request;
      const { authorization } = headers;
      const [agent, encoding] = [headers['user-agent'], headers['accept-encoding']];
      seen.push({ method, url, authorization, agent, encoding, body: await bodyText(request) });
      answer(response, 200, { results: { A: RECORD }, not_found: ['B'] });
    });
    const { client, permit, observed } = clientOf(new URL('/prefix/', base), { bodyKey: 'sku_list' });
    const bulk = await client.bulk(permit, ['A', 'B']);
    expect(seen).toEqual([
      {
        method: 'POST',
        url: '/prefix/partner/lowest/bulk',
        authorization: BASIC,
        agent: 'catalog-mirror/test',
        encoding: 'gzip',
        body: '{"sku_list":["A","B"]}',
      },
    ]);
    expect(bulk.results.get('A')).toMatchObject({ sizes: new Map([['9', { price: 1200, entry: null }]]) });
    expect(bulk.notFound).toEqual(['B']);
    expect(permit.outcomes).toEqual(['ok']);
    expect(observed).toMatchObject([{ route: 'bulk', outcome: 'ok', status: 200, date: expect.any(Date) }]);
    expect(observed[0]?.ms).toBeGreaterThanOrEqual(0);
  });

  test.each([
    [{ requested: 0, results: {}, not_found: [] }, 'no-skus-read'],
    [{ requested: 0, results: {}, not_found: ['A'] }, 'ok'],
    [{ requested: 1, results: {}, not_found: [] }, 'ok'],
    [{ results: {} }, 'ok'],
  ])('with the bulk answer %j ends as %s', async (body, outcome) => {
    const base = await serve((_, response) => answer(response, 200, body));
    const { client, permit } = clientOf(base);
    const ended = await client.bulk(permit, ['A']).then(
      () => 'ok',
      (error: unknown) => (error as PartnerError).kind,
    );
    expect([ended, permit.outcomes]).toEqual([outcome, [outcome]]);
  });

  test('encodes SKUs and snapshot ids into its path and query', async () => {
    const urls: (string | undefined)[] = [];
    const base = await serve((request, response) => {
      urls.push(request.url);
      answer(response, 200, request.url?.includes('delta') ? DELTA : RECORD);
    });
    const { client, permit } = clientOf(base);
    await client.lowest(permit, 'a/b?c#d %é');
    await client.delta(permit, 's=1&x y');
    expect(urls).toEqual([
      '/partner/lowest/a%2Fb%3Fc%23d%20%25%C3%A9',
      '/partner/catalog/delta?since=s%3D1%26x+y',
    ]);
  });

  test('reads the credential anew each time', async () => {
    const seen: (string | undefined)[] = [];
    const base = await serve((request, response) => {
      seen.push(request.headers.authorization);
      answer(response, 200, DELTA);
    });
    let secret = 'old';
    const { client, permit } = clientOf(base, { credentials: () => ({ apiKey: 'k', secret }) });
    await client.delta(permit, 's');
    secret = 'new';
    await client.delta(permit, 's');
    expect(seen.map((header) => atob(header?.slice(6) ?? ''))).toEqual(['k:old', 'k:new']);
  });

  test('for a SKU that no path can carry is not sent', async () => {
    const { client, permit } = clientOf(await serve((_request, response) => answer(response, 500, {})));
    for (const sku of ['', '.', '..', '\ud800']) {
      expect(await failureOf(client.lowest(permit, sku))).toMatchObject({
        kind: 'bad-request',
        status: undefined,
      });
    }
    expect(permit.outcomes).toHaveLength(4);
  });

  test('is not sent if the credential cannot be read', async () => {
    const error = await failedBulk((_request, response) => answer(response, 200, {}), {
      credentials: () => {
        throw new Error('ENOENT');
      },
    });
    expect(error).toMatchObject({ kind: 'aborted', status: undefined });
  });
});

describe('an answer', () => {
  test('of the manifest route is read, and does not show the query of its URL', async () => {
    const base = await serve((_request, response) => {
      answer(
        response,
        200,
        '{"snapshot_id":20261101060000123,"url":"https://f.example.com/m?sig=canary","sku_count":3}',
      );
    });
    const { client, permit } = clientOf(base);
    const meta = await client.manifest(permit);
    expect(meta).toMatchObject({ snapshotId: '20261101060000123', skuCount: 3 });
    expect(inspect(meta, { depth: 10, showHidden: true })).not.toContain('canary');
  });

  test('with several URLs fails with a hint that names variable and fields, without their values', async () => {
    const body = {
      snapshot_id: 's',
      a_url: 'https://f.example.com/?canary',
      b_url: 'https://g.example.com/?canary',
    };
    const { client, permit } = clientOf(await serve((_request, response) => answer(response, 200, body)));
    const error = await failureOf(client.manifest(permit));
    expect(error).toMatchObject({
      kind: 'unreadable',
      hint: expect.stringContaining('PARTNER_MANIFEST_URL_FIELD'),
    });
    expect(error.message).toContain('a_url, b_url');
    expect(permit.outcomes).toEqual(['unreadable']);
  });

  test.each([['gzip'], ['none'], ['gzip, gzip']])(
    'that is gzipped is read with Content-Encoding %s',
    async (encoding) => {
      const once = gzipSync(JSON.stringify(DELTA));
      const base = await serve((_request, response) => {
        if (encoding !== 'none') response.setHeader('content-encoding', encoding);
        response.end(encoding === 'gzip, gzip' ? gzipSync(once) : once);
      });
      const { client, permit } = clientOf(base);
      expect(await client.delta(permit, 's1')).toEqual({
        changed: ['A'],
        removed: [],
        nowLive: [],
        toSnapshot: 's2',
        skipped: 0,
      });
    },
  );

  test.each([['plain'], ['gzipped']])('that is %s may begin with a byte order mark', async (form) => {
    const text = `\uFEFF${JSON.stringify(DELTA)}`;
    const body = form === 'gzipped' ? gzipSync(text) : text;
    const { client, permit } = clientOf(await serve((_request, response) => response.end(body)));
    expect(await client.delta(permit, 's1')).toMatchObject({ changed: ['A'], toSnapshot: 's2' });
  });

  test('for a missing SKU is an error of its own kind', async () => {
    const { client, permit } = clientOf(
      await serve((_request, response) => answer(response, 400, { message: 'x', code: '0009' })),
    );
    expect(await failureOf(client.lowest(permit, 'A'))).toMatchObject({
      kind: 'sku-not-found',
      code: '0009',
      status: 400,
    });
    expect(permit.outcomes).toEqual(['sku-not-found']);
  });

  test.each<[number, unknown, PartnerErrorKind]>([
    [401, { message: 'Unauthorized' }, 'unauthorised'],
    [403, { message: 'Forbidden' }, 'throttled-or-forbidden'],
    [403, '<html>', 'throttled-or-forbidden'],
    [403, gzipSync('x').subarray(0, 12).toString('latin1'), 'throttled-or-forbidden'],
    [403, { statusCode: 403, message: 'Supplier account not configured' }, 'account-not-configured'],
    [500, { message: 'Internal Server Error' }, 'authorizer-fault'],
    [500, { errorMessage: 'Internal Server Error' }, 'service-fault'],
    [404, { message: 'Not Found' }, 'not-a-route'],
    [400, { statusCode: 400, message: 'x' }, 'bad-request'],
    [200, 'null', 'unreadable'],
    [200, '{"results":', 'unreadable'],
    [200, '', 'unreadable'],
    [200, {}, 'unreadable'],
    [200, { results: 3 }, 'unreadable'],
  ])('%i %j settles the permit as %s', async (status, body, kind) => {
    const error = await failedBulk((_request, response) => answer(response, status, body));
    expect(error).toMatchObject({ kind, status });
  });

  test('of the single lookup is an error if its record is unreadable', async () => {
    const { client, permit } = clientOf(
      await serve((_request, response) => answer(response, 200, { ...RECORD, size_map: null })),
    );
    expect(await failureOf(client.lowest(permit, 'A'))).toMatchObject({ kind: 'unreadable' });
  });

  test('that redirects is not followed', async () => {
    let hits = 0;
    const error = await failedBulk((_request, response) => {
      hits += 1;
      response.writeHead(307, { location: '/elsewhere' }).end();
    });
    expect(error).toMatchObject({ kind: 'unreadable', status: 307 });
    expect(hits).toBe(1);
  });

  test('with 403 starts a back-off even if its body breaks off', async () => {
    const error = await failedBulk((_request, response) => {
      response.writeHead(403, { 'content-length': '100' });
      response.write('{"mess', () => response.destroy());
    });
    expect(error).toMatchObject({ kind: 'throttled-or-forbidden', status: 403 });
  });
});

describe('a call fails', () => {
  test('if the answer is over a limit, plain or as a gzip bomb', async () => {
    const padded = JSON.stringify({ results: {}, pad: 'x'.repeat(2 * 1024 * 1024) });
    const deep = `{"results":{},"pad":${'['.repeat(600)}${']'.repeat(600)}}`;
    const many = `{"results":{},"pad":[${'1,'.repeat(22_000)}1]}`;
    const named = JSON.stringify({
      results: {},
      pad: Object.fromEntries(Array.from({ length: 22_000 }, (_, n) => [`k${n}`, 1])),
    });
    for (const [body, says] of [
      [padded, 'bytes'],
      [deep, 'nested over 500 levels'],
      [many, 'values'],
      [named, 'values'],
    ] as const) {
      const problem = { kind: 'answer-too-large', message: expect.stringContaining(says) };
      expect(await failedBulk((_request, response) => answer(response, 200, body))).toMatchObject(problem);
      for (const bomb of [gzipSync(body), gzipSync(gzipSync(body))])
        expect(await failedBulk((_request, response) => response.end(bomb))).toMatchObject(problem);
    }
  });

  test('if a gzip body is damaged', async () => {
    const cut = gzipSync(JSON.stringify({ results: {} })).subarray(0, 20);
    expect(await failedBulk((_request, response) => response.end(cut))).toMatchObject({ kind: 'unreadable' });
  });

  test('if no head comes in time, or a body never ends', async () => {
    const silent = await failedBulk(() => undefined, { timeoutMs: 50 });
    expect(silent).toMatchObject({ kind: 'timeout', status: undefined });
    const endless = await failedBulk((_request, response) => response.write('{"results":'), {
      timeoutMs: 50,
    });
    expect(endless.kind).toBe('timeout');
  });

  test('if the caller aborts it, before or during the request', async () => {
    expect((await failedBulk(() => undefined, {}, AbortSignal.abort(new Error('canary')))).kind).toBe(
      'aborted',
    );
    const controller = new AbortController();
    const during = await failedBulk(() => controller.abort(new Error('canary')), {}, controller.signal);
    expect(during.kind).toBe('aborted');
  });

  test('if the connection is refused or breaks', async () => {
    expect((await failedBulk((request) => request.socket.destroy())).kind).toBe('network');
    const { client, permit } = clientOf(new URL('http://127.0.0.1:1'));
    expect((await failureOf(client.delta(permit, 's'))).kind).toBe('network');
    expect(permit.outcomes).toEqual(['network']);
  });
});

describe('permits', () => {
  test('a permit that cannot be settled fails a good answer, but does not hide a bad one', async () => {
    let status = 200;
    const base = await serve((_request, response) =>
      answer(response, status, status === 200 ? DELTA : { message: 'Forbidden' }),
    );
    const { client } = clientOf(base);
    const broken: Permit = { settle: () => Promise.reject(new Error('no database')) };
    await expect(client.delta(broken, 's')).rejects.toThrow('no database');
    status = 403;
    expect((await failureOf(client.delta(broken, 's'))).kind).toBe('throttled-or-forbidden');
  });
});

test('an unusable base URL is rejected without being shown', () => {
  const options = { credentials: () => ({ apiKey: '', secret: '' }) };
  const open = (url: string) => () => clientOf(new URL(url), options);
  expect(open('http://api.example.com')).toThrow('cannot be used: scheme');
  expect(open('https://key:canary@api.example.com')).toThrow(/^(?!.*canary).*credentials/);
});
