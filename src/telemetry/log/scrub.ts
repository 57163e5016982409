import type { EventName } from '../../declared/log-events.ts';
import { shownJson } from '../../lib/json.ts';

const UNREADABLE: EventName = 'log.unreadable';
const HIDDEN = '[redacted]';
const LONGEST_TEXT = 16_384;

/** Members whose whole value is hidden, whatever it is. */
const SECRET_MEMBER =
  /^(?:(?:proxy-?)?authorization|(?:set-?)?cookie|(?:.*[_-])?(?:password|secret|api[_-]?key|(?:access|session|security|auth)[_-]?token))$/i;

// Repetitions before the telling character are bounded: a text of nothing but question marks must not take quadratic
// time.
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  // Authorization headers, as text, JSON or an object's inspection, then a Basic or Bearer value on its own. A value
  // has to look encoded: "basic authentication" is prose.
  [
    /((?:proxy-)?authorization\\?["']?\s*[:=]\s*\\?["']?)(?:(?:basic|bearer|digest)\s+)?[^\s"'\\,;}]+/gi,
    `$1${HIDDEN}`,
  ],
  [/\b((?:[Bb]asic|BASIC|[Bb]earer|BEARER)\s+)(?=[\w+/=.~-]*[\dA-Z+/=])[\w+/=.~-]{6,}/g, `$1${HIDDEN}`],
  // Userinfo of URLs.
  [/(:\/\/)[^\s/?#@"']+@/g, `$1${HIDDEN}@`],
  // Query strings: of any URL or path, and also what is left of one when its beginning was cut off or it was encoded.
  [/\?(?=[^\s"'<>]{0,2000}?(?:=|%3d))[^\s"'<>\\]+/gi, `?${HIDDEN}`],
  [/(:\/\/[^\s"'<>?]{0,2000}\?)[^\s"'<>\\]+/g, `$1${HIDDEN}`],
  [
    /\b((?:x-(?:amz|goog|ms)-[a-z-]+|signature|sig|awsaccesskeyid|googleaccessid|key-pair-id|policy)(?:=|%3d))[^\s&"'<>\\]+/gi,
    `$1${HIDDEN}`,
  ],
];

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** A value as plain text, and as JSON writes it, however many times JSON was nested in JSON. */
function escapedForm(value: string): string {
  // Backslashes in a row are one unit: each with a repetition of its own would be tried in every combination.
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

/**
 * Regular expressions for each form in which a value may turn up in text: plain, inside JSON, base64, percent-encoded.
 */
function forms(value: string): string[] {
  const percent = encodeUri(value);
  const percentForms = [
    percent,
    percent.replace(/%[\dA-F]{2}/g, (hex) => hex.toLowerCase()),
    new URLSearchParams([['', value]]).toString().slice(1),
  ];
  const bytes = Buffer.from(value, 'utf8');
  // Whole groups of three bytes only: what follows the value in the encoded text changes its last characters.
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
 * A value shorter than this is hidden where it stands alone only, and not within words and numbers: it is guessed in no
 * time, so a text gives nothing away with it, while without single letters no message can be read.
 */
const SHORTEST_WITHIN_WORDS = 4;

/** A regular expression for a short value on its own, in any form. */
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

/** What turns log text into text that may be shown. */
export interface Scrubber {
  /** Text without secrets, Authorization values, URL userinfo and query strings. */
  text(text: string): string;
  /** One JSON line with the same done to each member, name and value; it stays valid JSON. */
  line(line: string): string;
}

/**
 * A scrubber for log lines. `secrets` is called for each line, so that a rotated credential is known at once; empty
 * ones are ignored. It works on the decoded members of the serialised line: neither nesting nor escaping hides a
 * value from it.
 */
export function createScrubber(secrets: () => readonly string[]): Scrubber {
  let compiledFor = '';
  let pattern: RegExp | null = null;

  /** Takes in what the secrets are at present: once for each line, however many members that has. */
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
    // Cut only when the secrets are out: the front half of one is known to no pattern. The patterns below know their
    // kind of value by its beginning.
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
