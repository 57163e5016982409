import type { Queryable, Sql } from '../connection/db.ts';
import { isLockNotAvailable, lockAtOnce } from '../connection/locks.ts';
import { type CatalogCounts, scanCatalog } from './counts.ts';

/*
 * When the catalog is counted, and who gets earlier counts: a scan of a large catalog takes seconds, and many ask
 * for it.
 */

const SNAPSHOT = 'isolation level repeatable read read only';

/**
 * Counts the whole catalog in scope in one snapshot of the database, however long that takes, and stores the result
 * for all readers. Rejects if a lock is not available within `lockedWithinMs`; null: waits as long as the session
 * does.
 */
export async function countCatalog(sql: Sql, lockedWithinMs: number | null = null): Promise<CatalogCounts> {
  const counting = sql.begin(SNAPSHOT, async (tx) => {
    if (lockedWithinMs !== null) await tx.unsafe(`set local lock_timeout = ${lockedWithinMs}`);
    return await scanCatalog(tx);
  });
  return await cached(sql, await counting);
}

/** Does the same, but nothing if another connection is doing it at this moment. Returns whether it counted. */
export async function countCatalogAlone(sql: Sql): Promise<boolean> {
  const counting = sql.begin(SNAPSHOT, async (tx) => {
    await lockAtOnce(tx, 'counts');
    return await scanCatalog(tx);
  });
  const counts = await counting.catch((error: unknown) => {
    if (isLockNotAvailable(error)) return null;
    throw error;
  });
  if (counts === null) return false;
  await cached(sql, counts);
  return true;
}

/** Stores the counts if possible: they are needed most when the database takes no writes. */
async function cached(sql: Sql, counts: CatalogCounts): Promise<CatalogCounts> {
  await store(sql, counts).catch(() => {});
  return counts;
}

/**
 * Counts that were begun while Postgres's clock was ahead are dated now: otherwise no later ones would replace them.
 */
async function store(sql: Sql, { countedAt, countedInMs, ...counts }: CatalogCounts): Promise<void> {
  await sql`
    insert into catalog_internal.catalog_counts as f (counted_at, counted_in_ms, counts)
    values (least(${countedAt}, clock_timestamp()), ${countedInMs}, ${sql.json(counts as never)})
    on conflict (id) do update set counted_at = excluded.counted_at, counted_in_ms = excluded.counted_in_ms, counts = excluded.counts
    where f.counted_at < excluded.counted_at or f.counted_at > clock_timestamp()`;
}

/** Members that counts of an older version lack; its daemon may have counted last. */
type Later = 'trust' | 'ofManifest' | 'outOfScope' | 'unanswered' | 'failing' | 'doubted' | 'liveDeferred';

/** Counts, their age by the database's clock, and whether another manifest was applied since. */
interface StoredCounts {
  readonly counts: CatalogCounts;
  readonly ageMs: number;
  readonly outdated: boolean;
}

/** Reads the latest counts, from whichever connection; null before the first. */
export async function storedCounts(sql: Queryable): Promise<StoredCounts | null> {
  const [row] = await sql<
    {
      countedAt: Date;
      countedInMs: number;
      counts: Omit<CatalogCounts, 'countedAt' | 'countedInMs' | Later> & Partial<Pick<CatalogCounts, Later>>;
      ageMs: number;
      outdated: boolean;
    }[]
  >`
    select counted_at as "countedAt", counted_in_ms as "countedInMs", counts,
      (extract(epoch from clock_timestamp() - counted_at) * 1000)::float8 as "ageMs",
      (counts ->> 'ofManifest')::timestamptz is distinct from (select manifest_applied_at from catalog_internal.sync) as outdated
    from catalog_internal.catalog_counts`;
  if (row === undefined) return null;
  const { countedAt, countedInMs, counts, ageMs, outdated } = row;
  return {
    counts: {
      countedAt,
      countedInMs,
      trust: [],
      ofManifest: null,
      outOfScope: null,
      unanswered: 0,
      failing: [],
      doubted: { implausible: 0, 'mass-move': 0 },
      liveDeferred: false,
      ...counts,
    },
    ageMs,
    outdated,
  };
}

/**
 * A count that takes no longer than this is repeated for every reader; during a longer one readers get the last
 * result.
 */
const MADE_AT_ONCE_MS = 25;
/**
 * The pause between counts, in durations of a count: counting takes at most a twentieth of the time, so a large
 * catalog is not scanned all the time.
 */
const REST_OF_A_COUNT = 19;
/** Counts older than two pauses and this are outdated: a reader waits for new ones. */
const TOO_OLD_MS = 120_000;
/** Counts dated further in the future say nothing about their age: a clock was ahead. */
const TO_COME_MS = 60_000;

/** What to do with existing counts: show them, show them while new ones are counted, or wait for new ones. */
export type CountsPlan = 'show' | 'show-and-count' | 'count';

/**
 * Decides by the age of the last counts, how long they took, and whether another manifest was applied since; null if
 * there are none.
 */
export function planCounts(
  last: { readonly ageMs: number; readonly countedInMs: number; readonly outdated?: boolean } | null,
): CountsPlan {
  if (last === null || last.countedInMs <= MADE_AT_ONCE_MS || last.outdated === true) return 'count';
  if (last.ageMs < -TO_COME_MS) return 'count';
  const rest = last.countedInMs * REST_OF_A_COUNT;
  if (last.ageMs < rest) return 'show';
  return last.ageMs < TOO_OLD_MS + 2 * rest ? 'show-and-count' : 'count';
}

/**
 * How a command counts: `now` for a single answer; `seldom` if it asks again and again, so that a large catalog is not
 * scanned all the time.
 */
export type Counting = 'now' | 'seldom';

/** A count that takes no longer than this is made for every single answer at a terminal. */
const SHORT_MS = 500;
/** A count that takes no longer than this is worth waiting for at a terminal, once its pause is over. */
const WORTH_WAITING_MS = 2000;
/** As long as a daemon waits for counts, which somebody else's lock on a table of the catalog may block. */
const LOCKED_WITHIN_MS = 1000;

/**
 * Reads counts for a command: new ones, or the last ones, with their time, if counting takes long or somebody has
 * locked what is counted. If no daemon's status is ever read, only commands count.
 */
export async function readCounts(sql: Sql, counting: Counting = 'now'): Promise<CatalogCounts> {
  const last = await storedCounts(sql);
  if (last === null) return await countCatalog(sql);
  const { countedInMs } = last.counts;
  const plan = planCounts({ ...last, countedInMs });
  const isShort = counting === 'now' && countedInMs <= SHORT_MS;
  const soon = plan === 'show-and-count' && countedInMs <= WORTH_WAITING_MS;
  if (plan !== 'count' && !isShort && !soon) return last.counts;
  return await countCatalog(sql, LOCKED_WITHIN_MS).catch((error: unknown) => {
    if (isLockNotAvailable(error)) return last.counts;
    throw error;
  });
}

/** Receives the result of each count by a daemon. */
export interface CountsTold {
  readonly failed: (error: unknown) => void;
  readonly counted: () => void;
}

const UNTOLD: CountsTold = { failed: () => {}, counted: () => {} };

/** Counts as `count` does, but after a failure only rethrows it until the pause after a success would be over. */
function restingAfterFailure(now: () => number, told: Pick<CountsTold, 'failed'>) {
  let failed: { readonly error: unknown; readonly until: number } | null = null;
  return async <T>(count: () => Promise<T>): Promise<T> => {
    const began = now();
    if (failed !== null && began < failed.until) throw failed.error;
    try {
      const counted = await count();
      failed = null;
      return counted;
    } catch (error) {
      told.failed(error);
      const ended = now();
      failed = { error, until: ended + (ended - began) * REST_OF_A_COUNT };
      throw error;
    }
  };
}

/**
 * Creates a daemon's reader of the counts that need a scan of the catalog: it returns new ones if that is cheap,
 * otherwise the last ones, with their time, while new ones are counted in the background. Daemons share them. It
 * throws if Postgres does not answer or refuses to count, and for a while after that. `now`: monotonic milliseconds.
 * `told` hears of each count, because readers mostly do not wait for it.
 */
export function createCountsReader(
  sql: Sql,
  now: () => number = () => performance.now(),
  told: CountsTold = UNTOLD,
): () => Promise<CatalogCounts> {
  const unlessFailed = restingAfterFailure(now, told);
  let waited: Promise<CatalogCounts> | null = null;
  let beside: Promise<void> | null = null;
  return async () => {
    const last = await storedCounts(sql);
    const plan = planCounts(last && { ...last, countedInMs: last.counts.countedInMs });
    if (last === null || plan === 'count') {
      waited ??= unlessFailed(async () => {
        const counts = await countCatalog(sql);
        told.counted();
        return counts;
      }).finally(() => {
        waited = null;
      });
      return await waited;
    }
    if (plan === 'show-and-count')
      // Whatever prevents counting also prevents an answer to the next reader's first statement.
      beside ??= unlessFailed(async () => {
        if (await countCatalogAlone(sql)) told.counted();
      })
        .catch(() => {})
        .finally(() => {
          beside = null;
        });
    return last.counts;
  };
}
