import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Change, productAfter } from '../../src/client/change.ts';
import { FollowError, isPassing, readingError } from '../../src/client/errors.ts';
import { readPlace, writePlace } from '../../src/client/position.ts';

const AT = { position: '7', sku: 'A', meaning_changed: false, observed_at: new Date(0) };
const NO_PRICE = { size: null, old_price: null, new_price: null } as const;
const product = (
  field: Extract<Change, { kind: 'product' }>['field'],
  old_value: string | null,
  new_value: string | null,
): Change => ({ ...AT, ...NO_PRICE, kind: 'product', field, old_value, new_value });
const state = (new_value: 'priced' | null): Change => ({
  ...AT,
  ...NO_PRICE,
  kind: 'sku',
  field: 'state',
  old_value: 'priced',
  new_value,
});

describe('the product after a change', () => {
  test('is the whole object at first, and then has only its changed members updated', () => {
    const first = productAfter(null, product('product', null, '{"name":"N","tags":{"a":1,"b":2}}'));
    expect(first).toEqual({ name: 'N', tags: { a: 1, b: 2 } });
    const then = productAfter(first, product('product', '{"tags":{"a":1}}', '{"tags":{"a":3},"new":true}'));
    expect(then).toEqual({ name: 'N', tags: { a: 3, b: 2 }, new: true });
    expect(productAfter(then, product('product', '{"tags":{"b":2},"new":true}', '{"tags":{}}'))).toEqual({
      name: 'N',
      tags: { a: 3 },
    });
  });

  test("has the value of a changed column, except size_map's, and is null once its SKU is gone", () => {
    const held = { name: 'N', size_type: 'US' };
    expect(productAfter(held, product('name', 'N', null))).toEqual({ name: null, size_type: 'US' });
    expect(productAfter(held, product('size_map_size_type', 'US', 'EU'))).toBe(held);
    expect(productAfter(null, product('name', null, 'N'))).toBe(null);
    expect(productAfter(held, state('priced'))).toBe(held);
    expect(productAfter(held, state(null))).toBe(null);
  });

  test('keeps members of any name, such as __proto__', () => {
    const held = productAfter(null, product('product', null, '{"__proto__":{"a":1}}'));
    const then = productAfter(
      held,
      product('product', '{"constructor":1,"__proto__":{}}', '{"__proto__":{"b":2}}'),
    );
    expect(JSON.stringify(then)).toBe('{"__proto__":{"a":1,"b":2}}');
    expect(({} as Record<string, unknown>)['b']).toBeUndefined();
  });
});

describe('a position', () => {
  test('is read as it was written, whatever the SKU is called', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 63n - 2n }), fc.string(), (at, afterSku) => {
        const place = { at: 'copy', position: String(at), afterSku } as const;
        expect(readPlace(writePlace(place))).toEqual(place);
        expect(readPlace(at)).toEqual({ at: 'changes', position: String(at) });
        const seen = String(at + 1n);
        for (const behind of [{ ...place, seen }, { at: 'changes', position: String(at), seen } as const])
          expect(readPlace(writePlace(behind))).toEqual(behind);
        expect(writePlace({ ...place, seen: String(at) })).toBe(writePlace(place));
      }),
    );
    expect(['start', 'now'].map((text) => writePlace(readPlace(text)))).toEqual(['start', 'now']);
  });

  test.each(['', '-1', '1.5', 'NaN', ' 1', '1\n', 'first', '1-', '1-a', '12345678901234567890'])(
    'is not %j',
    (text) => {
      expect(() => readPlace(text)).toThrow(expect.objectContaining({ kind: 'invalid' }));
    },
  );

  test.each(['9223372036854775808', '1-9223372036854775808', '9999999999999999999/A'])(
    'is not more than a bigint can hold: %s',
    (text) => {
      expect(() => readPlace(text)).toThrow(expect.objectContaining({ kind: 'invalid' }));
      expect(readPlace('9223372036854775807')).toMatchObject({ at: 'changes' });
    },
  );
});

const withCode = (code: string) => Object.assign(new Error('x'), { code });

test('read errors have a kind if the reader must act', () => {
  const kinds = ['CM001', '3F000', '42883', '42501'].map((code) => {
    const error = readingError(withCode(code), '7');
    return error instanceof FollowError ? error.kind : null;
  });
  expect(kinds).toEqual(['position-lost', 'no-mirror', 'no-mirror', 'not-allowed']);
  // Reading is possible once the lock is free. The same errors of a program's own statements are its own.
  expect(['55P03', '57014'].map((code) => isPassing(readingError(withCode(code), '7')))).toEqual([
    true,
    true,
  ]);
  expect(['55P03', '57014'].map((code) => isPassing(withCode(code)))).toEqual([false, false]);
  const other = withCode('22012');
  expect(readingError(other, '7')).toBe(other);
});

test.each([
  ['57P01', true],
  ['57P05', true],
  // A disk or memory that is full for a while.
  ['53100', true],
  ['53200', true],
  ['53300', true],
  ['25006', true],
  ['ENETDOWN', true],
  ['08006', true],
  ['40P01', true],
  ['ECONNRESET', true],
  // Its owner has ended the client.
  ['CONNECTION_ENDED', false],
  ['23505', false],
  ['28P01', false],
])('%s passes by itself: %s', (code, passes) => {
  expect(isPassing(withCode(code))).toBe(passes);
});
