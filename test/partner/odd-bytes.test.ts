import type { ServerOptions } from 'node:https';
import fc from 'fast-check';
import { expect, describe, test } from 'vitest';
import { PartnerError } from '../../src/partner/errors.ts';
import { decodeUtf8, isReadableSku, withBrokenEscaped } from '../../src/partner/text.ts';
import { hintOfCode } from '../../src/partner/tunnel.ts';
import { clientOf, permit } from './plain-client.ts';
import { GOOD, serveTls } from './proxied.ts';
import { serve } from './server.ts';

const RECORD = { message: 'ok', code: '0000', size_map: { '9': 1200 }, product: { name: 'N' } };
const DELTA = { changed: ['A'], removed: [], now_live: [], to_snapshot: 's2' };
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
])('a failed connection is reported with its cause: %s', async (_what, sent, code, hint) => {
  const base = sent === null ? new URL('http://127.0.0.1:1') : await serve(({ socket }) => socket.end(sent));
  const error = await failureOf(clientOf(base).bulk(permit, ['A']));
  expect(error).toMatchObject({ kind: 'network', message: expect.stringContaining(`(${code})`) as string });
  expect(error.hint).toMatch(hint);
});

describe('failed TLS is reported with its cause:', () => {
  const asks = { requestCert: true, rejectUnauthorized: true, maxVersion: 'TLSv1.2' } as const;

  test.each<[string, string, ServerOptions, string, RegExp]>([
    [
      'a certificate of another host',
      'elsewhere',
      {},
      'ERR_TLS_CERT_ALTNAME_INVALID',
      /is of another host: check PARTNER_BASE_URL/,
    ],
    [
      'a certificate that is asked of the client',
      'localhost',
      asks,
      'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE|ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
      /refused TLS/,
    ],
    [
      'versions that have none in common',
      'localhost',
      { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
      'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
      /refused TLS/,
    ],
  ])('%s', async (_what, shows, more, codes, hint) => {
    const port = await serveTls(GOOD, shows, more);
    const error = await failureOf(clientOf(new URL(`https://localhost:${port}`)).bulk(permit, ['A']));
    expect(error).toMatchObject({
      kind: 'network',
      message: expect.stringMatching(`\\((?:${codes})\\)$`) as string,
    });
    expect(error.hint).toMatch(hint);
  });

  test.each([
    ['CERT_HAS_EXPIRED', /not valid at this time: check the clock/],
    ['CERT_NOT_YET_VALID', /not valid at this time: check the clock/],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', /refused TLS/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /not trusted[^]*NODE_EXTRA_CA_CERTS/],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', /not trusted[^]*NODE_EXTRA_CA_CERTS/],
    ['ERR_SSL_WRONG_VERSION_NUMBER', /is not HTTP as it has to be/],
  ])('%s', (code, hint) => {
    expect(hintOfCode(code)).toMatch(hint);
  });
});

describe('bytes that are not UTF-8', () => {
  const inLatin1 = (body: object) => Buffer.from(JSON.stringify(body), 'latin1');

  test('in a SKU of a delta reject it, because the readable SKUs do not include the one that moved', async () => {
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

  test('elsewhere in a delta, and U+FFFD itself, do no harm', async () => {
    const base = await serve((_request, response) => response.end(inLatin1({ ...DELTA, note: 'é' })));
    expect((await clientOf(base).delta(permit, 's1')).changed).toEqual(['A']);
    const own = await serve((_request, response) =>
      response.end(JSON.stringify({ ...DELTA, changed: ['\uFFFD'] })),
    );
    expect((await clientOf(own).delta(permit, 's1')).changed).toEqual(['\uFFFD']);
  });

  test('in a size make its record unreadable, but not in a product name', async () => {
    const product = { name: 'é' };
    const results = { A: { ...RECORD, product }, B: { ...RECORD, size_map: { '9é': 1200 } } };
    const base = await serve((_request, response) => response.end(inLatin1({ results })));
    const answer = await clientOf(base).bulk(permit, ['A', 'B']);
    expect(answer.results.get('A')).toMatchObject({ metadata: { name: '\uFFFD' } });
    expect(answer.results.get('B')).toEqual({ unreadable: 'a size key is too long or not storable' });
  });

  const part = fc.oneof(
    fc
      .constantFrom('\\', '\\', String.raw`\ud83d`, String.raw`\udc5f`, 'u', 'd', '7', 'é', '👟', '\uFFFD')
      .map((text) => Buffer.from(text)),
    fc.constantFrom(0xff, 0xe9, 0xc3, 0xed).map((byte) => Buffer.from([byte])),
  );
  const valueOf = (text: string): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  };

  test('are part of no readable SKU, whatever surrounds them', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const bytes = Buffer.concat([Buffer.from('"A'), ...parts, Buffer.from([0xff]), Buffer.from('"')]);
        const inBody = valueOf(decodeUtf8(bytes));
        expect([inBody, isReadableSku(inBody)]).toEqual([inBody, false]);
        const inLine = valueOf(withBrokenEscaped(bytes).toString());
        expect([inLine, isReadableSku(inLine)]).toEqual([inBody, false]);
      }),
      { numRuns: 2000 },
    );
  });
});
