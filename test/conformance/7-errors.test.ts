import * as fc from 'fast-check';
import { describe, it } from 'vitest';
import { everyCall, list, quietSkus, send } from './calls.ts';
import { foreignOrder, orderIn } from './levers.ts';
import { authorized, NO_ORDER, open, type Answer, type Partner } from './support.ts';

const STATUSES = [200, 201, 400, 401, 403, 404, 500, 503];

/** Decides whether the body of a rejection has a shape that partner rules 7.2 allow for its status and route. */
function wellFormed(path: string, { status, text, json }: Answer): boolean {
  if (status < 300 || status === 404) return true;
  if (status === 401) return text === '{"message":"Unauthorized"}';
  if (status === 403)
    return [
      '{"message":"Forbidden"}',
      '{"statusCode":403,"message":"Supplier account not configured"}',
    ].includes(text);
  if (status === 500)
    return ['{"message":"Internal Server Error"}', '{"errorMessage":"Internal Server Error"}'].includes(text);
  if (typeof json['message'] !== 'string') return false;
  const members = Object.keys(json).toSorted().join();
  if (members === 'code,message')
    return /^\/partner\/(lowest|catalog)\//.test(path) && /^00\d\d$/.test(String(json['code']));
  if (status === 503) return false;
  if (members === 'message,success') return path === '/partner/batch/r2s' && json['success'] === false;
  const foreign = /^\/partner\/(label\/|update\/tracking$)/.test(path) && json['statusCode'] === 403;
  return members === 'message,statusCode' && (json['statusCode'] === 400 || foreign);
}

/** Generates requests from valid and invalid parts. */
async function arbitraryCalls(partner: Partner): Promise<fc.Arbitrary<[string, string, string, string]>> {
  const ids = [orderIn(partner, 'pending'), foreignOrder(partner), NO_ORDER, await list(partner, 'ask')];
  const sku = quietSkus(partner)[0] ?? '';
  const id = fc.constantFrom(...ids, '', '__proto__', '%', '%00', '..', '7');
  const value = fc.oneof(id, fc.constantFrom(sku, 'NOPE', -1, 1e300, 0.5, 70, null, true), fc.jsonValue());
  const row = fc.record(
    { order_id: value, sku: value, size: value, price: value, quantity: value, tracking_number: value },
    { requiredKeys: [] },
  );
  const body = fc.oneof(
    row.map((it) => JSON.stringify(it)),
    fc.array(row, { maxLength: 3 }).map((it) => JSON.stringify({ orders: it, items: it, skus: it })),
    fc.constantFrom('', '{', 'null', '[]', '"x"', '{"orders":{}}', '{"items":[null]}', '{"skus":[1]}'),
  );
  const calls = await everyCall(partner);
  const known = fc.constantFrom(...calls.map(({ method, path }) => [method, path] as const));
  const prefix = fc.constantFrom(
    '',
    '/payout',
    '/label',
    '/lowest',
    '/live/listings',
    '/list',
    '/edit',
    '/no/such',
  );
  const other = fc.tuple(
    fc.constantFrom('GET', 'PUT', 'POST', 'DELETE', 'PATCH'),
    fc.tuple(prefix, id).map(([start, end]) => `/partner${start}/${end}`),
  );
  const query = fc.constantFrom(
    '',
    '?cursor=x',
    '?cursor=',
    '?since=&since=a',
    '?limit=1',
    '?cursor=eyJ9',
    '?%',
  );
  return fc
    .tuple(fc.oneof(known, other), query, body)
    .chain(([[method, path], query, body]) =>
      fc
        .constantFrom('own', 'own', 'own', 'wrong', 'none')
        .map((who): [string, string, string, string] => [
          method,
          path.includes('?') ? path : path + query,
          body,
          who,
        ]),
    );
}

describe.concurrent('errors', () => {
  it('7.1.200, 7.1.201 creations answer 201, and everything else 200', async ({ expect }) => {
    await using partner = await open();
    for (const call of await everyCall(partner)) {
      const expected = call.path.startsWith('/partner/list/') ? 201 : 200;
      expect([call.endpoint, (await send(partner, call)).status]).toEqual([call.endpoint, expected]);
    }
  });

  it('7.1.404 is the answer for a missing route by any method, and never for a missing order', async ({
    expect,
  }) => {
    await using partner = await open();
    for (const path of [
      '/nothing',
      '/partner/no/such',
      '/partner/catalog/none',
      '/v1/partner/processing/orders',
    ])
      expect([path, (await partner.get(path)).status]).toEqual([path, 404]);
    for (const { endpoint, method, path } of await everyCall(partner)) {
      const other = method === 'GET' ? 'PUT' : 'DELETE';
      const answer = await partner.raw(other, path, { authorization: partner.basic() }, '{}');
      expect([endpoint, answer.status]).toEqual([endpoint, 404]);
    }
    for (const path of ['', '/payout', '/label'])
      expect((await partner.get(`/partner${path}/${NO_ORDER}`)).status).toBe(400);
  });

  it('7.1.500, 7.2.500-service, 7.2.500-authorizer the two kinds of 500 differ in the key of their body', async ({
    expect,
  }) => {
    await using partner = await open();
    const [sku = ''] = quietSkus(partner);
    partner.sandbox.world.setFailing(sku, true);
    expect((await partner.lowest(sku)).text).toBe('{"errorMessage":"Internal Server Error"}');
    const stranger = { authorization: partner.basic('nobody') };
    const refused = await partner.raw('GET', `/partner/lowest/${sku}`, stranger);
    expect([refused.status, refused.text]).toEqual([500, '{"message":"Internal Server Error"}']);
  });

  it('7.1.503, 7.4.7 without a snapshot the catalog endpoints answer 503, and all others work', async ({
    expect,
  }) => {
    await using partner = await open();
    const calls = await everyCall(partner);
    const [sku = ''] = quietSkus(partner);
    partner.sandbox.world.stopBuilder();
    for (const call of calls) {
      const { status } = await send(partner, call);
      const catalog = call.path.startsWith('/partner/catalog/');
      expect([call.endpoint, status]).toEqual([call.endpoint, catalog ? 503 : expect.toBeOneOf([200, 201])]);
    }
    partner.sandbox.world.dropSnapshots();
    expect((await partner.lowest(sku)).json['code']).toBe('0000');
  });

  it('7.1.never, 7.1.400, 7.2.400, 7.2.code any request gets one of eight statuses with a documented body', async ({
    expect,
  }) => {
    await using partner = await open({ rateLimit: 10_000 });
    const credentials: Record<string, string> = {
      own: partner.basic(),
      wrong: partner.basic(undefined, 'other'),
    };
    await fc.assert(
      fc.asyncProperty(await arbitraryCalls(partner), async ([method, path, body, who]) => {
        const answer = await partner.raw(
          method as 'GET',
          path,
          { ...authorized(credentials[who] ?? null), 'content-type': 'application/json' },
          method === 'GET' ? undefined : body,
        );
        expect(STATUSES).toContain(answer.status);
        const [pathname = ''] = path.split('?');
        expect([answer.status, answer.text, wellFormed(pathname, answer)]).toEqual([
          answer.status,
          answer.text,
          true,
        ]);
        expect([answer.status, answer.text]).not.toEqual([500, '{"errorMessage":"Internal Server Error"}']);
      }),
      { numRuns: 400 },
    );
  });

  it('7.1.400 a malformed or oversized body is a validation failure of every write', async ({ expect }) => {
    await using partner = await open({ rateLimit: 1000 });
    const headers = { authorization: partner.basic(), 'content-type': 'application/json' };
    const writes = (await everyCall(partner)).filter(({ method }) => method !== 'GET');
    expect(writes).toHaveLength(8);
    const bodies = ['', '{', 'null', '[]', '"text"', '7', `{"x":"${'y'.repeat(1_200_000)}"}`];
    for (const { endpoint, method, path } of writes) {
      for (const body of bodies) {
        const { status, json } = await partner.raw(method, path, headers, body);
        expect([endpoint, body.slice(0, 9), status]).toEqual([endpoint, body.slice(0, 9), 400]);
        expect(json).toEqual({ statusCode: 400, message: expect.any(String) });
      }
    }
  });

  it('7.4.6 bulk answers 200 even if a part of it is not resolved', async ({ expect }) => {
    await using partner = await open();
    const [known = '', failing = ''] = quietSkus(partner);
    partner.sandbox.world.setFailing(failing, true);
    const { status, json } = await partner.bulk([known, failing, 'NOPE']);
    expect([status, json]).toEqual([
      200,
      expect.objectContaining({ errors: [failing], not_found: ['NOPE'] }),
    ]);
  });
});
