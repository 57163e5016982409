import { expect, test } from 'vitest';
import { lineReader, type RejectionReason } from '../../src/partner/manifest-lines.ts';

const read = lineReader(1000);
const good = {
  sku: 'A',
  sizes: 3,
  hash: 'h1',
  price_source: 'snapshot',
  updated_at: '2026-11-01T00:00:00.000Z',
};

test.each<[string, object, object]>([
  ['a snapshot line', good, { hash: 'h1', priceSource: 'snapshot' }],
  ['a live line', { ...good, hash: null, price_source: 'live' }, { hash: null, priceSource: 'live' }],
  [
    'a live line with a hash',
    { ...good, hash: 'x', price_source: 'live' },
    { hash: null, priceSource: 'live' },
  ],
  [
    'a live line with a hash of another type',
    { ...good, hash: 5, price_source: 'live' },
    { hash: null, priceSource: 'live' },
  ],
  [
    'sizes and updated_at absent',
    { sku: 'A', hash: 'h1', price_source: 'snapshot' },
    { sizes: null, updatedAt: null },
  ],
  ['updated_at empty', { ...good, updated_at: '' }, { updatedAt: null }],
  [
    'updated_at the zero of a serialiser',
    { ...good, updated_at: '0001-01-01T00:00:00Z' },
    { updatedAt: null },
  ],
  ['sizes and updated_at null', { ...good, sizes: null, updated_at: null }, { sizes: null, updatedAt: null }],
  [
    'a time with an offset',
    { ...good, updated_at: '2026-11-01T07:00:00+07:00' },
    { updatedAt: '2026-11-01T00:00:00.000Z' },
  ],
  [
    'a day that Postgres would refuse',
    { ...good, updated_at: '2026-02-30T00:00:00Z' },
    { updatedAt: '2026-03-02T00:00:00.000Z' },
  ],
  ['sizes as text', { ...good, sizes: '3' }, {}],
  ['updated_at as epoch milliseconds', { ...good, updated_at: 1_793_491_200_000 }, {}],
  ['updated_at as epoch seconds', { ...good, updated_at: 1_793_491_200 }, {}],
  ['updated_at as epoch milliseconds in text', { ...good, updated_at: '1793491200000' }, {}],
  ['updated_at as epoch seconds in text', { ...good, updated_at: '1793491200' }, {}],
  ['updated_at zero', { ...good, updated_at: 0 }, { updatedAt: null }],
  ['a hash that is an integer', { ...good, hash: 57 }, { hash: '57' }],
  ['unknown members', { ...good, extra: { deep: [] } }, {}],
])('%s is accepted', (_name, line, part) => {
  const kept = {
    sku: 'A',
    sizes: 3,
    hash: 'h1',
    priceSource: 'snapshot',
    updatedAt: '2026-11-01T00:00:00.000Z',
    ...part,
  };
  const read1 = read(JSON.stringify(line), 1);
  expect(read1).toEqual(kept);
  expect(read(`${JSON.stringify(line)}\r`, 1)).toEqual(read1);
});

test.each<[string, RejectionReason, string | null]>([
  ['{"sku":"A","hash":', 'not-json', 'A'],
  ['nonsense', 'not-json', null],
  [String.raw`{"sku":"a\u0000`, 'not-json', null],
  ['[]', 'not-an-object', null],
  ['"A"', 'not-an-object', null],
  ['null', 'not-an-object', null],
  ['5', 'not-an-object', null],
  [JSON.stringify({ ...good, sku: undefined }), 'no-sku', null],
  [JSON.stringify({ ...good, sku: '' }), 'no-sku', null],
  [JSON.stringify({ ...good, sku: null }), 'no-sku', null],
  [JSON.stringify({ ...good, sku: 5 }), 'bad-sku', null],
  [JSON.stringify({ ...good, sku: 'a\u0000' }), 'bad-sku', null],
  [JSON.stringify({ ...good, sku: '\ud800' }), 'bad-sku', null],
  [JSON.stringify({ ...good, sku: 'a'.repeat(513) }), 'bad-sku', null],
  [JSON.stringify({ ...good, price_source: 'cache' }), 'unknown-price-source', 'A'],
  [JSON.stringify({ ...good, price_source: undefined, sizes: 'x' }), 'unknown-price-source', 'A'],
  [JSON.stringify({ ...good, hash: null }), 'bad-hash', 'A'],
  [JSON.stringify({ ...good, hash: undefined }), 'bad-hash', 'A'],
  [JSON.stringify({ ...good, hash: '' }), 'bad-hash', 'A'],
  [JSON.stringify({ ...good, hash: 0 }), 'bad-hash', 'A'],
  [JSON.stringify({ ...good, hash: 1.5 }), 'bad-hash', 'A'],
  [JSON.stringify({ ...good, hash: true }), 'bad-hash', 'A'],
  [JSON.stringify({ ...good, hash: 'h\u0000' }), 'bad-hash', 'A'],
  [JSON.stringify({ ...good, sizes: 'three' }), 'bad-sizes', 'A'],
  [JSON.stringify({ ...good, sizes: ['3'] }), 'bad-sizes', 'A'],
  [JSON.stringify({ ...good, sizes: `${2 ** 31}` }), 'bad-sizes', 'A'],
  [JSON.stringify({ ...good, sizes: 1.5 }), 'bad-sizes', 'A'],
  [JSON.stringify({ ...good, sizes: -1 }), 'bad-sizes', 'A'],
  [JSON.stringify({ ...good, sizes: 2 ** 31 }), 'bad-sizes', 'A'],
  [JSON.stringify({ ...good, updated_at: 5 }), 'bad-updated-at', 'A'],
  [JSON.stringify({ ...good, updated_at: 1e15 }), 'bad-updated-at', 'A'],
  [JSON.stringify({ ...good, updated_at: '20261101' }), 'bad-updated-at', 'A'],
  [JSON.stringify({ ...good, updated_at: 'yesterday' }), 'bad-updated-at', 'A'],
  [JSON.stringify({ ...good, updated_at: '2026-13-01T00:00:00Z' }), 'bad-updated-at', 'A'],
  [JSON.stringify({ ...good, updated_at: '0000-01-01T00:00:00Z' }), 'bad-updated-at', 'A'],
  [JSON.stringify({ ...good, pad: 'x'.repeat(1000) }), 'too-long', 'A'],
  ['{"sku":"A","hash":"h1","price_source":"snapshot","hash":"h2"}', 'repeated-member', 'A'],
  ['{"sku":"A","hash" : "h1","price_source":"snapshot","h\\u0061sh":"h2"}', 'repeated-member', 'A'],
  ['{"sku":"A","price_source":"live","price_source":"snapshot","hash":"h"}', 'repeated-member', 'A'],
  ['{"sku":"B","sku":"A","hash":"h","price_source":"snapshot"}', 'repeated-member', null],
])('%s is rejected as %s', (text, reason, sku) => {
  expect(read(text, 7)).toEqual({ line: 7, reason, sku, sample: expect.any(String) });
});

test.each([
  '{"sku":"A","hash":"h","hash":"h","price_source":"snapshot"}',
  '{"sku":"A","hash":null,"hash":"h","price_source":"snapshot"}',
  '{"sku":"A","hash":"h","price_source":"snapshot","sizes":1,"sizes":2,"x":{"hash":"other","sku":"B"}}',
  String.raw`{"sku":"A","hash":"h","price_source":"snapshot","note":"\"sku\":\"B\""}`,
])('%s is accepted, because nothing it repeats is ambiguous', (text) => {
  expect(read(text, 1)).toMatchObject({ sku: 'A', hash: 'h' });
});

test('a hash that is an integer beyond 2^53 keeps its digits', () => {
  const line = '{"sku":"A","hash":12345678901234567890,"price_source":"snapshot"}';
  expect(read(line, 1)).toMatchObject({ hash: '12345678901234567890' });
});

test('a live line has no hash, even if it contains two', () => {
  expect(read('{"sku":"A","hash":"h1","hash":"h2","price_source":"live"}', 1)).toMatchObject({ hash: null });
});

test('a sample is short and storable', () => {
  const rejected = read(`\u0000${'😀'.repeat(300)}`, 1);
  if (rejected === null || !('sample' in rejected)) throw new Error('kept');
  expect(rejected.sample.length).toBeLessThanOrEqual(200);
  expect(rejected.sample.isWellFormed()).toBe(true);
  expect(rejected.sample).not.toContain('\u0000');
});

test.each(['', ' ', '\r', '\t '])('a blank line %j is skipped', (text) => {
  expect(read(text, 1)).toBeNull();
});

test('a blank line costs less than a good one: a bomb may contain nothing else', () => {
  // The minimum of many rounds, because other processes may slow down any single one.
  const least = new Map<string, number>();
  const texts = ['', ' ', JSON.stringify(good)];
  for (let turn = 0; turn < 60; turn += 1)
    for (const text of texts) {
      const startedAt = performance.now();
      for (let n = 0; n < 2000; n += 1) read(text, n);
      least.set(text, Math.min(least.get(text) ?? Infinity, performance.now() - startedAt));
    }
  const [empty = 0, blank = 0, goodLines = 0] = texts.map((text) => least.get(text));
  expect(empty).toBeLessThan(goodLines);
  expect(blank).toBeLessThan(goodLines);
});

test.each(['America/New_York', 'Asia/Bangkok', 'UTC'])('a time without a zone is UTC, in %s too', (zone) => {
  const before = process.env['TZ'];
  process.env['TZ'] = zone;
  try {
    const line = read(JSON.stringify({ ...good, updated_at: '2026-11-01T06:30:00.5' }), 1);
    expect(line).toMatchObject({ updatedAt: '2026-11-01T06:30:00.500Z' });
  } finally {
    if (before === undefined) delete process.env['TZ'];
    else process.env['TZ'] = before;
  }
});

test('a byte order mark is stripped from the first line only', () => {
  const text = `\uFEFF${JSON.stringify(good)}`;
  expect(read(text, 1)).toHaveProperty('sku', 'A');
  expect(read(text, 1)).not.toHaveProperty('reason');
  expect(read(text, 2)).toHaveProperty('reason', 'not-json');
});

test('the limit counts bytes, not characters', () => {
  const line = (pad: string) => JSON.stringify({ ...good, pad });
  const base = Buffer.byteLength(line(''));
  expect(read(line('x'.repeat(1000 - base)), 1)).toHaveProperty('sku');
  expect(read(line('x'.repeat(1000 - base)), 1)).not.toHaveProperty('reason');
  expect(read(line('é'.repeat(Math.ceil((1001 - base) / 2))), 1)).toHaveProperty('reason', 'too-long');
});

test('a hostile key in a line does no harm', () => {
  expect(read('{"__proto__":{"sku":"X"},"price_source":"live"}', 1)).toHaveProperty('reason', 'no-sku');
});
