import type { Sql, Tx } from '../connection/db.ts';

/*
 * Promises of a price's age (catalog.watchlist.max_age). Which of them the account can keep is decided in SQL alone
 * (catalog_internal.promises_that_fit), when a SKU comes first for its promise too (promised_interval,
 * due.promised_at); here is what answers show.
 */

/** The promise of an asked SKU that had a price, as of its answer. */
export interface HeldPromise {
  /** Seconds. */
  readonly maxAge: number;
  /** How old its price had become, in seconds, or for how long it was promised where that is less. */
  readonly seconds: number;
  /**
   * Whether something else than the mirror's own turns may have made it late: it could not be kept beside others, was
   * deferred, failed or was doubted, or all requests were kept back.
   */
  readonly excused: boolean;
}

/** What became of promises: kept, late for something that was known to hinder them, or late without. */
export const PROMISE_OUTCOMES = ['kept', 'hindered', 'broken'] as const;
export type PromiseOutcome = (typeof PROMISE_OUTCOMES)[number];
export type PromiseCounts = Readonly<Record<PromiseOutcome, number>>;

/** An answer's part in a promise: so many times it should have come by now, and whether it came in time. */
export interface PromiseCase {
  readonly sku: string;
  readonly cases: number;
  readonly kept: number;
  readonly outcome: PromiseOutcome;
}

/**
 * Judges one promise with the answer that has come. One that comes late has missed each `maxAge` that went by. Pure.
 */
export function judgePromise(sku: string, { maxAge, seconds, excused }: HeldPromise): PromiseCase {
  if (seconds <= maxAge) return { sku, cases: 1, kept: 1, outcome: 'kept' };
  return { sku, cases: Math.floor(seconds / maxAge), kept: 0, outcome: excused ? 'hindered' : 'broken' };
}

/** Cases by what became of them. Pure. */
export function countPromises(cases: readonly PromiseCase[]): PromiseCounts {
  const count = (outcome: PromiseOutcome) =>
    cases.reduce((sum, one) => sum + (one.outcome === outcome ? one.cases : 0), 0);
  return { kept: count('kept'), hindered: count('hindered'), broken: count('broken') };
}

/**
 * SQL: the promise of the SKU of `d`, `s` and `w`, before its answer is applied; null where it has none, or no price
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
 * Counts cases; call this after the ledger's rows of their SKUs were locked. A promise that ended while the answer
 * waited for these locks is left out: the case was read before that, and the promise's counts are deleted already
 * (watched_to_ledger).
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
  /** Those that the account cannot keep: not those of SKUs without a price, nor of those out of scope. */
  readonly leftOut: number;
  /** Requests a minute: what all of them need, and what is there for them. */
  readonly neededPerMinute: number;
  readonly availablePerMinute: number;
  /** Of the last day. */
  readonly cases: number;
  readonly kept: number;
}

/** As of when they were weighed last, a minute ago at most while a daemon runs. */
export async function readPromises(sql: Sql): Promise<PromiseStats> {
  const [row] = await sql<[PromiseStats]>`
    select promises, feasible, left_out as "leftOut", needed as "neededPerMinute", available as "availablePerMinute",
      cases::float8 as cases, kept::float8 as kept
    from catalog_internal.promising`;
  return row;
}
