import { describe, expect, test } from 'vitest';
import { priceDifferences } from '../../src/store/answer/price-differences.ts';
import type { PriceRow } from '../../src/store/answer/types.ts';
import { found } from './support.ts';

const NOTHING = { sizes: null, prices: null, entries: null, lastPrices: null };
const row = (size: string, price: number | null, entry: string | null = null): PriceRow => ({
  size,
  price,
  entry,
});
const difference = (size: string, oldPrice: number | null, newPrice: number | null, how: string) => ({
  sku: 'S',
  size,
  how,
  oldPrice,
  newPrice,
  entry: null,
});

describe('the price differences of an answer', () => {
  test('are none if the mirror holds the same', () => {
    const held = { ...NOTHING, sizes: ['9', '__proto__', ''], prices: [100, null, 300] };
    expect(priceDifferences(found('S', [row('', 300), row('9', 100), row('__proto__', null)]), held)).toEqual(
      [],
    );
    expect(priceDifferences(found('S', []), NOTHING)).toEqual([]);
    expect(priceDifferences(found('S', []))).toEqual([]);
  });

  test('contain prices that appeared, moved or went', () => {
    const held = { ...NOTHING, sizes: ['9', '10', '11', '12'], prices: [100, null, 300, null] };
    expect(priceDifferences(found('S', [row('8', 80), row('9', 90), row('10', 95)]), held)).toEqual([
      difference('8', null, 80, 'appeared'),
      difference('9', 100, 90, 'moved'),
      difference('10', null, 95, 'moved'),
      difference('11', 300, null, 'gone'),
      difference('12', null, null, 'gone'),
    ]);
    expect(priceDifferences({ sku: 'S', kind: 'not_found' }, { ...held, sizes: ['9'] })).toEqual([
      difference('9', 100, null, 'gone'),
    ]);
  });

  test('name the members of an entry if nothing else differs', () => {
    const held = {
      ...NOTHING,
      sizes: ['8', '9', '10'],
      prices: [80, 90, 100],
      entries: [
        ['8', '{"n":1}'],
        ['9', null],
        ['10', '{"n":1}'],
      ] as const,
    };
    const prices = [row('8', 80, '{"n":2}'), row('9', 90, '"x"'), row('10', 101, '{"n":2}')];
    expect(priceDifferences(found('S', prices), held)).toEqual([
      {
        ...difference('8', 80, 80, 'entry'),
        entry: '{"n":2}',
        members: [{ names: ['n'], path: '["n"]', from: 1, to: 2 }],
      },
      {
        ...difference('9', 90, 90, 'entry'),
        entry: '"x"',
        members: [{ names: [], path: '[]', from: null, to: 'x' }],
      },
      { ...difference('10', 100, 101, 'moved'), entry: '{"n":2}' },
    ]);
  });

  test('contain the last prices of a size that has a price again', () => {
    const held = {
      ...NOTHING,
      sizes: ['9'],
      prices: [null],
      lastPrices: [
        ['8', [70, 71]],
        ['9', [90]],
      ] as const,
    };
    expect(priceDifferences(found('S', [row('8', 80), row('9', 90)]), held)).toEqual([
      { ...difference('8', null, 80, 'appeared'), lastPrices: [70, 71] },
      { ...difference('9', null, 90, 'moved'), lastPrices: [90] },
    ]);
  });
});
