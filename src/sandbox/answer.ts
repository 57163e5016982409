import type { Json } from './wire.ts';

export interface Call {
  /** The path's parameters, percent-encoding undone. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly text: string;
}

/** A handler's answer, with what the request record tells about it. */
export interface Answer {
  status: number;
  body: object;
  skus?: string[];
  liveComputed?: number;
}

/** A validation failure (partner rules 7.2): the body repeats the status. */
export function invalid(message: string): Answer {
  return refused(400, message);
}

/** HTTP 400 whose body names another status: 403 where an order is not the caller's (partner rule 7.4.2). */
export function refused(statusCode: number, message: string): Answer {
  return { status: 400, body: { statusCode, message } };
}

/** The JSON object of a body, or what is wrong with it. */
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

/** What a member of a request's body may have to be. A question mark: it may be left out. */
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

/** The asked members of a JSON object, or what is wrong with the first that does not fit. Other members are ignored. */
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

/** Position of a row in a list that runs from the newest to the oldest. */
export interface Keyset {
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Orders rows of the same millisecond. */
  readonly seq: number;
}

/** One page of a list, and the cursor of the next; null = there is none. */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly nextCursor: string | null;
}

/**
 * The page of `rows` (in any order) that a cursor stands before; null for a cursor that this endpoint did not give out
 * (partner rules 4.3.1 to 4.3.3). A row that comes while a client pages is on no later page, and shifts none.
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
  // Only what `encode` would give out for this endpoint: reading base64 forgives, and a token is whole or it is none.
  return encode(endpoint, keyset) === cursor ? keyset : null;
}

export interface PlainCall {
  readonly path: string;
  readonly query: URLSearchParams;
}
