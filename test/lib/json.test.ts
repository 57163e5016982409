import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../src/lib/json.ts';

/** Member names, some of which differ only in characters that JSON escapes. */
const name = fc.string({
  unit: fc.constantFrom('7', 'a', '"', '\\', '/', '\n', '\t', '\u0001', '½', '☃', '\uf8ff', '\uf8ff0', ' '),
  maxLength: 4,
});
const value = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, fc.nat(9), tie('list'), tie('object'), tie('object')),
  list: fc.array(tie('value'), { maxLength: 3 }),
  object: fc.uniqueArray(fc.tuple(name, tie('value')), { maxLength: 4, selector: ([key]) => key }),
})).value;

type Written = number | readonly Written[];
const isObject = (written: readonly Written[]) =>
  written.every((each) => Array.isArray(each) && each.length === 2 && typeof each[0] === 'string');

/** Writes JSON text in which any character of a key may be escaped (`draw`), without the help of a parser. */
function textOf(written: unknown, draw: () => boolean): string {
  if (!Array.isArray(written)) return JSON.stringify(written);
  if (!isObject(written as readonly Written[]))
    return `[${written.map((each) => textOf(each, draw)).join()}]`;
  const members = (written as readonly [string, unknown][]).map(([key, each]) => {
    const quoted = Array.from(key, (sign) => (draw() ? escaped(sign) : JSON.stringify(sign).slice(1, -1)));
    return `"${quoted.join('')}" : ${textOf(each, draw)}`;
  });
  return `{${members.join()}}`;
}

const escaped = (sign: string) =>
  sign === '/' ? '\\/' : `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Returns what a parser read, with each object as a list of names and values. */
function readOf(parsed: unknown): unknown {
  if (Array.isArray(parsed)) return parsed.map(readOf);
  if (typeof parsed !== 'object' || parsed === null) return parsed;
  return Object.entries(parsed).map(([key, each]) => [key, readOf(each)]);
}

/**
 * Returns the expected reading: numeric keys come first in any object, and an empty list was written as an object.
 */
function expectedOf(written: unknown): unknown {
  if (!Array.isArray(written)) return written;
  if (!isObject(written as readonly Written[])) return written.map(expectedOf);
  const members = (written as readonly [string, unknown][]).map(([key, each]) => [key, expectedOf(each)]);
  const isIndex = ([key]: readonly unknown[]) => /^(?:0|[1-9]\d*)$/.test(String(key));
  const byNumber = (a: readonly unknown[], b: readonly unknown[]) => Number(a[0]) - Number(b[0]);
  return [...members.filter(isIndex).toSorted(byNumber), ...members.filter((member) => !isIndex(member))];
}

describe('parseJson', () => {
  test('keeps keys apart, whatever is escaped in them and whichever came before', () => {
    fc.assert(
      fc.property(value, fc.infiniteStream(fc.boolean()), (written, draws) => {
        const text = textOf(written, () => draws.next().value === true);
        expect(readOf(parseJson(text))).toEqual(expectedOf(written));
      }),
      { numRuns: 3000 },
    );
  });

  test.each([
    [String.raw`{"7\\":1}`, String.raw`{"7\"":2}`, '7"'],
    [String.raw`{"36 \\":1}`, String.raw`{"36 \u2154":2}`, '36 ⅔'],
    [String.raw`{"h":1,"1\\/":1}`, String.raw`{"h":1,"1\/2":2}`, '1/2'],
  ])('after %s reads a key of %s as %s', (before, text, key) => {
    parseJson(before);
    expect(Object.keys(Object(parseJson(text))).at(-1)).toBe(key);
  });

  test.each(['\uf8ff0\uf8ff0', String.raw`\uf8ff0\uf8ff0`, '\uf8ff1\uf8ff0":3,"\uf8ff0\uf8ff0'])(
    'reads a key of %s as itself, not as a placeholder for another one',
    (key) => {
      const read = parseJson(`{"${key}":1,"\\"":2}`);
      expect(Object.entries(Object(read)).slice(-2)).toEqual([
        ['\uf8ff0\uf8ff0', 1],
        ['"', 2],
      ]);
    },
  );

  test('takes the last value of a repeated key, however each is written', () => {
    expect(parseJson(String.raw`{"a\"b":1,"\u0061\u0022b":2,"c":3,"\u0063":4}`)).toEqual({ 'a"b': 2, c: 4 });
  });

  test('passes numbers as written to a reviver that asks for them', () => {
    const asWritten = parseJson(String.raw`{"7\"":[12345678901234567890]}`, (_key, each, context) =>
      typeof each === 'number' ? context?.source : each,
    );
    expect(asWritten).toEqual({ '7"': ['12345678901234567890'] });
  });

  test.each([
    String.raw`{"a"\u002c"b":1}`,
    String.raw`{"a\x":1}`,
    String.raw`{"a\u00":1}`,
    String.raw`{"a\":1}`,
    String.raw`\"a":1`,
    '{"a\\n\n":1}',
    String.raw`{"a\n":1} {}`,
  ])('rejects %s', (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
  });

  const KEYS = Array.from({ length: 9999 }, (_, i) => String.raw`"k\t${i}":${i}`).join();

  test.each([
    ['a million escapes', String.raw`\n\"`.repeat(500_000)],
    ['a million of the sign that marks what stands for keys', '\uf8ff'.repeat(1_000_000)],
    ['all marks there may be', Array.from({ length: 99_999 }, (_, i) => `\uf8ff${i}\uf8ff`).join('')],
  ])('reads a text with %s within the time of a test', (_what, many) => {
    expect(Object.keys(Object(parseJson(`{"a":"${many}",${KEYS}}`)))).toHaveLength(10_000);
  });
});
