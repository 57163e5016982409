import { skuNumber } from './upstream.ts';

/** The SKUs of a call. A good answer has a result for each. */
export const ASKED: readonly string[] = [1, 2, 3, 4, 5, 6].map(skuNumber).toSorted();
export const [A = '', B = '', C = '', D = '', E = '', F = ''] = [1, 2, 3, 4, 5, 6].map(skuNumber);
const FOREIGN = skuNumber(200);

export type SkuResult = 'record' | 'not_found' | 'deferred' | 'error';
type Reconciliation = Record<string, unknown>;

/** Returns the price that only this SKU's good record contains. */
export function priceOf(sku: string): number {
  return 50_000 + ASKED.indexOf(sku);
}

/** Returns a record as the partner sends it. */
export function recordOf(sku: string, sizeMap: unknown = { 'US 9': priceOf(sku) }) {
  return { message: 'ok', code: '0000', size_map: sizeMap, product: { name: `shoe ${sku}`, brand: 'b' } };
}

/** Returns three records, one SKU not found, one deferred, one failed. */
export function goodAnswer(): Reconciliation {
  return {
    results: Object.fromEntries([A, B, C].map((sku) => [sku, recordOf(sku)])),
    not_found: [D],
    deferred: [E],
    errors: [F],
    requested: 6,
    deduped: 6,
  };
}

/** A partly contradictory answer, and the result that each SKU must have: by default that of the good answer. */
export interface ReconcileCase {
  readonly name: string;
  readonly body: unknown;
  readonly outcomes: Readonly<Record<string, SkuResult>>;
}

const GOOD_RESULTS: Readonly<Record<string, SkuResult>> = {
  [A]: 'record',
  [B]: 'record',
  [C]: 'record',
  [D]: 'not_found',
  [E]: 'deferred',
  [F]: 'error',
};

function bent(
  name: string,
  changes: Reconciliation,
  outcomes: Readonly<Record<string, SkuResult>> = {},
): ReconcileCase {
  return { name, body: { ...goodAnswer(), ...changes }, outcomes: { ...GOOD_RESULTS, ...outcomes } };
}

function withResult(name: string, sku: string, record: unknown, settledAs: SkuResult): ReconcileCase {
  return bent(
    name,
    { results: { ...(goodAnswer()['results'] as object), [sku]: record } },
    { [sku]: settledAs },
  );
}

const results = goodAnswer()['results'] as Record<string, unknown>;
const own = (name: string, value: unknown) => Object.fromEntries([[name, value]]);
const errors: Readonly<Record<string, SkuResult>> = { [A]: 'error', [B]: 'error', [C]: 'error' };
const MANY = 20_000;
const deep = (depth: number): unknown => JSON.parse('['.repeat(depth) + ']'.repeat(depth));

const BAD_RECORDS: [string, unknown][] = [
  ['null', null],
  ['a number', 7],
  ['a text', 'ok'],
  ['an array', [recordOf(A)]],
  ['empty', {}],
  ['of another code', { ...recordOf(A), code: '0009' }],
  ['of code 0', { ...recordOf(A), code: 0 }],
  ['without a code', { ...recordOf(A), code: undefined }],
  ['without a size_map', { ...recordOf(A), size_map: undefined }],
  ['with size_map null', recordOf(A, null)],
  ['with a size_map that is an array', recordOf(A, [priceOf(A)])],
  ['with a size_map that is text', recordOf(A, '{}')],
  ['with a size that no table holds', recordOf(A, { 'US\0': 1 })],
  ['with a size of 513 characters', recordOf(A, own('x'.repeat(513), 1))],
  ['with an entry 100 deep', recordOf(A, { 'US 9': deep(100) })],
  ['with a product 100 deep', { ...recordOf(A), product: deep(100) }],
  ['with prices in a form that nobody reads', recordOf(A, { a: '1,500', b: { thb: 900 }, c: null })],
  ['all of it under __proto__', own('__proto__', recordOf(A))],
];

const ODD_RECORDS: [string, unknown][] = [
  ['with no size', recordOf(A, {})],
  ['with no size, as a list', recordOf(A, [])],
  ['with sizes named as prototypes are', recordOf(A, { ...own('__proto__', 500), constructor: 600 })],
  [
    'with prices of every type',
    recordOf(A, { a: null, b: true, c: [], d: {}, e: '12', f: -1, g: 1e300, h: 1.5, i: 900 }),
  ],
  [
    'with text that no table holds',
    { ...recordOf(A), product: { name: 'a\0b', brand: '\ud800', 'k\0': ['\udc00'] } },
  ],
  ['with a product that is none', { ...recordOf(A), product: 'shoe' }],
  ['with a product of odd members', { ...recordOf(A), product: own('__proto__', { name: {}, brand: [] }) }],
  ['with members nobody knows', { ...recordOf(A), extra: deep(50), ...own('__proto__', {}) }],
];

/** What a partner may write into `results` for a SKU that it answers in a list. */
const PLACEHOLDERS: [string, unknown][] = [
  ['null', null],
  ['empty', {}],
  ['the code of its single lookup', { message: 'SKU not found', code: '0009' }],
  ['a code, and null for the rest', { message: 'later', code: '0500', size_map: null, product: null }],
];

/** Answers of which a part is to be believed, and a part is not. */
export const BENT: readonly ReconcileCase[] = [
  bent('nothing bent', {}),
  bent(
    'every SKU left out',
    { results: {}, not_found: [], deferred: [], errors: [] },
    { ...errors, [D]: 'error', [E]: 'error' },
  ),
  bent('results left out', { results: undefined }, errors),
  bent('results null', { results: null }, errors),
  bent('results an empty list', { results: [] }, errors),
  bent('not_found left out', { not_found: undefined }, { [D]: 'error' }),
  bent('deferred null', { deferred: null }, { [E]: 'error' }),
  bent('a record that is also not_found', { not_found: [D, A] }, { [A]: 'error' }),
  bent('a record that is also deferred', { deferred: [E, A] }, { [A]: 'error' }),
  bent('a record that is also in errors', { errors: [F, A] }, { [A]: 'error' }),
  bent('not_found and deferred', { deferred: [E, D] }, { [D]: 'error' }),
  bent('not_found and in errors', { errors: [F, D] }, { [D]: 'error' }),
  bent(
    'everything everywhere',
    { not_found: ASKED, deferred: ASKED, errors: ASKED },
    { ...errors, [D]: 'error', [E]: 'error' },
  ),
  bent('doubled alike', { not_found: [D, D, D], deferred: [E, E], errors: [F, F] }),
  bent('foreign SKUs in each part', {
    results: { ...results, [FOREIGN]: recordOf(FOREIGN), toString: recordOf(B) },
    not_found: [D, skuNumber(201), 'prototype'],
    deferred: [E, skuNumber(202), 'valueOf'],
    errors: [F, skuNumber(203)],
  }),
  bent(
    'only foreign SKUs',
    { results: { [FOREIGN]: recordOf(FOREIGN) }, not_found: [skuNumber(201)], deferred: [], errors: [] },
    { ...errors, [D]: 'error', [E]: 'error' },
  ),
  bent(
    'not_found of elements that are no SKUs',
    { not_found: [null, 7, true, [D], {}, { id: D }, { sku: 7 }] },
    { [D]: 'error' },
  ),
  bent('not_found as objects', { not_found: [{ sku: D, message: 'no' }] }),
  bent('not_found by SKU', { not_found: { [D]: 'no such SKU' } }),
  bent('twenty thousand foreign SKUs', { errors: [F, ...Array.from({ length: MANY }, (_, n) => `X${n}`)] }),
  bent('one SKU twenty thousand times', { not_found: Array.from({ length: MANY }, () => D) }),
  bent('counts that do not add up', { requested: 5, deduped: -1 }),
  bent('counts of other types', { requested: [], deduped: { n: 6 } }),
  bent('SKUs with blanks around them', { not_found: [` ${D}`, `${D} `] }, { [D]: 'error' }),
  bent('SKUs in upper case', { not_found: [D.toUpperCase()] }, { [D]: 'error' }),
  ...BAD_RECORDS.map(([name, record]) => withResult(`a record ${name}`, A, record, 'error')),
  ...PLACEHOLDERS.flatMap(([name, record]) => [
    bent(`lists, and in results of their SKUs ${name}`, {
      results: { ...results, [D]: record, [E]: record, [F]: record },
    }),
    bent(
      `two lists, and in results ${name}`,
      { results: { ...results, [D]: record }, deferred: [E, D] },
      { [D]: 'error' },
    ),
  ]),
  withResult(
    'prices of another code for a SKU that is not_found',
    D,
    { ...recordOf(D), code: '0009' },
    'error',
  ),
  withResult('a withdrawal of a SKU that is deferred', E, recordOf(E, {}), 'error'),
  withResult('no record, but a text, for a SKU that is deferred', E, 'later', 'error'),
  ...ODD_RECORDS.map(([name, record]) => withResult(`a record ${name}`, A, record, 'record')),
];

/** Answers of which nothing is to be believed. */
export const UNREADABLE: readonly { readonly name: string; readonly body: unknown }[] = [
  ...[7, true, 'none', [null], [[A, recordOf(A)]]].map((value) => ({ member: 'results', value })),
  ...['not_found', 'deferred', 'errors'].flatMap((member) =>
    [7, true, 'SKU', A].map((value) => ({ member, value })),
  ),
].map(({ member, value }) => ({
  name: `${member} is ${JSON.stringify(value).slice(0, 40)}`,
  body: { ...goodAnswer(), [member]: value },
}));
