import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseDelta } from '../../src/partner/delta-answer.ts';
import { PartnerError } from '../../src/partner/errors.ts';
import { parseManifestResponse } from '../../src/partner/manifest-answer.ts';
import { lostMember } from '../../src/partner/repeated-members.ts';

const NAMES = ['changed', 'removed', 'now_live', 'to_snapshot'];
const lost = (text: string) => {
  JSON.parse(text);
  return lostMember(text, NAMES);
};

describe('a top-level member that occurs twice', () => {
  test.each([
    ['changed', '{"changed":["A"],"removed":[],"now_live":[],"changed":["B"],"to_snapshot":"s"}'],
    ['changed', '{"changed":["A"],"changed":[]}'],
    ['changed', '{"changed":["A"],"changed":null}'],
    ['changed', '{"changed":["A"],"changed":["B"],"changed":["B"]}'],
    ['removed', '{ "removed" : ["A"] , "removed" :\n["B"] }'],
    ['now_live', '{"x":{"now_live":1},"now_live":["A"],"y":["}",{}],"now_live":["B"]}'],
    ['removed', '{"removed":[{"sku":"A","n":1}],"removed":[{"sku":"B","n":1}]}'],
    ['to_snapshot', '{"to_snapshot":"s1","to_snapshot":"s2"}'],
    ['to_snapshot', '{"to_snapshot":12345678901234567890,"to_snapshot":12345678901234567891}'],
    ['changed', String.raw`{"changed":["A"],"chang\u0065d":["B"]}`],
    ['now_live', String.raw`{"now\u005flive":["A"],"now_live":["B"]}`],
  ])('%s loses the first value: %s', (name, text) => {
    expect(lost(text)).toBe(name);
  });

  test.each([
    ['the same', '{"to_snapshot":"s","changed":["A"],"to_snapshot": "s" ,"changed":["A"]}'],
    ['nothing first', '{"changed":[],"removed":{ },"changed":["A"],"removed":["B"]}'],
    ['no token first', '{"to_snapshot":null,"to_snapshot":"","to_snapshot":"s"}'],
    ['other names', '{"took":1,"took":2,"changed":["A"]}'],
    ['names within objects', '{"changed":[{"sku":"A","removed":1},{"sku":"B","removed":2}],"removed":[]}'],
    ['names within another member', '{"was":{"changed":["A"],"removed":[]},"changed":["B"],"removed":["C"]}'],
    ['the same name deeper', '{"changed":[["changed",{"changed":["A"]}]],"x":{"changed":["B"]}}'],
    [
      'names in strings',
      String.raw`{"changed":["\"changed\":[", "{\"changed\":", "changed"],"removed":["\\"]}`,
    ],
    ['names as values', '{"changed":["changed","changed"],"x":"changed","removed":["removed"]}'],
    ['escaped letters', String.raw`{"changed":["\u0041\u005c\u005c\""],"removed":["A"]}`],
    ['no object', '["changed",{"changed":[1]},{"changed":[2]}]'],
    ['nothing', '{}'],
  ])('loses nothing: %s', (_name, text) => {
    expect(lost(text)).toBeNull();
  });
});

test('the lost member is the one whose earlier value JSON.parse drops, as a reader of all members shows', () => {
  const value = fc.oneof(
    fc.constantFrom<unknown>(null, '', [], {}, 's', ['A'], ['changed', ':"'], { changed: [1] }, ['\\"', 'B']),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const member = fc.tuple(fc.constantFrom(...NAMES, 'x', 'since'), value);
  const space = fc.constantFrom('', ' ', '\n\t');
  fc.assert(
    fc.property(fc.array(member, { maxLength: 8 }), space, (members, blank) => {
      const each = members.map(([name, said]) => `"${name}"${blank}:${blank}${JSON.stringify(said)}`);
      const text = `${blank}{${blank}${each.join(`${blank},`)}${blank}}`;
      const empty = (said: string) => ['null', '""', '[]', '{}'].includes(said);
      const expected = NAMES.filter((name) => {
        const all = members.filter(([own]) => own === name).map(([, said]) => JSON.stringify(said));
        return all.slice(0, -1).some((said) => said !== all.at(-1) && !empty(said));
      });
      expect(lost(text)).toBe(expected[0] ?? null);
    }),
  );
});

test('a delta that lost a value is rejected as a whole, and the error names the member', () => {
  const twice = '{"changed":["A"],"removed":[],"now_live":[],"changed":["B"],"to_snapshot":"s2"}';
  const error = (() => {
    try {
      return parseDelta(twice);
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toBeInstanceOf(PartnerError);
  expect(error).toMatchObject({
    kind: 'unreadable',
    route: 'delta',
    message: expect.stringContaining('changed'),
  });
  expect(parseDelta('{"to_snapshot":"s","to_snapshot":"s"}')).toEqual({ to_snapshot: 's' });
});

test('as many members as a delta may have beside a million SKUs are read in one pass', () => {
  const many = `${'"changed":1,'.repeat(240_000)}"x":["${'SKU-0000001","'.repeat(1_000_000)}"]`;
  expect(lost(`{${many}}`)).toBeNull();
});

test('a manifest response with two values under one name is rejected, one with equal values is read', () => {
  const read = (text: string) => () => parseManifestResponse(text);
  const url = '"url":"https://f.example/a"';
  expect(read(`{${url},"snapshot_id":"s1","sku_count":3,"snapshot_id":"s2"}`)).toThrow(PartnerError);
  expect(read(`{${url},"snapshot_id":"s1","sku_count":3,"sku_count":4}`)).toThrow(/sku_count/);
  expect(read(`{${url},"url":"https://f.example/b","snapshot_id":"s1"}`)).toThrow(/url/);
  expect(read(`{${url},"snapshot_id":20261101060000123,"a b":1,"a b":2,${url}}`)()).toMatchObject({
    snapshot_id: '20261101060000123',
  });
});
