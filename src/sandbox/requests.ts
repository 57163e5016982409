import type { Route } from './faults.ts';

const KEPT = 20_000;

export interface RequestRecord {
  /** Arrival, epoch milliseconds. */
  at: number;
  route: Route;
  /** Without the query. */
  path: string;
  /** 0 while unanswered, and for a connection that was reset. */
  status: number;
  /** `code` of the answer's body, where it has one. */
  code: string | null;
  /** The credential named the account's api_key (so the request counted against its limit). */
  apiKey: boolean;
  /** An Authorization header was present, on the files origin too. */
  authorization: boolean;
  /** The SKUs of a single lookup or a bulk call, as sent. */
  skus: string[];
  liveComputed: number;
}

/** The last requests, and how many there were of each route. */
export class RequestLog {
  readonly records: RequestRecord[] = [];
  readonly #counts = new Map<Route, number>();

  add(record: RequestRecord): void {
    this.records.push(record);
    if (this.records.length > KEPT) this.records.shift();
    this.#counts.set(record.route, (this.#counts.get(record.route) ?? 0) + 1);
  }

  count(route: Route | '*'): number {
    if (route !== '*') return this.#counts.get(route) ?? 0;
    let total = 0;
    for (const count of this.#counts.values()) total += count;
    return total;
  }
}
