import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { ManifestFileOptions } from '../../src/partner/manifest-file.ts';
import { eventually } from '../support/eventually.ts';
import { all, failure, fileAt, fileOf, kindAt, lineText } from './manifest-reading.ts';
import { serve, type Listener } from './server.ts';

/** Returns one valid line that gzip hardly shrinks, for tests that need a large file. */
function weightOf(bytes: number): string {
  const noise = Array.from({ length: bytes }, (_, index) =>
    String.fromCodePoint(97 + ((index * index * 31 + index * 7) % 26)),
  );
  return JSON.stringify({ sku: 'W', hash: 'h', price_source: 'snapshot', noise: noise.join('') });
}

describe('a damaged file', () => {
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
  ])('with %s is corrupt', async (_name, bytes) => {
    expect(await kindAt((_request, response) => response.end(bytes))).toBe('file-corrupt');
  });

  test('shorter than Content-Length is corrupt, also at the boundary of a gzip member', async () => {
    const member = gzipSync(fileOf(10));
    const listener: Listener = (_request, response) => {
      response.writeHead(200, { 'content-length': member.length * 2 });
      response.write(member, () => response.destroy());
    };
    expect(await kindAt(listener)).toBe('file-corrupt');
  });

  test('in a chunked body that breaks off is corrupt', async () => {
    const listener: Listener = (_request, response) => {
      response.write(fileOf(10), () => response.destroy());
    };
    expect(await kindAt(listener)).toBe('file-corrupt');
  });

  test('yields only whole batches before the damage, and then an error', async () => {
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

test.each([
  ['4501', 4501],
  ['soon', 0],
  [undefined, 0],
])('an Age of %s is returned with the lines', async (age, ageSeconds) => {
  const listener: Listener = (_request, response) => {
    if (age !== undefined) response.setHeader('age', age);
    response.end(fileOf(3));
  };
  expect((await all(fileAt(await serve(listener)))).last).toMatchObject({ ageSeconds });
});

describe('the limits of a file', () => {
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
  ])('apply to %s', async (_name, bytes, caps) => {
    expect(await kindAt(send(bytes), { caps })).toBe('file-too-large');
  });

  test('apply to its announced length, before a byte is read', async () => {
    const listener: Listener = (_request, response) => {
      response.writeHead(200, { 'content-length': 20_000 });
      response.flushHeaders();
    };
    expect(await kindAt(listener, { caps: { compressedBytes: 10_000 } })).toBe('file-too-large');
  });

  test('apply to the length of its lines: one longer than any string is cut on the way, not buffered', async () => {
    const member = gzipSync('x'.repeat(1024 * 1024));
    const bomb = Buffer.concat([...Array.from({ length: 540 }, () => member), gzipSync(`\n${lineText(1)}`)]);
    const { lines, rejected } = await all(fileAt(await serve(send(bomb))));
    expect(rejected).toMatchObject([{ line: 1, reason: 'too-long' }]);
    expect(lines).toHaveLength(1);
  });

  test('allow sizes exactly at them', async () => {
    const base = await serve(send(text));
    const caps = { compressedBytes: text.length, bytes: text.length, lines: 1000 };
    expect((await all(fileAt(base, { caps }))).lines).toHaveLength(1000);
  });

  test('include a total timeout, an idle timeout and an abort', async () => {
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

  test('do not hide that nothing listens: this is a network error', async () => {
    const error = await failure(fileAt(new URL('http://127.0.0.1:1')));
    expect(error).toMatchObject({ kind: 'network', message: 'manifest-file: network (ECONNREFUSED)' });
    // Nobody configured this address.
    expect(error.hint).toBe(
      "nothing answers at its address: check the address in the partner's manifest and the network",
    );
  });
});

describe('backpressure', () => {
  test('pauses the download while the consumer stops, and closes the connection when it leaves', async () => {
    const chunk = fileOf(1000);
    let sent = 0;
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
    });
    const batches = fileAt(base, { batchSize: 100 });
    expect((await batches.next()).done).toBe(false);
    // Paused means that the number of sent bytes stops growing, far below the whole.
    let before = -1;
    await eventually(
      () => {
        const still = sent === before;
        before = sent;
        return still;
      },
      { what: 'that nothing more is sent', every: 100 },
    );
    expect(sent).toBeLessThan(50 * 1024 * 1024);
    await batches.return(undefined);
    await closed;
  });
});
