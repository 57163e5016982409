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
 * By which factors SKUs have begun to move implausibly within the hour, for all processes: of the eight SKUs that show
 * another unit or currency, two daemons may each have been answered four, or the first four by one that has ended.
 */

/** A SKU that has begun to move implausibly, and by what (natural logarithm). */
export interface OddMove {
  readonly sku: string;
  readonly factor: number;
}

/** So many rows are read, and kept while each move is doubted: more show nothing more. */
const MOST_READ = 2000;

/** SQL: it has begun within the hour. */
const ofHour = (sql: Queryable) => sql`
  begun_at between clock_timestamp() - make_interval(mins => ${HOUR_MINUTES}) and clock_timestamp()`;

/** SKUs of which an answer is the first to say an implausible move. Pure. */
export const begunOddly = (judged: readonly SkuJudgement[]): OddMove[] =>
  judged.flatMap(({ sku, sample, judgement }) =>
    judgement.kind === 'begins' && sample?.odd === true && sample.factor !== null
      ? [{ sku, factor: sample.factor }]
      : [],
  );

/**
 * Stores the odd moves that begin with an answer, in its transaction. None of the known fault, because they are many
 * and each process has counted enough of them; and while each move is doubted, none beyond MOST_READ.
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

/** Those of the last hour, of all processes, and how many seconds ago they have begun. */
export async function readOddMoves(sql: Sql): Promise<(OddMove & { readonly seconds: number })[]> {
  return await sql<(OddMove & { seconds: number })[]>`
    select sku, factor::float8 as factor, extract(epoch from clock_timestamp() - begun_at)::float8 as seconds
    from catalog_internal.odd_moves
    where ${ofHour(sql)} order by begun_at desc limit ${MOST_READ}`;
}

/**
 * Whether moves in masses go on by what the answers of all processes show, if those of this one are too few within the
 * hour. Moves by the known factor are not stored: the ledger tells of these.
 */
export async function goOnElsewhere(sql: Sql, { isRecent }: Pick<HourOfMoves, 'isRecent'>): Promise<boolean> {
  if (isRecent) return false;
  const odd = await readOddMoves(sql);
  return new Set(odd.map(({ sku }) => sku)).size >= GOING_SKUS;
}

/**
 * Deletes the odd moves that have led to a mass move beginning as `found`, or ending (null), because they show nothing
 * of what follows. Factors stay if it is not known yet what they have in common, as MoveCounts keeps them.
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

/** Drops those that are older, or dated by a clock that was ahead. */
export async function pruneOddMoves(sql: Sql): Promise<void> {
  const hours = sql`make_interval(mins => ${HOUR_MINUTES})`;
  await sql`
    delete from catalog_internal.odd_moves
    where begun_at < clock_timestamp() - ${hours} or begun_at > clock_timestamp() + ${hours}`;
}
