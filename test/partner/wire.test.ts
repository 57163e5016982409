import { describe, expect, test } from 'vitest';
import { eachColumn, METADATA } from '../../src/declared/metadata.ts';
import { parseRecords, readBulk, readCount, readRecord } from '../../src/partner/bulk-answer.ts';
import { parseDelta, readDelta } from '../../src/partner/delta-answer.ts';
import { isReadableSku, toStorable, toStorableJson } from '../../src/partner/text.ts';

const names = { priceFields: ['price', 'lowest_price'], skuField: 'sku' };
const json = (text: string): unknown => JSON.parse(text);

describe('a lowest-price record', () => {
  const good = {
    message: 'ok',
    code: '0000',
    size_map: { size_type: 'US', '9': 1200, '9.5': '1300' },
    product: { name: 'N', model: 7, brand: null, extra: [1] },
  };

  test('yields sizes, the meaning of sizes and metadata', () => {
    expect(readRecord(good, names)).toEqual({
      sizes: new Map([
        ['9', { price: 1200, entry: null }],
        ['9.5', { price: 1300, entry: '1300' }],
      ]),
      metadata: { ...eachColumn(() => null), name: 'N', model: '7', size_map_size_type: 'US' },
      // `brand` is null, so the record says nothing about it.
      product: { name: 'N', model: 7, extra: [1] },
    });
  });

  test.each(Object.entries(METADATA))('takes %s from %j and from nowhere else', (column, [part, member]) => {
    const body = { code: '0000', size_map: {}, product: {}, [part]: { [member]: 'value' } };
    expect(readRecord(body, names)).toMatchObject({
      sizes: new Map(),
      metadata: { ...eachColumn(() => null), [column]: 'value' },
    });
  });

  test.each(['', ' ', '\n'])('treats an empty text as no value: %j', (text) => {
    expect(
      readRecord(
        { ...good, product: { name: text, model: '7' }, size_map: { size_type: text, 9: 90 } },
        names,
      ),
    ).toMatchObject({ metadata: { name: null, model: '7', size_map_size_type: null } });
  });

  test.each<[string, Record<string, unknown>]>([
    ['text with a comma', { 9: '1,500', 10: '2,000' }],
    ['satang', { 9: 1500.5 }],
    ['another name', { 9: { asks: 1500 }, 10: { asks: 1600 } }],
    ['another name, and nothing for some sizes', { 9: { asks: 1500 }, 10: null }],
    ['counts', { 9: 3, 10: 0 }],
  ])('is unreadable, not withdrawn, if prices have another form: %s', (_, sizeMap) => {
    const record = readRecord({ ...good, size_map: { size_type: 'US', ...sizeMap } }, names);
    expect(record).toEqual({ unreadable: expect.stringContaining('size_map') });
  });

  test.each<[string, Record<string, unknown>]>([
    ['null', { 9: null, 10: null }],
    ['zero', { 9: 0, 10: { price: 0, count: 3 } }],
    ['null in the known field', { 9: { price: null, bids: 3 }, 10: { price: null, bids: 4 } }],
  ])('has sizes without a price if they have no offer: %s', (_, sizeMap) => {
    const record = readRecord({ ...good, size_map: sizeMap }, names);
    if (!('sizes' in record)) throw new Error(record.unreadable);
    expect([...record.sizes.values()].map(({ price }) => price)).toEqual([null, null]);
  });

  test('loses only the unreadable entry if others have prices', () => {
    const record = readRecord({ ...good, size_map: { 9: 1200, 10: 'ask us' } }, names);
    if (!('sizes' in record)) throw new Error(record.unreadable);
    expect([...record.sizes]).toEqual([
      ['9', { price: 1200, entry: null }],
      ['10', { price: null, entry: 'ask us', unreadable: true }],
    ]);
  });

  test('with an empty list as its size_map is a withdrawal', () => {
    expect(readRecord({ ...good, size_map: [] }, names)).toMatchObject({ sizes: new Map() });
  });

  test('with an empty size_map is a withdrawal, not an error', () => {
    expect(readRecord({ ...good, size_map: {} }, names)).toMatchObject({
      sizes: new Map(),
      metadata: { size_map_size_type: null },
    });
  });

  test.each([
    [null],
    [[]],
    ['x'],
    [{ ...good, code: '0009' }],
    [{ ...good, code: undefined }],
    [{ ...good, code: 0 }],
    [{ ...good, size_map: undefined }],
    [{ ...good, size_map: null }],
    [{ ...good, size_map: [1200] }],
    [{ ...good, size_map: { 'a\u0000': 1 } }],
    [{ ...good, size_map: { 'a\ud800': 1 } }],
    [{ ...good, size_map: { ['a'.repeat(513)]: 1 } }],
    [{ ...good, product: json('['.repeat(100) + ']'.repeat(100)) }],
    [{ ...good, size_map: { '9': json('['.repeat(100) + ']'.repeat(100)) } }],
  ])('is unreadable: %j', (record) => {
    expect(readRecord(record, names)).toEqual({ unreadable: expect.any(String) });
  });

  test('keeps hostile keys as own keys and touches no prototype', () => {
    const record = readRecord(
      json(
        '{"code":"0000","size_map":{"__proto__":500,"constructor":6,"toString":7},"product":{"__proto__":{"x":1},"name":"N"}}',
      ),
      names,
    );
    if (!('sizes' in record)) throw new Error(record.unreadable);
    expect([...record.sizes.keys()]).toEqual(['__proto__', 'constructor', 'toString']);
    expect(record.sizes.get('__proto__')?.price).toBe(500);
    expect(JSON.stringify(record.product)).toBe('{"__proto__":{"x":1},"name":"N"}');
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  test('replaces text that Postgres refuses in metadata and entries', () => {
    const text = String.raw`{"code":"0000","size_map":{"size_type":"U\u0000S","9":{"price":100,"note":"\ud800"}},"product":{"name":"a\u0000b","k\u0000":1,"__proto__":"\u0000"}}`;
    const record = readRecord(json(text), names);
    if (!('sizes' in record)) throw new Error(record.unreadable);
    expect(record.metadata.size_map_size_type).toBe('U\uFFFDS');
    expect(record.metadata.name).toBe('a\uFFFDb');
    expect(record.sizes.get('9')?.entry).toEqual({ price: 100, note: '\uFFFD' });
    expect(JSON.stringify(record.product)).toBe('{"name":"a\uFFFDb","k\uFFFD":1,"__proto__":"\uFFFD"}');
  });
});

describe('a bulk answer', () => {
  const record = { message: '', code: '0000', size_map: { '9': 100 }, product: {} };

  test('keeps results, lists and counts', () => {
    const body = {
      results: { A: record, B: { code: '0009' } },
      not_found: ['C', 'C', { sku: 'D' }],
      deferred: [{ sku: 'E', reason: 'budget' }],
      errors: { F: 'timeout' },
      requested: '7',
      deduped: 6,
    };
    const reading = readBulk(body, names);
    if (!reading.ok) throw new Error(reading.problem);
    const { results, ...rest } = reading.value;
    expect([...results.keys()]).toEqual(['A', 'B']);
    expect(results.get('A')).toHaveProperty('sizes');
    expect(results.get('B')).toHaveProperty('unreadable');
    expect(rest).toEqual({
      notFound: ['C', 'D'],
      deferred: ['E'],
      errors: ['F'],
      requested: 7,
      form: { field: null },
      also: null,
      others: [],
    });
  });

  test('has empty parts for absent ones, also if a server writes an empty map as a list', () => {
    const reading = readBulk({ results: [], not_found: null, deferred: ['A'] }, names);
    expect(reading).toMatchObject({
      ok: true,
      value: { results: new Map(), notFound: [], deferred: ['A'], errors: [] },
    });
  });

  test('skips elements and keys that are no SKUs', () => {
    const reading = readBulk(
      {
        results: { '': record, 'x\u0000': record },
        not_found: [1, null, {}, { sku: 2 }, '', 'a'.repeat(513), 'ok'],
      },
      names,
    );
    expect(reading).toMatchObject({ ok: true, value: { results: new Map(), notFound: ['ok'] } });
  });

  test('accepts SKUs named like prototype members', () => {
    const reading = readBulk(
      json(
        '{"results":{"__proto__":{"code":"0000","size_map":{}}},"not_found":["constructor"],"errors":{"__proto__":"x"}}',
      ),
      names,
    );
    if (!reading.ok) throw new Error(reading.problem);
    expect(reading.value.results.get('__proto__')).toHaveProperty('sizes');
    expect(reading.value.notFound).toEqual(['constructor']);
    expect(reading.value.errors).toEqual(['__proto__']);
  });

  test('does not list SKUs that an object marks as false', () => {
    const reading = readBulk({ not_found: { A: false, B: true, C: null }, errors: { D: 'late' } }, names);
    expect(reading).toMatchObject({ value: { notFound: ['B', 'C'], errors: ['D'] } });
  });

  test.each([null, '', false, 0, {}, []])('treats %j in place of a record as a placeholder', (record) => {
    const reading = readBulk({ results: { A: record }, deferred: ['A'] }, names);
    expect(reading.ok && reading.value.results.get('A')).toHaveProperty('isPlaceholder', true);
  });

  test.each([
    [null],
    ['x'],
    [[]],
    [{}],
    [{ data: { results: {} } }],
    [{ results: 'x' }],
    [{ results: [1] }],
    [{ not_found: 'x' }],
    [{ deferred: 3 }],
  ])('is unreadable: %j', (body) => {
    expect(readBulk(body, names)).toEqual({ ok: false, problem: expect.any(String) });
  });
});

describe('a delta answer', () => {
  const good = { changed: ['A', 'A', { sku: 'B' }], removed: [], now_live: ['B'], to_snapshot: 's2' };

  test('yields each list without repeats', () => {
    const value = { changed: ['A', 'B'], removed: [], nowLive: ['B'], toSnapshot: 's2', skipped: 0 };
    expect(readDelta(good, names)).toEqual({ ok: true, value });
    expect(readDelta({ ...good, to_snapshot: 42 }, names)).toMatchObject({ value: { toSnapshot: '42' } });
  });

  const nothingNew = { changed: null, removed: null, now_live: null };
  const nothing = { changed: [], removed: [], nowLive: [], toSnapshot: 's2', skipped: 0 };
  test.each<[string, object, object]>([
    ['null for an empty list', { ...good, now_live: null, removed: null }, { changed: ['A', 'B'] }],
    [
      'nothing for an empty list',
      { changed: undefined, removed: ['C'], to_snapshot: 's2' },
      { removed: ['C'] },
    ],
    ['an empty token where nothing is new', { ...nothingNew, to_snapshot: '' }, { toSnapshot: null }],
    ['an empty object for an empty list', { ...good, removed: {}, now_live: {} }, { changed: ['A', 'B'] }],
    ['a token alone', { to_snapshot: 's2' }, {}],
    ['null for every list', { changed: null, removed: null, now_live: null, to_snapshot: 's2' }, {}],
    ['no token where nothing is new', { changed: [], removed: [], now_live: [] }, { toSnapshot: null }],
    ['null for a token where nothing is new', { changed: [], to_snapshot: null }, { toSnapshot: null }],
    ['a last page', { to_snapshot: 's2', changed: [], nextCursor: null, has_more: false }, {}],
    ['other members', { ...good, now_live: [], took: [1], generated: {} }, { changed: ['A', 'B'] }],
  ])('may have %s', (_, body, value) => {
    expect(readDelta(body, names)).toEqual({ ok: true, value: { ...nothing, ...value } });
  });

  test.each([
    ['changed', {}],
    ['changed', { message: 'ok' }],
    ['removed', { ...good, removed: { A: true } }],
    ['changed', { ...good, changed: 'A' }],
    ['now_live', { ...good, now_live: undefined }],
    ['changes', { changes: ['A'], removed: [], now_live: [], to_snapshot: 's2' }],
    ['nextCursor', { ...good, nextCursor: 'p2' }],
    ['has_more', { ...good, has_more: true }],
    ['to_snapshot', { ...good, to_snapshot: undefined }],
    ['to_snapshot', { ...good, to_snapshot: null }],
    ['to_snapshot', { changed: [], removed: ['C'], now_live: [] }],
    ['to_snapshot', { ...good, to_snapshot: '' }],
    ['to_snapshot', { ...good, to_snapshot: 1.5 }],
    ['changed', { ...good, changed: ['A', 5] }],
    ['changed', { ...good, changed: ['A', { id: 'B' }] }],
    ['the body', []],
    ['the body', null],
  ])('is unreadable as a whole because of %s', (field, body) => {
    const reading = readDelta(body, names);
    expect(reading.ok).toBe(false);
    expect(reading).toMatchObject({ problem: expect.stringContaining(field) });
  });

  test('skips and counts SKUs that no table can hold, and is read all the same', () => {
    const body = { ...good, changed: ['A', 'a\u0000', ''], removed: ['x'.repeat(513)], now_live: ['\udc00'] };
    const value = { changed: ['A'], removed: [], nowLive: [], toSnapshot: 's2', skipped: 4 };
    expect(readDelta(body, names)).toEqual({ ok: true, value });
  });

  test('keeps all digits of a snapshot id beyond 2^53', () => {
    const body = parseDelta('{"changed":[],"removed":[],"now_live":[],"to_snapshot":20261101060000123}');
    expect(readDelta(body, names)).toMatchObject({ value: { toSnapshot: '20261101060000123' } });
  });
});

test('an integer beyond 2^53 in a record is stored with all its digits', () => {
  const text =
    '{"code":"0000","size_map":{"9":{"price":1200,"ask_id":9007199254740993}},"product":{"id":9007199254740993}}';
  const record = readRecord(parseRecords(text), names);
  if (!('sizes' in record)) throw new Error(record.unreadable);
  expect(record.sizes.get('9')?.entry).toEqual({ price: 1200, ask_id: '9007199254740993' });
  expect(record.product).toEqual({ id: '9007199254740993' });
});

test.each([
  [3, 3],
  ['3', 3],
  [0, 0],
  [-1, null],
  [1.5, null],
  ['x', null],
  [null, null],
])('count %j is read as %s', (value, count) => {
  expect(readCount(value)).toBe(count);
});

describe('text', () => {
  test('is a readable SKU if it is storable and has 1 to 512 characters', () => {
    expect(['A', 'ü', '😀', ' ', 'a'.repeat(512)].every((sku) => isReadableSku(sku))).toBe(true);
    expect(['', 'a'.repeat(513), 'a\u0000', '\ud83d', 5, null].some((sku) => isReadableSku(sku))).toBe(false);
  });

  test('is unchanged if it is storable, otherwise its bad characters are replaced', () => {
    expect(toStorable('a😀')).toBe('a😀');
    expect(toStorable('a\u0000\ud83d')).toBe('a\uFFFD\uFFFD');
  });

  test('a value with nothing to replace is returned as the same object', () => {
    const value = { a: [1, { b: 'x' }] };
    expect(toStorableJson(value)).toBe(value);
    expect(toStorableJson({ a: ['\u0000', 2] })).toEqual({ a: ['\uFFFD', 2] });
  });
});
