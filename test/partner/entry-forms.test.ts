import { describe, expect, test } from 'vitest';
import { type FormMemory, heldForm, NOTHING_LEARNED } from '../../src/partner/entry-forms.ts';
import { formOf } from '../../src/partner/size-map.ts';
import { FIELDS, reader } from './form-reader.ts';
import { keptForAll } from './kept-forms.ts';

test('a null in the price field means no offer, whatever other members contain', async () => {
  const { read } = reader();
  expect(await read({ price: 2000, amount: 3 }, { price: null, amount: 60 })).toEqual({
    prices: [2000, null],
    news: null,
  });
  for (let n = 0; n < 3; n += 1) await read({ price: 2000 });
  const unoffered = await read({ price: null, amount: 60 }, { price: null, lowest_price: 2100 });
  expect(unoffered.prices).toEqual([null, null]);
  expect((await read({ price: 1900 }, { amount: 60 })).prices).toEqual([1900, null]);
});

test('a new member does not become the price', async () => {
  const { read } = reader();
  for (let n = 0; n < 3; n += 1) expect((await read({ lowest_ask: 3200 })).prices).toEqual([3200]);
  expect(await read({ lowest_ask: 3200, price: 3590 })).toEqual({ prices: [3200], news: null });
  expect((await read({ lowest_ask: null, price: 3590 })).prices).toEqual([null]);
});

test('another form takes over only after an hour without the old one, and with a warning before', async () => {
  const { clock, read } = reader();
  for (let n = 0; n < 3; n += 1) await read({ price: 2000 });
  expect(await read({ amount: 60 })).toEqual({ prices: 'unreadable', news: 'missing' });
  clock.now += 3_599_999;
  expect(await read(2000)).toEqual({ prices: 'unreadable', news: 'missing' });
  clock.now += 1;
  expect(await read({ lowest_ask: 2000 })).toEqual({ prices: 'unreadable', news: 'let-go' });
  expect(await read({ lowest_ask: 2000 })).toEqual({ prices: [2000], news: null });
});

test('one answer with the old form restarts the hour', async () => {
  const { clock, read } = reader();
  for (let n = 0; n < 3; n += 1) await read({ price: 2000 });
  await read({ lowest_ask: 2000 });
  clock.now += 3_599_999;
  await read({ price: 2000 });
  clock.now += 2;
  expect(await read({ lowest_ask: 2000 })).toEqual({ prices: 'unreadable', news: 'missing' });
});

test('while no form is held, most entries decide, and among several fields the first one wins', () => {
  expect(formOf([{ price: null, lowest_price: 900 }], FIELDS)).toEqual({ field: 'lowest_price' });
  expect(formOf([{ amount: 60 }, { price: 900 }, { price: 800 }], FIELDS)).toEqual({ field: 'price' });
  expect(formOf([{ price: 900, lowest_ask: 800 }], FIELDS)).toEqual({ field: 'price' });
  expect(formOf([900, { price: 800 }], FIELDS)).toEqual({ field: 'price' });
  expect(formOf([900, '800', { price: 800 }], FIELDS)).toEqual({ field: null });
  expect(formOf([null, 0, {}, { asks: 5 }], FIELDS)).toBeNull();
});

describe('records of two forms, a field and bare numbers,', () => {
  const MIXED = [
    [2000, 2100],
    [{ price: 900, listings: 3 }, null],
  ];
  const READ = [
    [2000, 2100],
    [900, null],
  ];
  const learned = async (kept = keptForAll()) => {
    const mirror = reader(kept);
    for (let n = 0; n < 3; n += 1) await mirror.readEach(...MIXED);
    return mirror;
  };

  test.each([
    ['bare numbers first', 3, 1],
    ['the field first', 1, 3],
  ])('are all read once three answers contained both: %s', async (_, bare, objects) => {
    const { readEach } = reader();
    const answer = [
      ...Array.from({ length: bare }, () => [2000]),
      ...Array.from({ length: objects }, () => [{ price: 900 }]),
    ];
    for (let n = 0; n < 3; n += 1)
      expect((await readEach(...answer)).prices.filter((prices) => prices === 'unreadable')).toHaveLength(1);
    const all = [
      ...Array.from({ length: bare }, () => [2000]),
      ...Array.from({ length: objects }, () => [900]),
    ];
    expect(await readEach(...answer)).toEqual({ prices: all, news: null });
  });

  test('are not all read as soon as a second form appears beside the held one', async () => {
    const { readEach } = reader();
    for (let n = 0; n < 5; n += 1) await readEach([2000, 2100]);
    for (let n = 0; n < 3; n += 1) expect((await readEach(...MIXED)).prices[1]).toBe('unreadable');
    expect((await readEach(...MIXED)).prices).toEqual(READ);
  });

  test('are read in answers with only one of the forms, without a warning, and after a restart', async () => {
    const kept = keptForAll();
    const { clock, readEach } = await learned(kept);
    expect(await readEach([{ price: 800 }])).toEqual({ prices: [[800]], news: null });
    clock.now += 3_600_001;
    expect(await readEach([{ price: 800 }], [{ price: null }])).toEqual({
      prices: [[800], [null]],
      news: null,
    });
    expect(await readEach([1900])).toEqual({ prices: [[1900]], news: null });
    expect(await reader(kept).readEach(...MIXED)).toEqual({ prices: READ, news: null });
    expect(await reader(kept, ['lowest_ask']).readEach(...MIXED)).toEqual({
      prices: [[2000, 2100], 'unreadable'],
      news: null,
    });
  });

  test('do not make a third form readable: it is missing for an hour, and then all is learned anew', async () => {
    const { clock, readEach } = await learned();
    expect(await readEach([{ amount: 60 }])).toEqual({ prices: ['unreadable'], news: 'missing' });
    clock.now += 3_600_000;
    expect((await readEach([{ amount: 60 }])).news).toBe('let-go');
    expect(await readEach([1000], [1100], [{ price: 900 }])).toEqual({
      prices: [[1000], [1100], 'unreadable'],
      news: null,
    });
  });

  test('that move to another field are read there after an hour', async () => {
    const { clock, readEach } = await learned();
    const moved = [[2000], [{ lowest_ask: 900 }]];
    expect(await readEach(...moved)).toEqual({ prices: [[2000], 'unreadable'], news: 'missing' });
    clock.now += 3_599_999;
    expect((await readEach(...moved)).news).toBe('missing');
    clock.now += 1;
    expect((await readEach(...moved)).news).toBe('let-go');
    for (let n = 0; n < 3; n += 1) expect((await readEach(...moved)).prices).toEqual([[2000], 'unreadable']);
    expect(await readEach(...moved)).toEqual({ prices: [[2000], [900]], news: null });
  });

  test('are read by another field at once if theirs is no longer configured', async () => {
    const kept = keptForAll();
    await learned(kept);
    const { readEach } = reader(kept, ['lowest_ask']);
    const moved = [[2000], [{ lowest_ask: 900 }]];
    for (let n = 0; n < 3; n += 1) expect((await readEach(...moved)).news).toBeNull();
    expect((await readEach(...moved)).prices).toEqual([[2000], [900]]);
  });

  test('keep their form as soon as one record uses it again', async () => {
    const { clock, readEach } = await learned();
    const moved = [[2000], [{ lowest_ask: 900 }]];
    await readEach(...moved);
    clock.now += 3_599_999;
    await readEach([2000], [{ lowest_ask: 900 }], [{ price: 900 }], [{ lowest_ask: 900 }]);
    clock.now += 2;
    expect(await readEach(...moved)).toEqual({ prices: [[2000], 'unreadable'], news: 'missing' });
  });

  test('that move from the held field are read after an hour, also if most are bare numbers', async () => {
    const { clock, readEach } = reader();
    const both = (field: string) => [[2000], [1900], [1800], [{ [field]: 900 }], [{ [field]: 800 }]];
    const objects = [[{ price: 900 }], [{ price: 800 }], [2000]];
    for (let n = 0; n < 3; n += 1) await readEach(...objects);
    expect((await readEach(...both('price'))).prices).not.toContain('unreadable');
    expect((await readEach(...both('lowest_ask'))).news).toBe('missing');
    clock.now += 3_600_000;
    expect((await readEach(...both('lowest_ask'))).news).toBe('let-go');
    for (let n = 0; n < 3; n += 1) await readEach(...both('lowest_ask'));
    expect((await readEach(...both('lowest_ask'))).prices).toEqual([[2000], [1900], [1800], [900], [800]]);
  });

  test('do not make another field readable: without an offer it may be a count', async () => {
    const { readEach } = reader();
    for (let n = 0; n < 9; n += 1)
      expect((await readEach([{ price: 900 }], [{ price: 800 }], [{ amount: 60 }])).prices).toEqual([
        [900],
        [800],
        'unreadable',
      ]);
  });

  test('do not hide a change of form: what all records change to is held off for an hour', async () => {
    const { clock, readEach } = reader();
    for (let n = 0; n < 3; n += 1) await readEach([2000], [1900]);
    for (let n = 0; n < 9; n += 1)
      expect(await readEach([{ price: 60 }], [{ price: 70 }])).toEqual({
        prices: ['unreadable', 'unreadable'],
        news: 'missing',
      });
    clock.now += 3_600_000;
    expect((await readEach([{ price: 2000 }])).news).toBe('let-go');
  });
});

describe('the stored form', () => {
  test('survives a restart, and so does the hour of a missing form', async () => {
    const kept = keptForAll();
    const first = reader(kept);
    for (let n = 0; n < 3; n += 1) await first.read({ lowest_ask: 3200 });
    const second = reader(kept);
    expect((await second.read({ price: 3590, lowest_ask: 3200 })).prices).toEqual([3200]);
    expect((await second.read({ amount: 60 })).news).toBe('missing');
    const third = reader(kept);
    third.clock.now = 3_600_000;
    expect((await third.read({ amount: 60 })).news).toBe('let-go');
    expect((await reader(kept).read({ amount: 60 })).prices).toEqual([60]);
  });

  test('is learned across restarts: a mirror with few calls per run learns, too', async () => {
    const kept = keptForAll();
    for (let n = 0; n < 3; n += 1) expect((await reader(kept).read({ amount: 900 })).prices).toEqual([900]);
    expect((await reader(kept).read({ price: 3590, amount: 900 })).prices).toEqual([900]);
  });

  test('is learned only from consecutive answers with the same form', async () => {
    const { read, forms } = reader();
    for (const entry of [{ amount: 900 }, { amount: 900 }, 900, { amount: 900 }, { amount: 900 }])
      await read(entry);
    expect(forms.held).toBeNull();
    await read({ amount: 900 });
    expect(forms.held).toEqual({ field: 'amount' });
  });

  test('does not count if its field is no longer configured; bare numbers always count', () => {
    const of = (field: string | null): FormMemory => ({
      form: { field },
      answers: 3,
      missingSince: null,
      also: null,
      others: [],
    });
    expect(heldForm(of('price'), ['price', 'amount'])).toEqual({ field: 'price' });
    expect(heldForm(of('price'), ['amount'])).toBeNull();
    expect(heldForm(of(null), ['amount'])).toEqual({ field: null });
    expect(heldForm(NOTHING_LEARNED, ['amount'])).toBeNull();
  });

  test('gives way at once to what is configured, and the form learned then is stored', async () => {
    const kept = keptForAll();
    const before = reader(kept);
    for (let n = 0; n < 3; n += 1) await before.read({ price: 3590, lowest_ask: 3200 });
    const { read, forms } = reader(kept, ['lowest_ask']);
    for (let n = 0; n < 3; n += 1) {
      expect(await read({ price: 3590, lowest_ask: 3200 })).toEqual({ prices: [3200], news: null });
    }
    expect(forms.held).toEqual({ field: 'lowest_ask' });
    expect((await reader(kept).read({ price: 3590, lowest_ask: 3200 })).prices).toEqual([3200]);
  });

  test('is passed to another process, which then rereads its answer', async () => {
    const kept = keptForAll();
    const [one, other] = [reader(kept), reader(kept)];
    for (let n = 0; n < 3; n += 1) await one.read({ lowest_ask: 3200 });
    // It has heard of nothing yet, and most entries of its first answer contain another field, too.
    expect(other.forms.held).toBeNull();
    expect((await other.read({ price: 3590, lowest_ask: 3200 })).prices).toEqual([3200]);
    expect(other.forms.held).toEqual({ field: 'lowest_ask' });
  });

  test('is learned from later answers if it could not be stored', async () => {
    const kept = keptForAll();
    const { read, forms } = reader(kept);
    kept.isDown = true;
    for (let n = 0; n < 4; n += 1) expect((await read({ amount: 900 })).prices).toEqual([900]);
    expect(forms.held).toBeNull();
    kept.isDown = false;
    for (let n = 0; n < 3; n += 1) await read({ amount: 900 });
    expect(forms.held).toEqual({ field: 'amount' });
  });
});
