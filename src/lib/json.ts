/** Whether the value is a JSON object (not an array, not null). */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * What a terminal may take for a command, or a reader for another direction or another line; JSON itself escapes C0
 * alone.
 */
export const UNSEEN = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** One line of JSON in which every such character is escaped: the same value to whoever parses it. */
export function shownJson(value: unknown): string {
  return JSON.stringify(value).replace(
    UNSEEN,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Where the string ends that begins at `start`, at its closing quote; beyond the text where it has none. */
export function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at;
}

type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

/**
 * JSON.parse, for texts with keys of others. That of Node.js 24 before 24.22, of 25, and of 26 up to 26.10 at least
 * takes a key that has an escape for one of as many characters that it has met before and that has a backslash there:
 * `7"` for `7\` (nodejs/node issue 63785), so that a price goes to another size. It is given no such key: they are
 * written without escapes, and where that cannot be, others stand for them. Throws SyntaxError where the text is no
 * JSON.
 *
 * @param reviver as that of JSON.parse, of values alone: keys may be what stands for them
 */
export function parseJson(text: string, reviver?: Reviver): unknown {
  const value: unknown = JSON.parse(text, reviver);
  const keys = escapedKeys(text);
  if (keys.length === 0) return value;
  const mark = markBeside(text, keys);
  const standIns = new Map<string, string>();
  const standInFor = (name: string) => {
    if (!standIns.has(name)) standIns.set(name, `${mark}${standIns.size}`);
    return standIns.get(name) ?? name;
  };
  let [written, from] = ['', 0];
  for (const { start, end, name } of keys) {
    const needsNone = JSON.stringify(name) === `"${name}"`;
    written += `${text.slice(from, start)}"${needsNone ? name : standInFor(name)}"`;
    from = end;
  }
  const read: unknown = JSON.parse(written + text.slice(from), reviver);
  const names = new Map([...standIns].map(([name, standIn]) => [standIn, name]));
  return names.size === 0 ? read : renamed(read, names);
}

/**
 * A short text that no key begins with, however that is written. Of marks with a number a text has fewer than it has
 * characters, so one that it does not have is found in no time, whatever it is made of.
 */
function markBeside(text: string, keys: readonly EscapedKey[]): string {
  const taken = new Set<string | undefined>();
  for (const part of [text, ...keys.map(({ name }) => name)])
    for (const [, number] of part.matchAll(MARK)) taken.add(number);
  let free = 0;
  while (taken.has(String(free))) free += 1;
  return `\uf8ff${free}\uf8ff`;
}

const MARK = /\uf8ff(\d{1,9})\uf8ff/g;

/** A key that has an escape: where it is in the text, from quote to quote, and what it is. */
interface EscapedKey {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

/** Of a text that is JSON. */
function escapedKeys(text: string): EscapedKey[] {
  const keys = [];
  for (let at = text.indexOf('\\'); at !== -1;) {
    const start = text.lastIndexOf('"', at);
    const end = endOfString(text, start) + 1;
    AFTER_KEY.lastIndex = end;
    if (AFTER_KEY.test(text)) keys.push({ start, end, name: String(JSON.parse(text.slice(start, end))) });
    at = text.indexOf('\\', end);
  }
  return keys;
}

const AFTER_KEY = /[\t\n\r ]*:/y;

function renamed(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((each) => renamed(each, names));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [names.get(name) ?? name, renamed(each, names)]),
  );
}
