import { describe, expect, test } from 'vitest';
import { reader } from './form-reader.ts';

describe('a price field without prices while another field has them', () => {
  const RECORDS = 25;
  const each = (...entries: unknown[]) => Array.from({ length: RECORDS }, () => entries);
  const EMPTIED = { price: null, lowest_price: 2000 };
  const learned = async () => {
    const mirror = reader();
    for (let n = 0; n < 3; n += 1)
      await mirror.readEach([{ price: 2000, lowest_price: 1900 }, { price: null }]);
    return mirror;
  };

  test.each([null, 0, ''])(
    'is missing: it marks nothing as sold out, and after an hour the other field is read (%j)',
    async (nothing) => {
      const { clock, read, readEach } = await learned();
      const emptied = { price: nothing, lowest_price: 2000 };
      const sold = { price: nothing, lowest_price: null };
      const unreadable = { prices: each().map(() => 'unreadable'), news: 'missing' };
      expect(await readEach(...each(emptied, sold, sold))).toEqual(unreadable);
      // A single record shows it too by now, but does not restart the hour.
      clock.now += 3_599_999;
      expect(await read(emptied)).toEqual({ prices: 'unreadable', news: 'missing' });
      expect((await read(sold)).prices).toEqual([null]);
      clock.now += 1;
      expect((await readEach(...each(emptied))).news).toBe('let-go');
      expect(await readEach(...each(emptied, sold))).toEqual({
        prices: each().map(() => [2000, null]),
        news: null,
      });
    },
  );

  test.each([
    ['where one record has a price in it', [...each(EMPTIED), [{ price: 1900 }]]],
    ['in a few records, which may be sold out', each(EMPTIED).slice(0, 19)],
    ['where most have no price in the other either', [...each({ price: null }), ...each(EMPTIED)]],
    ['where the other is none of the fields', each({ price: null, retail: 2000 })],
  ])('means that there is no offer %s', async (_, records) => {
    const { readEach } = await learned();
    const { prices, news } = await readEach(...records);
    expect(prices.flat().filter((price) => price !== null)).toEqual(
      records.length === RECORDS + 1 ? [1900] : [],
    );
    expect(news).toBeNull();
  });

  test.each([['3200.000'], ['3,200'], [89.5], [35], [{ value: 3200 }]])(
    'that contains %j, an unreadable price, is never replaced by another field',
    async (other) => {
      const { clock, readEach } = await learned();
      for (let hours = 0; hours < 4; hours += 2) {
        const { prices, news } = await readEach(...each({ price: other, lowest_price: 2000 }));
        expect([new Set(prices), news]).toEqual([new Set(['unreadable']), null]);
        clock.now += 2 * 3_600_000;
      }
    },
  );

  test('is missing, too, if one record has an unreadable price in it', async () => {
    const { readEach } = await learned();
    const { prices, news } = await readEach(...each(EMPTIED), [{ price: 35, lowest_price: 2000 }]);
    expect([new Set(prices), news]).toEqual([new Set(['unreadable']), 'missing']);
  });

  test('is read again as soon as one record has a price in it', async () => {
    const { clock, readEach } = await learned();
    await readEach(...each(EMPTIED));
    clock.now += 3_599_999;
    expect((await readEach([EMPTIED], [{ price: 1900 }])).prices).toEqual([[null], [1900]]);
    clock.now += 1;
    expect((await readEach(...each(EMPTIED))).news).toBe('missing');
  });

  test('is missing, too, if only records beside bare numbers use it', async () => {
    const { clock, readEach } = reader();
    const bare = each(2000);
    for (let n = 0; n < 3; n += 1) await readEach(...bare, ...bare, ...each({ price: 900 }));
    const moved = [...bare, ...bare, ...each({ price: null, lowest_price: 800 })];
    const { prices, news } = await readEach(...moved);
    expect([prices.filter((price) => price === 'unreadable').length, news]).toEqual([RECORDS, 'missing']);
    clock.now += 3_600_000;
    expect((await readEach(...moved)).news).toBe('let-go');
    for (let n = 0; n < 3; n += 1) await readEach(...moved);
    expect((await readEach(...moved)).prices.at(-1)).toEqual([800]);
  });
});
