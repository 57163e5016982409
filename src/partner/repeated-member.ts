/*
 * JSON.parse keeps the last of several members of one name. Where an earlier one said something else, that is lost
 * without a trace.
 */

/** What stands for no value, or for an empty list. */
export const NOTHING = /^(?:null|""|\[\s*\]|\{\s*\})$/;
/** A letter or an underscore that is written by its code: any name may be in there. */
const ESCAPED_LETTER = /\\u00[4-7]/;

/**
 * The first of these members at the top of a JSON object of which the last value is not all that was said; null where
 * there is none. `text` is JSON, and `names` are plain words.
 */
export function lostMember(text: string, names: readonly string[]): string | null {
  if (!mayRepeat(text, names)) return null;
  const values = valuesAtTop(text, names);
  const isLost = (all: readonly string[]) =>
    all.slice(0, -1).some((value) => value !== all.at(-1) && !NOTHING.test(value));
  return names.find((name) => isLost(values.get(name) ?? [])) ?? null;
}

/** Whether it is worth to read the text for them. Quotes within a string are escaped, so what matches is a member. */
function mayRepeat(text: string, names: readonly string[]): boolean {
  const seen = new Set<string>();
  for (const [, name = ''] of text.matchAll(new RegExp(String.raw`"(${names.join('|')})"\s*:`, 'g'))) {
    if (seen.has(name)) return true;
    seen.add(name);
  }
  return ESCAPED_LETTER.test(text);
}

/** The text of each value that a member of the object itself has, by its name, in their order. */
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

/** Where the string ends that begins at `start`, at its closing quote. */
export function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at;
}

/** The text that a string in JSON stands for. */
export const nameOf = (quoted: string): string =>
  quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1);
