import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { PartnerErrorKind } from '../../src/partner/errors.ts';
import { readManifestFile } from '../../src/partner/manifest-file.ts';
import type { Resolver } from '../../src/partner/origin.ts';
import { SecretUrl } from '../../src/partner/secret-url.ts';
import { PATIENCE_MS } from '../support/eventually.ts';
import { all, failure, fileAt, fileOf, kindAt, lineText, LOOPBACK } from './manifest-reading.ts';
import { serve, type Listener } from './server.ts';

describe('reading a manifest file', () => {
  const plain = fileOf(20);
  test.each<[string, Buffer, string | null]>([
    ['plain', plain, null],
    ['gzip by content', gzipSync(plain), null],
    ['gzip by Content-Encoding', gzipSync(plain), 'gzip'],
    ['gzip by both', gzipSync(gzipSync(plain)), 'gzip'],
    [
      'several members',
      Buffer.concat([gzipSync(fileOf(20).subarray(0, 100)), gzipSync(plain.subarray(100))]),
      null,
    ],
    ['no newline at the end', gzipSync(plain.subarray(0, -1)), null],
    ['CRLF and blank lines', Buffer.from(plain.toString().replaceAll('\n', '\r\n\r\n')), null],
  ])('%s', async (_name, bytes, encoding) => {
    const base = await serve((_request, response) => {
      if (encoding !== null) response.setHeader('content-encoding', encoding);
      response.setHeader('content-length', bytes.length).end(bytes);
    });
    const { lines, rejected, last } = await all(fileAt(base));
    expect(lines.map(({ sku }) => sku)).toEqual(Array.from({ length: 20 }, (_, index) => `SKU-${index}`));
    expect(rejected).toEqual([]);
    expect(last).toMatchObject({ bytes: bytes.length });
  });

  test('an empty file yields no batches', async () => {
    for (const bytes of [Buffer.alloc(0), gzipSync('')]) {
      const base = await serve((_request, response) => response.end(bytes));
      expect((await all(fileAt(base))).sizes).toEqual([]);
    }
  });

  test('batches keep the order of lines and count rejected ones', async () => {
    const text = [lineText(1), 'nonsense', lineText(2), '', lineText(3), '{"sku":"X"}', lineText(4)].join(
      '\n',
    );
    const base = await serve((_request, response) => response.write(text, () => response.end()));
    const { lines, rejected, sizes, last } = await all(fileAt(base, { batchSize: 2 }));
    expect(lines.map(({ sku }) => sku)).toEqual(['SKU-1', 'SKU-2', 'SKU-3', 'SKU-4']);
    expect(rejected.map(({ line, reason, sku }) => [line, reason, sku])).toEqual([
      [2, 'not-json', null],
      [6, 'unknown-price-source', 'X'],
    ]);
    expect(sizes).toEqual([2, 2, 2]);
    expect(last?.bytes).toBe(Buffer.byteLength(text));
  });

  test('an invalid UTF-8 byte after a backslash does not turn the line into another SKU', async () => {
    // Found by drawing (odd-bytes-model.test.ts): it was read as a backslash and the letters that replaced the
    // byte.
    const [before, after] = lineText(1).split('SKU-1');
    const line = Buffer.concat([Buffer.from(`${before}A\\`), Buffer.from([0xc3]), Buffer.from(`9${after}`)]);
    const { lines, rejected } = await all(fileAt(await serve((_request, response) => response.end(line))));
    expect(lines).toEqual([]);
    expect(rejected.map(({ reason, sku }) => [reason, sku])).toEqual([['not-json', null]]);
  });

  test('a SKU with invalid UTF-8 is rejected, wherever the file is cut; U+FFFD itself is accepted', async () => {
    const line = (sku: string) => lineText(1).replace('SKU-1', sku);
    const bytes = Buffer.concat([
      Buffer.from(`${line('é1')}\n${line('\uFFFD')}\n`),
      Buffer.from(`${line('é2')}\n`, 'latin1'),
      Buffer.from(`${line('👟é3')}\n${line('4')}`),
    ]);
    for (const size of [1, 7, bytes.length]) {
      const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
        bytes.subarray(n * size, (n + 1) * size),
      );
      const { lines, rejected } = await all(
        fileAt(
          await serve((_request, response) => {
            for (const part of parts) response.write(part);
            response.end();
          }),
        ),
      );
      expect(lines.map(({ sku }) => sku)).toEqual(['é1', '\uFFFD', '👟é3', '4']);
      expect(rejected.map(({ line: number, reason, sku }) => [number, reason, sku])).toEqual([
        [3, 'bad-sku', null],
      ]);
    }
  });

  test('a line over the limit is rejected without its neighbours', async () => {
    const long = `{"sku":"LONG","hash":"${'x'.repeat(300_000)}"}`;
    const base = await serve((_request, response) =>
      response.end(gzipSync([lineText(1), long, lineText(2)].join('\n'))),
    );
    const { lines, rejected } = await all(fileAt(base));
    expect(lines.map(({ sku }) => sku)).toEqual(['SKU-1', 'SKU-2']);
    expect(rejected).toEqual([{ line: 2, reason: 'too-long', sku: 'LONG', sample: long.slice(0, 200) }]);
  });

  test('a character that spans chunks is read whole', async () => {
    const sku = 'ü😀'.repeat(50);
    const bytes = Buffer.from(JSON.stringify({ sku, hash: 'h', price_source: 'snapshot' }));
    const base = await serve((_request, response) => {
      const send = (at: number): void => {
        if (at < bytes.length) response.write(bytes.subarray(at, at + 3), () => send(at + 3));
        else response.end();
      };
      send(0);
    });
    expect((await all(fileAt(base))).lines[0]?.sku).toBe(sku);
  });
});

test('the request has the query of the presigned URL, no Authorization and no body', async () => {
  let seen: unknown;
  const base = await serve((request, response) => {
    seen = { method: request.method, url: request.url, authorization: request.headers.authorization };
    response.end();
  });
  await all(fileAt(base));
  expect(seen).toEqual({ method: 'GET', url: '/m.gz?X-Amz-Signature=canary', authorization: undefined });
});

describe('refusals of a manifest file', () => {
  test.each<[number, PartnerErrorKind]>([
    [403, 'url-expired'],
    [301, 'file-fault'],
    [307, 'file-fault'],
    [400, 'file-fault'],
    [404, 'file-fault'],
    [206, 'file-fault'],
    [500, 'file-fault'],
  ])('status %i is reported as %s', async (status, kind) => {
    let hits = 0;
    const listener: Listener = (_request, response) => {
      hits += 1;
      response.writeHead(status, { location: '/other?canary' }).end(lineText(1));
    };
    expect(await kindAt(listener)).toBe(kind);
    expect(hits).toBe(1);
  });

  test('a URL that the partner must not name is never requested', async () => {
    const open = (url: string) =>
      readManifestFile({
        url: new SecretUrl(new URL(url)),
        baseUrl: new URL('https://api.example.com'),
        timeoutMs: 1000,
      });
    for (const url of [
      'http://127.0.0.1:1/?canary',
      'https://169.254.169.254/?canary',
      'http://files.example.com/?canary',
    ]) {
      expect((await failure(open(url))).kind).toBe('url-refused');
    }
  });

  test('the address that a name resolves to is checked before the connection', async () => {
    let hits = 0;
    const base = await serve((_request, response) => {
      hits += 1;
      response.end(lineText(1));
    });
    const resolve: Resolver = (_name, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
    const at = (url: string) =>
      readManifestFile({
        url: new SecretUrl(new URL(url)),
        baseUrl: LOOPBACK,
        timeoutMs: PATIENCE_MS,
        resolve,
      });
    const refused = await failure(at(`https://files.example.com:${base.port}/?canary`));
    expect([refused.kind, hits]).toEqual(['url-refused', 0]);
    const named = await all(at(`http://files.localhost:${base.port}/?canary`));
    expect([named.lines.length, hits]).toEqual([1, 1]);
  });

  test('an encoding that was not requested is a file fault', async () => {
    expect(await kindAt((_request, response) => response.setHeader('content-encoding', 'br').end('x'))).toBe(
      'file-fault',
    );
  });
});
