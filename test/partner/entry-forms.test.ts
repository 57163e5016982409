import { expect, test } from 'vitest';
import { EntryForms } from '../../src/partner/entry-forms.ts';
import { formOf } from '../../src/partner/size-map.ts';
import { readBulk } from '../../src/partner/wire.ts';

const FIELDS = ['price', 'lowest_price', 'lowest_ask', 'amount'];

function reader() {
  const clock = { now: 0 };
  const forms = new EntryForms(() => clock.now);
  /** The prices of one record with these entries, or why there are none; and what is said of their form. */
  const read = (...entries: unknown[]) => {
    const record = {
      code: '0000',
      size_map: Object.fromEntries(entries.map((entry, n) => [`S${n}`, entry])),
    };
    const names = { priceFields: FIELDS, skuField: 'sku', entryForm: forms.held };
    const reading = readBulk({ results: { A: record } }, names);
    if (!reading.ok) throw new Error(reading.problem);
    const news = forms.note(reading.value.form ?? null);
    const said = reading.value.results.get('A') ?? { unreadable: 'absent' };
    const prices = 'sizes' in said ? [...said.sizes.values()].map(({ price }) => price) : 'unreadable';
    return { prices, news: news?.kind ?? null };
  };
  return { clock, read };
}

test('a null in the price field is no offer, whatever other members say', () => {
  const { read } = reader();
  expect(read({ price: 2000, amount: 3 }, { price: null, amount: 60 })).toEqual({
    prices: [2000, null],
    news: null,
  });
  for (let n = 0; n < 3; n += 1) read({ price: 2000 });
  expect(read({ price: null, amount: 60 }, { price: null, lowest_price: 2100 }).prices).toEqual([null, null]);
  expect(read({ price: 1900 }, { amount: 60 }).prices).toEqual([1900, null]);
});

test('a new member does not become the price', () => {
  const { read } = reader();
  for (let n = 0; n < 3; n += 1) expect(read({ lowest_ask: 3200 }).prices).toEqual([3200]);
  expect(read({ lowest_ask: 3200, price: 3590 })).toEqual({ prices: [3200], news: null });
  expect(read({ lowest_ask: null, price: 3590 }).prices).toEqual([null]);
});

test('another form takes over only when none has had the old one for an hour, with a warning before', () => {
  const { clock, read } = reader();
  for (let n = 0; n < 3; n += 1) read({ price: 2000 });
  expect(read({ amount: 60 })).toEqual({ prices: 'unreadable', news: 'missing' });
  clock.now += 3_599_999;
  expect(read(2000)).toEqual({ prices: 'unreadable', news: 'missing' });
  clock.now += 1;
  expect(read({ lowest_ask: 2000 })).toEqual({ prices: 'unreadable', news: 'let-go' });
  expect(read({ lowest_ask: 2000 })).toEqual({ prices: [2000], news: null });
});

test('one answer with the old form begins the hour anew', () => {
  const { clock, read } = reader();
  for (let n = 0; n < 3; n += 1) read({ price: 2000 });
  read({ lowest_ask: 2000 });
  clock.now += 3_599_999;
  read({ price: 2000 });
  clock.now += 2;
  expect(read({ lowest_ask: 2000 })).toEqual({ prices: 'unreadable', news: 'missing' });
});

test('without a form that is held it is that of most entries; of several fields the first', () => {
  expect(formOf([{ price: null, lowest_price: 900 }], FIELDS)).toEqual({ field: 'lowest_price' });
  expect(formOf([{ amount: 60 }, { price: 900 }, { price: 800 }], FIELDS)).toEqual({ field: 'price' });
  expect(formOf([{ price: 900, lowest_ask: 800 }], FIELDS)).toEqual({ field: 'price' });
  expect(formOf([900, { price: 800 }], FIELDS)).toEqual({ field: 'price' });
  expect(formOf([900, '800', { price: 800 }], FIELDS)).toEqual({ field: null });
  expect(formOf([null, 0, {}, { asks: 5 }], FIELDS)).toBeNull();
});
