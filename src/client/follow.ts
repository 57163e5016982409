import type { Sql, TransactionSql } from 'postgres';
import { systemClock } from '../lib/clock.ts';
import { FollowError, isPassing } from './errors.ts';
import { readPlace, keepPosition, type Store } from './position.ts';
import { type Batch, readBatch } from './read-batch.ts';
import { openSource, type Source, listenForNews } from './source.ts';
import { transact } from './transact.ts';

/* Following the mirror's changes from TypeScript. Importing this starts nothing. */

export { type Change, type PriceChange, productAfter, type ProductChange, type SkuChange } from './change.ts';
export { FollowError, type FollowErrorKind } from './errors.ts';
export type { Batch } from './read-batch.ts';
export type { Source } from './source.ts';

/** How to follow. */
interface Pace {
  /** Changes in a batch, at most, 1 to 100,000; 1000 by default. A batch of a first copy has about as many. */
  readonly batch?: number;
  /** Ends following without an error. A batch that is being applied is finished. */
  readonly signal?: AbortSignal;
  /**
   * Longest time between two readings, in milliseconds; 60,000 by default. A notification is what usually brings the
   * next one.
   */
  readonly pollMs?: number;
  /**
   * Told of each failure that passes (the server restarts, the network fails) and how long it waits before the next
   * try.
   */
  readonly onRetry?: (error: unknown, inMs: number) => void;
}

export type FollowOptions = Source &
  Pace & {
    /**
     * `'start'`: a first copy, then changes. `'now'`: changes from now on; the first batch has none, and the position
     * to go on from should you end before one comes. Else the `position` of the last batch that you have applied.
     */
    readonly position: string | bigint;
  };

export type FollowIntoOptions = Source &
  Pace & {
    /**
     * A table of yours that holds the position: `name text primary key, position text not null`. It is created where
     * it is missing.
     */
    readonly table: string;
    /**
     * The follower's row in it; `'default'` where left out. Two processes with one name take turns, and apply each
     * batch once.
     */
    readonly name?: string;
    /** Where a follower begins that has no row yet; `'start'` where left out. */
    readonly position?: string | bigint;
    /** Applies a batch. What it does through `tx` commits together with the position, or not at all. */
    readonly apply: (tx: TransactionSql, batch: Batch) => Promise<void> | void;
    /**
     * Where the position is lost: empties your copy through `tx`, and a first copy begins. Without it `followInto`
     * rejects.
     */
    readonly onLost?: (tx: TransactionSql, error: FollowError) => Promise<void> | void;
  };

/**
 * Yields the mirror's changes in the order of their commits, and waits for more. Write down `position` with what you
 * did with a batch, and begin there after a restart: each batch then comes at least once. Connections that are lost
 * are made anew, once one was made. Throws FollowError, and what the driver throws if Postgres cannot be reached in
 * the first place.
 */
export async function* follow(options: FollowOptions): AsyncGenerator<Batch, void, undefined> {
  const { signal, batch } = checked(options);
  readPlace(options.position);
  const { sql, close } = openSource(options, true);
  const turns = takeTurns(sql, options);
  let position = String(options.position);
  try {
    while (!isOver(signal)) {
      const read = await turns.next(() => unlessOver(readBatch(sql, position, batch), signal));
      if (read === null) return;
      const isAll = read.changes.length === 0 && read.position === position;
      const isBegun = readPlace(position).at === 'now';
      position = read.position;
      if (read.changes.length > 0 || isBegun) yield read;
      else if (isAll) await turns.wait();
    }
  } finally {
    await turns.close();
    await close();
  }
}

/**
 * Applies each change exactly once: the follower's position is in a table of yours, and is stored in the transaction
 * that applies the batch. Resolves once `signal` aborts. Rejects with FollowError, with what `apply` throws (the
 * batch is then taken back), and with what the driver throws if Postgres cannot be reached in the first place.
 */
export async function followInto(options: FollowIntoOptions): Promise<void> {
  const { signal, batch } = checked(options);
  const store: Store = { table: options.table, name: options.name ?? 'default' };
  const begin = String(options.position ?? 'start');
  readPlace(begin);
  const { sql, close } = openSource(options, false);
  const turns = takeTurns(sql, options);
  try {
    await turns.next(() => keepPosition.prepare(sql, store, begin));
    while (!isOver(signal)) {
      const isMore = await turns.next(() => applyNext(sql, store, options, batch));
      if (isMore === false) await turns.wait();
    }
  } finally {
    await turns.close();
    await close();
  }
}

/** One batch, or none; whether there may be more. */
async function applyNext(
  sql: Sql,
  store: Store,
  { apply, onLost }: FollowIntoOptions,
  most: number,
): Promise<boolean> {
  let position: string | null = null;
  try {
    return await transact(sql, async (tx, isLost) => {
      position = await keepPosition.lock(tx, store);
      const read = await readBatch(tx, position, most);
      if (read.changes.length === 0 && read.position === position) return false;
      if (read.changes.length > 0) await applyBatch(tx, isLost, apply, read);
      await keepPosition.save(tx, store, read.position);
      return true;
    });
  } catch (error) {
    if (!(error instanceof FollowError) || error.kind !== 'position-lost' || onLost === undefined)
      throw error;
    await transact(sql, async (tx) => {
      // Another process of this name may have done it meanwhile.
      if ((await keepPosition.lock(tx, store)) !== position) return;
      await onLost(tx, error);
      await keepPosition.save(tx, store, 'start');
    });
    return true;
  }
}

/** What `apply` threw for a reason of its own, which only looks as if it might pass: its transaction was well. */
class OwnFailure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

async function applyBatch(
  tx: TransactionSql,
  isLost: () => boolean,
  apply: FollowIntoOptions['apply'],
  batch: Batch,
): Promise<void> {
  try {
    await apply(tx, batch);
  } catch (error) {
    if (isLost() || !isPassing(error)) throw error;
    const isWell = await tx.unsafe('select').then(
      () => true,
      () => false,
    );
    throw isWell ? new OwnFailure(error) : error;
  }
}

const isOver = (signal: AbortSignal | undefined): boolean => signal?.aborted === true;

/** What `waited` brings; null: aborted before, with nothing under way that has to be finished. */
async function unlessOver<T>(waited: Promise<T>, signal: AbortSignal | undefined): Promise<T | null> {
  const over = Promise.withResolvers<null>();
  const end = () => over.resolve(null);
  signal?.addEventListener('abort', end, { once: true });
  if (isOver(signal)) end();
  try {
    return await Promise.race([waited, over.promise]);
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

const BATCH = 1000;
const MAX_BATCH = 100_000;
const POLL_MS = 60_000;
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 10_000;

function checked({ batch = BATCH, pollMs = POLL_MS, signal }: Pace) {
  if (!Number.isInteger(batch) || batch < 1 || batch > MAX_BATCH)
    throw new FollowError('invalid', `batch is ${batch}`, `give a whole number from 1 to ${MAX_BATCH}`);
  // Beyond that a timer ends at once.
  if (!(pollMs > 0) || pollMs >= 2 ** 31)
    throw new FollowError(
      'invalid',
      `pollMs is ${pollMs}`,
      'give milliseconds, more than 0 and at most 2147483647',
    );
  return { batch, signal };
}

/**
 * One turn after the other: failures that pass are tried again, with growing waits in between, once a turn has
 * succeeded.
 */
function takeTurns(
  sql: Sql,
  { pollMs = POLL_MS, signal, onRetry }: Pace,
  sleep: (ms: number, signal?: AbortSignal) => Promise<void> = (ms, ends) => systemClock.sleep(ms, ends),
  random: () => number = Math.random,
) {
  const news = listenForNews(sql, { pollMs, sleep, signal });
  let hasWorked = false;
  let failures = 0;
  return {
    /** What `turn` returns; null: aborted before it worked. */
    async next<T>(turn: () => Promise<T>): Promise<T | null> {
      while (!isOver(signal)) {
        try {
          const result = await turn();
          hasWorked = true;
          failures = 0;
          return result;
        } catch (error) {
          if (error instanceof OwnFailure) throw error.error;
          if (!hasWorked || !isPassing(error)) throw error;
          const inMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** failures) * (0.5 + random() / 2);
          failures += 1;
          onRetry?.(error, inMs);
          await sleep(inMs, signal);
        }
      }
      return null;
    },
    wait: () => unlessOver(news.wait(), signal),
    close: () => news.close(),
  };
}
