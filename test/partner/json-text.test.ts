import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseRecords, readRecord } from '../../src/partner/bulk-answer.ts';
import { parseSentJson } from '../../src/partner/json-text.ts';

const names = { priceFields: ['price'], skuField: 'sku' };

test.each([
  ['\\', '"'],
  ['7\\', '7"'],
  ['EU 42 \\', 'EU 42 ⅔'],
])('a size is the one that was sent, where an answer before had %j in its place', (before, size) => {
  const escaped = (key: string) => JSON.stringify(key).replaceAll('⅔', String.raw`\u2154`);
  const record = (key: string) => `{"code":"0000","size_map":{"6.5":900,${escaped(key)}:1200}}`;
  for (let n = 0; n < 3; n += 1) parseRecords(record(before));
  const read = readRecord(parseRecords(record(size)), names);
  expect('sizes' in read && [...read.sizes.keys()]).toEqual(['6.5', size]);
});

/** Most have to be escaped, so that names are nearly alike as they are written. */
const SIGNS = [
  '\\',
  '"',
  '/',
  '\n',
  '\0',
  '\u001F',
  'a',
  '⅔',
  '\uF8FF',
  '\uE022',
  '\uE080',
  '👟',
  '\uD83D',
  ':',
];
const text = fc.array(fc.constantFrom(...SIGNS), { maxLength: 4 }).map((signs) => signs.join(''));
const { object } = fc.letrec<{ any: unknown; object: object }>((tie) => ({
  any: fc.oneof(text, fc.integer(), fc.constant(null), fc.array(tie('any'), { maxLength: 3 }), tie('object')),
  object: fc
    .array(fc.tuple(text, tie('any')), { maxLength: 4 })
    .map((members) => Object.fromEntries(members)),
}));

/** Objects as lists of their members. */
function flat(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(flat);
  return Object.entries(value).map(([name, member]) => [name, flat(member)]);
}

const inAscii = (json: string) =>
  json
    .replaceAll('/', String.raw`\/`)
    .replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

test('a value has every name that was sent, however it is escaped and whatever was read before', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(object, fc.boolean()), { minLength: 2, maxLength: 6 }), (drawn) => {
      for (const [sent, isAscii] of drawn) {
        const json = JSON.stringify(sent);
        expect(flat(parseSentJson(isAscii ? inAscii(json) : json))).toEqual(flat(sent));
      }
    }),
    { numRuns: 300 },
  );
});

test.each([
  String.raw`{"a\x":1}`,
  String.raw`{"a\u12":1}`,
  String.raw`{"a\ `,
  String.raw`{"\"":1`,
  '{"a\n\\"":1}',
])('what is no JSON stays none: %j', (broken) => {
  expect(() => parseSentJson(broken)).toThrow(SyntaxError);
});
