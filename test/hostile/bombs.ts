import { gzipSync } from 'node:zlib';
import type { PartnerErrorKind } from '../../src/partner/errors.ts';

/*
 * Answers that are made to fill the reader's memory or to keep it busy: small on the wire, or just within what a
 * route may send.
 */

export interface Bomb {
  readonly name: string;
  readonly route: 'manifest' | 'delta' | 'bulk';
  readonly becomes: 'ok' | PartnerErrorKind;
  /** Returns what is sent, gzipped. */
  readonly body: () => Buffer;
}

const MIB = 1024 * 1024;
const SKU = 'SKU-0001';

const zipped = (text: string) => gzipSync(text, { level: 1 });
const times = (text: string, bytes: number) => text.repeat(Math.max(1, Math.floor(bytes / text.length)));
const list = (count: number, each: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => each(n)).join(',');
const deep = (open: string, close: string, levels: number) => open.repeat(levels) + close.repeat(levels);
const delta = (members: string) =>
  `{"changed":[],"removed":[],"now_live":[],"to_snapshot":"next",${members}}`;
const record = (sizes: string, product = '{}') =>
  `{"results":{"${SKU}":{"code":"0000","size_map":${sizes},"product":${product}}},"not_found":[],"deferred":[],"errors":[]}`;
const manifest = (members: string) => `{"snapshot_id":"m","url":"{base}/file","sku_count":3,${members}}`;

/** The same for every route. */
const ANYWHERE: readonly [string, Bomb['becomes'], () => string][] = [
  ['arrays, 30 million deep', 'answer-too-large', () => deep('[', ']', 15 * MIB)],
  ['objects, two million deep', 'answer-too-large', () => `${'{"a":'.repeat(2e6)}1${'}'.repeat(2e6)}`],
  [
    'objects, 400 deep, side by side',
    'answer-too-large',
    () => `[${list(20_000, () => `${'{"a":'.repeat(400)}1${'}'.repeat(400)}`)}]`,
  ],
  ['60 million commas', 'answer-too-large', () => `[${times('1,', 60 * MIB)}1]`],
  ['20 million empty arrays', 'answer-too-large', () => `[${times('[],', 60 * MIB)}[]]`],
  ['two million names', 'answer-too-large', () => `{${list(2e6, (n) => `"k${n}":1`)}}`],
  ['one name, two million times', 'answer-too-large', () => `{${times('"k":1,', 12 * MIB)}"k":2}`],
  ['a text of 100 MB', 'answer-too-large', () => `{"a":"${times('x', 100 * MIB)}"}`],
  ['100 MB of blanks', 'answer-too-large', () => `${times(' ', 100 * MIB)}{}`],
  ['a string that never ends', 'unreadable', () => `{"a":"${times('[', 0.9 * MIB)}`],
  ['backslashes', 'unreadable', () => `{"a":"${times('\\', 0.9 * MIB)}x`],
];

const OF_ROUTES: readonly [Bomb['route'], string, Bomb['becomes'], () => string][] = [
  [
    'manifest',
    'a number of 900,000 digits',
    'unreadable',
    () =>
      manifest(`"n":${times('7', 0.9 * MIB)}`).replace('"sku_count":3', `"sku_count":${times('7', 100_000)}`),
  ],
  [
    'manifest',
    'ten thousand URLs',
    'unreadable',
    () => `{${list(9000, (n) => `"url${n}":"https://x/${n}"`)}}`,
  ],
  [
    'delta',
    'a token of 20 digits beside 33 million arrays',
    'answer-too-large',
    () => `{"to_snapshot":12345678901234567890,"x":${deep('[', ']', 16 * MIB)}}`,
  ],
  [
    'delta',
    'a token of 20 digits beside a million digits each',
    'ok',
    () => delta(`"x":[${list(20, () => times('7', 0.9 * MIB))}]`).replace('"next"', '12345678901234567890'),
  ],
  [
    'delta',
    'a token of a million digits',
    'unreadable',
    () => delta('"x":1').replace('"next"', times('7', MIB)),
  ],
  [
    'delta',
    'three million SKUs',
    'answer-too-large',
    () => delta(`"x":1`).replace('"changed":[]', `"changed":[${list(3e6, (n) => `"S${n}"`)}]`),
  ],
  [
    'delta',
    'a million objects in place of SKUs',
    'answer-too-large',
    () => delta(`"x":1`).replace('"removed":[]', `"removed":[${times('{},', 3e6)}{}]`),
  ],
  [
    'delta',
    'a million numbers in place of SKUs',
    'unreadable',
    () => delta(`"x":1`).replace('"removed":[]', `"removed":[${times('7,', 2e6)}7]`),
  ],
  [
    'delta',
    'one SKU, a million times',
    'ok',
    () => delta(`"x":1`).replace('"changed":[]', `"changed":[${list(1e6, () => `"${SKU}"`)}]`),
  ],
  [
    'bulk',
    'a size_map entry of 22 million empty arrays',
    'answer-too-large',
    () => record(`{"9":[${times('[],', 63 * MIB)}[]]}`),
  ],
  [
    'bulk',
    '300,000 sizes of one SKU',
    'answer-too-large',
    () => record(`{${list(300_000, (n) => `"${n}":100`)}}`),
  ],
  ['bulk', '1001 sizes of one SKU', 'ok', () => record(`{${list(1001, (n) => `"${n}":100`)}}`)],
  [
    'bulk',
    'a product of 20,000 members',
    'answer-too-large',
    () => record('{}', `{${list(22_000, (n) => `"m${n}":1`)}}`),
  ],
  [
    'bulk',
    'a product nested 400 deep',
    'ok',
    () => record('{}', `${'{"a":'.repeat(400)}1${'}'.repeat(400)}`),
  ],
  ['bulk', 'an entry of 900,000 digits', 'ok', () => record(`{"9":${times('7', 0.9 * MIB)}}`)],
  [
    'bulk',
    'a million SKUs that nobody asked for',
    'answer-too-large',
    () => `{"results":{},"errors":[${list(1e6, (n) => `"S${n}"`)}]}`,
  ],
  [
    'bulk',
    'a million records that nobody asked for',
    'answer-too-large',
    () => `{"results":{${list(1e6, (n) => `"S${n}":0`)}}}`,
  ],
];

export const BOMBS: readonly Bomb[] = [
  ...ANYWHERE.flatMap(([name, becomes, text]) => {
    const body = once(() => zipped(text()));
    return (['manifest', 'delta', 'bulk'] as const).map((route): Bomb => ({
      name: `${route}: ${name}`,
      route,
      becomes,
      body,
    }));
  }),
  ...OF_ROUTES.map(([route, name, becomes, text]): Bomb => ({
    name: `${route}: ${name}`,
    route,
    becomes,
    body: () => zipped(text()),
  })),
  {
    name: 'bulk: gzip in gzip, a gigabyte',
    route: 'bulk',
    becomes: 'answer-too-large',
    body: () => gzipSync(zipped(times('0', 500 * MIB))),
  },
];

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

/** A delta that removes a million SKUs, the most that one answer may contain. */
export const MILLION_REMOVED: Bomb = {
  name: 'delta: a million SKUs removed',
  route: 'delta',
  becomes: 'ok',
  body: () =>
    zipped(delta('"x":1').replace('"removed":[]', `"removed":[${list(1e6, (n) => `"GONE-${n}"`)}]`)),
};
