import { isUtf8 } from 'node:buffer';

/** Longest SKU and longest size key that the mirror stores, in UTF-16 units. */
export const MAX_KEY_LENGTH = 512;
/** Longest size key in bytes of UTF-8. Together with the longest SKU (1536 bytes) it must fit into a btree entry. */
export const MAX_SIZE_BYTES = 1024;
/**
 * Longest snapshot identifier in bytes of UTF-8. It may be a signed token of a kilobyte, is sent within a URL, and
 * must fit into an entry of Postgres's btrees, 2704 bytes (catalog_internal.left_tokens).
 */
export const MAX_TOKEN_BYTES = 2048;
/** Deeper JSON is refused, to protect the stacks of Postgres and of recursive code. */
const MAX_DEPTH = 64;

/** Replaces invalid UTF-8. It is a lone surrogate, so no text that contains it can be a SKU, a size or a token. */
const BROKEN = '\uDFFF';
/** U+FFFD after an escaped high surrogate, with which a single `BROKEN` would form a valid character. */
const BEHIND_HALF = /(?<=\\u[dD][89abAB][\da-fA-F]{2})\uFFFD/g;
/** U+FFFD that no backslash escapes. After an odd backslash, `\udfff` would be read as plain text. */
const UNESCAPED = /(?<=(?<!\\)(?:\\\\)*)\uFFFD/g;

/** Decodes bytes with invalid UTF-8. Each invalid sequence becomes U+FFFD, or two of them after a high surrogate. */
const decodedBroken = (bytes: Buffer) => bytes.toString('utf8').replaceAll(BEHIND_HALF, '\uFFFD\uFFFD');

/** Decodes a body. Invalid bytes must not turn a SKU into another one, as U+FFFD would, so they become `BROKEN`. */
export function decodeUtf8(bytes: Buffer): string {
  return isUtf8(bytes) ? bytes.toString('utf8') : decodedBroken(bytes).replaceAll('\uFFFD', BROKEN);
}

/** Returns whether the bytes of the text contained invalid UTF-8. */
export const isBroken = (text: string): boolean => text.includes(BROKEN);

/** Replaces invalid UTF-8 in lines of JSON by the escape `\udfff`, because UTF-8 cannot encode `BROKEN`. */
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

/** Returns whether Postgres can store the text: no NUL (SQLSTATE 22021), no lone surrogate (collides once encoded). */
export function isStorableText(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** Returns the text with every NUL and lone surrogate replaced by U+FFFD, so that Postgres can store it. */
export function toStorable(text: string): string {
  return isStorableText(text) ? text : text.replaceAll('\0', '\uFFFD').toWellFormed();
}

/** Returns whether the value can name a SKU in the mirror: storable text of 1 to 512 characters. */
export function isReadableSku(value: unknown): value is string {
  return (
    typeof value === 'string' && value.length > 0 && value.length <= MAX_KEY_LENGTH && isStorableText(value)
  );
}

/** Returns whether the value can be a snapshot identifier: storable text of 1 to 2048 bytes. */
export function isReadableToken(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    Buffer.byteLength(value) <= MAX_TOKEN_BYTES &&
    isStorableText(value)
  );
}

/** Returns whether the text can be a size key: storable, at most 512 characters and 1024 bytes; it may be empty. */
export function isReadableSize(key: string): boolean {
  return key.length <= MAX_KEY_LENGTH && Buffer.byteLength(key) <= MAX_SIZE_BYTES && isStorableText(key);
}

/**
 * Makes every text and key of a parsed JSON value storable. Own keys such as `__proto__` stay own keys. Returns the
 * value itself if nothing had to change, otherwise a copy; undefined if it is nested deeper than 64 levels.
 */
export function toStorableJson(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return toStorable(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= MAX_DEPTH) return undefined;
  if (Array.isArray(value)) {
    const kept = value.map((member) => toStorableJson(member, depth + 1));
    // JSON has no undefined, so a member is undefined only because it is nested too deep.
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
