import { gzipSync } from 'node:zlib';
import type { RejectionReason } from '../../src/partner/manifest-lines.ts';
import { badFile, goodHead, type ManifestCase } from './manifest-case.ts';
import { type Line, NEXT, textOf } from './upstream.ts';

/** Returns the text that replaces a line. */
type Spoil = (line: Line) => string;

const SPOILT_LINES = 40;

function member(name: keyof Line, value: unknown): Spoil {
  return (line) => JSON.stringify({ ...line, [name]: value });
}

function without(name: keyof Line): Spoil {
  return (line) => JSON.stringify({ ...line, [name]: undefined });
}

function text(change: (whole: string) => string): Spoil {
  return (line) => change(JSON.stringify(line));
}

const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
const show = (value: unknown) => JSON.stringify(value).slice(0, 24);

const SKUS: [unknown, RejectionReason][] = [
  [null, 'no-sku'],
  ['', 'no-sku'],
  [42, 'bad-sku'],
  [true, 'bad-sku'],
  [['SKU-0001'], 'bad-sku'],
  [{ sku: 'SKU-0001' }, 'bad-sku'],
  ['SKU\0', 'bad-sku'],
  ['\0', 'bad-sku'],
  ['SKU\ud800', 'bad-sku'],
  ['\udc00SKU', 'bad-sku'],
  ['x'.repeat(513), 'bad-sku'],
];
const FIELDS: [keyof Line, RejectionReason, unknown[]][] = [
  ['sizes', 'bad-sizes', [-1, 1.5, 1e10, 'three', '-3', [], {}, true]],
  ['price_source', 'unknown-price-source', [null, 'LIVE', '', 'cached', 1, ['live'], {}]],
  ['updated_at', 'bad-updated-at', [-1_763_000_000, true, 'yesterday', '2026-13-45T99:99:99Z', {}]],
];
const TEXTS: [string, Spoil, RejectionReason][] = [
  ['a line cut short', text((t) => t.slice(0, -5)), 'not-json'],
  ['a line without its first brace', text((t) => t.slice(1)), 'not-json'],
  ['single quotes', text((t) => t.replaceAll('"', "'")), 'not-json'],
  ['a comma at the end', text((t) => t.replace('}', ',}')), 'not-json'],
  ['NaN', text((t) => t.replace('"sizes":2', '"sizes":NaN')), 'not-json'],
  ['two objects in a line', text((t) => t + t), 'not-json'],
  ['a byte order mark', text((t) => `\uFEFF${t}`), 'not-json'],
  ['a NUL before the line', text((t) => `\0${t}`), 'not-json'],
  ['a raw NUL in the text', text((t) => t.replace('SKU', '\0')), 'not-json'],
  ['a raw tab in the text', text((t) => t.replace('SKU', '\t')), 'not-json'],
  ['UTF-16', text((t) => Buffer.from(t, 'utf16le').toString('latin1')), 'not-json'],
  ['HTML', () => '<html>', 'not-json'],
  ['a bracket, 5,000 deep and open', () => '['.repeat(5000), 'not-json'],
  ['an array', text((t) => `[${t}]`), 'not-an-object'],
  ['arrays, 20,000 deep', () => deep(20_000), 'not-an-object'],
  ['a number', () => '7', 'not-an-object'],
  ['a text', (line) => JSON.stringify(line.sku), 'not-an-object'],
  ['null', () => 'null', 'not-an-object'],
  ['true', () => 'true', 'not-an-object'],
  ['an empty object', () => '{}', 'no-sku'],
  ['a line under __proto__', text((t) => `{"__proto__":${t}}`), 'no-sku'],
  ['a line under constructor', text((t) => `{"constructor":{"prototype":${t}}}`), 'no-sku'],
  ['a line of 70 KB', text((t) => t.replace('}', `,"pad":"${'x'.repeat(70_000)}"}`)), 'too-long'],
  [
    'sizes as arrays, 10,000 deep',
    text((t) => t.replace('"sizes":2', `"sizes":${deep(10_000)}`)),
    'bad-sizes',
  ],
];

function spoilt(name: string, spoil: Spoil, reason: RejectionReason): ManifestCase {
  // Every seventh line, including the last.
  const places = new Set(Array.from({ length: SPOILT_LINES }, (_, n) => NEXT.length - 1 - n * 7));
  const lines = NEXT.map((line, n) => (places.has(n) ? spoil(line) : line));
  return badFile(`${name} in ${SPOILT_LINES} lines`, 'too-many-rejected-lines', gzipSync(textOf(lines)), {
    manifest: goodHead(NEXT),
    rejected: { reason, lines: SPOILT_LINES },
  });
}

/** Spoils a hash. Only a snapshot line's hash matters, so the line becomes a snapshot line. */
function hash(value: unknown): Spoil {
  return (line) => JSON.stringify({ ...line, price_source: 'snapshot', hash: value });
}

/** Files with correct bytes and counts, but many bad lines. */
export const BROKEN_LINES: readonly ManifestCase[] = [
  ...SKUS.map(([value, reason]) => spoilt(`sku ${show(value)}`, member('sku', value), reason)),
  ...FIELDS.flatMap(([name, reason, values]) =>
    values.map((value) => spoilt(`${name} ${show(value)}`, member(name, value), reason)),
  ),
  ...[null, '', 0, 7.5, true, [], {}, 'a\0b', '\ud800'].map((value) =>
    spoilt(`hash ${show(value)}`, hash(value), 'bad-hash'),
  ),
  spoilt('no sku', without('sku'), 'no-sku'),
  spoilt('no price_source', without('price_source'), 'unknown-price-source'),
  ...TEXTS.map(([name, spoil, reason]) => spoilt(name, spoil, reason)),
];
