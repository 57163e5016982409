import type { IncomingMessage } from 'node:http';
import type { Route } from './faults.ts';

const KEPT = 20_000;
/** Characters of a body that are stored, and the number of last requests with a stored body. */
const BODY_CHARS = 4000;
const BODIES_KEPT = 500;

export interface RequestRecord {
  /** Arrival, epoch milliseconds. */
  at: number;
  route: Route;
  method: string;
  /** Without the query. */
  path: string;
  query: string;
  /** What was sent, cut if long; null if nothing, for a bulk call (see `skus`), and for all but the last requests. */
  body: string | null;
  /** 0 while unanswered, and for a connection that was reset. */
  status: number;
  /** `code` of the answer's body, if it has one. */
  code: string | null;
  /** The fault that was applied to it; null if none. */
  fault: string | null;
  /** The credential named the account's api_key, so the request counted against its limit. */
  apiKey: boolean;
  /** An Authorization header was present, even if on the files origin. */
  authorization: boolean;
  /** The SKUs of a single lookup or a bulk call, as sent. */
  skus: string[];
  liveComputed: number;
}

/** The last requests, and the number of requests per route. */
export class RequestLog {
  records: RequestRecord[] = [];
  readonly #counts = new Map<Route, number>();

  add(record: RequestRecord): void {
    this.records.push(record);
    if (this.records.length > KEPT) this.records.shift();
    const old = this.records.at(-BODIES_KEPT);
    if (old !== undefined) old.body = null;
    this.#counts.set(record.route, (this.#counts.get(record.route) ?? 0) + 1);
  }

  /** Returns the last requests, except those for the sandbox's own page. */
  ofClients(): RequestRecord[] {
    return this.records.filter(({ route }) => route !== 'routes_page');
  }

  /** Removes the requests so far; the counts stay. */
  clear(): void {
    this.records = [];
  }

  count(route: Route | '*'): number {
    if (route !== '*') return this.#counts.get(route) ?? 0;
    let total = 0;
    for (const count of this.#counts.values()) total += count;
    return total;
  }
}

/** Returns the part of a request's body that its record stores. */
export function bodyShown(route: Route | undefined, text: string | null): string | null {
  if (text === null || text === '' || route === 'bulk') return null;
  return text.length > BODY_CHARS ? `${text.slice(0, BODY_CHARS)}…` : text;
}

/**
 * Formats one request as a line of the log: moment, method, path, answer, body. Omits signatures of presigned URLs.
 */
export function lineOf(record: RequestRecord): string {
  const { at, route, method, path, query, status, code, fault, skus, body } = record;
  const isFile = route === 'file' || route === 'label_file';
  const words = [
    new Date(at).toISOString(),
    method,
    query === '' || isFile ? path : `${path}?${query}`,
    status === 0 ? 'unanswered' : String(status),
    ...(code === null || code === '0000' ? [] : [code]),
    ...(route === 'bulk' ? [`${skus.length} SKUs`] : []),
    ...(fault === null ? [] : [`(fault: ${fault})`]),
    ...(body === null ? [] : [body]),
  ];
  return printable(words.join(' '));
}

/** Escapes whatever a terminal would act on, so that the line stays one line. */
function printable(text: string): string {
  return text.replaceAll(
    // oxlint-disable-next-line no-control-regex
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const MAX_BODY_BYTES = 1024 * 1024;

/** Reads the request's body as text; null if it is larger than the sandbox accepts. */
export async function readBody(request: IncomingMessage): Promise<string | null> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += (part as Buffer).length;
    if (size <= MAX_BODY_BYTES) parts.push(part as Buffer);
  }
  return size > MAX_BODY_BYTES ? null : Buffer.concat(parts).toString('utf8');
}
