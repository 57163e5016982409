import type { Sql, TransactionSql } from 'postgres';
import { FollowError, isPassing } from './errors.ts';
import { behindPooler } from './pooler.ts';
import { readPlace, keepPosition, type Store } from './position.ts';
import { type Batch, readBatch } from './read-batch.ts';
import { openSource, type Source } from './source.ts';
import { transact, type Underway, workOf } from './transact.ts';
import { isOver, OwnFailure, type Pace, POLL_MS, takeTurns, Turn, unlessOver } from './turns.ts';

/* Following the mirror's changes from TypeScript. Importing this starts nothing. */

export { type Change, type PriceChange, productAfter, type ProductChange, type SkuChange } from './change.ts';
export { FollowError, type FollowErrorKind } from './errors.ts';
export type { Batch } from './read-batch.ts';
export type { Source } from './source.ts';

export type FollowOptions = Source &
  Pace & {
    /**
     * `'start'`: a first copy, then changes. `'now'`: changes from now on; the first batch is empty and contains
     * the position from which to continue if you end before a change comes. Otherwise the `position` of the last
     * batch that you have applied.
     */
    readonly position: string | bigint;
  };

export type FollowIntoOptions = Source &
  Pace & {
    /** A table of yours for the position, created if missing: `name text primary key, position text not null`. */
    readonly table: string;
    /**
     * The follower's row in it; `'default'` by default. Processes of one name take turns; each batch is applied
     * once.
     */
    readonly name?: string;
    /** Where a follower without a row begins; `'start'` by default. */
    readonly position?: string | bigint;
    /** Applies a batch. What it does through `tx` commits together with the position, or not at all. */
    readonly apply: (tx: TransactionSql, batch: Batch) => Promise<void> | void;
    /**
     * Must empty your copy through `tx` if the position is lost, after which a first copy begins. Without it
     * `followInto` rejects.
     */
    readonly onLost?: (tx: TransactionSql, error: FollowError) => Promise<void> | void;
  };

/**
 * Yields the mirror's changes in the order of their commits, and waits for more. Store `position` together with
 * what you did with a batch, and begin there after a restart: each batch then comes at least once. Lost connections
 * are re-established once one has succeeded. Throws FollowError, and what the driver throws if Postgres cannot be
 * reached at first.
 */
export async function* follow(options: FollowOptions): AsyncGenerator<Batch, void, undefined> {
  const { signal, batch } = checked(options);
  readPlace(options.position);
  const { sql, close } = openSource(options);
  const turns = takeTurns(sql, options);
  let position = String(options.position);
  let hasFound = false;
  try {
    while (!isOver(signal)) {
      const read = await turns.next(() => unlessOver(readBatch(sql, position, batch), signal));
      if (read === null) return;
      const isAll = read.changes.length === 0 && read.position === position;
      const isBegun = readPlace(position).at === 'now';
      position = read.position;
      hasFound ||= read.changes.length > 0;
      if (read.changes.length > 0 || isBegun) yield read;
      else if (isAll) {
        await turns.wait(hasFound);
        hasFound = false;
      }
    }
  } finally {
    await turns.close();
    await close();
  }
}

/**
 * Applies each change exactly once: the follower's position is in a table of yours, and is stored in the
 * transaction that applies the batch. Resolves once `signal` aborts. Rejects with FollowError, with what `apply`
 * throws (the batch is then rolled back), and with what the driver throws if Postgres cannot be reached at first.
 */
export async function followInto(options: FollowIntoOptions): Promise<void> {
  const { signal, batch } = checked(options);
  const store: Store = { table: options.table, name: options.name ?? 'default' };
  const begin = String(options.position ?? 'start');
  readPlace(begin);
  const { sql, close } = openSource(options);
  const turns = takeTurns(sql, options);
  let hasFound = false;
  try {
    const begun = await turns.next(() => unlessOver(beginning(sql, store, begin, options), signal));
    if (begun === null) return;
    while (!isOver(signal)) {
      const isMore = await turns.next(() => {
        const turn = new Turn(signal);
        return turn.unlessOver(applyNext({ sql, store, ...begun }, options, batch, turn));
      });
      hasFound ||= isMore === true;
      if (isMore === false) {
        await turns.wait(hasFound);
        hasFound = false;
      }
    }
  } finally {
    await turns.close();
    await close();
  }
}

async function beginning(sql: Sql, store: Store, from: string, { url }: FollowIntoOptions) {
  const way = await behindPooler(sql, url !== undefined);
  await keepPosition.prepare(sql, store, from);
  return way;
}

interface Into {
  readonly sql: Sql;
  readonly store: Store;
  /** As in `transact`. */
  readonly commits: boolean;
}

/** Applies one batch, if there is one. Returns whether there may be more. */
async function applyNext(
  { sql, store, commits }: Into,
  { apply, onLost }: FollowIntoOptions,
  most: number,
  turn: Turn,
): Promise<boolean> {
  let position: string | null = null;
  try {
    const readAndApply = async (tx: TransactionSql, under: Underway) => {
      turn.begins(under.cancel);
      position = await keepPosition.lock(tx, store);
      const read = await readBatch(tx, position, most);
      if (read.changes.length === 0 && read.position === position) return false;
      turn.applies();
      if (read.changes.length > 0) await applyBatch(tx, under.isLost, apply, read);
      await keepPosition.save(tx, store, read.position);
      return true;
    };
    return await transact(sql, readAndApply, commits);
  } catch (error) {
    if (!(error instanceof FollowError) || error.kind !== 'position-lost' || onLost === undefined)
      throw error;
    const beginAnew = async (tx: TransactionSql, { cancel }: Underway) => {
      turn.begins(cancel);
      // Another process with this name may have done it in the meantime.
      if ((await keepPosition.lock(tx, store)) !== position) return;
      turn.applies();
      await workOf(() => onLost(tx, error));
      await keepPosition.save(tx, store, 'start');
    };
    await transact(sql, beginAnew, commits);
    return true;
  }
}

async function applyBatch(
  tx: TransactionSql,
  isLost: () => boolean,
  apply: FollowIntoOptions['apply'],
  batch: Batch,
): Promise<void> {
  try {
    // Like the driver, also sends statements that are returned without having been awaited.
    await workOf(() => apply(tx, batch));
  } catch (error) {
    if (isLost() || !isPassing(error)) throw error;
    const isWell = await tx.unsafe('select').then(
      () => true,
      () => false,
    );
    throw isWell ? new OwnFailure(error) : error;
  }
}

const BATCH = 1000;
const MAX_BATCH = 100_000;

function checked({ batch = BATCH, pollMs = POLL_MS, signal }: Pace) {
  if (!Number.isInteger(batch) || batch < 1 || batch > MAX_BATCH)
    throw new FollowError('invalid', `batch is ${batch}`, `give a whole number from 1 to ${MAX_BATCH}`);
  // A longer timer would fire at once.
  if (!(pollMs > 0) || pollMs >= 2 ** 31)
    throw new FollowError(
      'invalid',
      `pollMs is ${pollMs}`,
      'give milliseconds, more than 0 and at most 2147483647',
    );
  return { batch, signal };
}
