import type { Sql, Tx } from '../connection/db.ts';

/*
 * Promises of a price's age (catalog.watchlist.max_age). SQL alone decides which of them the account can keep
 * (catalog_internal.promises_that_fit) and when a SKU comes first for its promise (promised_interval,
 * due.promised_at). This file judges what answers show.
 */

/** The promise for a SKU that had a price, at the time of its answer. */
export interface HeldPromise {
  /** Seconds. */
  readonly maxAge: number;
  /** How old its price was, in seconds, or how long that age had been promised if that is less. */
  readonly seconds: number;
  /**
   * Whether something other than the mirror's own scheduling may have made it late: it could not be kept beside
   * others, was deferred, failed or was doubted, or all requests were stopped.
   */
  readonly excused: boolean;
}

/** What became of promises: kept, late because of a known hindrance, or late without one. */
export const PROMISE_OUTCOMES = ['kept', 'hindered', 'broken'] as const;
export type PromiseOutcome = (typeof PROMISE_OUTCOMES)[number];
export type PromiseCounts = Readonly<Record<PromiseOutcome, number>>;

/**
 * What an answer adds to a promise: how often an answer was due since the last one, and how often one came in time.
 */
export interface PromiseCase {
  readonly sku: string;
  readonly cases: number;
  readonly kept: number;
  readonly outcome: PromiseOutcome;
}

/** Judges a promise by its answer. A late answer has missed each `maxAge` that went by. Pure. */
export function judgePromise(sku: string, { maxAge, seconds, excused }: HeldPromise): PromiseCase {
  if (seconds <= maxAge) return { sku, cases: 1, kept: 1, outcome: 'kept' };
  return { sku, cases: Math.floor(seconds / maxAge), kept: 0, outcome: excused ? 'hindered' : 'broken' };
}

/** Counts cases by outcome. Pure. */
export function countPromises(cases: readonly PromiseCase[]): PromiseCounts {
  const count = (outcome: PromiseOutcome) =>
    cases.reduce((sum, one) => sum + (one.outcome === outcome ? one.cases : 0), 0);
  return { kept: count('kept'), hindered: count('hindered'), broken: count('broken') };
}

/**
 * SQL: the promise of the SKU of `d`, `s` and `w`, before its answer is applied; null if it has none, or no price
 * yet.
 */
export function heldPromise(sql: Sql | Tx) {
  return sql`
    select json_build_object('maxAge', w.max_age, 'seconds', greatest(0, extract(epoch from clock_timestamp() - since)),
      'excused', not w.feasible or d.deferrals > 0 or d.failures > 0 or d.largest_call is not null or d.doubt is not null
        or exists (select from catalog_internal.promising where hindered_at >= since)
        or exists (select from catalog_internal.pace where raised_at >= since or backoff_until is not null)
        or exists (select from catalog_internal.pause where set_at >= since))
    from (select greatest(s.priced_at, least(w.promised_since, now())) as since) began
    where w.max_age is not null and s.state = 'priced'`;
}

/**
 * Counts cases. Call this after locking their SKUs' rows of the ledger. A promise that ended while the answer waited
 * for these locks is left out: its case was read before, and its counts are already deleted (watched_to_ledger).
 */
export async function writePromiseCases(tx: Tx, cases: readonly PromiseCase[]): Promise<void> {
  if (cases.length === 0) return;
  const hours = tx`floor(extract(epoch from excluded.hour - p.hour) / 3600)::int`;
  await tx`
    insert into catalog_internal.promise_cases as p (sku, hour, cases, kept)
    select sku, clock_timestamp(), array[cases], array[kept]
    from unnest(${cases.map(({ sku }) => sku)}::text[], ${cases.map((one) => one.cases)}::int[], ${cases.map(({ kept }) => kept)}::int[])
      as c(sku, cases, kept)
    where sku in (select w.sku from catalog_internal.watched w where w.max_age is not null)
    order by sku
    on conflict (sku) do update set hour = least(excluded.hour, p.hour + make_interval(hours => greatest(0, ${hours}))),
      cases = catalog_internal.counted(p.cases, ${hours}, excluded.cases[1]),
      kept = catalog_internal.counted(p.kept, ${hours}, excluded.kept[1])`;
}

/** What all promises of a mirror need, and what became of them. */
export interface PromiseStats {
  readonly promises: number;
  readonly feasible: number;
  /** Promises that the account cannot keep, without those of SKUs that have no price or are out of scope. */
  readonly leftOut: number;
  /** Requests a minute: needed for all of them, and available for them. */
  readonly neededPerMinute: number;
  readonly availablePerMinute: number;
  /** Of the last day. */
  readonly cases: number;
  readonly kept: number;
}

/** Reads the promises as last weighed, at most a minute ago while a daemon runs. */
export async function readPromises(sql: Sql): Promise<PromiseStats> {
  const [row] = await sql<[PromiseStats]>`
    select promises, feasible, left_out as "leftOut", needed as "neededPerMinute", available as "availablePerMinute",
      cases::float8 as cases, kept::float8 as kept
    from catalog_internal.promising`;
  return row;
}
