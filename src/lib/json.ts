/** Returns whether the value is a JSON object (not an array, not null). */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Characters that a terminal may take for a command, or a reader for another direction or another line. JSON itself
 * escapes only C0.
 */
export const UNSEEN = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Formats a value as one line of JSON with every such character escaped. Parsers read the same value. */
export function shownJson(value: unknown): string {
  return JSON.stringify(value).replace(
    UNSEEN,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Returns where the string that begins at `start` has its closing quote; beyond the text if it has none. */
export function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at;
}

type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

/**
 * Parses JSON whose keys come from others. The JSON.parse of Node.js 24 before 24.22, of 25, and of 26 up to at least
 * 26.10 reads a key that contains an escape as an earlier key of the same length that has a backslash in that place:
 * `7"` becomes `7\` (nodejs/node issue 63785), so a price would go to another size. To avoid that, such keys are
 * written without escapes, or replaced by stand-ins if that is impossible. Throws SyntaxError if the text is not JSON.
 *
 * @param reviver like that of JSON.parse, but only for values: keys may be stand-ins
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
 * Returns a short text that no key begins with, in whatever spelling. A text contains fewer numbered marks than
 * characters, so a free one is quickly found.
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

/** A key that contains an escape: its position in the text, from quote to quote, and its decoded name. */
interface EscapedKey {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

/** Finds the keys with escapes in a text that is valid JSON. */
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
