import { describe, expect, it } from 'vitest';
import { readOwnSkus } from '../../src/sandbox/index.ts';
import { start } from './support.ts';

const lines = (...each: (object | string)[]): string =>
  each.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');

describe('a catalog file', () => {
  it('supplies the price routes and the manifest, next to generated SKUs or alone', async () => {
    const { skus, problems } = readOwnSkus(
      `\uFEFF${lines(
        {
          sku: 'MY-1',
          sizes: { '9': 4800, '9.5': null },
          size_type: 'US',
          product: { name: 'Mine', brand: 'B' },
        },
        '',
        { sku: 'MY-2', price_source: 'live' },
        { sku: '__proto__', listed: false, sizes: {} },
        { sku: 'DD1391-100', sizes: { '40': 1 } },
        { sku: 'ghost', priceable: false },
      )}\r\n`,
    );
    expect(problems).toEqual([]);
    for (const generated of [0, 60]) {
      const caller = await start({ catalog: skus, skus: generated });
      await using _ = caller.sandbox;
      const truth = caller.sandbox.world.truth();
      expect((await caller.lowest('MY-1')).json).toMatchObject({
        size_map: { '9': 4800, '9.5': null, size_type: 'US' },
        product: { name: 'Mine', brand: 'B', size_type: 'US' },
      });
      expect(truth.get('MY-2')).toMatchObject({ priceSource: 'live', listed: true });
      expect(Object.keys(truth.get('MY-2')?.sizeMap ?? {}).length).toBeGreaterThan(0);
      expect(truth.get('__proto__')).toMatchObject({ listed: false, answer: 'record', sizeMap: {} });
      expect(truth.get('ghost')).toMatchObject({ listed: true, answer: 'not_found' });
      expect(truth.get('DD1391-100')?.sizeMap).toEqual({ '40': 1 });
      expect((await caller.lines()).filter(({ sku }) => skus.some((own) => own.sku === sku))).toHaveLength(4);
      for (let step = 0; step < 40; step += 1) caller.sandbox.world.step(0);
      expect(caller.sandbox.world.find('DD1391-100')?.sizeMap).toEqual({ '40': 1 });
    }
  });

  it.each(['constructor', '__proto__', 'toString'])(
    'may have the uncommon size type %s, and the market still moves',
    async (sizeType) => {
      const { skus } = readOwnSkus(lines({ sku: 'MY-1', size_type: sizeType }));
      const caller = await start({ catalog: skus, skus: 0 });
      await using _ = caller.sandbox;
      const { sizeType: kept, sizeMap } = caller.sandbox.world.find('MY-1') ?? {};
      expect(kept).toBe(sizeType);
      expect(Object.keys(sizeMap ?? {}).length).toBeGreaterThan(0);
      for (let step = 0; step < 300; step += 1) caller.sandbox.step();
    },
  );

  it('is rejected with the problems of each line, by its number', () => {
    const { problems } = readOwnSkus(
      lines(
        { sku: 'A' },
        '{',
        '[1]',
        { sizes: { '9': 5 } },
        { sku: 'A', sizes: { '9': 5.5, size_type: 4 } },
        '',
        {
          sku: 'B',
          size: {},
          product: { colour: 'red', name: 5 },
          price_source: 'both',
          listed: 1,
          size_type: '',
        },
        { sku: 'x'.repeat(513), sizes: [] },
      ),
    );
    expect(problems).toEqual([
      'line 2: is not JSON',
      'line 3: is not a JSON object',
      'line 4: sku must be a string of 1 to 512 characters',
      'line 5: sizes: the price of "9" must be a whole number of baht, or null',
      'line 5: sizes must not have the key "size_type"',
      'line 5: sku "A" is on line 1 already',
      'line 7: knows no size; it may have sku, sizes, size_type, product, price_source, listed, priceable',
      'line 7: size_type must be a string that is not empty',
      'line 7: product knows no colour; it may have name, model, brand, gender_size, size_type, category',
      'line 7: product: name must be a string',
      'line 7: price_source must be "snapshot" or "live"',
      'line 7: listed must be true or false',
      'line 8: sku must be a string of 1 to 512 characters',
      'line 8: sizes must be an object: {"9": 4800}',
    ]);
  });

  it('is rejected with at most twenty problems, and also if it is empty', () => {
    const { problems } = readOwnSkus('{\n'.repeat(50));
    expect([problems.length, problems.at(-1)]).toEqual([21, 'and 30 more']);
    expect(readOwnSkus('\n \n').problems).toEqual(['there is no SKU in it']);
  });
});
