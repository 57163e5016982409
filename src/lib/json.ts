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
