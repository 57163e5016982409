import type { Queryable, Sql, Tx } from '../connection/db.ts';
import { type FoundMassMove, GOING_SKUS, type HourOfMoves } from './hour-of-moves.ts';
import type { SkuJudgement } from './judgements.ts';
import {
  HOUR_MINUTES,
  isEachDoubted,
  type KnownMassMove,
  OF_FACTOR,
  isFault,
  isOfAnother,
} from './mass-move.ts';

/*
 * By which factors SKUs have begun to move implausibly within the hour, shared by all processes: of the eight SKUs
 * that show another unit or currency, two daemons may each have asked four, or a daemon that has ended the first four.
 */

/** A SKU that has begun to move implausibly, and by which factor (natural logarithm). */
export interface OddMove {
  readonly sku: string;
  readonly factor: number;
}

/** Most rows that are read, and kept while each move is doubted: more would show nothing new. */
const MOST_READ = 2000;

/** SQL: whether it began within the hour. */
const ofHour = (sql: Queryable) => sql`
  begun_at between clock_timestamp() - make_interval(mins => ${HOUR_MINUTES}) and clock_timestamp()`;

/** Returns the SKUs for which an answer is the first to show an implausible move. Pure. */
export const begunOddly = (judged: readonly SkuJudgement[]): OddMove[] =>
  judged.flatMap(({ sku, sample, judgement }) =>
    judgement.kind === 'begins' && sample?.odd === true && sample.factor !== null
      ? [{ sku, factor: sample.factor }]
      : [],
  );

/**
 * Stores the odd moves that begin with an answer, in its transaction. Leaves out moves of the known fault, which are
 * many and of which each process has counted enough; and while each move is doubted, those beyond MOST_READ.
 */
export async function writeOddMoves(
  tx: Tx,
  judged: readonly SkuJudgement[],
  known: KnownMassMove,
): Promise<void> {
  const begun = begunOddly(judged).filter(
    ({ factor }) => known.factor === null || isOfAnother(factor, known),
  );
  if (begun.length === 0) return;
  await tx`
    insert into catalog_internal.odd_moves (sku, factor, begun_at)
    select sku, factor, clock_timestamp()
    from unnest(${begun.map(({ sku }) => sku)}::text[], ${begun.map(({ factor }) => factor)}::float8[]) as n(sku, factor)
    where ${!isEachDoubted(known)}
      or (select count(*) from (select from catalog_internal.odd_moves where ${ofHour(tx)} limit ${MOST_READ}) l) < ${MOST_READ}`;
}

/** Returns those of the last hour, of all processes, and how many seconds ago they began. */
export async function readOddMoves(sql: Sql): Promise<(OddMove & { readonly seconds: number })[]> {
  return await sql<(OddMove & { seconds: number })[]>`
    select sku, factor::float8 as factor, extract(epoch from clock_timestamp() - begun_at)::float8 as seconds
    from catalog_internal.odd_moves
    where ${ofHour(sql)} order by begun_at desc limit ${MOST_READ}`;
}

/**
 * Returns whether moves in masses go on according to the answers of all processes, if those of this process are too
 * few within the hour. Moves by the known factor are not stored, because the ledger shows them.
 */
export async function goOnElsewhere(sql: Sql, { isRecent }: Pick<HourOfMoves, 'isRecent'>): Promise<boolean> {
  if (isRecent) return false;
  const odd = await readOddMoves(sql);
  return new Set(odd.map(({ sku }) => sku)).size >= GOING_SKUS;
}

/**
 * Deletes the odd moves that have led to a mass move beginning as `found`, or ending (null), because they show nothing
 * about what follows. Factors stay if it is not known yet what they have in common, as in MoveCounts.
 */
export async function forgetOddMoves(sql: Sql, found: FoundMassMove | null): Promise<void> {
  if (found !== null && found.factor === null && !isFault(found.kind)) return;
  const { factor = null, kind = null } = found ?? {};
  const isOfSome = kind === 'factor-of-some';
  await sql`
    delete from catalog_internal.odd_moves
    where ${factor === null} or abs(factor - ${factor}::float8) <= ${OF_FACTOR}
      or (${isOfSome} and abs(factor + ${factor}::float8) <= ${OF_FACTOR})`;
}

/** Deletes odd moves that are older than an hour, or were dated by a clock that was ahead. */
export async function pruneOddMoves(sql: Sql): Promise<void> {
  const hours = sql`make_interval(mins => ${HOUR_MINUTES})`;
  await sql`
    delete from catalog_internal.odd_moves
    where begun_at < clock_timestamp() - ${hours} or begun_at > clock_timestamp() + ${hours}`;
}
