import { describe, expect, test } from 'vitest';
import {
  bulkElements,
  formsIn,
  namesRefused,
  manyNames,
  namesRead,
  priceShape,
  unknownSku,
} from '../../src/cli/doctor/discovery/shapes.ts';

const entries = (...all: unknown[]) => all.map((entry) => ({ sku: 'A', entry }));
const NAMES = ['price', 'lowest_price', 'lowest', 'lowest_ask', 'amount'];

describe('the price of an entry', () => {
  test.each<[string, unknown[], string[] | null]>([
    ['numbers', [5000, 6100], []],
    ['numeric text', ['5000'], []],
    ['a configured name', [{ lowest: 5000, listings: 3 }], ['lowest']],
    ['another name', [{ thb: 5000, listings: 300 }], ['thb']],
    ['a name that says nothing, and no other', [{ x: 5000 }], ['x']],
    ['two names that say as much', [{ ask_thb: 5000, bid_value: 4000 }], null],
    ['no number', [{ shown: 'from 5,000' }], null],
    ['text that is no number', ['THB 5,000'], null],
  ])('%s', (_name, all, fields) => {
    expect(priceShape(entries(...all), NAMES)?.fields).toEqual(fields);
  });

  test('is doubted if a configured name holds a count', () => {
    const shape = priceShape(entries({ amount: 3, thb: 5000 }, { amount: 1, thb: 7000 }), NAMES);
    expect(shape).toMatchObject({ doubtful: true, fields: ['thb'] });
  });

  test('may be missing for a size at the moment', () => {
    expect(priceShape(entries({ price: null }, { price: 90 }), NAMES)).toMatchObject({ entries: 1, read: 1 });
    expect(priceShape(entries(null), NAMES)).toBeNull();
  });
});

describe('the price of an entry if the mirror holds a form', () => {
  const held = { field: 'lowest_ask' };
  const shapeOf = (...all: unknown[]) =>
    priceShape(entries(...all), NAMES, formsIn(entries(...all), NAMES, held));
  const isHeld = (...all: unknown[]) => formsIn(entries(...all), NAMES, held).isHeld;

  test('is read by it, and its name comes first', () => {
    const both = { price: 3590, lowest_ask: 3200 };
    expect(shapeOf(both)).toMatchObject({ read: 1, fields: ['lowest_ask', 'price'] });
    expect(isHeld(both)).toBe(true);
    // The other member is no price, and null in this one is no offer.
    expect(shapeOf({ price: 3590, lowest_ask: 'ask' })).toMatchObject({ read: 0 });
  });

  test('is read as the mirror will read it if no entry has the form any longer', () => {
    expect(shapeOf({ price: 3590 })).toMatchObject({ read: 1, fields: ['price'] });
    expect(isHeld({ price: 3590 })).toBe(false);
  });
});

describe('the name of the list', () => {
  const sent = manyNames('skus', ['A', 'B'], ['C', 'D', 'E']);

  test('is tried with distinct SKUs for each candidate, and an unknown one', () => {
    const all = [...sent.values()].flat();
    expect(new Set(all).size).toBe(all.length);
    expect(sent.get('skus')).toEqual(['A', 'B', unknownSku(0)]);
    expect([...sent.keys()].slice(0, 2)).toEqual(['skus', 'sku']);
  });

  test.each<[string, unknown, string[]]>([
    ['a record', { results: { C: {} } }, ['sku']],
    ['a stranger in not_found', { results: {}, not_found: [{ who: unknownSku(3) }] }, ['sku_list']],
    ['an object of reasons', { errors: { [unknownSku(0)]: 'no' } }, ['skus']],
    ['nobody', { results: {}, not_found: ['Z'] }, []],
    ['no object', 'fine', []],
  ])('is known from the SKUs that are answered: %s', (_name, body, names) => {
    expect(namesRead(sent, body)).toEqual(names);
  });

  test.each<[unknown, string[], string[]]>([
    [{ statusCode: 400, message: 'wanted must be an array' }, ['wanted'], []],
    [{ message: ['each value in ids must be a string', 'ids should not be empty'] }, ['ids'], []],
    [{ message: "body must have required property 'product_list'" }, ['product_list'], []],
    [{ message: '"entries" is required' }, ['entries'], []],
    [{ message: ['property foo should not exist', 'bar must be an array'] }, ['bar'], ['foo']],
    [{ message: 'Bad request' }, [], []],
    [null, [], []],
  ])('is known from the text of a rejection: %j', (body, wanted, unwanted) => {
    expect(namesRefused(body)).toEqual({ wanted, unwanted });
  });
});

test.each<[string, unknown, { kind: string; field: string | null } | null]>([
  ['text', { not_found: ['A'] }, { kind: 'text', field: null }],
  ['a member whose value was asked', { deferred: [{ id: 7, what: 'A' }] }, { kind: 'object', field: 'what' }],
  ['a member by its name', { errors: [{ sku_no: 'Z', why: 'x' }] }, { kind: 'object', field: 'sku_no' }],
  ['no telling', { errors: [{ p: 'Z', q: 'x' }] }, { kind: 'object', field: null }],
  ['nothing in them', { not_found: [] }, null],
])('elements of lists: %s', (_name, body, shape) => {
  const found = bulkElements(body, new Set(['A']));
  expect(found && { kind: found.kind, field: found.field }).toEqual(shape);
});
