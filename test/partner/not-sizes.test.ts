import { describe, expect, test } from 'vitest';
import { readBulk } from '../../src/partner/bulk-answer.ts';

const names = { priceFields: ['price', 'lowest_price'], skuField: 'sku' };
const json = (text: string): unknown => JSON.parse(text);

describe('a bulk answer in which nearly all records have a member unlike any size', () => {
  const MANY = 25;
  const skus = Array.from({ length: MANY }, (_, n) => `S${n}`);
  /** Returns the sizes of each record, null for a record that cannot be read. */
  const sizesOf = (sizeMap: (n: number) => object, more: object = {}, records = MANY) => {
    const results = Object.fromEntries(
      skus
        .slice(0, records)
        .map((sku, n) => [sku, { code: '0000', size_map: { size_type: 'US', ...sizeMap(n) } }]),
    );
    const reading = readBulk({ results }, { ...names, ...more });
    if (!reading.ok) throw new Error(reading.problem);
    const { notSizes = [], also } = reading.value;
    const sizes = [...reading.value.results.values()].map((read) =>
      'sizes' in read ? [...read.sizes.keys()] : null,
    );
    return { notSizes, also, sizes };
  };
  const ALL = skus.map(() => ['9']);
  const NONE_AT_0 = ALL.map((sizes, n) => (n === 0 ? [] : sizes));

  test.each<[string, (n: number) => object, string]>([
    ['a word beside numbers', () => ({ 9: 1200, currency: 'THB' }), 'currency'],
    ['a word beside objects', () => ({ 9: { price: 1200 }, currency: 'THB' }), 'currency'],
    ['a time beside numbers', () => ({ 9: 1200, updated_at: '2026-01-10T09:30:00Z' }), 'updated_at'],
    ['a date beside numbers', () => ({ 9: 1200, updated: '2026-01-10' }), 'updated'],
    ['an address beside numbers', () => ({ 9: 1200, image: 'https://cdn.example/1/9.png' }), 'image'],
    ['a flag beside numbers', () => ({ 9: 1200, in_stock: true }), 'in_stock'],
    ['a flag beside objects', () => ({ 9: { price: 1200 }, in_stock: true }), 'in_stock'],
    ['an object beside numbers', () => ({ 9: 1200, brand: { id: 3 } }), 'brand'],
    ['an object beside objects', () => ({ 9: { price: 1200 }, brand: { id: 3 } }), 'brand'],
    ['a list beside objects', () => ({ 9: { price: 1200 }, tags: ['new'] }), 'tags'],
    ['a number that is no price beside numbers', (n) => ({ 9: 1200, rating: 4 + n / 100 }), 'rating'],
    ['a time beside objects', () => ({ 9: { price: 1200 }, updated: '2026-11-30' }), 'updated'],
    ['a count beside objects', (n) => ({ 9: { price: 1200 }, listings: n * 10 }), 'listings'],
    ['a larger one', (n) => ({ 9: { price: 1200 }, listings: 100 + n }), 'listings'],
    [
      'a word, which two of them lack',
      (n) => ({ 9: 1200, ...(n > 20 ? {} : { currency: 'THB' }) }),
      'currency',
    ],
  ])('it is not a size: %s; a record with nothing else is a withdrawal', (_, sizeMap, name) => {
    const withdrawn = (n: number) => ({ ...sizeMap(n), ...(n === 0 && { 9: undefined }) });
    const parsed = (n: number) => json(JSON.stringify(withdrawn(n))) as object;
    // While no form is held, a count in every record may be what most records have.
    const held = name === 'listings' ? { entryForm: { field: 'price' } } : {};
    expect(sizesOf(parsed, held)).toEqual({ notSizes: [name], also: null, sizes: NONE_AT_0 });
  });

  test.each<[string, (n: number) => object]>([
    ['a price in one of them', (n) => ({ 9: 1200, x: n === 1 ? 900 : 'THB' })],
    ['no word, but a price with a comma', () => ({ 9: 900, x: '1,500' })],
    ['a number beside numbers', () => ({ 9: 1200, x: 57 })],
    ['nothing of it in more', (n) => ({ 9: 1200, ...(n > 18 ? {} : { x: 'THB' }) })],
    ['nothing in most', (n) => ({ 9: 1200, x: n > 10 ? '' : 'THB' })],
    ['an entry in one of them', (n) => ({ 9: { price: 1200 }, x: n === 1 ? { price: null } : 'THB' })],
  ])('it is a size if there is %s', (_, sizeMap) => {
    const { notSizes, sizes } = sizesOf(sizeMap);
    expect(notSizes).toEqual([]);
    expect(sizes[1]).toContain('x');
  });

  test('it is a size if most records have no other entry: their form may be another', () => {
    const found = sizesOf((n) => (n < 2 ? { 8: { price: 1000 }, 10: { price: 1000 } } : { 9: 1200 }), {
      entryForm: { field: 'price' },
      alsoForm: { field: null },
    });
    expect(found).toMatchObject({ notSizes: [], also: { field: null } });
    expect(found.sizes[5]).toEqual(['9']);
  });

  test('it is a size in fewer than twenty records', () => {
    const sizeMap = () => ({ 9: 1200, x: 'THB' });
    expect(sizesOf(sizeMap, {}, 20)).toMatchObject({ notSizes: ['x'] });
    expect(sizesOf(sizeMap, {}, 19)).toMatchObject({ notSizes: [] });
  });
});
