import { expect, describe, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createPartnerClient } from '../../src/partner/client.ts';
import { PartnerError } from '../../src/partner/errors.ts';
import { PATIENCE_MS } from '../support/eventually.ts';
import { serve } from './server.ts';

const RECORD = { message: 'ok', code: '0000', size_map: { '9': 1200 }, product: { name: 'N' } };
const DELTA = { changed: ['A'], removed: [], now_live: [], to_snapshot: 's2' };
const permit = { settle: async () => Promise.resolve() };

function clientOf(baseUrl: URL) {
  const client = createPartnerClient({
    baseUrl,
    credentials: () => ({ apiKey: 'key', secret: 'secret' }),
    timeoutMs: PATIENCE_MS,
    bodyKey: 'skus',
    priceFields: ['price'],
    skuField: 'sku',
    allowInsecure: false,
    userAgent: 'catalog-mirror/test',
    clock: systemClock,
  });
  onTestFinished(() => client.close());
  return client;
}

async function failureOf(promise: Promise<unknown>): Promise<PartnerError> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof PartnerError)) throw new Error('no PartnerError', { cause: error });
  return error;
}

test.each<[string, string | null, string, RegExp]>([
  ['no HTTP', 'HELLO\r\n\r\n', 'HTTPParserError', /is not HTTP as it has to be/],
  [
    'a folded header',
    'HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n',
    'HTTPParserError',
    /is not HTTP as it has to be/,
  ],
  [
    'too many headers',
    `HTTP/1.1 200 OK\r\nA: ${'b'.repeat(100_000)}\r\n\r\n`,
    'UND_ERR_HEADERS_OVERFLOW',
    /is not HTTP/,
  ],
  ['a cut', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{', 'UND_ERR_SOCKET', /was cut/],
  ['nobody there', null, 'ECONNREFUSED', /nothing answers/],
])('a connection that fails says how: %s', async (_what, sent, code, hint) => {
  const base = sent === null ? new URL('http://127.0.0.1:1') : await serve(({ socket }) => socket.end(sent));
  const error = await failureOf(clientOf(base).bulk(permit, ['A']));
  expect(error).toMatchObject({ kind: 'network', message: expect.stringContaining(`(${code})`) as string });
  expect(error.hint).toMatch(hint);
});

describe('bytes that are no UTF-8', () => {
  const inLatin1 = (body: object) => Buffer.from(JSON.stringify(body), 'latin1');

  test('in a SKU of a delta: it is refused, as the SKU that has moved is none of those that can be read', async () => {
    for (const member of ['changed', 'removed', 'now_live']) {
      const base = await serve((_request, response) =>
        response.end(inLatin1({ ...DELTA, [member]: ['A', 'é1'] })),
      );
      const error = await failureOf(clientOf(base).delta(permit, 's1'));
      expect(error).toMatchObject({
        kind: 'unreadable',
        message: `delta: unreadable (status 200, ${member} has a SKU that is no UTF-8)`,
      });
    }
  });

  test('elsewhere in a delta, and U+FFFD itself, are no obstacle', async () => {
    const base = await serve((_request, response) => response.end(inLatin1({ ...DELTA, note: 'é' })));
    expect((await clientOf(base).delta(permit, 's1')).changed).toEqual(['A']);
    const own = await serve((_request, response) =>
      response.end(JSON.stringify({ ...DELTA, changed: ['\uFFFD'] })),
    );
    expect((await clientOf(own).delta(permit, 's1')).changed).toEqual(['\uFFFD']);
  });

  test('in a size: the record cannot be read; in a name, it can', async () => {
    const product = { name: 'é' };
    const results = { A: { ...RECORD, product }, B: { ...RECORD, size_map: { '9é': 1200 } } };
    const base = await serve((_request, response) => response.end(inLatin1({ results })));
    const answer = await clientOf(base).bulk(permit, ['A', 'B']);
    expect(answer.results.get('A')).toMatchObject({ metadata: { name: '\uFFFD' } });
    expect(answer.results.get('B')).toEqual({ unreadable: 'a size key is too long or not storable' });
  });
});
