import { describe, expect, test } from 'vitest';
import { formOf, readSizeEntry as readEntry } from '../../src/partner/size-map.ts';

const names = { priceFields: ['price', 'lowest_price'] };
/** Reads an entry that is alone in its answer. */
const readSizeEntry = (entry: unknown, priceFields: readonly string[]) =>
  readEntry(entry, formOf([entry], priceFields));

describe('a size_map entry', () => {
  test.each<[unknown, number | null, unknown]>([
    [1200, 1200, null],
    [50, 50, null],
    [49, null, 49],
    [0, null, 0],
    [-0, null, -0],
    [{ price: 0 }, null, { price: 0 }],
    [{ price: 0, lowest_price: 900 }, 900, { price: 0, lowest_price: 900 }],
    ['1200', 1200, '1200'],
    [' 1200.00 ', 1200, ' 1200.00 '],
    ['1,200', null, '1,200'],
    ['1200.5', null, '1200.5'],
    ['1200.0', 1200, '1200.0'],
    ['60.000', null, '60.000'],
    ['1.500', null, '1.500'],
    ['1200.0000', null, '1200.0000'],
    [{ price: '60.000', lowest_price: 900 }, 900, { price: '60.000', lowest_price: 900 }],
    ['', null, ''],
    [12.5, null, 12.5],
    [-1, null, -1],
    [2_147_483_647, 2_147_483_647, null],
    [2_147_483_648, null, 2_147_483_648],
    [1e308, null, 1e308],
    [true, null, true],
    [null, null, null],
    [[1200], null, [1200]],
    [{ price: 1200 }, 1200, { price: 1200 }],
    [{ price: '1200', count: 2 }, 1200, { price: '1200', count: 2 }],
    [{ price: null, lowest_price: 900 }, 900, { price: null, lowest_price: 900 }],
    [{ lowest_price: 900, price: 1000 }, 1000, { lowest_price: 900, price: 1000 }],
    [{ price: 12.5, lowest_price: 900 }, 900, { price: 12.5, lowest_price: 900 }],
    [{ other: 1 }, null, { other: 1 }],
  ])('%j has price %s', (raw, price, entry) => {
    expect(readSizeEntry(raw, names.priceFields)).toMatchObject({ price, entry });
  });

  test.each<[unknown, boolean]>([
    [1200, false],
    [null, false],
    [0, false],
    ['', false],
    ['0.00', false],
    ['0.000', false],
    ['0.0000', false],
    ['60.000', true],
    [{ price: '60.000' }, true],
    [false, false],
    [{}, false],
    [{ price: null, count: 2 }, false],
    [{ price: 0 }, false],
    [{ asks: null }, false],
    ['1,500', true],
    [1500.5, true],
    [49, true],
    [-1, true],
    [true, true],
    ['sold', true],
    [[1500], true],
    [{ asks: 1500 }, true],
    [{ price: '1,500' }, true],
  ])('%j is unreadable: %s', (raw, unreadable) => {
    expect(readSizeEntry(raw, names.priceFields).unreadable ?? false).toBe(unreadable);
  });

  test('reads a configured field only if it is an own member, never an inherited one', () => {
    expect(readSizeEntry({}, ['constructor', 'valueOf']).price).toBeNull();
  });
});
