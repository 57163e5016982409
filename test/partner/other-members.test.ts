import { describe, expect, test } from 'vitest';
import { readRecord } from '../../src/partner/bulk-answer.ts';
import { keptForAll } from './kept-forms.ts';
import { mapReader, type SizeMap } from './map-reader.ts';

const times = (records: number, sizeMap: (n: number) => SizeMap): SizeMap[] =>
  Array.from({ length: records }, (_, n) => ({ size_type: 'US', ...sizeMap(n) }));

describe('a number beside objects', () => {
  const MEMBER = { retail_price: 5900 };
  const offered = (n: number) => ({ ...MEMBER, [`${8 + (n % 5)}`]: { price: 5200 + n } });
  const sold = () => MEMBER;

  test('is never the price of a sold-out SKU, in calls of any size, nor taken for a form', async () => {
    const { read, forms } = mapReader();
    for (let n = 0; n < 20; n += 1) {
      const { sizes, notSizes } = await read(...times(90, offered), ...times(10, sold));
      expect(notSizes).toEqual(['retail_price']);
      expect(sizes.slice(90)).toEqual(times(10, () => ({})).map(() => ({})));
    }
    for (let n = 0; n < 4; n += 1) {
      const { sizes } = await read(...times(10, offered), ...times(1, sold));
      expect(sizes[10]).toEqual({});
    }
    const { sizes } = await read(...times(100, sold));
    expect(sizes).toEqual(Array.from({ length: 100 }, () => ({})));
    expect(forms).toMatchObject({ held: { field: 'price' }, also: null });
  });

  test('is no price before it is recognised, and a withdrawal after twenty records, across restarts', async () => {
    const kept = keptForAll();
    for (let n = 0; n < 10; n += 1)
      expect((await mapReader(kept).read(...times(2, offered), ...times(1, sold))).sizes[2]).toEqual(
        n < 9 ? 'unreadable' : {},
      );
    const { read, forms } = mapReader(kept);
    expect((await read(...times(3, sold))).sizes).toEqual([{}, {}, {}]);
    expect(forms.also).toBeNull();
  });

  test('is not taken for the form of the first answers, though more records contain it than a price', async () => {
    const { read, forms } = mapReader();
    const oneSize = (n: number) => ({ views: 50 + n, ...(n < 65 && { OS: { price: 5200 } }) });
    for (let n = 0; n < 3; n += 1) {
      const { sizes } = await read(...times(100, oneSize));
      expect(sizes).toEqual(times(100, oneSize).map((_, nth) => (nth < 65 ? { OS: 5200 } : {})));
    }
    expect(forms).toMatchObject({ held: { field: 'price' }, also: null });
  });
});

describe('a word beside numbers', () => {
  const offered = (n: number) => ({ currency: 'THB', [`${8 + (n % 5)}`]: 5200 + n });
  const sold = () => ({ currency: 'THB' });

  test('is not a size after twenty records of small calls, across restarts, nor in a call of sold-out SKUs only', async () => {
    const kept = keptForAll();
    for (let n = 0; n < 2; n += 1)
      expect((await mapReader(kept).read(...times(12, offered), ...times(1, sold))).sizes[12]).toEqual(
        n < 1 ? 'unreadable' : {},
      );
    expect((await mapReader(kept).read(...times(3, sold))).sizes).toEqual([{}, {}, {}]);
  });

  test('is not a size if only one of two back ends sends it', async () => {
    const { read } = mapReader();
    const { sizes } = await read(
      ...times(80, (n) => ({ 8: 900 + n })),
      ...times(20, offered),
      ...times(1, sold),
    );
    expect(sizes[100]).toEqual({});
  });

  test('is a size again as soon as it has a price, and no withdrawal if that price is unreadable', async () => {
    const { read } = mapReader();
    await read(...times(30, offered));
    expect((await read({ currency: '1,500' })).sizes).toEqual(['unreadable']);
    const other = mapReader();
    await other.read(...times(30, offered));
    expect((await other.read({ currency: 1500 })).sizes).toEqual([{ currency: 1500 }]);
    expect((await other.read({ ...sold(), 8: 900 })).sizes).toEqual([{ currency: null, 8: 900 }]);
  });

  test.each(['1,500', 1500, { price: 1500 }])(
    'is kept by a single lookup, too, if it may be a price: %j',
    (entry) => {
      const others = [{ name: 'currency', records: 20, isNumber: false, objects: 0, isSize: false }];
      const names = { priceFields: ['price'], skuField: 'sku', others };
      const read = readRecord({ code: '0000', size_map: { currency: entry, 8: 'THB' } }, names);
      expect('sizes' in read ? [...read.sizes.keys()] : 'unreadable').toEqual(
        entry === '1,500' ? 'unreadable' : ['8', 'currency'],
      );
      expect(readRecord({ code: '0000', size_map: { currency: 'THB' } }, names)).toMatchObject({
        sizes: new Map(),
      });
    },
  );

  test('is a size if most records that contain it have no value there', async () => {
    const { read } = mapReader();
    const { notSizes } = await read(...times(45, (n) => ({ 8: 900, x: n < 20 ? 'THB' : null })));
    expect(notSizes).toEqual([]);
  });

  test('does not keep bare numbers as the form once prices have moved into objects', async () => {
    const { clock, read } = mapReader();
    for (let n = 0; n < 3; n += 1) await read(...times(3, (nth) => ({ [`${8 + nth}`]: 5200 })));
    const moved = times(3, () => ({ currency: 'THB', 8: { price: 5200 } }));
    expect((await read(...moved)).news).toBe('missing');
    clock.now += 3_600_000;
    expect((await read(...moved)).news).toBe('let-go');
    expect((await read(...moved)).sizes[0]).toMatchObject({ 8: 5200 });
  });
});

describe('bare numbers are prices', () => {
  const bare = (n: number) => ({ 8: 5200 + n, 9: 5300, 10: 5400 });

  test('beside a summary object with a price field', async () => {
    const { read, forms } = mapReader();
    for (let n = 0; n < 4; n += 1) {
      const { sizes } = await read(
        ...times(25, (nth) => ({ ...bare(nth), summary: { lowest_price: 5200 } })),
      );
      expect(sizes[3]).toEqual({ 8: 5203, 9: 5300, 10: 5400 });
    }
    expect(forms.held).toEqual({ field: null });
  });

  test('even if a single record has objects beside them', async () => {
    const { read } = mapReader();
    for (let n = 0; n < 3; n += 1) await read(...times(3, () => ({ 8: 5200 })));
    for (let n = 0; n < 25; n += 1) await read({ 8: 5200, 9: { price: 5300 } });
    expect((await read(...times(2, () => ({ 8: 5200 })))).sizes).toEqual([{ 8: 5200 }, { 8: 5200 }]);
  });
});

describe.each([
  ['one object', { last_sale: { price: 6100, at: '2026-11-30' } }],
  ['two objects', { last_sale: { price: 6100 }, retail: { amount: 9900 } }],
])('%s with a price field beside bare numbers', (_, member) => {
  const bare = (n: number) => ({ 8: 5200 + n, 9: 5300, 10: 5400 });
  const offered = (n: number) => ({ ...member, ...bare(n) });

  test('is not the price of a sold-out SKU once it appears beside them', async () => {
    const { read, forms } = mapReader();
    for (let n = 0; n < 20; n += 1) await read(...times(100, bare));
    for (let n = 0; n < 6; n += 1) {
      const { sizes, notSizes } = await read(...times(99, offered), member);
      expect(sizes[99]).toEqual({});
      expect(sizes[3]).toEqual({ 8: 5203, 9: 5300, 10: 5400 });
      expect(notSizes).toEqual(Object.keys(member));
    }
    expect((await read(...times(3, () => member))).sizes).toEqual([{}, {}, {}]);
    expect(forms).toMatchObject({ held: { field: null }, also: null });
  });

  test('is not a price in small calls, from the first answer on and across restarts', async () => {
    const kept = keptForAll();
    await mapReader(kept).read(...times(3, bare));
    await mapReader(kept).read(...times(3, bare));
    await mapReader(kept).read(...times(3, bare));
    for (let n = 0; n < 10; n += 1)
      expect((await mapReader(kept).read(...times(2, offered), member)).sizes[2]).toEqual(
        n < 9 ? 'unreadable' : {},
      );
    const { read, forms } = mapReader(kept);
    expect((await read(member)).sizes).toEqual([{}]);
    expect(forms.also).toBeNull();
  });

  test('is not a price before any form is known, however many SKUs are sold out', async () => {
    const { read, forms } = mapReader();
    for (let n = 0; n < 3; n += 1) {
      const { sizes } = await read(...times(1, offered), member, member, member);
      expect(sizes[0]).toMatchObject({ 8: 5200, 9: 5300, 10: 5400 });
      expect(sizes.slice(1)).toEqual(['unreadable', 'unreadable', 'unreadable']);
    }
    expect(forms).toMatchObject({ held: { field: null }, also: null });
  });

  test('prices nothing after twenty records, even if it was taken for another form before', async () => {
    const { read } = mapReader();
    for (let n = 0; n < 12; n += 1) await read(...times(2, offered), member);
    expect((await read(member)).sizes).toEqual([{}]);
  });

  test('is not a price of records with objects either, while most records have bare numbers', async () => {
    const { read } = mapReader();
    const object = { 8: { price: 5200 } };
    for (let n = 0; n < 5; n += 1) await read(...times(90, bare), ...times(3, () => object));
    for (let n = 0; n < 5; n += 1) {
      const { sizes } = await read(...times(90, offered), { ...member, ...object }, member);
      expect(sizes.slice(90)).toEqual([{ 8: 5200 }, {}]);
    }
  });

  test('is a size again as soon as it is a bare number', async () => {
    const { read } = mapReader();
    await read(...times(30, offered));
    await read(...times(1, offered), { last_sale: 5100, 8: 5200 });
    expect((await read({ last_sale: 5100 })).sizes).toEqual([{ last_sale: 5100 }]);
    for (let n = 0; n < 3; n += 1) await read(...times(5, bare), { last_sale: { price: 5100 } });
    expect((await read({ last_sale: { price: 5100 } })).sizes).toEqual([{ last_sale: 5100 }]);
  });
});

test('sizes that become objects one by one are sizes again once all of them are objects', async () => {
  const some = (n: number) => ({ 8: { price: 5200 + n }, 9: 5300, 10: 5400 });
  const all = (n: number) => ({ 8: { price: 5200 + n }, 9: { price: 5300 }, 10: { price: 5400 } });
  const { clock, read } = mapReader();
  for (let n = 0; n < 3; n += 1) await read(...times(25, some));
  for (let n = 0; n < 40; n += 1) await read(...times(25, all));
  clock.now += 3_600_000;
  for (let n = 0; n < 5; n += 1) await read(...times(25, all));
  const { sizes } = await read({ 8: { price: 5200 } }, all(1));
  expect(sizes).toEqual([{ 8: 5200 }, { 8: 5201, 9: 5300, 10: 5400 }]);
});

describe('an object in all records, beside bare prices and beside objects', () => {
  const member = { last_sale: { price: 9000 } };
  const bare = (n: number) => ({ ...member, 8: 5200 + n, 9: 5300, 10: 5400 });
  const live = (n: number) => ({ ...member, 9: { price: 5300 + n }, 9.5: { price: 5400 } });
  const sold = () => member;

  test('prices no sold-out SKU, however many answers contain only live SKUs', async () => {
    const { read, forms } = mapReader();
    const mixed = [...times(90, bare), ...times(5, live), ...times(5, sold)];
    for (let n = 0; n < 4; n += 1)
      expect((await read(...mixed)).sizes.slice(95)).toEqual([{}, {}, {}, {}, {}]);
    expect(forms).toMatchObject({ held: { field: null }, also: { field: 'price' } });
    const { others } = forms;
    for (let n = 0; n < 100; n += 1) {
      const { sizes } = await read(...times(5, live), sold());
      expect(sizes.slice(4)).toEqual([{ 9: 5304, 9.5: 5400 }, {}]);
    }
    await read(...mixed);
    expect(forms.others).toBe(others);
    expect((await read(...times(3, sold))).sizes).toEqual([{}, {}, {}]);
  });

  test('prices none either if such answers come before the second form is known', async () => {
    const { read } = mapReader();
    for (let n = 0; n < 4; n += 1) await read(...times(90, bare), ...times(5, sold));
    for (let n = 0; n < 30; n += 1) {
      const { sizes } = await read(...times(5, live), sold());
      expect(sizes[5]).toEqual({});
    }
  });
});

test('objects with a price field are sizes, whatever numbers stand beside a single size', async () => {
  const { read } = mapReader();
  const several = times(3, () => ({ 8: { price: 5200 }, 9: { price: 5300 } }));
  for (let n = 0; n < 3; n += 1) await read(...several);
  for (let n = 0; n < 3; n += 1)
    await read(...times(30, () => ({ OS: { price: 5200 }, views: 700, retail: 9900 })));
  expect((await read({ OS: { price: 5200 } })).sizes).toEqual([{ OS: 5200 }]);
});

test('objects are the prices of the first answers, even if one record has two numbers beside its object', async () => {
  const { read, forms } = mapReader();
  const one = (more: SizeMap = {}) => ({ OS: { price: 5200 }, ...more });
  for (let n = 0; n < 3; n += 1) {
    const { sizes } = await read(one(), one(), one(), one({ views: 1200, sold: 300 }));
    expect(sizes.slice(0, 3)).toEqual([{ OS: 5200 }, { OS: 5200 }, { OS: 5200 }]);
    expect(sizes[3]).toEqual({ OS: 5200, views: null, sold: null });
  }
  expect(forms.held).toEqual({ field: 'price' });
});

test('a number beside objects is not a price of sold-out SKUs among bare numbers', async () => {
  const { read, forms } = mapReader();
  const bare = times(3, (n) => ({ [`${8 + n}`]: 5200 }));
  const objects = times(2, (n) => ({ retail: 9900, [`${8 + n}`]: { price: 5200 } }));
  for (let n = 0; n < 4; n += 1) await read(...bare, ...objects);
  expect(forms).toMatchObject({ held: { field: null }, also: { field: 'price' } });
  expect((await read(...bare, { retail: 9900 })).sizes[3]).toBe('unreadable');
  expect((await read({ retail: 9900 })).sizes).toEqual(['unreadable']);
});

test('a second form learned from numbers beside objects prices nothing once they are recognised', async () => {
  const kept = keptForAll();
  kept.memory = {
    form: { field: 'price' },
    answers: 3,
    missingSince: null,
    also: { form: { field: null }, answers: 3, missingSince: null },
    others: [],
  };
  const { read } = mapReader(kept);
  const offered = (n: number) => ({ retail: 9900, [`${8 + (n % 5)}`]: { price: 5200 } });
  const { sizes } = await read(...times(20, offered), { retail: 9900 });
  expect(sizes[20]).toEqual({});
});

describe.each([
  ['-1', -1],
  ['-1 as text', '-1'],
  ['1', 1],
])('%s for a sold-out size', (_, none) => {
  const offered = { 8: 2500, 14: 3300 };
  const soldOut = { 8: 2500, 14: none };

  test('hides no price of that size, however many answers contained it', async () => {
    const kept = keptForAll();
    await mapReader(kept).read(...times(80, () => ({ 8: 2500 })), ...times(20, () => soldOut));
    for (let n = 0; n < 25; n += 1) await mapReader(kept).read(...times(2, () => soldOut));
    const { sizes } = await mapReader(kept).read(
      ...times(1, () => offered),
      ...times(1, () => ({ 14: 3300 })),
    );
    expect(sizes).toEqual([{ 8: 2500, 14: 3300 }, { 14: 3300 }]);
  });

  test('hides none after the size had prices either, nor in records of another form', async () => {
    const { read } = mapReader();
    await read(...times(30, () => offered));
    await read(...times(100, (n) => (n < 25 ? soldOut : { 8: 2500 })));
    expect((await read(...times(2, () => offered))).sizes).toEqual([offered, offered]);

    const two = mapReader();
    const object = (n: number) => ({ 8: { price: 2500 + n }, 14: none });
    for (let n = 0; n < 4; n += 1) await two.read(...times(80, object), ...times(20, () => ({ 9: 2400 })));
    const { sizes } = await two.read(...times(80, object), ...times(1, () => offered));
    expect(sizes[80]).toEqual(offered);
  });
});
