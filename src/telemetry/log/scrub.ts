import type { EventName } from '../../declared/log-events.ts';
import { shownJson } from '../../lib/json.ts';

const UNREADABLE: EventName = 'log.unreadable';
const HIDDEN = '[redacted]';
const LONGEST_TEXT = 16_384;

/** Members whose value is always hidden as a whole. */
const SECRET_MEMBER =
  /^(?:(?:proxy-?)?authorization|(?:set-?)?cookie|(?:.*[_-])?(?:password|secret|api[_-]?key|(?:access|session|security|auth)[_-]?token))$/i;

// Repetitions before the distinguishing character are bounded, so that a text of nothing but question marks does not
// take quadratic time.
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  // Authorization headers as text, JSON or an inspected object, then a Basic or Bearer value on its own. A value has to
  // look encoded: "basic authentication" is prose.
  [
    /((?:proxy-)?authorization\\?["']?\s*[:=]\s*\\?["']?)(?:(?:basic|bearer|digest)\s+)?[^\s"'\\,;}]+/gi,
    `$1${HIDDEN}`,
  ],
  [/\b((?:[Bb]asic|BASIC|[Bb]earer|BEARER)\s+)(?=[\w+/=.~-]*[\dA-Z+/=])[\w+/=.~-]{6,}/g, `$1${HIDDEN}`],
  // Userinfo of URLs.
  [/(:\/\/)[^\s/?#@"']+@/g, `$1${HIDDEN}@`],
  // Query strings of any URL or path, and what is left of one if its beginning was cut off or it was encoded.
  [/\?(?=[^\s"'<>]{0,2000}?(?:=|%3d))[^\s"'<>\\]+/gi, `?${HIDDEN}`],
  [/(:\/\/[^\s"'<>?]{0,2000}\?)[^\s"'<>\\]+/g, `$1${HIDDEN}`],
  [
    /\b((?:x-(?:amz|goog|ms)-[a-z-]+|signature|sig|awsaccesskeyid|googleaccessid|key-pair-id|policy)(?:=|%3d))[^\s&"'<>\\]+/gi,
    `$1${HIDDEN}`,
  ],
];

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** Returns the pattern of a value as plain text, and as JSON writes it, however many times JSON was nested in JSON. */
function escapedForm(value: string): string {
  // Consecutive backslashes are one unit: separate repetitions would be tried in every combination.
  return (value.match(/\\+|[^]/g) ?? [])
    .map((unit) => {
      if (unit.startsWith('\\')) return `\\\\{${unit.length},}`;
      if (unit === '"' || unit === '/') return `\\\\*${literal(unit)}`;
      if (unit >= ' ' && unit <= '~') return literal(unit);
      const hex = unit.charCodeAt(0).toString(16).padStart(4, '0');
      return `(?:${unit}|\\\\+u(?:${hex}|${hex.toUpperCase()}))`;
    })
    .join('');
}

/** Returns regular expressions for each form of a value in text: plain, inside JSON, base64, percent-encoded. */
function forms(value: string): string[] {
  const percent = encodeUri(value);
  const percentForms = [
    percent,
    percent.replace(/%[\dA-F]{2}/g, (hex) => hex.toLowerCase()),
    new URLSearchParams([['', value]]).toString().slice(1),
  ];
  const bytes = Buffer.from(value, 'utf8');
  // Whole groups of three bytes only, because what follows the value changes the last characters of its encoding.
  const whole = bytes.length >= 9 ? bytes.subarray(0, bytes.length - (bytes.length % 3)) : bytes;
  const encoded = [whole.toString('base64'), whole.toString('base64url')].map((text) =>
    text.replace(/=+$/, ''),
  );
  return [
    escapedForm(value),
    ...percentForms.map(literal),
    ...encoded.map((text) => `${literal(text)}[\\w+/=-]*`),
  ];
}

/**
 * A shorter value is hidden only on its own, not within words and numbers. It could be guessed in no time, so a text
 * reveals nothing with it, whereas no message can be read without single letters.
 */
const SHORTEST_WITHIN_WORDS = 4;

/** Returns the pattern of a short value on its own, in any form. */
function aloneForm(value: string): string {
  const bytes = Buffer.from(value, 'utf8');
  const encoded = [bytes.toString('base64'), bytes.toString('base64url')].map(literal);
  const all = [escapedForm(value), literal(encodeUri(value)), ...encoded].join('|');
  return `(?<!\\w)(?:${all})(?!\\w)`;
}

const formsOf = (value: string): string[] =>
  value.length < SHORTEST_WITHIN_WORDS ? [aloneForm(value)] : forms(value);

function encodeUri(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    return value;
  }
}

/** Turns log text into text that may be shown. */
export interface Scrubber {
  /** Removes secrets, Authorization values, URL userinfo and query strings. */
  text(text: string): string;
  /** Does the same to the name and value of each member of one JSON line, which stays valid JSON. */
  line(line: string): string;
}

/**
 * Creates a scrubber for log lines. `secrets` is called for each line, so that a rotated credential is known at once;
 * empty ones are ignored. It works on the decoded members of the serialised line, so neither nesting nor escaping hides
 * a value from it.
 */
export function createScrubber(secrets: () => readonly string[]): Scrubber {
  let compiledFor = '';
  let pattern: RegExp | null = null;

  /** Compiles the current secrets. Called once per line, however many members it has. */
  function compile(): void {
    const values = secrets().filter((value) => value !== '');
    const key = JSON.stringify(values);
    if (key !== compiledFor) {
      const longestFirst = [...new Set(values.flatMap(formsOf))].toSorted((a, b) => b.length - a.length);
      pattern = longestFirst.length > 0 ? new RegExp(longestFirst.join('|'), 'g') : null;
      compiledFor = key;
    }
  }

  function hides(text: string): boolean {
    return pattern !== null && text.search(pattern) >= 0;
  }

  function scrubText(text: string): string {
    let clean = pattern === null ? text : text.replace(pattern, HIDDEN);
    // Cut only after the secrets are removed, because no pattern recognizes the front half of one. The patterns below
    // recognize their values by the beginning.
    if (clean.length > LONGEST_TEXT) clean = `${clean.slice(0, LONGEST_TEXT)}… (${clean.length} characters)`;
    for (const [form, replacement] of PATTERNS) clean = clean.replace(form, replacement);
    return clean;
  }

  function scrubValue(value: unknown): unknown {
    if (typeof value === 'string') return scrubText(value);
    if (typeof value === 'number') return hides(String(value)) ? HIDDEN : value;
    if (Array.isArray(value)) return value.map(scrubValue);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => {
        const hide = member !== null && SECRET_MEMBER.test(name);
        return [scrubText(name), hide ? HIDDEN : scrubValue(member)];
      }),
    );
  }

  return {
    text(text) {
      compile();
      return scrubText(text);
    },
    line(line) {
      compile();
      let parsed: unknown;
      try {
        parsed = JSON.parse(line);
      } catch {
        return `${shownJson({ level: 'error', event: UNREADABLE, text: scrubText(line) })}\n`;
      }
      return `${shownJson(scrubValue(parsed))}\n`;
    },
  };
}
