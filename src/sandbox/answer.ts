import type { Json } from './wire.ts';

export interface Call {
  /** The path's parameters, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly text: string;
}

/** A handler's answer, and what the request record reports about it. */
export interface Answer {
  status: number;
  body: object;
  skus?: string[];
  liveComputed?: number;
}

/** Creates a validation failure (partner rules 7.2): the body repeats the status. */
export function invalid(message: string): Answer {
  return refused(400, message);
}

/** Creates an HTTP 400 whose body names another status: 403 if an order is not the caller's (partner rule 7.4.2). */
export function refused(statusCode: number, message: string): Answer {
  return { status: 400, body: { statusCode, message } };
}

/** Parses the JSON object of a body, or returns what is wrong with it. */
export function readObject(text: string): Json | string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'body must be valid JSON';
  }
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  return isObject ? (body as Json) : 'body must be a JSON object';
}

/** Kinds of members in a request's body. A question mark means that the member is optional. */
const KINDS = {
  text: { fits: isText, must: 'must be a string that is not empty' },
  'text?': { fits: isText, must: 'must be a string that is not empty' },
  whole: { fits: Number.isInteger, must: 'must be a whole number' },
  'count?': {
    fits: (value: unknown) => Number.isInteger(value) && (value as number) > 0,
    must: 'must be a whole number above 0',
  },
} as const;

interface Values {
  text: string;
  'text?': string | undefined;
  whole: number;
  'count?': number | undefined;
}

type Kind = keyof Values;

/** Reads the asked members of a JSON object, ignoring others, or returns what is wrong with the first bad one. */
export function readFields<Asked extends Record<string, Kind>>(
  value: unknown,
  asked: Asked,
): { [Name in keyof Asked]: Values[Asked[Name]] } | string {
  if (typeof value !== 'object' || value === null) return 'must be a JSON object';
  const fields: Record<string, unknown> = {};
  for (const [name, kind] of Object.entries(asked)) {
    const given: unknown = Object.hasOwn(value, name) ? value[name as keyof typeof value] : undefined;
    if (given === undefined && kind.endsWith('?')) continue;
    if (!KINDS[kind].fits(given)) return `${name} ${KINDS[kind].must}`;
    fields[name] = given;
  }
  return fields as { [Name in keyof Asked]: Values[Asked[Name]] };
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Position of a row in a list that runs from newest to oldest. */
export interface Keyset {
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Orders rows of the same millisecond. */
  readonly seq: number;
}

/** One page of a list, and the cursor of the next; null if there is none. */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly nextCursor: string | null;
}

/**
 * Returns the page of `rows` (in any order) after a cursor; null if this endpoint did not issue the cursor (partner
 * rules 4.3.1 to 4.3.3). A row that is added while a client pages appears on no later page and shifts none.
 */
export function pageOf<T extends Keyset>(
  rows: readonly T[],
  { endpoint, cursor, size }: { endpoint: string; cursor: string | null; size: number },
): Page<T> | null {
  const from = cursor === null ? null : decode(endpoint, cursor);
  if (cursor !== null && from === null) return null;
  const rest = rows.filter((row) => from === null || newestFirst(from, row) < 0).toSorted(newestFirst);
  const page = rest.slice(0, size);
  const last = page.at(-1);
  const more = rest.length > page.length && last !== undefined;
  return { rows: page, nextCursor: more ? encode(endpoint, last) : null };
}

function newestFirst(left: Keyset, right: Keyset): number {
  return right.createdAt - left.createdAt || right.seq - left.seq;
}

function encode(endpoint: string, { createdAt, seq }: Keyset): string {
  return Buffer.from(JSON.stringify([endpoint, createdAt, seq])).toString('base64');
}

function decode(endpoint: string, cursor: string): Keyset | null {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64').toString('utf8'));
  } catch {
    return null;
  }
  if (!Array.isArray(parts)) return null;
  const [, createdAt, seq] = parts as unknown[];
  const keyset = { createdAt: Number(createdAt), seq: Number(seq) };
  // Only exactly what `encode` issues for this endpoint: base64 decoding is lenient, and a cursor must not be.
  return encode(endpoint, keyset) === cursor ? keyset : null;
}

export interface PlainCall {
  readonly path: string;
  readonly query: URLSearchParams;
}
