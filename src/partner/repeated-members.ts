import { endOfString, isObject } from '../lib/json.ts';

/*
 * JSON.parse keeps only the last of several members with the same name. An earlier value is lost without a trace:
 * if a bulk answer contains a SKU twice, or a record a size or a price, nothing shows which price is right.
 */

/** Values that stand for nothing, or for an empty list. */
const NOTHING = /^(?:null|""|\[\s*\]|\{\s*\})$/;
/** An escaped letter or underscore. It may be part of any name. */
const ESCAPED_LETTER = /\\u00[4-7]/;

/** Replaces a record that has two values. No record is a text, while null may be a placeholder. */
const UNCLEAR = 'two values';

/**
 * Returns a bulk answer, parsed from `text`, with a text in place of each record that `text` gives several values:
 * a text is unreadable as a record. Returns the same object if there is no such record.
 */
export function withoutUnclear(body: unknown, text: string): unknown {
  if (!isObject(body) || !isObject(body['results']) || countMembers(body) === countColons(text)) return body;
  const unclear = new Walk(text).unclear();
  if (unclear.size === 0) return body;
  const records = Object.entries(body['results']).map(([sku, record]): [string, unknown] => [
    sku,
    unclear.has(sku) ? UNCLEAR : record,
  ]);
  return { ...body, results: Object.fromEntries(records) };
}

/** Counts the members of all objects in a value. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner: readonly unknown[] = Object.values(value);
  return inner.reduce<number>(
    (sum, each) => sum + countMembers(each),
    Array.isArray(value) ? 0 : inner.length,
  );
}

/** Members that decide whether a record has a price. If another member repeats, its last value does no harm. */
const DECISIVE: ReadonlySet<string> = new Set(['code', 'size_map']);

/** Counts the colons outside of strings, one for each member. */
function countColons(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at);
    else if (char === COLON) count += 1;
  }
  return count;
}

const QUOTE = 0x22;
const COLON = 0x3a;
/** A number, true, false or null. */
const SCALAR = /[-+.\w]+/y;
/** Tab, line feed, carriage return and space. */
const BLANKS: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20]);

/** Walks through a JSON text once, from beginning to end. */
class Walk {
  readonly #text: string;
  readonly #unclear = new Set<string>();
  /** Text of each record by SKU, across all members named `results`. */
  readonly #records = new Map<string, string>();
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the SKUs whose records had another value before the last one. */
  unclear(): ReadonlySet<string> {
    this.#value([]);
    return this.#unclear;
  }

  #char(): string {
    while (BLANKS.has(this.#text.charCodeAt(this.#at))) this.#at += 1;
    return this.#text.charAt(this.#at);
  }

  #value(path: readonly string[]): void {
    const char = this.#char();
    if (char === '{') this.#members(path);
    else if (char === '[') this.#elements(path);
    else if (char === '"') this.#at = endOfString(this.#text, this.#at) + 1;
    else this.#scalar();
  }

  #scalar(): void {
    SCALAR.lastIndex = this.#at;
    this.#at += SCALAR.exec(this.#text)?.[0].length ?? 1;
  }

  #elements(path: readonly string[]): void {
    this.#at += 1;
    for (let char = this.#char(); char !== ']' && char !== ''; char = this.#char()) {
      if (char === ',') this.#at += 1;
      else this.#value(path);
    }
    this.#at += 1;
  }

  #members(path: readonly string[]): void {
    const areRecords = path.length === 1 && path[0] === 'results';
    const seen = areRecords ? this.#records : new Map<string, string>();
    this.#at += 1;
    for (let char = this.#char(); char !== '}' && char !== ''; char = this.#char()) {
      if (char !== '"') {
        this.#at += 1;
        continue;
      }
      const end = endOfString(this.#text, this.#at) + 1;
      const name = nameOf(this.#text.slice(this.#at, end));
      this.#at = end;
      // The colon.
      this.#char();
      this.#at += 1;
      this.#char();
      const from = this.#at;
      const inner = [...path, name];
      this.#value(inner);
      const value = this.#text.slice(from, this.#at);
      const before = seen.get(name);
      const isLost = before !== undefined && before !== value && !NOTHING.test(before);
      const [part, sku, member = ''] = inner;
      if (isLost && part === 'results' && sku !== undefined && (inner.length === 2 || DECISIVE.has(member)))
        this.#unclear.add(sku);
      seen.set(name, value);
    }
    this.#at += 1;
  }
}

/**
 * Returns the first of the members `names` that a JSON object has several times at its top level with an earlier
 * value that is lost; null if there is none. `text` is JSON, and `names` are plain words.
 */
export function lostMember(text: string, names: readonly string[]): string | null {
  if (!mayRepeat(text, names)) return null;
  const values = valuesAtTop(text, names);
  const isLost = (all: readonly string[]) =>
    all.slice(0, -1).some((value) => value !== all.at(-1) && !NOTHING.test(value));
  return names.find((name) => isLost(values.get(name) ?? [])) ?? null;
}

/** Returns whether the text must be read for them. Quotes within a string are escaped, so each match is a member. */
function mayRepeat(text: string, names: readonly string[]): boolean {
  const seen = new Set<string>();
  for (const [, name = ''] of text.matchAll(new RegExp(String.raw`"(${names.join('|')})"\s*:`, 'g'))) {
    if (seen.has(name)) return true;
    seen.add(name);
  }
  return ESCAPED_LETTER.test(text);
}

/** Returns the texts of the values that the object's own members have, by name and in their order. */
function valuesAtTop(text: string, names: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const values = new Map(names.map((each): [string, string[]] => [each, []]));
  let [level, from] = [0, 0];
  let name: string | null = null;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '"') {
      const end = endOfString(text, at);
      if (level === 1) name ??= nameOf(text.slice(at, end + 1));
      at = end;
    } else if (char === '{' || char === '[') level += 1;
    else if (char === '}' || char === ']') level -= 1;
    else if (char === ':' && level === 1) from = at + 1;
    if ((char === ',' && level === 1) || (char === '}' && level === 0)) {
      if (name !== null) values.get(name)?.push(text.slice(from, at).trim());
      name = null;
    }
  }
  return values;
}

/** Decodes a JSON string. */
const nameOf = (quoted: string): string =>
  quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1);
