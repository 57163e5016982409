import { isUtf8 } from 'node:buffer';

/** Longest SKU and longest size key the mirror keeps, in UTF-16 units. */
export const MAX_KEY_LENGTH = 512;
/** Longest size key, in bytes of UTF-8: with the longest SKU, of 1536, it has to fit into an entry of a btree. */
export const MAX_SIZE_BYTES = 1024;
/**
 * Longest snapshot identifier, in bytes of UTF-8. It may be a signed token of a kilobyte, is sent within a URL, and has
 * to fit into an entry of Postgres's btrees, 2704 bytes (catalog_internal.left_tokens).
 */
export const MAX_TOKEN_BYTES = 2048;
/** Deeper JSON than this is refused: Postgres and a recursive walk both have a stack to protect. */
const MAX_DEPTH = 64;

/** Stands for bytes that are no UTF-8: half a character, so that a text with it names no SKU, no size and no token. */
const BROKEN = '\uDFFF';
/** Behind the first half of a character, which JSON may write by its code: a second one would make it whole. */
const BEHIND_HALF = /(?<=\\u[dD][89abAB][\da-fA-F]{2})\uFFFD/g;
/** Behind no backslash: with that, its code would be the text of a code. */
const UNESCAPED = /(?<=(?<!\\)(?:\\\\)*)\uFFFD/g;

/** The text of bytes of which some are no UTF-8: U+FFFD for each of these, or two, of which no character comes. */
const decodedBroken = (bytes: Buffer) => bytes.toString('utf8').replaceAll(BEHIND_HALF, '\uFFFD\uFFFD');

/**
 * A body's text. Bytes that are no UTF-8 are not what the partner meant: a SKU that has them must not become another
 * one, as it would by U+FFFD.
 */
export function decodeUtf8(bytes: Buffer): string {
  return isUtf8(bytes) ? bytes.toString('utf8') : decodedBroken(bytes).replaceAll('\uFFFD', BROKEN);
}

/** Whether the text has bytes in it that were no UTF-8. */
export const isBroken = (text: string): boolean => text.includes(BROKEN);

/** The same for lines of a file: as JSON writes it, because no byte of UTF-8 stands for it. */
export function withBrokenEscaped(lines: Buffer): Buffer {
  if (isUtf8(lines)) return lines;
  const parts: Buffer[] = [];
  for (let start = 0, end = 0; start < lines.length; start = end) {
    end = lines.indexOf('\n', start) + 1 || lines.length;
    const line = lines.subarray(start, end);
    const escaped = () => Buffer.from(decodedBroken(line).replaceAll(UNESCAPED, String.raw`\udfff`));
    parts.push(isUtf8(line) ? line : escaped());
  }
  return Buffer.concat(parts);
}

/**
 * Whether Postgres takes the text as it stands: no NUL (SQLSTATE 22021), no lone surrogate (collides after encoding).
 */
export function isStorableText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** The text with every NUL and lone surrogate replaced by U+FFFD, so that Postgres takes it. */
export function toStorable(text: string): string {
  return isStorableText(text) ? text : text.replaceAll('\0', '\uFFFD').toWellFormed();
}

/** Whether the value can name a SKU in the mirror: storable text of 1 to 512 characters. */
export function isReadableSku(value: unknown): value is string {
  return (
    typeof value === 'string' && value.length > 0 && value.length <= MAX_KEY_LENGTH && isStorableText(value)
  );
}

/** Whether the value can be a snapshot identifier: storable text of 1 to 2048 bytes. */
export function isReadableToken(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    Buffer.byteLength(value) <= MAX_TOKEN_BYTES &&
    isStorableText(value)
  );
}

/**
 * Whether the text can be a size key: storable, at most 512 characters and 1024 bytes; the empty key is a size like any
 * other.
 */
export function isReadableSize(key: string): boolean {
  return key.length <= MAX_KEY_LENGTH && Buffer.byteLength(key) <= MAX_SIZE_BYTES && isStorableText(key);
}

/**
 * A parsed JSON value with every text and key in it made storable. Own keys such as `__proto__` stay own keys. Out:
 * the value itself where nothing had to change, a copy otherwise, undefined where it is nested deeper than 64 levels.
 */
export function toStorableJson(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return toStorable(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return undefined;
  if (Array.isArray(value)) {
    const kept = value.map((member) => toStorableJson(member, depth + 1));
    // Of what was parsed from JSON no member is undefined itself.
    if (kept.includes(undefined)) return undefined;
    return kept.every((member, i) => member === value[i]) ? value : kept;
  }
  const entries = Object.entries(value).map(([key, member]): [string, unknown] => [
    toStorable(key),
    toStorableJson(member, depth + 1),
  ]);
  if (entries.some(([, member]) => member === undefined)) return undefined;
  const members: readonly unknown[] = Object.values(value);
  const same = entries.every(([key, member], i) => member === members[i] && Object.hasOwn(value, key));
  return same ? value : Object.fromEntries(entries);
}
