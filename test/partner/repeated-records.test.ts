import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseBulk, readBulk } from '../../src/partner/bulk-answer.ts';
import { withoutUnclear } from '../../src/partner/repeated-members.ts';

const record = (sizes: string, more = '') =>
  `{"code":"0000","size_map":${sizes},"product":{"name":"x"}${more}}`;
const NAMES = { priceFields: ['price'], skuField: 'sku' };

/** Returns the prices of each SKU of a bulk answer, null for a record that cannot be read. */
function prices(text: string): Record<string, unknown> {
  const read = readBulk(parseBulk(text), NAMES);
  if (!read.ok) throw new Error(read.problem);
  return Object.fromEntries(
    [...read.value.results].map(([sku, found]) => [
      sku,
      'sizes' in found
        ? Object.fromEntries([...found.sizes].map(([size, { price }]) => [size, price]))
        : null,
    ]),
  );
}

describe('a record with two conflicting values', () => {
  test.each<[string, string, string]>([
    ['the SKU twice', `"A":${record('{"9":4200}')},`, record('{"9":9900}')],
    ['a size twice', '', record('{"9":4200,"9":9900}')],
    ['a size twice, once with its letters escaped', '', record(String.raw`{"9M":4200,"9\u004d":9900}`)],
    ['size_map twice', '', record('{"9":4200},"size_map":{}')],
    ['a price twice', '', record('{"9":{"price":4200,"price":9900}}')],
    ['a price within a list twice', '', record('{"9":[{"price":4200,"price":9900}]}')],
    ['its code twice', '', record('{"9":4200}', ',"code":"0009"')],
  ])('is unreadable: %s', (_, before, said) => {
    expect(prices(`{"results":{${before}"A":${said} , "B":${record('{"8":5000}')}},"deferred":[]}`)).toEqual({
      A: null,
      B: { 8: 5000 },
    });
  });

  test('is unreadable if its SKU is in two `results` members; a SKU of the first one only is left out', () => {
    const first = `{"A":${record('{"9":4200}')},"C":${record('{"9":4200}')}}`;
    const last = `{"A":${record('{"9":9900}')},"B":${record('{"8":5000}')}}`;
    expect(prices(`{"results":${first},"results":${last}}`)).toEqual({ A: null, B: { 8: 5000 } });
  });

  test('is unreadable, not a placeholder, also if a list names its SKU', () => {
    const text = `{"results":{"A":${record('{"9":4200}')},"A":null,"B":null},"deferred":["A","B"]}`;
    const found = readBulk(parseBulk(text), NAMES);
    const results = found.ok ? found.value.results : new Map();
    expect(results.get('A')).not.toHaveProperty('isPlaceholder');
    expect(results.get('B')).toHaveProperty('isPlaceholder', true);
  });

  test('is unreadable whatever the name of its SKU', () => {
    const text = `{"results":{"__proto__":${record('{"9":4200,"9":1}')},"constructor":${record('{"9":4200}')}}}`;
    const found = readBulk(parseBulk(text), NAMES);
    const results = found.ok ? found.value.results : new Map();
    expect(results.get('__proto__')).toHaveProperty('unreadable');
    expect(results.get('constructor')).toHaveProperty('sizes');
  });
});

test.each([
  ['the same twice', record('{"9":4200,"9":4200}', ',"code":"0000"')],
  ['nothing, and then something', record('{"9":null,"9":4200}')],
  ['a size by the name of a member', record('{"9":4200}', ',"9":1')],
  [
    'another message, or another list',
    record('{"9":4200}', ',"message":"a","message":"b","x":[{"a":1,"a":2}]'),
  ],
  ['another name of the product', record('{"9":4200}').replace('"name"', '"name":"y","name"')],
  ['colons in texts', record('{"9":4200}', String.raw`,"x":"a:\"b\":","y:z":":"`)],
])('a record with %s is read', (_, said) => {
  expect(prices(`{"results":{"A":${said}},"not_found":["x:y"]}`)).toEqual({ A: { 9: 4200 } });
});

test('repetitions outside of the records leave them unchanged', () => {
  const text = `{"requested":1,"requested":2,"results":{"A":${record('{"9":4200}')}},"x":{"A":1,"A":2}}`;
  expect(prices(text)).toEqual({ A: { 9: 4200 } });
});

test('an answer without repetitions is returned as the very object that was parsed', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })), (results) => {
      const body: unknown = JSON.parse(JSON.stringify({ results, errors: [] }));
      for (const space of [0, 2]) expect(withoutUnclear(body, JSON.stringify(body, null, space))).toBe(body);
    }),
  );
});

test('an overridden value is noticed, however deep in a size_map it is', () => {
  const value = fc
    .jsonValue({ maxDepth: 3 })
    .filter((said) => !/^(?:null|""|\[\]|\{\})$/.test(JSON.stringify(said)));
  fc.assert(
    fc.property(value, value, fc.array(fc.constantFrom('{', '[')), (first, last, around) => {
      fc.pre(JSON.stringify(first) !== JSON.stringify(last));
      const twice = `{"k":${JSON.stringify(first)},"k":${JSON.stringify(last)}}`;
      const within = around.reduce((text, kind) => (kind === '{' ? `{"m":${text}}` : `[0,${text}]`), twice);
      const text = `{"results":{"A":{"size_map":${within}},"B":{"k":1}}}`;
      expect(withoutUnclear(JSON.parse(text), text)).toEqual({
        results: { A: expect.any(String), B: { k: 1 } },
      });
    }),
  );
});

test.each([
  ['', 'A', '77.25'],
  [', beside a number of many digits', '1234567890123456', '77.75'],
])('a size is read as written, whatever followed the same size before%s', (_, sku, first) => {
  const read = (size: string) =>
    prices(`{"results":{"${sku}":${record(`{"${first}":4100,"${size}":4200}`)}}}`);
  read(String.raw`7\\`);
  expect(read(String.raw`7\"`)).toEqual({ [sku]: { [first]: 4100, '7"': 4200 } });
});
