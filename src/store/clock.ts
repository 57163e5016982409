import type { Queryable, Sql } from './connection/db.ts';
import { scanning, transaction } from './connection/db.ts';
import { isAnswer, storeFailure } from './connection/sql-errors.ts';

/** Postgres's clock, and what the daemons know of it. Times in epoch milliseconds. */
export interface DatabaseClock {
  readonly now: number;
  /** The latest time it is known to have shown. It was set back if that is later than now. */
  readonly highWater: number;
  /** How far it was set back, until the times that it wrote are corrected; otherwise null. */
  readonly setBackSeconds: number | null;
  /** How far it is ahead of all other clocks (negative: behind), as a daemon has judged; null if it is neither. */
  readonly aheadSeconds: number | null;
}

/** Returns null if the row is missing. */
export async function readClock(sql: Sql): Promise<DatabaseClock | null> {
  const [row] = await sql<DatabaseClock[]>`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
      (extract(epoch from catalog_internal.clock_high_water()) * 1000)::float8 as "highWater",
      set_back_seconds as "setBackSeconds", ahead_seconds as "aheadSeconds"
    from catalog_internal.clock`;
  return row ?? null;
}

export interface ClockNote {
  /** Whether it has advanced as other clocks did since the last note. */
  readonly steady: boolean;
  /** How far it is ahead of all other clocks; null if it is not, undefined if that is unknown. */
  readonly aheadSeconds?: number | null;
}

/** Since when the clock has run steadily, before and after a note, as text of Postgres. */
export interface SteadySince {
  readonly before: string;
  readonly after: string;
}

/** Stores what a daemon has observed. The high-water mark only grows. Returns null if the row is missing. */
export async function noteClock(sql: Sql, { steady, aheadSeconds }: ClockNote): Promise<SteadySince | null> {
  const [noted] = await sql<SteadySince[]>`
    with noted as materialized (select steady_since from catalog_internal.clock for update)
    update catalog_internal.clock c set high_water = greatest(high_water, clock_timestamp()),
      steady_since = case when ${steady} then c.steady_since else clock_timestamp() end,
      ahead_seconds = case when ${aheadSeconds === undefined} then ahead_seconds else ${aheadSeconds ?? null}::float8 end
    from noted returning noted.steady_since::text as before, c.steady_since::text as after`;
  return noted ?? null;
}

/** Undoes a note's reset of the time since which the clock runs steadily, unless it has been reset again. */
export async function takeBackUnsteady(sql: Sql, { before, after }: SteadySince): Promise<void> {
  await sql`
    -- As text: the driver would send a time without its microseconds.
    update catalog_internal.clock set steady_since = ${before}::text::timestamptz
    where steady_since = ${after}::text::timestamptz and set_back_seconds is null`;
}

/** No call takes this long: if Postgres's clock says that one has, the machine has slept, or that clock was set. */
const LATE = `interval '1 minute'`;

/** SQL: whether Postgres's clock shows far more time since `askedAt` than a call takes. */
export const isLate = (sql: Queryable, askedAt: Date) => sql`
  clock_timestamp() > ${askedAt}::timestamptz + ${sql.unsafe(LATE)}`;

/**
 * SQL: raises the high-water mark before times are written by a clock that may have been set since `askedAt`. The
 * clock may be set back, and this process may end, before any daemon has checked it; what it has dated would then stay
 * in the future. A locked row is skipped: its holder notes the time itself, or is correcting times while it waits for
 * rows of this transaction.
 */
export const notingLateClock = (sql: Queryable, askedAt: Date) => sql`
  update catalog_internal.clock set high_water = greatest(high_water, clock_timestamp())
  where exists (select from catalog_internal.clock where ${isLate(sql, askedAt)} for update skip locked)`;

/**
 * SQL: raises the high-water mark before times are written by a clock that was last noted over a minute ago: it may
 * have been set ahead since. Skips a locked row, like notingLateClock.
 */
export const notingUnseenClock = (sql: Queryable) => sql`
  update catalog_internal.clock set high_water = greatest(high_water, clock_timestamp())
  where exists (
    select from catalog_internal.clock where clock_timestamp() > high_water + ${sql.unsafe(LATE)} for update skip locked
  )`;

/** SKUs corrected per transaction. */
const PIECE = 5000;

/** Postgres has refused to correct these times; `cause` is its answer. */
export class NotPutRight extends Error {
  override readonly name = 'NotPutRight';
  readonly part: string;

  constructor(part: string, cause: unknown) {
    super(`times of ${part} were not put right`, { cause });
    this.part = part;
  }
}

/** Runs one part of the correction. A failure of Postgres as a whole does not count as a refusal of that part. */
async function puttingRight<T>(part: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isAnswer(error) || storeFailure(error) !== null) throw error;
    throw new NotPutRight(part, error);
  }
}

/** How far the clock was set back whose times were corrected. */
export interface SetBack {
  readonly seconds: number;
}

/** The parts that redateRows leaves, in the order of their correction. */
const PARTS = ['SKUs, prices and products', 'the ledger', 'followers', 'the histories'] as const;

/**
 * How far a process has come in correcting times. A finished part is not repeated for the same clock: each repetition
 * would bring forward what waits, although the right clock has dated it since.
 */
export interface RightSoFar {
  /** How many seconds the clock was set back; null if nothing is done. */
  seconds: number | null;
  /** How many of PARTS are done; `after` is the last SKU that is done of the next part. */
  parts: number;
  after: string;
}

export const NOTHING_RIGHT: RightSoFar = { seconds: null, parts: 0, after: '' };

/**
 * Once a clock that was ahead has been set back, corrects the times that it wrote: with times in the future nothing
 * would come due and everything would seem fresh. Everything but the SKUs is corrected at once; SKUs in pieces, so
 * that no session waits long. `done` is the progress of this process and is updated: the next call continues there,
 * unless the clock was set back again. If the process dies, the correction starts again. Returns null if the clock was
 * not set back. History comes last: mass moves are recognised by when moves were observed, so all doubts stay until it
 * is correct.
 * @throws NotPutRight if Postgres refuses, for example because of a seller's trigger: the next call tries that again
 */
export async function putClockRight(
  sql: Sql,
  done: RightSoFar = { ...NOTHING_RIGHT },
): Promise<SetBack | null> {
  await puttingRight('tasks, pace and syncs', () => redateRows(sql));
  const seconds = (await readClock(sql))?.setBackSeconds ?? null;
  if (seconds !== done.seconds) Object.assign(done, NOTHING_RIGHT, { seconds });
  if (seconds === null) return null;
  for (const part of PARTS.slice(done.parts)) {
    await puttingRight(part, async () => await redatePart(sql, part, seconds, done));
    Object.assign(done, { parts: done.parts + 1, after: '' });
  }
  Object.assign(done, NOTHING_RIGHT);
  return { seconds };
}

async function redatePart(
  sql: Sql,
  part: (typeof PARTS)[number],
  seconds: number,
  done: RightSoFar,
): Promise<void> {
  switch (part) {
    case 'SKUs, prices and products':
      return await redatePieces(sql, 'skus', seconds, done);
    case 'the ledger':
      return await redatePieces(sql, 'due', seconds, done);
    case 'followers':
      await sql`select catalog_internal.redate_followers(make_interval(secs => ${seconds}))`;
      return;
    case 'the histories':
      await redateHistories(sql, seconds);
  }
}

async function redatePieces(
  sql: Sql,
  what: 'skus' | 'due',
  seconds: number,
  done: RightSoFar,
): Promise<void> {
  for (let last = await redatePiece(sql, what, seconds, done.after); last !== null;) {
    done.after = last;
    last = await redatePiece(sql, what, seconds, last);
  }
}

async function redateHistories(sql: Sql, seconds: number): Promise<void> {
  await transaction(sql, async (tx) => {
    await scanning(
      tx`select catalog_internal.forget_days_ahead(), catalog_internal.redate_history(make_interval(secs => ${seconds}))`,
    );
    await tx`
      update catalog_internal.clock set set_back_seconds = nullif(greatest(set_back_seconds - ${seconds}, 0), 0)`;
  });
}

/** Corrects everything but SKUs, followers and histories, and records that the clock was set back. */
async function redateRows(sql: Sql): Promise<void> {
  await transaction(sql, async (tx) => {
    const [{ shift }] = await tx<[{ shift: number }]>`select catalog_internal.set_back_clock() as shift`;
    // Earlier rather than later: reports that came after a token stay after it, whichever clock has dated them.
    if (shift > 0)
      await tx`
        update catalog_internal.left_tokens set left_at = least(left_at, clock_timestamp()) - make_interval(secs => ${shift})
        where left_at > clock_timestamp() - make_interval(secs => ${shift})`;
    // Nobody knows when these were taken, and the next sample, which would replace them, may be a minute off.
    await tx`delete from catalog_internal.samples where minute > clock_timestamp()`;
  });
}

/** Returns the last SKU of the piece after `after`, or null if there is none. */
async function redatePiece(
  sql: Sql,
  what: 'skus' | 'due',
  seconds: number,
  after: string,
): Promise<string | null> {
  const name = `catalog_internal.redate_${what}`;
  return await transaction(sql, async (tx) => {
    const [{ last }] = await scanning(tx<[{ last: string | null }]>`
      select ${tx(name)}(make_interval(secs => ${seconds}), ${after}, ${PIECE}) as last`);
    return last;
  });
}

/** Returns whether Postgres's clock is reliable enough to delete data because of its age. */
export async function isClockSteady(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ steady: boolean | null }[]>`select catalog_internal.clock_is_steady() as steady`;
  return row?.steady === true;
}

/**
 * Returns whether the time since which Postgres's clock runs steadily was reset less than a minute ago: a daemon that
 * has just started may undo that once the partner has answered.
 */
export async function isSteadinessNew(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ new: boolean }[]>`
    select steady_since > clock_timestamp() - ${sql.unsafe(LATE)} as new from catalog_internal.clock`;
  return row?.new === true;
}
