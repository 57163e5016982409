type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

/** Begins what stands for an escape: of the private use area, and written as an escape itself where it occurs. */
const MARK = '\uF8FF';
/** The character with this code and MARK, as two characters, are one that JSON has to escape. */
const SHIFT = 0xe000;
/** An escape of JSON, or MARK. */
const ESCAPE = /\\(?:u([\da-f]{4})|(["\\/bfnrt]))|\uF8FF/gi;
const SHORT = new Map(Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }));
const MARKED = /\uF8FF(.)/gsu;

/**
 * JSON text to a value, as JSON.parse has it, but for names with escapes: V8 compares a name as it is written with one
 * that it has met in the same place, and takes `"\""` for `\` where an object before had that size. Throws SyntaxError.
 */
export function parseSentJson(text: string, reviver?: Reviver): unknown {
  if (!hasEscapedName(text)) return JSON.parse(text, reviver);
  return restored(JSON.parse(text.replace(ESCAPE, withoutEscape), reviver));
}

/** Whether a string with an escape in it stands before a colon. */
function hasEscapedName(text: string): boolean {
  if (!text.includes('\\')) return false;
  for (let start = text.indexOf('"'); start !== -1;) {
    const end = endOfString(text, start);
    const escape = text.indexOf('\\', start);
    // After the last escape no name can have one.
    if (escape === -1) return false;
    if (escape < end && isBeforeColon(text, end + 1)) return true;
    start = text.indexOf('"', end + 1);
  }
  return false;
}

function isBeforeColon(text: string, from: number): boolean {
  let at = from;
  while (' \t\n\r'.includes(text.charAt(at)) && at < text.length) at += 1;
  return text.charAt(at) === ':';
}

/** Where the string ends that begins at `start`, at its closing quote. */
export function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at;
}

function withoutEscape(_escape: string, hex: string | undefined, short: string | undefined): string {
  const sign =
    hex === undefined
      ? (SHORT.get(short ?? '') ?? short ?? MARK)
      : String.fromCharCode(Number.parseInt(hex, 16));
  const needsEscape = sign === '"' || sign === '\\' || sign === MARK || sign < ' ';
  return needsEscape ? MARK + String.fromCharCode(SHIFT + (sign === MARK ? 0x80 : sign.charCodeAt(0))) : sign;
}

function textOf(text: string): string {
  if (!text.includes(MARK)) return text;
  return text.replace(MARKED, (_both, moved: string) => {
    const code = moved.charCodeAt(0) - SHIFT;
    return code === 0x80 ? MARK : String.fromCharCode(code);
  });
}

function restored(value: unknown): unknown {
  if (typeof value === 'string') return textOf(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(restored);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [textOf(name), restored(member)]));
}
