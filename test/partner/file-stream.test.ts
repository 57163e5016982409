import { gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { gunzipIfGzip, metered, withBoundedLines } from '../../src/partner/file-stream.ts';
import { eventually } from '../support/eventually.ts';

/** Yields the bytes in chunks of the given sizes, which repeat. */
async function* inChunks(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const chunkSizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });

test('however the bytes are chunked, lines within the limit pass and longer ones are cut one byte over it', async () => {
  const line = fc.integer({ min: 0, max: 60 }).map((length) => 'x'.repeat(length));
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 30 }),
      chunkSizes,
      fc.integer({ min: 1, max: 30 }),
      async (lines, sizes, limit) => {
        const cut = await collect(withBoundedLines(inChunks(Buffer.from(lines.join('\n')), sizes), limit));
        expect(cut.toString()).toBe(lines.map((text) => text.slice(0, limit + 1)).join('\n'));
      },
    ),
    { numRuns: 500 },
  );
});

test('an endless line is not buffered', async () => {
  async function* endless() {
    const chunk = Buffer.alloc(1000, 'x');
    for (let i = 0; i < 1000; i += 1) yield chunk;
    yield Buffer.from('\nend');
  }
  expect((await collect(withBoundedLines(endless(), 100))).toString()).toBe(`${'x'.repeat(101)}\nend`);
});

test('gzip is recognised by content, for any chunks, and several members are read as one file', async () => {
  const text = Buffer.from('line\n'.repeat(1000));
  const members = Buffer.concat([gzipSync(text), gzipSync(text)]);
  for (const sizes of [[1], [3, 100], [100_000]]) {
    expect(await collect(gunzipIfGzip(inChunks(members, sizes)))).toEqual(Buffer.concat([text, text]));
    expect(await collect(gunzipIfGzip(inChunks(text, sizes)))).toEqual(text);
  }
});

test('an empty source and a single byte pass through', async () => {
  expect(await collect(gunzipIfGzip(inChunks(Buffer.alloc(0), [1])))).toHaveLength(0);
  expect((await collect(gunzipIfGzip(inChunks(Buffer.from('{'), [1])))).toString()).toBe('{');
});

test('an error of the source reaches the consumer unchanged', async () => {
  const failure = new Error('source');
  async function* failing() {
    yield gzipSync('x'.repeat(1000)).subarray(0, 12);
    throw failure;
  }
  await expect(collect(gunzipIfGzip(failing()))).rejects.toBe(failure);
});

test('a consumer that leaves early closes the source', async () => {
  let closed = false;
  async function* source() {
    try {
      for (;;) yield gzipSync('x'.repeat(100_000));
    } finally {
      closed = true;
    }
  }
  for await (const chunk of gunzipIfGzip(source())) {
    expect(chunk.length).toBeGreaterThan(0);
    break;
  }
  await eventually(() => expect(closed).toBe(true));
});

test('the meter reports the total before it passes on each chunk', async () => {
  const totals: number[] = [];
  await collect(metered(inChunks(Buffer.from('abcdef'), [2]), (total) => totals.push(total)));
  expect(totals).toEqual([2, 4, 6]);
});
