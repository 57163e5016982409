import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { PartnerError, type PartnerErrorKind } from '../../src/partner/errors.ts';
import {
  readManifestFile,
  type ManifestBatch,
  type ManifestFileOptions,
  type ManifestLine,
  type RejectedLine,
} from '../../src/partner/manifest-file.ts';
import type { Resolver } from '../../src/partner/origin.ts';
import { SecretUrl } from '../../src/partner/secret-url.ts';
import { serve, type Listener } from './server.ts';

const LOOPBACK = new URL('http://127.0.0.1:1');

function lineText(index: number): string {
  return JSON.stringify({
    sku: `SKU-${index}`,
    sizes: 1,
    hash: `h${index}`,
    price_source: 'snapshot',
    updated_at: null,
  });
}

function fileOf(count: number): Buffer {
  return Buffer.from(Array.from({ length: count }, (_, index) => `${lineText(index)}\n`).join(''));
}

/** Bytes that gzip cannot shrink, as one valid line: for tests that need a file with weight. */
function weightOf(bytes: number): string {
  const noise = Array.from({ length: bytes }, (_, index) =>
    String.fromCodePoint(97 + ((index * index * 31 + index * 7) % 26)),
  );
  return JSON.stringify({ sku: 'W', hash: 'h', price_source: 'snapshot', noise: noise.join('') });
}

function fileAt(base: URL, overrides: Partial<ManifestFileOptions> = {}): AsyncGenerator<ManifestBatch> {
  const url = new SecretUrl(new URL('/m.gz?X-Amz-Signature=canary', base));
  return readManifestFile({ url, baseUrl: LOOPBACK, timeoutMs: 5000, ...overrides });
}

async function all(batches: AsyncIterable<ManifestBatch>) {
  const lines: ManifestLine[] = [];
  const rejected: RejectedLine[] = [];
  const sizes: number[] = [];
  let last: ManifestBatch | undefined;
  for await (const batch of batches) {
    lines.push(...batch.lines);
    rejected.push(...batch.rejected);
    sizes.push(batch.lines.length + batch.rejected.length);
    last = batch;
  }
  return { lines, rejected, sizes, last };
}

async function failure(batches: AsyncIterable<ManifestBatch>): Promise<PartnerError> {
  const error = await all(batches).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof PartnerError)) throw new Error('no PartnerError', { cause: error });
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('canary');
  expect(error.route).toBe('manifest-file');
  return error;
}

async function kindAt(
  listener: Listener,
  overrides: Partial<ManifestFileOptions> = {},
): Promise<PartnerErrorKind> {
  return (await failure(fileAt(await serve(listener), overrides))).kind;
}

describe('forms of the file', () => {
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
    expect(last).toMatchObject({ bytes: bytes.length, totalBytes: bytes.length });
  });

  test('no lines at all', async () => {
    for (const bytes of [Buffer.alloc(0), gzipSync('')]) {
      const base = await serve((_request, response) => response.end(bytes));
      expect((await all(fileAt(base))).sizes).toEqual([]);
    }
  });

  test('batches keep the order and count rejected lines', async () => {
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
    expect(last?.totalBytes).toBeNull();
  });

  test('a line over the limit is rejected alone', async () => {
    const long = `{"sku":"LONG","hash":"${'x'.repeat(300_000)}"}`;
    const base = await serve((_request, response) =>
      response.end(gzipSync([lineText(1), long, lineText(2)].join('\n'))),
    );
    const { lines, rejected } = await all(fileAt(base));
    expect(lines.map(({ sku }) => sku)).toEqual(['SKU-1', 'SKU-2']);
    expect(rejected).toEqual([{ line: 2, reason: 'too-long', sku: 'LONG', sample: long.slice(0, 200) }]);
  });

  test('text is cut at no chunk boundary', async () => {
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

test('what is sent: the query of the presigned URL, no Authorization, no body', async () => {
  let seen: unknown;
  const base = await serve((request, response) => {
    seen = { method: request.method, url: request.url, authorization: request.headers.authorization };
    response.end();
  });
  await all(fileAt(base));
  expect(seen).toEqual({ method: 'GET', url: '/m.gz?X-Amz-Signature=canary', authorization: undefined });
});

describe('refusals', () => {
  test.each<[number, PartnerErrorKind]>([
    [403, 'url-expired'],
    [301, 'file-fault'],
    [307, 'file-fault'],
    [400, 'file-fault'],
    [404, 'file-fault'],
    [206, 'file-fault'],
    [500, 'file-fault'],
  ])('status %i is %s', async (status, kind) => {
    let hits = 0;
    const listener: Listener = (_request, response) => {
      hits += 1;
      response.writeHead(status, { location: '/other?canary' }).end(lineText(1));
    };
    expect(await kindAt(listener)).toBe(kind);
    expect(hits).toBe(1);
  });

  test('a place the URL must not name is never asked', async () => {
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

  test('the address a name resolves to is judged before it is connected to', async () => {
    let hits = 0;
    const base = await serve((_request, response) => {
      hits += 1;
      response.end(lineText(1));
    });
    const resolve: Resolver = (_name, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
    const at = (url: string) =>
      readManifestFile({ url: new SecretUrl(new URL(url)), baseUrl: LOOPBACK, timeoutMs: 5000, resolve });
    const refused = await failure(at(`https://files.example.com:${base.port}/?canary`));
    expect([refused.kind, hits]).toEqual(['url-refused', 0]);
    const named = await all(at(`http://files.localhost:${base.port}/?canary`));
    expect([named.lines.length, hits]).toEqual([1, 1]);
  });

  test('an encoding nobody asked for', async () => {
    expect(await kindAt((_request, response) => response.setHeader('content-encoding', 'br').end('x'))).toBe(
      'file-fault',
    );
  });
});

describe('damage', () => {
  const gz = gzipSync(`${weightOf(50_000)}\n${fileOf(2000).toString()}`);

  test.each<[string, Buffer]>([
    ['cut gzip', gz.subarray(0, gz.length >> 1)],
    [
      'flipped bits',
      Buffer.concat([
        gz.subarray(0, 500),
        Buffer.from(gz.subarray(500, 502).map((byte) => byte ^ 255)),
        gz.subarray(502),
      ]),
    ],
    ['garbage after the end', Buffer.concat([gz, Buffer.from('garbage')])],
  ])('%s is corrupt', async (_name, bytes) => {
    expect(await kindAt((_request, response) => response.end(bytes))).toBe('file-corrupt');
  });

  test('less than Content-Length is corrupt, also at a member boundary', async () => {
    const member = gzipSync(fileOf(10));
    const listener: Listener = (_request, response) => {
      response.writeHead(200, { 'content-length': member.length * 2 });
      response.write(member, () => response.destroy());
    };
    expect(await kindAt(listener)).toBe('file-corrupt');
  });

  test('a chunked body that breaks off is corrupt', async () => {
    const listener: Listener = (_request, response) => {
      response.write(fileOf(10), () => response.destroy());
    };
    expect(await kindAt(listener)).toBe('file-corrupt');
  });

  test('batches before the damage were handed out, and the end is an error', async () => {
    const base = await serve((_request, response) => {
      response.write(fileOf(50), () => response.destroy());
    });
    const seen: number[] = [];
    const run = async () => {
      for await (const batch of fileAt(base, { batchSize: 10 })) seen.push(batch.lines.length);
    };
    await expect(run()).rejects.toMatchObject({ kind: 'file-corrupt' });
    expect(seen.every((length) => length === 10)).toBe(true);
  });
});

describe('limits', () => {
  const text = fileOf(1000);
  const send =
    (bytes: Buffer): Listener =>
    (_request, response) =>
      response.end(bytes);

  test.each<[string, Buffer, ManifestFileOptions['caps']]>([
    ['bytes over the wire', text, { compressedBytes: 10_000 }],
    ['bytes after decompression', gzipSync(text), { bytes: 10_000 }],
    ['bytes after the second decompression', gzipSync(gzipSync(text)), { bytes: 10_000 }],
    ['lines', text, { lines: 999 }],
  ])('%s', async (_name, bytes, caps) => {
    expect(await kindAt(send(bytes), { caps })).toBe('file-too-large');
  });

  test('an announced length over the limit is refused before a byte is read', async () => {
    const listener: Listener = (_request, response) => {
      response.writeHead(200, { 'content-length': 20_000 });
      response.flushHeaders();
    };
    expect(await kindAt(listener, { caps: { compressedBytes: 10_000 } })).toBe('file-too-large');
  });

  test('exactly at the limits is fine', async () => {
    const base = await serve(send(text));
    const caps = { compressedBytes: text.length, bytes: text.length, lines: 1000 };
    expect((await all(fileAt(base, { caps }))).lines).toHaveLength(1000);
  });

  test('a total timeout, an idle timeout, an abort', async () => {
    const stall: Listener = (_request, response) => {
      response.write(fileOf(10));
    };
    expect(await kindAt(stall, { timeoutMs: 50 })).toBe('timeout');
    expect(await kindAt(stall, { idleTimeoutMs: 50 })).toBe('timeout');
    expect(await kindAt(() => undefined, { idleTimeoutMs: 50 })).toBe('timeout');
    const controller = new AbortController();
    const aborting: Listener = (_request, response) => {
      response.write(fileOf(10), () => controller.abort(new Error('canary')));
    };
    expect(await kindAt(aborting, { signal: controller.signal })).toBe('aborted');
  });

  test('nothing listens', async () => {
    expect((await failure(fileAt(new URL('http://127.0.0.1:1')))).kind).toBe('network');
  });
});

describe('backpressure', () => {
  test('a consumer that stops holds the download back, and leaving closes the connection', async () => {
    const chunk = fileOf(1000);
    let sent = 0;
    let held: (() => void) | undefined;
    const stopped = new Promise<void>((resolve) => {
      held = resolve;
    });
    let gone: (() => void) | undefined;
    const closed = new Promise<void>((resolve) => {
      gone = resolve;
    });
    const base = await serve((_request, response) => {
      response.on('close', () => gone?.());
      const send = (): void => {
        while (sent < 200 * 1024 * 1024) {
          sent += chunk.length;
          if (!response.write(chunk)) {
            response.once('drain', send);
            break;
          }
        }
      };
      send();
      // The socket's buffers are full for good once no drain has come for a while; polled below.
      held?.();
    });
    const batches = fileAt(base, { batchSize: 100 });
    expect((await batches.next()).done).toBe(false);
    await stopped;
    let before = -1;
    await expect
      .poll(
        () => {
          const still = sent === before;
          before = sent;
          return still;
        },
        { interval: 100, timeout: 4000 },
      )
      .toBe(true);
    expect(sent).toBeLessThan(50 * 1024 * 1024);
    await batches.return(undefined);
    await closed;
  });
});
