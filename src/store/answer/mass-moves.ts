import { inPieces } from '../../lib/pieces.ts';
import { setApartSince } from '../catalog/unreported.ts';
import { type Queryable, type Sql, transaction, type Tx } from '../connection/db.ts';
import { awaitChanges, isLockNotAvailable } from '../connection/locks.ts';
import { faultOf } from './doubts.ts';
import { askDoubted, keepFaults, PIECE, stateOfFault } from './fault-doubts.ts';
import { type FoundMassMove, GOING_SKUS, type HourOfMoves, isMassMove, turnOf } from './hour-of-moves.ts';
import type { SkuJudgement, UndoubtedMove } from './judgements.ts';
import {
  APART_MINUTES,
  isEachDoubted,
  type KnownMassMove,
  NO_MASS_MOVE,
  OF_FACTOR,
  isFault,
  type MassMove,
  type MassMoved,
} from './mass-move.ts';
import { WINDOW_MS } from './move-counts.ts';
import type { AnswerObservers } from './observers.ts';
import { begunOddly, forgetOddMoves, goOnElsewhere, readOddMoves } from './odd-moves.ts';

/*
 * While prices move implausibly in masses (hour-of-moves.ts), every move is doubted: one row says so for all
 * processes, and SKUs that moved within the hour before are doubted, too. If only some SKUs have moved, by one factor,
 * only those are doubted.
 */

/**
 * Counts what an answer has shown of moves, and begins or ends a mass move; once an hour, learns what is usual. Runs
 * outside of the answer's transaction, as every lesson does. While one answer does this, the process's other answers
 * only count: the next one after it evaluates what they have shown. Returns what began or ended, or null.
 */
export async function followMoves(
  sql: Sql,
  counts: AnswerObservers['moves'],
  judged: readonly SkuJudgement[],
  known: KnownMassMove,
): Promise<MassMoved | null> {
  const { since, usual, kind, factor, isUnfinished = false } = known;
  counts.follow(known);
  counts.note(judged);
  const isRepairing = judged.some(
    ({ judgement }) => judgement.kind === 'ends' && judgement.isRepaired === true,
  );
  if (begunOddly(judged).length > 0) counts.noteBegun(await readOddMoves(sql));
  return await counts.alone(async () => {
    const hour = counts.hour();
    if (isUnfinished && kind !== null) await doubtMeanwhile(sql, { kind, factor }, hour);
    const found = isMassMove(hour, usual, isEachDoubted(known));
    const turned = turnOf(found, hour, known);
    const isToAndFro = turned !== null && turned.kind === kind && !counts.mayTurn();
    const turn = isToAndFro ? null : turned;
    // That some SKUs have begun to have a fault within the hour does not show whether they still have it.
    const isUsual = found === null || (found === 'factor-of-some' && hour.repairedSkus >= GOING_SKUS);
    const mayEnd =
      since !== null &&
      isUsual &&
      counts.areEnough(hour) &&
      (!isFault(kind) || isRepairing || counts.mayAsk());
    if (turn !== null || mayEnd) {
      const moved = turn === null ? await end(sql, hour, counts.hasStood()) : await begin(sql, turn, hour);
      // What has led to it shows nothing about what follows.
      if (moved !== null) counts.follow(moved.event === 'began' ? moved : NO_MASS_MOVE);
      return moved;
    }
    if (!isEachDoubted(known)) await learnUsual(sql, counts.usualMove());
    return null;
  });
}

/** Learns how far prices usually move; null: nothing new. It takes about a day to learn a new usual move. */
async function learnUsual(sql: Sql, move: number | null): Promise<void> {
  if (move === null) return;
  await sql`
    update catalog_internal.mass_move set usual = coalesce(usual + (${move}::real - usual) / 12, ${move}::real)
    where ${unlocked(sql)}`;
}

/**
 * SQL: whether no other session has locked the row. A connection that no longer responds may hold it, which must delay
 * no answer: then the next answer tries again.
 */
const unlocked = (sql: Sql) => sql`id in (select id from catalog_internal.mass_move for update skip locked)`;

/** SQL: the assignments that end a mass move. */
export const noMassMoveSql = (sql: Sql) =>
  sql`since = null, kind = null, answers = null, implausible = null, move = null, factor = null`;

/** Begins a mass move, or turns the present one into a fault or another one. */
async function begin(sql: Sql, turn: FoundMassMove, hourOfMoves: HourOfMoves): Promise<MassMoved | null> {
  const { kind, factor } = turn;
  const isNew = sql`(since is null or ${isFault(kind)} and (kind <> ${kind} or abs(factor - ${factor}::float8) > ${OF_FACTOR}))
    -- Others may have found meanwhile that each move is to be doubted.
    and (since is null or kind = 'factor-of-some' or ${kind !== 'factor-of-some'})`;
  // Zero if the answer was judged before somebody else stored it.
  if ((await sql`select from catalog_internal.mass_move where ${isNew}`).count === 0) return null;
  // Before it is stored, so that the next answer retries what fails here. SKUs that move meanwhile follow below.
  const skus = await doubtMoved(sql, turn);
  const begun = await sql`
    update catalog_internal.mass_move
    set since = coalesce(since, clock_timestamp()), kind = ${kind}, factor = ${factor}, answers = null, implausible = null, move = null
    where ${isNew} and ${unlocked(sql)}`;
  if (begun.count === 0) return null;
  await forgetOddMoves(sql, turn);
  const more = await doubtMeanwhile(sql, turn, hourOfMoves);
  return { event: 'began', skus: skus + more, kind, factor, ...numbersOf(kind, hourOfMoves) };
}

/** Returns the numbers by which an hour has shown a mass move. */
const numbersOf = (kind: MassMove['kind'], { answers, lost, implausible, move }: HourOfMoves) => ({
  answers,
  implausible: kind === 'lost' ? lost : implausible,
  move,
});

/**
 * Doubts SKUs that moved while the mass move was being stored. Its numbers are stored only after that: if this fails,
 * or its process ends, the next answer of any daemon does it. Returns how many SKUs were doubted.
 */
async function doubtMeanwhile(sql: Sql, known: FoundMassMove, hourOfMoves: HourOfMoves): Promise<number> {
  // Waits for answers that were judged before and are being written; later ones see the mass move (doubtIfBegun).
  const areAllSeen = await awaitChanges(sql).then(
    () => true,
    (error: unknown) => {
      if (!isLockNotAvailable(error)) throw error;
      return false;
    },
  );
  const skus = await doubtMoved(sql, known);
  await keepFaults(sql);
  // An answer took longer to write than lock_timeout: the next answer doubts what that one has moved.
  if (!areAllSeen) return skus;
  const { answers, implausible, move } = numbersOf(known.kind, hourOfMoves);
  await sql`
    update catalog_internal.mass_move set answers = ${answers}, implausible = ${implausible}, move = ${move}
    where since is not null and answers is null and ${unlocked(sql)}`;
  return skus;
}

/**
 * Doubts every SKU that moved within the hour (for a fault of some, if it has it), and has it asked again. Returns how
 * many.
 */
async function doubtMoved(sql: Sql, found: FoundMassMove): Promise<number> {
  let skus = 0;
  // A parameter, because no index serves a comparison with clock_timestamp().
  const [{ from }] = await sql<[{ from: string }]>`
    select (clock_timestamp() - make_interval(secs => ${WINDOW_MS / 1000}))::text as from`;
  await inPieces(async (after) => {
    const piece = await doubtPiece(sql, found, { from, after });
    skus += piece.skus;
    return piece.last;
  });
  return skus;
}

/**
 * SQL: the assignments by which a SKU `d`, asked at `askedAt`, is doubted for a mass move and asked again. A SKU that
 * is already due keeps its reason and lane, because it may be due for a report.
 */
const doubtingSql = (sql: Queryable, askedAt: ReturnType<Queryable>, believed: ReturnType<Queryable>) => sql`
  doubt = 'mass-move', doubted_at = ${askedAt}, believed = ${believed}, oddity = null,
  due_at = case when d.outside_due_at is null then least(d.due_at, clock_timestamp()) else d.due_at end,
  outside_due_at = case when d.outside_due_at is not null then least(d.outside_due_at, clock_timestamp()) end,
  held_until = case when d.held_until is null and coalesce(d.outside_due_at, d.due_at) > clock_timestamp()
    then ${askedAt} + make_interval(mins => ${APART_MINUTES}) else d.held_until end,
  reason = case when d.reason = 'scope' or coalesce(d.outside_due_at, d.due_at) <= clock_timestamp() then d.reason else 'doubted' end,
  lane = case when d.outside_due_at is not null or d.due_at <= clock_timestamp() then d.lane
    else catalog_internal.lane_of('doubted') end`;

/**
 * Doubts SKUs that an answer has found moved, if a mass move has begun since it was judged. Call this with the lock of
 * changes held, as the last write of a transaction: whoever begins a mass move waits for that lock, and doubts what
 * was committed by then.
 */
export async function doubtIfBegun(tx: Tx, moved: readonly UndoubtedMove[], at: Date): Promise<void> {
  if (moved.length === 0) return;
  const believed = moved.map((each) => JSON.stringify(Object.fromEntries(each.believed)));
  await tx`
    update catalog_internal.due d set ${doubtingSql(tx, tx`${at}::timestamptz`, tx`n.believed`)}
    from unnest(${moved.map(({ sku }) => sku)}::text[], ${believed}::text[]::jsonb[]) as n(sku, believed)
    -- Of no row: where they have not begun, nothing else is read. What has moved as some have is odd by itself.
    where (select m.since from catalog_internal.mass_move m where m.kind is distinct from 'factor-of-some') is not null and d.sku = n.sku
      and (n.believed <> '{}' or (select m.factor from catalog_internal.mass_move m) is not null)`;
}

/**
 * Doubts the next SKUs after `after`, locked in order of sku, as everyone locks the ledger. `last` is the last of
 * them; null if there was none. Locked first, so that reads include the answers that were waited for.
 */
async function doubtPiece(
  sql: Sql,
  found: FoundMassMove,
  { from, after }: { readonly from: string; readonly after: string },
): Promise<{ readonly last: string | null; readonly skus: number }> {
  return await transaction(sql, async (tx) => {
    const hour = tx`observed_at > ${from}::timestamptz and id > catalog_internal.position_before(${from}::timestamptz) and sku > ${after}`;
    const piece = await tx<{ sku: string }[]>`
      select d.sku from catalog_internal.due d
      where d.sku in (select distinct sku from catalog.price_history where ${hour} order by sku limit ${PIECE})
      order by d.sku for update of d`;
    const last = piece.at(-1)?.sku ?? null;
    if (last === null) return { last, skus: 0 };
    const moved = await tx<MovedPrices[]>`
      with piece as materialized (
        select d.sku from unnest(${piece.map(({ sku }) => sku)}::text[]) as p(sku) join catalog_internal.due d on d.sku = p.sku
        where d.doubt is null
      ),
      moved as materialized (
        select distinct on (sku, size) sku, size, old_price from catalog.price_history
        where ${hour} and sku <= ${last} order by sku, size, id
      )
      -- Of a size that has appeared within the hour nothing was believed, and least of all what it has now.
      select p.sku, jsonb_object_agg(p.size, b.price) filter (where b.price is not null) as before,
        jsonb_object_agg(p.size, p.price) filter (where p.price is not null) as prices
      from piece join catalog.prices p using (sku) left join moved m using (sku, size)
        cross join lateral (select case when m.sku is null then p.price else m.old_price end as price) b
      group by p.sku`;
    const ofFault = ({ before, prices }: MovedPrices) =>
      faultOf(new Map(Object.entries(before ?? {})), new Map(Object.entries(prices ?? {})), found) !== null;
    const doubted = found.kind === 'factor-of-some' ? moved.filter(ofFault) : moved;
    const inside = await tx`
      update catalog_internal.due d set generation = generation + 1, ${doubtingSql(tx, tx`s.asked_at`, tx`n.believed`)}
      from unnest(${doubted.map(({ sku }) => sku)}::text[],
          ${doubted.map(({ before }) => JSON.stringify(before ?? {}))}::text[]::jsonb[]) as n(sku, believed)
        join catalog.skus s using (sku)
      where d.sku = n.sku and s.asked_at is not null
      returning d.outside_due_at is null as "isInside"`;
    return { last, skus: inside.filter((row) => row['isInside'] === true).length };
  });
}

/** The former and present prices of a SKU that has moved; null if it has none. */
interface MovedPrices {
  readonly sku: string;
  readonly before: Readonly<Record<string, number>> | null;
  readonly prices: Readonly<Record<string, number>> | null;
}

/**
 * Has SKUs asked again that have lost all their prices since an hour before `since`: the partner may have been wrong.
 */
async function askLost(sql: Sql, since: Date): Promise<void> {
  const from = new Date(since.getTime() - WINDOW_MS);
  await inPieces(async (after) => {
    const [{ last }] = await sql<[{ last: string | null }]>`
      with lost as materialized (
        select distinct sku from catalog.price_history
        where observed_at > ${from}::timestamptz and id > catalog_internal.position_before(${from}::timestamptz)
          and new_price is null
          and sku > ${after}
        order by sku limit ${PIECE}
      ),
      marked as (
        select catalog_internal.mark_due(array_agg(sku order by sku), 'doubted') from lost l
        where not exists (select from catalog.prices p where p.sku = l.sku and p.price is not null)
          and exists (select from catalog.skus s where s.sku = l.sku and s.state <> 'removed')
      )
      -- The second is read so that it runs: Postgres leaves out a SELECT in WITH that nobody reads.
      select (select max(sku) from lost) as last, (select count(*) from marked)`;
    return last;
  });
}

/** Ends the mass move. `hasStood`: whether nothing has begun, turned or ended for an hour. */
async function end(sql: Sql, hourOfMoves: HourOfMoves, hasStood: boolean): Promise<MassMoved | null> {
  if (await goOnElsewhere(sql, hourOfMoves)) return null;
  const [going] = await sql<Pick<MassMove, 'since' | 'kind' | 'factor'>[]>`
    select since, kind, factor from catalog_internal.mass_move where since is not null`;
  const kind = going?.kind ?? null;
  const wasFault = isFault(kind);
  const fault = wasFault ? await stateOfFault(sql, hourOfMoves.repairedSkus, kind) : 'over';
  if (fault === 'lasts' && going?.kind === 'factor' && hasStood && hourOfMoves.isRecent)
    return await leaveToSome(sql, going, hourOfMoves);
  if (fault !== 'over') return null;
  // All of this is done before the end is stored, so that the next answer retries what fails. Except in these two
  // kinds, SKUs may have lost their prices, before the mass move was found or since.
  if (going !== undefined && !['far', 'factor-of-some'].includes(going.kind)) await askLost(sql, going.since);
  if (wasFault) {
    await keepFaults(sql);
    await askDoubted(sql);
  }
  // What led to the mass move was found within the hour before it. Prices that have only moved `far` did move, and
  // none was implausible: it must stay known that no delta has reported them.
  if (going !== undefined && going.kind !== 'far')
    await setApartSince(sql, new Date(going.since.getTime() - WINDOW_MS));
  await forgetOddMoves(sql, null);
  const [ended] = await sql<{ seconds: number }[]>`
    with before as (select since from catalog_internal.mass_move where since is not null for update skip locked)
    update catalog_internal.mass_move m set ${noMassMoveSql(sql)}
    from before returning extract(epoch from clock_timestamp() - before.since)::float8 as seconds`;
  return ended === undefined ? null : { event: 'ended', seconds: Math.round(ended.seconds) };
}

/**
 * Turns a fault of all into one of some, if an hour's answers are as usual although SKUs of the fault still have it.
 * From now on only these SKUs wait; the others that moved during the fault are asked again.
 */
async function leaveToSome(
  sql: Sql,
  { since, factor }: Pick<MassMove, 'since' | 'factor'>,
  hourOfMoves: HourOfMoves,
): Promise<MassMoved | null> {
  await askLost(sql, since);
  await keepFaults(sql);
  await askDoubted(sql);
  const shown = numbersOf('factor-of-some', hourOfMoves);
  const left = await sql`
    update catalog_internal.mass_move
    set kind = 'factor-of-some', answers = ${shown.answers}, implausible = ${shown.implausible}, move = ${shown.move}
    where kind = 'factor' and abs(factor - ${factor}::float8) <= ${OF_FACTOR} and ${unlocked(sql)}`;
  return left.count === 0 ? null : { event: 'began', skus: 0, kind: 'factor-of-some', factor, ...shown };
}
